"""Filters that are refused: always 400 `invalid_filter_field`, with the place, and never a record."""

from __future__ import annotations

import pytest

from tests.offenders import in_one_test

from .client import ORGS_METADATA, SCOPES, VERSIONS, RosterClient

each_version = pytest.mark.parametrize("version", VERSIONS)


def case(name: str, text: str, column: int | None, *said: str, path: str = "/users") -> object:
    """A filter, the column (from 1) where it is wrong, and what the description says beside that."""
    return pytest.param(path, text, column, said, id=name)


REFUSED = [
    case("unknown-field", "shoeSize='42'", 1, "shoeSize"),
    case("unknown-field-of-the-second-clause", "status='active' OR shoeSize='42'", 20, "shoeSize"),
    case("field-in-other-case", "familyname='x'", 1, "familyname", "familyName"),
    case("field-of-another-resource", "title='x'", 1, "title"),
    case("field-of-no-resource-at-all", "password='x'", 1, "password"),
    case("reference-without-its-id", "agents='x'", 1, "agents", "agents.sourcedId"),
    case("reference-beyond-its-id", "class.title='x'", 1, "class.title", path="/enrollments"),
    case("href-of-a-reference", "class.href='x'", 1, "class.href", path="/enrollments"),
    case("list-of-objects-alone", "userIds='x'", 1, "userIds"),
    case("resources-that-are-not-served", "resources.sourcedId='x'", 1, "resources", path="/classes"),
    case("metadata-without-a-key", "metadata='x'", 1, "metadata"),
    case("metadata-of-a-resource-that-shows-none", "metadata.color='red'", 1, "metadata", path="/classes"),
    case("very-long-name", "x" * 3000 + "='a'", 1),
    case("flag-in-capitals", "enabledUser='True'", 13, "enabledUser", "'true'"),
    case("flag-as-a-number", "enabledUser='1'", 13, "enabledUser"),
    case("flag-in-order", "enabledUser>'false'", 12, "enabledUser", ">"),
    case("flag-contains", "enabledUser~'tr'", 12, "~"),
    case("instant-that-is-none", "dateLastModified>'yesterday'", 18, "dateLastModified"),
    case("instant-of-no-day", "dateLastModified>'2026-02-30T00:00:00Z'", 18, "dateLastModified"),
    case("instant-in-arabic-digits", "dateLastModified>'٢٠٢٦-١١-٠١'", 18, "dateLastModified"),
    case("instant-contains", "dateLastModified~'2026'", 17, "~"),
    case("day-with-a-time", "birthDate='2012-02-29T00:00:00Z'", 11, "birthDate", path="/demographics"),
    case("day-that-is-none", "birthDate='2011-02-29'", 11, "birthDate", path="/demographics"),
    case("day-contains", "birthDate~'2012'", 10, "~", path="/demographics"),
    case("list-in-order", "grades>'09'", 7, "grades", ">"),
    case("list-with-a-blank-item", "grades='09,,10'", 8, "grades"),
    case("list-of-nothing", "grades=''", 8, "grades"),
    case("third-clause", "status='active' AND role='x' AND email='y'", 30, "2", path="/enrollments"),
    case("third-clause-after-or", "status='a' OR status='b' OR status='c'", 26, "2"),
    case("lower-case-and", "status='active' and email='x'", 17, "AND"),
    case("mixed-case-or", "status='active' Or email='x'", 17, "OR"),
    case("ampersands", "status='active' && email='x'", 17, "AND"),
    case("no-join", "status='active' email='x'", 17),
    case("ends-with-and", "status='active' AND", None),
    case("ends-with-and-and-a-space", "status='active' AND ", None),
    case("begins-with-and", "AND status='active'", None),
    case("parentheses", "(status='active')", 1, "parentheses"),
    case("no-quotes", "status=active", 8, "quote"),
    case("double-quotes", 'status="active"', 8),
    case("typographic-quotes", "status=‘active’", 8),
    case("open-quote", "familyName='O", 12, "quote"),
    case("single-quote-inside", "familyName='O'Brien'", None, "doubled"),
    case("open-quote-after-a-doubled-one", "familyName='O''", 12),
    case("no-operator", "status'active'", 7),
    case("no-value", "status=", 8),
    case("no-field", "='active'", 1),
    case("only-a-field", "status", 7),
    case("two-operators", "status=='active'", 8),
    case("operator-in-words", "status eq 'active'", 8),
    case("like", "status LIKE 'a%'", 8),
    case("injection", "status='active'; DROP TABLE users; --'", None),
    case("injection-in-the-field", "status);--='active'", 7),
    case("dots-in-a-row", "user..sourcedId='x'", None, path="/enrollments"),
    case("dot-at-the-end", "user.='x'", None, path="/enrollments"),
    case("only-spaces", "   ", None, "is empty"),
    case("line-break-between", "status\n='active'", 7),
    case("encoded-twice", "status%3D%27active%27", 7, "encoded"),
    case("nul-in-the-value", "familyName='a\0b'", None, "NUL"),
    case("nul-in-the-field", "family\0Name='x'", None, "NUL"),
    case("nul-alone", "\0", None, "NUL"),
]


