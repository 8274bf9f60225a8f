"""Each of the 82 (version, path): what it returns to whom, and what it refuses, in the order of refusals."""

from __future__ import annotations

import re

import pytest

from tests.deploy.proxy import CONFIGURATION
from tests.offenders import in_one_test

from .client import CORE, DEMOGRAPHICS, FULL, ROOTS, SCOPES, VERSIONS, RosterClient
from .conftest import Served
from .expected import LISTED, NESTED, Row
from .paths import COLLECTIONS, ENDPOINTS, SINGLES, Endpoint, each_path
from .paths import NESTED as NESTED_ENDPOINTS

OTHER = {"v1p1": "v1p2", "v1p2": "v1p1"}

each_version = pytest.mark.parametrize("version", VERSIONS)


def each_row(*rows: Row) -> pytest.MarkDecorator:
    """One test per row, named by its address."""
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.path) for row in rows])


def test_the_table_has_the_41_paths_and_rows_for_each_collection(client: RosterClient) -> None:
    """The tables of these tests are whole: what they hold is held for every path."""
    assert len({endpoint.template for endpoint in ENDPOINTS}) == 41
    for version in VERSIONS:
        document = client.documents[version]
        assert set(document.paths) == {endpoint.template for endpoint in ENDPOINTS} | {"/status"}
        assert {document.find(row.path) for row in LISTED + NESTED} == {item.template for item in COLLECTIONS}


@in_one_test
@each_path(ENDPOINTS)
def test_the_answer_has_one_key(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.address)
    assert answer.status == 200
    assert list(answer.json) == [endpoint.key]
    assert isinstance(answer.json[endpoint.key], dict if endpoint.single else list)
    assert answer.records
    assert not endpoint.single or answer.total == 1


@in_one_test
@each_version
@each_row(*LISTED, *NESTED)
def test_a_collection_has_exactly_the_records_of_the_exports(client: RosterClient, version: str, row: Row) -> None:
    """For each vendor those, and no others."""
    for vendor in ("both", "springfield", "elementary"):
        answer = client.call(version, row.path, vendor=vendor)
        assert answer.ids == row.ids(vendor, version)
        assert answer.total == len(row.ids(vendor, version))


@in_one_test
@pytest.mark.parametrize(("version", "vendor"), [("v1p1", "springfield"), ("v1p2", "elementary")])
@each_row(*LISTED)
def test_a_record_is_found_by_its_id_exactly_where_its_collection_has_it(
    client: RosterClient, version: str, row: Row, vendor: str
) -> None:
    """Ids of the same resource that the path or the vendor does not have are as unknown as made-up ones."""
    visible = row.ids(vendor, version)
    kinds = {"/schools": "/orgs", "/terms": "/academicSessions", "/gradingPeriods": "/academicSessions"}
    kinds |= {"/students": "/users", "/teachers": "/users"}
    (every,) = (other for other in LISTED if other.path == kinds.get(row.path, row.path))
    listed = {record["sourcedId"]: record for record in client.call(version, row.path, vendor=vendor).records}
    assert list(listed) == visible
    for sourced_id in every.ids("both", version):
        answer = client.call(version, f"{row.path}/{sourced_id.replace('/', '%2F')}", vendor=vendor)
        if sourced_id in visible:
            assert answer.records == [listed[sourced_id]]
        else:
            assert (answer.status, answer.minor) == (404, "unknownobject")


@each_path(SINGLES)
def test_an_unknown_record_is_a_404_that_names_it(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.unknown)
    assert (answer.status, answer.minor) == (404, "unknownobject")
    assert "no-such-record" in answer.description


@in_one_test
@each_path(NESTED_ENDPOINTS)
def test_an_unknown_parent_has_an_empty_collection(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.unknown)
    assert answer.json == {endpoint.key: []}
    assert answer.total == 0


