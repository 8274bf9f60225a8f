"""The OpenAPI documents and the page that shows them."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roster_service.settings import Settings
from roster_service.web import guides, page_assets
from tests.offenders import in_one_test

from .client import ROOTS, SCOPES, VERSIONS, RosterClient
from .conftest import Served
from .document import KNOWN_FORMATS, walk
from .model import FIELDS, MODELS, RESOURCES, required, top_level
from .paths import ENDPOINTS, Endpoint, each_path

SCOPE_ROOT = "https://purl.imsglobal.org/spec/or"
each_version = pytest.mark.parametrize("version", VERSIONS)
DISCOVERY = ("onerosterv1p2rostersservice_openapi3_v1p0.json", "imsorv1p2_rostering_openapi3_v1p0.json")


def model(client: RosterClient, version: str, path: str) -> dict[str, Any]:
    """The model of a resource in a version's document."""
    found: dict[str, Any] = client.documents[version].json["components"]["schemas"][MODELS[path]]
    return found


@each_version
def test_the_document_is_served_without_a_token(client: RosterClient, version: str) -> None:
    answer = client.fetch(f"{ROOTS[version]}/openapi.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json["openapi"].startswith("3.0.")
    assert answer.json["info"]["title"].endswith({"v1p1": "OneRoster 1.1", "v1p2": "OneRoster 1.2"}[version])


@pytest.mark.parametrize("name", DISCOVERY)
def test_the_discovery_path_of_the_standard_has_the_same_document(client: RosterClient, name: str) -> None:
    assert client.fetch(f"{ROOTS['v1p2']}/discovery/{name}").json == client.documents["v1p2"].json


@pytest.mark.parametrize("root", [*ROOTS.values(), "/v1"])
def test_a_trailing_slash_changes_nothing(client: RosterClient, root: str) -> None:
    assert client.fetch(f"{root}/openapi.json/").json == client.fetch(f"{root}/openapi.json").json
    assert client.fetch("/v1/students/", "POST").status == client.fetch("/v1/students", "POST").status == 403


@each_version
def test_the_document_takes_no_other_method(client: RosterClient, version: str) -> None:
    assert client.call(version, "/openapi.json", method="POST").status == 400


@each_version
def test_exactly_the_41_paths_are_documented_as_get_alone(client: RosterClient, version: str) -> None:
    items = client.documents[version].items
    assert set(items) == {"/status", *(endpoint.template for endpoint in ENDPOINTS)}
    assert {method for item in items.values() for method in item} == {"get"}


@each_version
def test_the_addresses_in_the_document_are_those_of_the_installation(client: RosterClient, version: str) -> None:
    document = client.documents[version].json
    # Generators follow no server of a single operation, and the token endpoint is not below the root of the version.
    assert document["servers"] == [{"url": "http://localhost"}]
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert not [operation for operation in operations if "servers" in operation]
    assert set(document["paths"]) - set(client.documents[version].documented.values()) == {
        "/oauth/token",
        "/.well-known/jwks.json",
        "/.well-known/oauth-authorization-server",
    }
    assert "example.org/ims" not in json.dumps(document)


def test_a_public_url_is_the_address_in_the_documents(make_served: Callable[..., Served], served: Served) -> None:
    own = make_served(served.url, public_url="https://roster.district.example")
    for root in (*ROOTS.values(), "/v1"):
        document = own.client.fetch(f"{root}/openapi.json", headers={"Host": "elsewhere.example"}).json
        assert document["servers"] == [{"url": "https://roster.district.example"}]
        assert "elsewhere" not in json.dumps(document)
        assert "contact" not in document["info"]


def test_what_an_agreement_refuses_has_its_header_in_the_documents(client: RosterClient) -> None:
    refusals = set[tuple[str, str]]()
    for root in (*ROOTS.values(), "/v1"):
        document = client.fetch(f"{root}/openapi.json").json
        for path, item in document["paths"].items():
            for status, answer in next(iter(item.values()))["responses"].items():
                name = answer.get("$ref", "").rpartition("/")[2]
                found = document["components"]["responses"][name] if name else answer
                if "X-Roster-Agreement" in found.get("headers", {}):
                    refusals.add(("/oauth/token" if path == "/oauth/token" else root, status))
    assert refusals == {("/oauth/token", "400"), *((root, "403") for root in (*ROOTS.values(), "/v1"))}


@pytest.mark.parametrize(
    ("contact", "member"), [("roster@district.example", "email"), ("https://district.example/roster", "url")]
)
def test_the_contact_of_the_installation_is_in_the_documents(
    make_served: Callable[..., Served], served: Served, contact: str, member: str
) -> None:
    own = make_served(served.url, contact=contact)
    for root in (*ROOTS.values(), "/v1"):
        assert own.client.fetch(f"{root}/openapi.json").json["info"]["contact"] == {member: contact}


@each_version
def test_what_is_never_throttled_says_so(client: RosterClient, version: str) -> None:
    """Every other path documents a 429."""
    for path, item in client.documents[version].json["paths"].items():
        for operation in item.values():
            throttled = "429" in operation["responses"]
            assert throttled is not path.startswith("/.well-known/")
            assert throttled is not ("never throttled" in operation.get("description", ""))


@each_version
def test_the_document_is_of_the_version_of_the_standard(client: RosterClient, version: str) -> None:
    assert client.documents[version].json["info"]["version"] == {"v1p1": "1.1", "v1p2": "1.2"}[version]


@each_version
def test_nothing_of_the_framework_is_in_the_document(client: RosterClient, version: str) -> None:
    for document in (client.documents[version].json, client.fetch("/v1/openapi.json").json):
        operations = [operation for item in document["paths"].values() for operation in item.values()]
        assert not [operation for operation in operations if "default" in operation["responses"]]
        assert not {"PaginationMetadata", "Error"} & set(document["components"]["schemas"])
        used = {tag for operation in operations for tag in operation["tags"]}
        assert {tag["name"] for tag in document["tags"]} == used


@in_one_test
@each_path(ENDPOINTS)
def test_an_operation_documents_its_parameters_scopes_and_refusals(
    client: RosterClient, version: str, endpoint: Endpoint
) -> None:
    operation = client.documents[version].paths[endpoint.template]
    parameters = operation["parameters"]
    in_path = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
    ids = re.findall(r"\{(\w+)Id\}", endpoint.template)
    assert in_path == {"sourcedId" if name == "sourced" else f"{name}SourcedId" for name in ids}
    assert all(parameter["required"] for parameter in parameters if parameter["in"] == "path")
    in_query = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    of_pages = {"limit", "offset", "filter", "sort", "orderBy", "revision"}
    assert in_query == {"fields"} | (set() if endpoint.single else of_pages)
    alternatives = [name for choice in operation["security"] for names in choice.values() for name in names]
    assert sorted(alternatives) == sorted(f"{SCOPE_ROOT}/{version}/scope/{scope}" for scope in endpoint.scopes)
    statuses = {"200", "304", "400", "401", "403", "429", "500", "503"} | ({"404"} if endpoint.single else {"410"})
    assert set(operation["responses"]) == statuses
    assert operation["summary"]


@each_version
def test_every_documented_refusal_has_the_one_envelope(client: RosterClient, version: str) -> None:
    refusals = [
        response
        for operation in client.documents[version].paths.values()
        for status, response in operation["responses"].items()
        if status not in ("200", "304")
    ]
    for response in refusals:
        assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/StatusInfo"}


@each_version
def test_the_bounds_of_parameters_are_documented_as_they_are(client: RosterClient, version: str) -> None:
    operation = client.documents[version].paths["/users"]
    schemas = {item["name"]: item["schema"] for item in operation["parameters"] if item["in"] == "query"}
    assert (schemas["limit"]["default"], schemas["limit"]["maximum"]) == (100, 10_000)
    assert schemas["filter"]["maxLength"] == 4096
    for name in ("limit", "offset", "revision"):
        least, most = schemas[name]["minimum"], schemas[name]["maximum"]
        asked = (least - 1, least, most, most + 1)
        assert [client.call(version, "/users", {name: str(value)}).status for value in asked] == [400, 200, 200, 400]


@each_version
def test_the_token_endpoint_and_every_scope_are_documented(client: RosterClient, version: str) -> None:
    scheme = client.documents[version].json["components"]["securitySchemes"]["OAuth2CC"]
    flow = scheme["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == "http://localhost/oauth/token"
    assert set(flow["scopes"]) == {f"{SCOPE_ROOT}/{version}/scope/{scope}" for scope in SCOPES}


@each_version
def test_every_reference_in_the_document_resolves(client: RosterClient, version: str) -> None:
    document = client.documents[version].json
    found = [value for name, value in walk(document) if name == "$ref"]
    assert found
    for pointer in found:
        inner = document
        for step in pointer.removeprefix("#/").split("/"):
            inner = inner[step]


@each_version
def test_every_format_in_the_document_is_one_that_these_tests_check(client: RosterClient, version: str) -> None:
    used = {value for name, value in walk(client.documents[version].json) if name == "format"}
    assert used <= KNOWN_FORMATS


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_a_model_has_exactly_the_fields_of_the_standard(client: RosterClient, version: str, path: str) -> None:
    documented = model(client, version, path)
    assert set(documented["properties"]) == set(top_level(version, path))
    assert set(documented["required"]) == required(version, path)
    assert documented["additionalProperties"] is False


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_a_selection_of_fields_requires_none(client: RosterClient, version: str, path: str) -> None:
    path_filter = client.documents[version].json["components"]["schemas"][f"{MODELS[path]}Selection"]
    assert set(path_filter["properties"]) == set(top_level(version, path))
    assert not path_filter.get("required")
    assert path_filter["additionalProperties"] is False


EXTENSION = "ext:[a-zA-Z0-9.\\-_]+"
TOKENS = {
    "status": "active tobedeleted",
    "/orgs type": "department district local national school state",
    "/academicSessions type": "gradingPeriod schoolYear semester term",
    "/classes classType": "homeroom scheduled",
    "/enrollments role": "administrator proctor student teacher",
    "/users role": "administrator aide guardian parent proctor relative student teacher",
    "/demographics sex": "female male",
}


@pytest.mark.parametrize("path", RESOURCES)
def test_words_of_1_1_are_closed_lists(client: RosterClient, path: str) -> None:
    tokens = [name for name, kind in FIELDS["v1p1"][path].items() if kind in ("token", "token!")]
    for name in tokens:
        words = TOKENS["status" if name == "status" else f"{path} {name}"].split()
        assert sorted(model(client, "v1p1", path)["properties"][name]["enum"]) == words


@pytest.mark.parametrize("path", RESOURCES)
def test_words_of_1_2_are_open_but_for_the_status(client: RosterClient, path: str) -> None:
    tokens = [name for name, kind in FIELDS["v1p2"][path].items() if kind in ("token", "token!")]
    for name in tokens:
        documented = model(client, "v1p2", path)["properties"][name]
        words = TOKENS["status" if name == "status" else f"{path} {name}"].split()
        words = ["female", "male", "other", "unspecified"] if name == "sex" else words
        if name == "status":
            assert sorted(documented["enum"]) == words
            continue
        assert all(re.search(documented["pattern"], word) for word in [*words, "ext:a.B-c_1"])
        for word in ("", "ext:", "ext:a b", "Xschool", words[0] + "x", words[0].upper(), f"x{words[0]}"):
            assert not re.search(documented["pattern"], word)


@each_version
def test_flags_days_and_instants_are_documented_as_what_they_are(client: RosterClient, version: str) -> None:
    wanted = {"flag": ["enum"], "day": "date", "instant": "date-time"}
    for path in RESOURCES:
        for name, kind in FIELDS[version][path].items():
            documented = model(client, version, path)["properties"][name.rstrip("!")]
            if kind in ("flag", "flag!"):
                assert sorted(documented["enum"]) == ["false", "true"]
            elif isinstance(kind, str) and kind.rstrip("!") in wanted:
                assert documented["format"] == wanted[kind.rstrip("!")]


# --- the page ----------------------------------------------------------------------------------------------------


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/nothing", 404)])
@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html", "image/png", ""])
def test_a_program_gets_json(client: RosterClient, path: str, status: int, accept: str) -> None:
    answer = client.fetch(path, headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json")
    assert answer.json


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/nothing", 404)])
def test_a_browser_gets_a_page_that_leads_to_the_documentation(client: RosterClient, path: str, status: int) -> None:
    answer = client.fetch(path, headers={"Accept": BROWSER})
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert b'href="/docs"' in answer.body
    # The same address has two forms.
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_page_for_browsers_names_every_interface(client: RosterClient) -> None:
    page = client.fetch("/", headers={"Accept": BROWSER}).body
    assert b"by OneRoster 1.1 and 1.2, and by a vendor interface" in page


@pytest.mark.parametrize("path", ["/nothing", "/v2/students", "/oauth2/token", "/docs/nothing"])
def test_a_program_at_an_address_that_is_none_learns_where_all_are(client: RosterClient, path: str) -> None:
    assert "/ lists the addresses" in client.fetch(path).json["error_description"]


def test_the_addresses_at_the_root_exist(client: RosterClient) -> None:
    for name, address in client.fetch("/").json.items():
        assert client.fetch(address).status == (405 if name == "token_endpoint" else 200)


@pytest.mark.parametrize("path", ["/ims/oneroster/v1p1/nothing", "/v1/nothing"])
def test_the_interfaces_answer_in_json_to_browsers_too(client: RosterClient, path: str) -> None:
    answer = client.fetch(path, headers={"Accept": BROWSER})
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/json")


PAGES = ("/docs", "/docs/guide", "/docs/conformance", "/docs/reference")


@pytest.mark.shows(
    "Logs and transport",
    "Only what is published is answered without `no-store`: documents, keys, metadata and assets.",
)
def test_only_what_is_published_may_be_kept(served: Served) -> None:
    caller = served.app.test_client()
    rules = [rule for rule in served.app.url_map.iter_rules() if "GET" in (rule.methods or ())]
    kept = {
        rule.rule
        for rule in rules
        if caller.get(re.sub("<[^>]+>", "x", rule.rule)).headers.get("Cache-Control") != "no-store"
    }
    documents = {path for path in kept if path.endswith("openapi.json") or "/discovery/" in path}
    assert len(documents) == 5
    assert kept - documents == {"/.well-known/jwks.json", "/.well-known/oauth-authorization-server"}


def read_addresses(page: str, *attributes: str) -> list[str]:
    """The values of attributes in a page."""
    return re.findall(rf'(?:{"|".join(attributes)})="(?!data:)([^"]*)"', page)


@pytest.mark.parametrize("path", [*PAGES, *(f"{path}/" for path in PAGES), "/docs/reference/v1p1"])
def test_a_page_is_served_with_and_without_a_trailing_slash(client: RosterClient, path: str) -> None:
    answer = client.fetch(path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    page = answer.body.decode()
    assert page.count("<h1") == 1
    assert re.search(r"<title>[^<]+ – Roster Service</title>", page)
    assert 'name="viewport"' in page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_from_elsewhere_and_runs_no_inline_script(client: RosterClient, path: str) -> None:
    answer = client.fetch(path)
    page = answer.body.decode()
    policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == ("'none'", "'self'", "'none'")
    assert not re.search(r"<script(?![^>]* src=)| on[a-z]+=", page)
    # Beside links in the text, which the reader follows.
    loaded = [*read_addresses(page, "src"), *re.findall(r'<link rel="stylesheet" href="([^"]*)"', page)]
    assert loaded
    for address in loaded:
        found = client.fetch(address)
        assert found.status == 200
        assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert not re.search(rb"@import|url\(\s*['\"]?(https?:)?//", found.body)


@pytest.mark.parametrize("path", PAGES)
def test_every_link_of_a_page_leads_somewhere(client: RosterClient, path: str) -> None:
    page = client.fetch(path).body.decode()
    for address in read_addresses(page, "href"):
        if address.startswith("#"):
            assert f'id="{address[1:]}"' in page, address
        elif not address.startswith("https://"):
            assert client.fetch(address).status == 200, address


def test_a_guide_has_the_text_of_the_documentation_and_the_address_of_the_installation(client: RosterClient) -> None:
    page = client.fetch("/docs/guide", headers={"Host": "roster.district.example"}).body.decode()
    for heading in ("For vendors", "Rostering interface", "Read all students", "Deltas", "Withheld fields", "Limits"):
        assert re.search(f"<h[123](?: id=[^>]*)?>{heading}</h", page)
    assert "http://roster.district.example" in page
    assert "127.0.0.1" not in page


@pytest.mark.parametrize("path", ["/docs/guide", "/docs/conformance"])
def test_a_guide_names_no_command_that_vendors_do_not_have(client: RosterClient, path: str) -> None:
    page = client.fetch(path).body.decode()
    assert not re.search("roster (vendor|client|run) |[.]venv|member[(]|pytest|<code>make (test|conformance)", page)


INSTALLED = {
    "max_limit": (50, "50 by default, at most 50"),
    "token_seconds": (600, "A token lasts 600 seconds"),
    "retention_days": (30, "for 30 days"),
    "contact": ("roster@district.example", "roster@district.example"),
}


def test_the_guide_has_the_values_of_the_installation(make_served: Callable[..., Served], served: Served) -> None:
    """Also its samples: a page that is too large would be refused."""
    own = make_served(served.url, **{name: value for name, (value, _) in INSTALLED.items()})
    page = own.client.fetch("/docs/guide").body.decode()
    plain = guides.render_guide("guide")
    for name, (_, shown) in INSTALLED.items():
        assert shown in page, name
        assert shown not in plain, name
    assert "limit&quot;: 50" in page
    assert "1000" not in page.replace("1,000", "")
    assert "after 7 days" in plain
    assert "after 7 days" not in page
    defaults = guides.put_values(plain, Settings())
    assert defaults == plain
    for phrase in guides.PHRASES:
        assert phrase.format(**guides.list_values(Settings())) in plain, phrase


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/reference/nothing", "/docs/vendors.md", "/docs/..%2Fx"])
def test_there_is_no_other_page(client: RosterClient, path: str) -> None:
    assert client.fetch(path).status == 404


@pytest.mark.parametrize(("path", "current"), [("/docs/guide/", ["/docs/guide"]), ("/docs/vendors.md", [])])
def test_the_navigation_marks_the_page_that_is_shown(client: RosterClient, path: str, current: list[str]) -> None:
    page = client.fetch(path, headers={"Accept": "text/html"}).body.decode()
    assert re.findall('href="([^"]*)" aria-current="page"', page) == current


def test_the_reference_shows_each_document(client: RosterClient) -> None:
    shown = {name: client.fetch(f"/docs/reference/{name}").body.decode() for name in ("v1p1", "v1p2", "vendor")}
    documents = {name: re.findall('data-document="([^"]*)"', page) for name, page in shown.items()}
    assert documents == {
        **{version: [f"{ROOTS[version]}/openapi.json"] for version in VERSIONS},
        "vendor": ["/v1/openapi.json"],
    }


# Of swagger-ui-dist 5.35.0 and htmx.org 2.0.11, with the licence of each.
VENDORED = {
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
}
LICENCES = {"swagger-ui.LICENSE.txt": "Apache License", "htmx.LICENSE.txt": "Zero-Clause BSD"}


@pytest.mark.parametrize("name", VENDORED)
def test_a_file_of_others_is_that_of_its_package(name: str) -> None:
    folder = Path(page_assets.__file__).parent / "assets"
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == VENDORED[name]


@pytest.mark.parametrize("name", LICENCES)
def test_the_licence_of_the_files_of_others_is_beside_them(name: str) -> None:
    assert LICENCES[name] in (Path(page_assets.__file__).parent / "assets" / name).read_text()


def test_a_large_file_is_compressed(client: RosterClient) -> None:
    address = page_assets.find_address("swagger-ui-bundle.js")
    plain, packed = client.fetch(address), client.fetch(address, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize(
    "address",
    [
        "/docs/assets/0123456789abcdef/docs.css",
        "/docs/assets/docs.css",
        page_assets.find_address("docs.css").replace("docs.css", "swagger-ui.LICENSE.txt"),
        page_assets.find_address("docs.css").replace("docs.css", "..%2F__init__.py"),
    ],
)
def test_nothing_else_of_the_folder_is_reachable(client: RosterClient, address: str) -> None:
    assert client.fetch(address).status == 404