@in_one_test
@each_version
@pytest.mark.parametrize(("path", "text", "column", "said"), REFUSED)
def test_a_filter_that_is_refused_says_where_and_why(
    client: RosterClient, version: str, path: str, text: str, column: int | None, said: tuple[str, ...]
) -> None:
    answer = client.call(version, path, {"filter": text})
    assert (answer.status, answer.minor) == (400, "invalid_filter_field")
    explained, _, request = answer.description.rpartition(" (in ")
    assert request.startswith("GET ")
    assert all(part in explained for part in said), explained
    assert column is None or f"column {column} " in explained


def test_the_role_of_1_1_is_refused_in_1_2_with_the_name_that_it_has_there(client: RosterClient) -> None:
    assert "did you mean roles.role?" in client.call("v1p2", "/users", {"filter": "role='student'"}).description


@pytest.mark.parametrize(
    ("version", "name", "meant"),
    [
        ("v1p1", "roles.role", "role"),
        ("v1p1", "primaryOrg.sourcedId", "orgs.sourcedId"),
        ("v1p1", "preferredFirstName", "givenName"),
        ("v1p2", "orgs.sourcedId", "roles.org.sourcedId"),
    ],
)
def test_a_name_of_the_other_version_is_suggested_by_its_meaning(
    client: RosterClient, version: str, name: str, meant: str
) -> None:
    """Not by its letters, which are those of another field."""
    description = client.call(version, "/users", {"filter": f"{name}='x'"}).description
    assert f"; did you mean {meant}? (in " in description


def test_a_selection_by_a_name_of_the_other_version_is_suggested_by_its_meaning(client: RosterClient) -> None:
    for version, name, meant in (("v1p1", "primaryOrg", "orgs"), ("v1p2", "orgs", "roles"), ("v1p2", "role", "roles")):
        description = client.call(version, "/users", {"fields": f"{name},status"}).description
        assert f"'{name}' (did you mean '{meant}'?)" in description


def test_the_roles_of_1_2_are_refused_alone_with_the_names_below_them(client: RosterClient) -> None:
    description = client.call("v1p2", "/users", {"filter": "roles='teacher'"}).description
    assert "write a field below it: roles.roleType, roles.role, " in description


@each_version
@pytest.mark.parametrize("length", [pytest.param(4097, id="one-more-than-allowed"), pytest.param(100_000, id="100-kB")])
def test_a_long_filter_is_refused_by_its_length(client: RosterClient, version: str, length: int) -> None:
    text = f"familyName='{'a' * (length - 13)}'"
    answer = client.call(version, "/users", {"filter": text})
    assert (answer.status, answer.minor) == (400, "invalid_filter_field")
    assert str(length) in answer.description
    assert "4096" in answer.description
    assert len(answer.body) < 2000


@each_version
def test_the_longest_filter_is_taken(client: RosterClient, version: str) -> None:
    assert client.call(version, "/users", {"filter": f"familyName!='{'é' * (4096 - 14)}'"}).total == 26


@each_version
def test_a_filter_on_a_nested_path_is_refused_before_its_parent_is_looked_for(
    client: RosterClient, version: str
) -> None:
    assert client.call(version, "/schools/no-such-school/students", {"filter": "shoeSize='42'"}).status == 400


@each_version
def test_an_offset_that_lost_its_plus_is_refused_with_a_hint(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "filter=dateLastModified>'2026-11-01T00:00:00+00:00'")
    assert (answer.status, answer.minor) == (400, "invalid_filter_field")
    assert "%2B" in answer.description.rpartition(" (in ")[0]


@each_version
@pytest.mark.parametrize(
    "query",
    [
        pytest.param(b"filter=familyName='\xff'", id="raw-bytes"),
        pytest.param("filter=familyName='ü'".encode(), id="raw-utf-8"),
        pytest.param(b"filter=familyName='%FF'", id="encoded-latin-1"),
        pytest.param(b"filter=familyName='%ED%A0%80'", id="encoded-surrogate"),
        pytest.param(b"filter=familyName='%C3'", id="half-a-letter"),
        pytest.param(b"fi%FFlter=x", id="in-a-name"),
        pytest.param(b"sort=%C0%AF", id="overlong"),
    ],
)
def test_a_query_that_is_not_percent_encoded_utf_8_is_400(client: RosterClient, version: str, query: bytes) -> None:
    answer = client.call(version, "/users", raw_query=query)
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert "UTF-8" in answer.description


@pytest.mark.shows("Visibility", "Without its scope, `metadata` is an unknown name.")
@each_version
def test_metadata_is_an_unknown_field_without_its_scope(client: RosterClient, version: str) -> None:
    """Neither a filter nor the hint of its refusal tells that there is such a field."""
    others = [scope for scope in SCOPES if scope != ORGS_METADATA]
    for name in ("metadata", "metadata.city", "metdata.city"):
        answer = client.call(version, "/orgs", {"filter": f"{name}='Springfield'"}, scopes=others)
        assert (answer.status, answer.minor) == (400, "invalid_filter_field")
        assert answer.description.rpartition(" (in ")[0].count("metadata") == name.count("metadata")