@in_one_test
@each_path(NESTED_ENDPOINTS)
def test_any_unknown_parent_of_two_is_enough(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    known, unknown = endpoint.address.split("/"), endpoint.unknown.split("/")
    for place, segment in enumerate(unknown):
        if segment != known[place]:
            mixed = "/".join([*known[:place], segment, *known[place + 1 :]])
            assert client.call(version, mixed).json == {endpoint.key: []}


@in_one_test
@each_path(ENDPOINTS)
def test_without_a_token_it_is_401(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.address, bearer=None)
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


@in_one_test
@each_path(ENDPOINTS)
def test_a_token_of_the_other_version_is_400(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.address, bearer=client.token(OTHER[version]))
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert "v1p1" in answer.description
    assert "v1p2" in answer.description


@in_one_test
@each_path(ENDPOINTS)
def test_exactly_the_scopes_of_the_path_open_it(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    """Each of them alone does; all others together do not, and the refusal names what is missing."""
    for scope in endpoint.scopes:
        assert client.call(version, endpoint.address, scopes=[scope]).status == 200
    others = [scope for scope in SCOPES if scope not in endpoint.scopes]
    answer = client.call(version, endpoint.address, scopes=others)
    assert (answer.status, answer.minor) == (403, "forbidden")
    assert all(f"{version}/{scope}" in answer.description for scope in endpoint.scopes)


@in_one_test
@each_path(ENDPOINTS)
def test_an_unknown_parameter_is_400_that_names_it(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    answer = client.call(version, endpoint.address, "fields=sourcedId&shoeSize=42")
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert "`shoeSize`" in answer.description


@each_path(SINGLES)
def test_a_single_record_takes_fields_alone(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    for query in ("filter=status='active'", "sort=status", "orderBy=asc"):
        answer = client.call(version, endpoint.address, query)
        assert (answer.status, answer.minor) == (400, "invaliddata")
        assert f"`{query.split('=')[0]}`" in answer.description


@each_version
def test_a_single_record_ignores_the_paging_of_libraries(client: RosterClient, version: str) -> None:
    plain = client.call(version, "/users/spr-student-1")
    assert client.call(version, "/users/spr-student-1", "limit=100&offset=0").json == plain.json


@each_version
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/teachers/spr-student-1", "teacher"), ("/schools/spr-district", "school"), ("/terms/none", "term")],
)
def test_an_unknown_record_is_called_what_its_path_selects(
    client: RosterClient, version: str, path: str, kind: str
) -> None:
    answer = client.call(version, path)
    assert (answer.status, answer.description.startswith(f"there is no {kind} with the sourcedId '")) == (404, True)


@in_one_test
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path", ["", "/", "/v1p0/users", "/v1p3/users", "/v1p2", "/v1p2/users", "/rostering/v1p1/users"]
)
def test_another_version_prefix_is_400_that_names_the_roots(client: RosterClient, path: str, method: str) -> None:
    answer = client.fetch(f"/ims/oneroster{path}", method)
    assert (answer.status, answer.minor) == (400, "invaliddata")
    if method == "GET":
        assert all(root in answer.description for root in ROOTS.values())


@each_version
@pytest.mark.parametrize("name", ["access_token", "token", "client_secret", "api-key", "x-api-key", "Access_Token"])
def test_a_secret_in_the_url_is_not_in_the_text_of_the_error(client: RosterClient, version: str, name: str) -> None:
    answer = client.call(version, "/users", f"a=1&{name}=eyJ-secret&limit=2", bearer=None)
    assert (answer.status, "eyJ-secret" in answer.description) == (401, False)
    assert f"?a=1&{name}=***&limit=2)" in answer.description
    assert "with a token of /oauth/token; a token in the URL does not count" in answer.description


@in_one_test
@each_path(ENDPOINTS)
def test_any_other_method_is_400(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        answer = client.call(version, endpoint.address, method=method)
        assert answer.status == 400, method
        assert answer.headers["Content-Type"] == "application/json"
        if method != "HEAD":
            assert answer.minor == "invaliddata"
            assert method in answer.description


@in_one_test
@each_path(ENDPOINTS)
def test_refusals_come_in_order(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    """A request with every fault is refused for the first; mended step by step, for the next, down to the record."""
    address, query = endpoint.unknown, "shoeSize=42"
    other = [scope for scope in SCOPES if scope not in endpoint.scopes]

    method = client.call(version, address, query, method="DELETE", bearer=None)
    assert (method.status, "DELETE" in method.description) == (400, True)
    token = client.call(version, address, query, bearer="not.a.token")
    assert token.status == 401
    prefix = client.call(version, address, query, bearer=client.token(OTHER[version], other))
    assert (prefix.status, "v1p2" in prefix.description) == (400, True)
    scope = client.call(version, address, query, scopes=other)
    assert scope.status == 403
    parameter = client.call(version, address, query)
    assert (parameter.status, "`shoeSize`" in parameter.description) == (400, True)
    record = client.call(version, address)
    if endpoint.single:
        assert record.status == 404
    else:
        assert record.status == 200


@in_one_test
@each_version
@pytest.mark.parametrize(
    "path",
    ["", "/", "/resources", "/orgs//", "/users/spr-student-1//", "/users/a/classes/b", "/Users", "/lineItems"],
)
def test_an_unknown_path_is_a_404(client: RosterClient, version: str, path: str) -> None:
    answer = client.call(version, path)
    assert (answer.status, answer.minor) == (404, "unknownobject")


@each_version
def test_an_unknown_path_takes_no_other_method_either(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/resources", method="POST")
    assert (answer.status, answer.minor) == (400, "invaliddata")


@each_version
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_names_the_request(client: RosterClient, version: str, status: int) -> None:
    requests = {
        400: {"path": "/users", "query": "limit=-1"},
        401: {"path": "/users", "bearer": None},
        403: {"path": "/demographics", "scopes": (CORE, FULL)},
        404: {"path": "/users/no-such-record", "scopes": (CORE, DEMOGRAPHICS)},
    }
    request = requests[status]
    answer = client.call(version, **request)  # type: ignore[arg-type]
    assert answer.status == status
    address = f"{ROOTS[version]}{request['path']}" + (f"?{request['query']}" if "query" in request else "")
    assert f"GET {address}" in answer.description


# What the service shows of itself to its operator.
INSIDE = {"/livez", "/readyz"}


def test_the_proxy_of_the_recipe_passes_each_path_on_that_is_for_others(served: Served) -> None:
    locations = re.findall(r"^ +location (?:= )?(/\S*) \{[^}]*proxy_pass", CONFIGURATION.read_text(), re.MULTILINE)
    paths = {rule.rule.partition("<")[0] for rule in served.app.url_map.iter_rules()}
    passed = {path for path in paths if any(path.startswith(it) for it in locations if it != "/" or path == "/")}
    assert paths - passed == INSIDE
