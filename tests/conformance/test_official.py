"""All 41 paths of OneRoster 1.2 with every record of three exports, held against the official document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from roster_service.errors import ErrorProfile
from tests.contract.client import CORE, DEMOGRAPHICS, ROOTS
from tests.contract.paths import ENDPOINTS, SINGLES, Endpoint
from tests.offenders import in_one_test

from .conftest import VERSION, Provider
from .official import Official

each_path = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.template)
PARENTS = {f"{kind}Id": f"/{kind}s" for kind in ("school", "term", "course", "student", "teacher", "user")}
PARENTS["classId"] = "/classes"


def list_addresses(provider: Provider, template: str) -> Iterator[str]:
    """The addresses of a path for every record of its parents, or of its collection."""
    if "{" not in template:
        yield template
    elif "{schoolId}/classes/{classId}" in template:
        for taught, school in provider.schools_of_classes.items():
            yield template.format(schoolId=quote(school, safe=""), classId=quote(taught, safe=""))
    else:
        name = template.partition("{")[2].partition("}")[0]
        collection = PARENTS.get(name, template.removesuffix("/{sourcedId}"))
        for one in provider.ids[collection]:
            yield template.format(**{name: quote(one, safe="")})


@in_one_test
@each_path
def test_every_record_is_of_the_official_schema(official: Official, provider: Provider, endpoint: Endpoint) -> None:
    for address in list_addresses(provider, endpoint.template):
        for body in [provider.read(address)] if endpoint.single else provider.read_pages(address):
            assert official.list_errors(endpoint.template, 200, body) == []
            (records,) = body.values()
            provider.records[endpoint.template] += 1 if endpoint.single else len(records)
    assert provider.records[endpoint.template] > 0


@in_one_test
@each_path
def test_every_error_is_of_the_official_schema_or_of_the_specification(
    official: Official, provider: Provider, endpoint: Endpoint
) -> None:
    """The form of the specification is the documented deviation: the object `statusInfoSet` alone."""
    lacking = provider.authorize(CORE if endpoint.template.startswith("/demographics") else DEMOGRAPHICS)
    asked = {
        400: (endpoint.address + "?fields=", provider.authorize()),
        401: (endpoint.address, {}),
        403: (endpoint.address, lacking),
        **({404: (endpoint.unknown, provider.authorize())} if endpoint in SINGLES else {}),
    }
    for status, (address, headers) in asked.items():
        answer = provider.client.fetch(ROOTS[VERSION] + address, headers=headers)
        assert answer.status == status
        deviations = official.list_errors(endpoint.template, status, answer.json)
        if provider.profile is ErrorProfile.OFFICIAL:
            assert deviations == []
        else:
            assert deviations
            assert set(answer.json) == {"statusInfoSet"}
        provider.errors[endpoint.template] += 1


@in_one_test
@each_path
def test_the_served_document_has_the_official_names(official: Official, provider: Provider, endpoint: Endpoint) -> None:
    wanted, served = official.operations[endpoint.template], provider.client.documents[VERSION].paths[endpoint.template]
    assert (served["operationId"], served["tags"]) == (wanted["operationId"], wanted["tags"])
    # The one parameter that the standard does not have: the revision of a pull.
    added = set() if endpoint in SINGLES else {("revision", "query")}
    assert {(item["name"], item["in"]) for item in served["parameters"]} == added | {
        (item["name"], item["in"]) for item in wanted["parameters"]
    }
    scopes = {scope for choice in served["security"] for scope in choice["OAuth2CC"]}
    assert scopes == {scope for choice in wanted["security"] for scope in choice["OAuth2CC"]}
    # 422 is for bodies, which no request has.
    assert set(wanted["responses"]) - {"default", "422"} <= set(served["responses"])


def test_the_document_is_the_official_one(official: Official) -> None:
    assert set(official.operations) == {endpoint.template for endpoint in ENDPOINTS}
    assert "Roster Service" not in json.dumps(official.operations)
