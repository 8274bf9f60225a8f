"""Requests made from the three OpenAPI documents: no fault, every answer as documented, what is refused refused.

schemathesis makes the requests, right ones and wrong ones, and holds status, content type, headers and body of each
answer against the document. Where it cannot guess what exists, half of its right requests get an id, a filter or
credentials of the roster instead.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from schemathesis.checks import CheckFunction
from schemathesis.core.transport import Response
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.schemas.versions import VERSIONS as SERVED
from tests.contract.client import VERSIONS
from tests.contract.paths import PARENTS, RECORDS

from .conftest import Interfaces

pytestmark = pytest.mark.shows(
    "Logs and transport", "Every answer of the documented paths has `no-store` and `nosniff`."
)

ROOTS = {version.prefix: version.root for version in SERVED}
DISTRICT_LEA = "17-0042"
# Right for every resource.
FILTERS = (
    "status='active'",
    "sourcedId>='spr' AND dateLastModified<'2030-01-01'",
    "sourcedId~'1' OR status!='active'",
    "dateLastModified>'2026-11-01T00:00:00.000Z'",
)


def chance(text: object, count: int) -> int:
    """A number below `count` that follows from the text, the same in every run."""
    return zlib.crc32(repr(text).encode()) % count


def mend_rostering(case: schemathesis.Case) -> bool:
    """Puts what exists into half of the right requests; returns whether the filter is still anyone's text."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return False
    listed = case.operation.path.removesuffix("/{sourcedId}")
    known = {name.replace("Id", "SourcedId"): value for name, value in PARENTS.items()}
    known |= {"sourcedId": next((it for path, it in RECORDS.items() if listed.endswith(path)), "")}
    for name in list(case.path_parameters or {}):
        if chance(case.path_parameters[name], 2):
            case.path_parameters[name] = known[name]
    if case.query and isinstance(case.query.get("fields"), str):
        # A comma inside a name is one between two, which the schema of a name cannot say.
        case.query["fields"] = ",".join(name for name in case.query["fields"].split(",") if name.strip(" "))
    asked = (case.query or {}).get("filter")
    if asked and chance(asked, 2):
        case.query["filter"] = asked = FILTERS[chance(asked, len(FILTERS))]
    return asked is not None and asked not in FILTERS


# What each parameter may be as it is sent; any other name is wrong.
RIGHT = {
    "limit": r"[0-9]{1,4}|10000",
    "offset": r"[0-9]{1,18}",
    "orderBy": "asc|desc",
    "fields": r"(?=.*[^, ])[^\0]{1,4096}",
    "sort": r"[^\0]{0,512}",
    "filter": r"[^\0]*",
}


def is_right_as_sent(response: Response) -> bool:
    """Whether a wrong value became a right one on its way: a query knows no lists, numbers or absent values."""
    sent = parse_qsl(urlsplit(str(response.request.url)).query, keep_blank_values=True)
    return all(name in RIGHT and re.fullmatch(RIGHT[name], value, re.DOTALL) for name, value in sent)


def hold_headers(response: Response) -> None:
    """Personal data is kept by nobody on the way, and the answer is what it says it is."""
    assert response.headers["cache-control"] == ["no-store"]
    assert response.headers["x-content-type-options"] == ["nosniff"]
    assert "server" not in response.headers


def try_rostering(case: schemathesis.Case, interfaces: Interfaces, version: str) -> None:
    """One request, and all that must hold of its answer."""
    free_filter = mend_rostering(case)
    response = case.call(headers=interfaces.headers[version])
    interfaces.note(version, response.status_code)
    excluded: Sequence[CheckFunction] = [negative_data_rejection] if is_right_as_sent(response) else []
    if free_filter and response.status_code == 400:
        # No schema tells a right filter from a wrong one, so its refusal must say that it was the filter.
        assert response.json()["statusInfoSet"]["imsx_codeMinor"] == "invalid_filter_field"
        excluded = [positive_data_acceptance]
    if response.status_code == 410:
        # Nor a pull that goes on from one that has ended.
        excluded = [positive_data_acceptance]
    case.validate_response(response, excluded_checks=list(excluded), headers=interfaces.headers[version])
    hold_headers(response)


def try_vendors(case: schemathesis.Case, interfaces: Interfaces, document: str) -> None:
    """One request of a vendor, and all that must hold of its answer."""
    if case.meta is not None and case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        body, known = case.body, chance(case.body, 4)
        if known and "districtlea" in body:
            body["districtlea"] = DISTRICT_LEA
        elif known and "password" in body:
            body |= {"email": interfaces.account.email, "password": interfaces.account.password}
    response = case.call(headers=interfaces.headers[document])
    interfaces.note(document, response.status_code)
    # No schema tells a pull that goes on from one that has ended.
    excluded = [positive_data_acceptance] if response.status_code == 410 else []
    case.validate_response(response, excluded_checks=excluded, headers=interfaces.headers[document])
    hold_headers(response)


def run_operation(document: BaseSchema, path: str, trial: Callable[[schemathesis.Case], None]) -> None:
    """Tries the one operation of a path with every request that is made for it."""
    found = get_all_tests(schema=document.include(path=path), test_func=trial, settings=None, given_kwargs={})
    operations = [result.ok() for result in found]
    assert [operation.path for operation, _ in operations] == [path]
    for _, run in operations:
        run()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_a_rostering_path_is_as_documented(
    documents: Mapping[str, BaseSchema], interfaces: Interfaces, version: str, endpoint: Endpoint
) -> None:
    def trial(case: schemathesis.Case) -> None:
        try_rostering(case, interfaces, version)

    path = re.sub(r"\{((?!sourced)\w+)Id\}", r"{\1SourcedId}", endpoint.path)
    run_operation(documents[version], f"{ROOTS[version]}{path}", trial)


@pytest.mark.parametrize("path", ["/login", "/students"])
def test_a_path_for_vendors_is_as_documented(
    documents: Mapping[str, BaseSchema], interfaces: Interfaces, path: str
) -> None:
    def trial(case: schemathesis.Case) -> None:
        try_vendors(case, interfaces, "v1")

    run_operation(documents["v1"], f"/v1{path}", trial)


@pytest.fixture(scope="module", autouse=True)
def every_interface_was_open(interfaces: Interfaces) -> Iterator[None]:
    """Requests that nobody lets in would prove nothing."""
    yield
    for document, counted in interfaces.counted.items():
        assert counted[200] > counted.total() / 20, document
