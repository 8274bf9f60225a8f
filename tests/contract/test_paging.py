"""The `limit` and `offset` parameters, `X-Total-Count`, and the `Link` header."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.extent import pair
from tests.offenders import in_one_test

from .client import ROOTS, VERSIONS, RosterClient
from .expected import LISTED, NESTED, Row
from .paths import COLLECTIONS, SINGLES, Endpoint, each_path

each_version = pytest.mark.parametrize("version", VERSIONS)


def query_of(address: str) -> dict[str, str]:
    """The parameters of a link; each stands in it once."""
    pairs = parse_qsl(urlsplit(address).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs), address
    return dict(pairs)


@in_one_test
@pytest.mark.parametrize(
    ("version", "row"),
    [
        pytest.param(version, row, id=f"{row.path}-{version}")
        for version, row in pair([row for row in LISTED + NESTED if row.springfield], VERSIONS)
    ],
)
def test_following_next_gives_every_record_exactly_once(client: RosterClient, version: str, row: Row) -> None:
    answer = client.call(version, row.path, "limit=2", vendor="springfield")
    found = list(answer.ids)
    while "next" in answer.links:
        answer = client.follow(version, answer.links["next"], vendor="springfield")
        assert answer.total == len(row.ids("springfield", version))
        found += answer.ids
    assert found == row.ids("springfield", version)


@in_one_test
@each_version
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 25, 26, 27])
def test_pages_of_any_size_and_order_never_overlap(client: RosterClient, version: str, limit: int, order: str) -> None:
    """Many users share a family name, so the order is held by the sourcedId alone."""
    query = {"sort": "familyName", "orderBy": order, "limit": str(limit), "fields": "sourcedId"}
    whole = client.call(version, "/users", {**query, "limit": "100"}).ids
    answer = client.call(version, "/users", query)
    found = list(answer.ids)
    while "next" in answer.links:
        answer = client.follow(version, answer.links["next"])
        found += answer.ids
    assert found == whole


# The demographics of both exports: ten records.
WINDOWS = [
    pytest.param("", 0, 10, {"last": 0, "first": 0}, id="defaults"),
    pytest.param("limit=0", 0, 0, {}, id="limit-0-counts"),
    pytest.param("limit=0&offset=3", 3, 0, {}, id="limit-0-counts-from-anywhere"),
    pytest.param("limit=3", 0, 3, {"next": 3, "last": 9, "first": 0}, id="first-page"),
    pytest.param("limit=3&offset=3", 3, 3, {"next": 6, "last": 9, "first": 0, "prev": 0}, id="second-page"),
    pytest.param("limit=3&offset=9", 9, 1, {"last": 9, "first": 0, "prev": 6}, id="last-page"),
    pytest.param("limit=5&offset=5", 5, 5, {"last": 5, "first": 0, "prev": 0}, id="last-page-is-full"),
    pytest.param("limit=10", 0, 10, {"last": 0, "first": 0}, id="one-page-exactly"),
    pytest.param("limit=9", 0, 9, {"next": 9, "last": 9, "first": 0}, id="one-record-too-many"),
    pytest.param("limit=3&offset=1", 1, 3, {"next": 4, "last": 9, "first": 0, "prev": 0}, id="offset-off-the-rhythm"),
    pytest.param("limit=00003", 0, 3, {"next": 3, "last": 9, "first": 0}, id="leading-zeros"),
    pytest.param("limit=10000", 0, 10, {"last": 0, "first": 0}, id="largest-limit"),
    pytest.param("limit=3&offset=9223372036854775807", 10, 0, None, id="largest-offset"),
    pytest.param("offset=10", 10, 0, None, id="offset-at-the-end"),
    pytest.param("limit=3&offset=1000", 10, 0, None, id="offset-past-the-end"),
]


@in_one_test
@each_version
@pytest.mark.parametrize(("query", "start", "length", "links"), WINDOWS)
def test_a_page_is_this_window_with_these_links(
    client: RosterClient, version: str, query: str, start: int, length: int, links: dict[str, int] | None
) -> None:
    every = client.call(version, "/demographics").ids
    answer = client.call(version, "/demographics", query)
    assert answer.ids == every[start : start + length]
    assert answer.total == 10
    if links is None:
        assert "next" not in answer.links
        assert (
            client.follow(version, answer.links["first"]).ids == every[: int(query_of(answer.links["first"])["limit"])]
        )
    else:
        assert {name: int(query_of(link)["offset"]) for name, link in answer.links.items()} == links


@each_version
def test_a_count_and_the_page_behind_it_need_nothing_that_was_asked_before(client: RosterClient, version: str) -> None:
    query = {"filter": f"username!='nobody counted this before in {version}'"}
    counted = client.call(version, "/users", {**query, "limit": "0"})
    page = client.call(version, "/users", {**query, "limit": "2", "offset": "2"})
    every = client.call(version, "/users", query).ids
    assert (counted.ids, counted.total, page.total) == ([], len(every), len(every))
    assert page.ids == every[2:4]


@each_version
def test_without_records_there_is_one_page(client: RosterClient, version: str) -> None:
    for query in ("filter=status='none'", "filter=status='none'&limit=5", "filter=status='none'&offset=5"):
        answer = client.call(version, "/users", query)
        assert (answer.ids, answer.total) == ([], 0)
        assert "next" not in answer.links
        assert int(query_of(answer.links["last"])["offset"]) == 0


@in_one_test
@each_path(COLLECTIONS)
def test_links_are_absolute_and_lead_back_to_the_same_path(
    client: RosterClient, version: str, endpoint: Endpoint
) -> None:
    answer = client.call(version, endpoint.address, "limit=1")
    for link in answer.links.values():
        assert link.partition("?")[0] == f"http://localhost{ROOTS[version]}{endpoint.address}"
        assert query_of(link)["limit"] == "1"


@each_path(SINGLES)
def test_a_single_record_has_no_pages(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    assert "Link" not in client.call(version, endpoint.address).headers


CARRIED = {
    "filter": "familyName~'o' OR givenName!='a,b; \"c\" 100% <é>+&=#/?'",
    "fields": "sourcedId,givenName",
    "sort": "familyName",
    "orderBy": "desc",
}


@each_version
@pytest.mark.parametrize("relation", ["next", "last", "first", "prev"])
def test_links_carry_every_other_parameter_as_it_was_given(client: RosterClient, version: str, relation: str) -> None:
    answer = client.call(version, "/users", {**CARRIED, "limit": "4", "offset": "8"})
    link = answer.links[relation]
    assert "," not in link
    carried = query_of(link)
    assert {name: carried[name] for name in CARRIED} == CARRIED
    start = int(carried["offset"])
    whole = client.call(version, "/users", CARRIED).records
    assert client.follow(version, link).records == whole[start : start + 4]


@each_version
def test_links_carry_repeated_fields(client: RosterClient, version: str) -> None:
    link = client.call(version, "/users", "fields=givenName&limit=3&fields=sourcedId,status").links["next"]
    pairs = parse_qsl(urlsplit(link).query)
    assert [text for name, text in pairs if name == "fields"] == ["givenName", "sourcedId,status"]
    assert set(client.follow(version, link).records[0]) == {"givenName", "sourcedId", "status"}


@each_version
def test_links_keep_ids_encoded(client: RosterClient, version: str) -> None:
    path = "/classes/spr-class%2Fstats@1/students"
    answer = client.call(version, path, "limit=1")
    assert answer.links["next"].startswith(f"http://localhost{ROOTS[version]}{path}?")
    assert client.follow(version, answer.links["next"]).ids == ["spr-student-5"]


@each_version
def test_a_comma_in_a_path_does_not_split_the_header(client: RosterClient, version: str) -> None:
    for link in client.call(version, "/schools/a,b/students").links.values():
        assert link.partition("?")[0].endswith("/schools/a%2Cb/students")


NUMBERS = (
    "",
    " ",
    "-1",
    "+5",
    " 5",
    "5 ",
    "1e3",
    "0x10",
    "1.0",
    "1,000",
    "1_0",
    "١٠",
    "²",
    "five",
    "null",
    "%35",
    "5\0",
)


@in_one_test
@each_version
@pytest.mark.parametrize("name", ["limit", "offset"])
@pytest.mark.parametrize("text", [pytest.param(text, id=ascii(text)) for text in NUMBERS])
def test_only_digits_are_a_number(client: RosterClient, version: str, name: str, text: str) -> None:
    answer = client.call(version, "/users", {name: text})
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert f"`{name}`" in answer.description


@each_version
@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("limit=10001", "10000", id="limit"),
        pytest.param("limit=99999999999999999999999999", "10000", id="huge-limit"),
        pytest.param("limit=" + "9" * 5000, "10000", id="limit-of-5000-digits"),
        pytest.param("offset=9223372036854775808", "9223372036854775807", id="offset"),
        pytest.param("offset=" + "9" * 5000, "9223372036854775807", id="offset-of-5000-digits"),
    ],
)
def test_a_number_that_is_too_large_is_refused_with_the_maximum(
    client: RosterClient, version: str, query: str, said: str
) -> None:
    answer = client.call(version, "/users", query)
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert said in answer.description


@each_version
@pytest.mark.parametrize("name", ["limit", "offset", "filter", "orderBy"])
def test_a_repeated_parameter_is_400_even_when_it_says_the_same(client: RosterClient, version: str, name: str) -> None:
    values = {"limit": "5", "offset": "5", "filter": "status='active'", "orderBy": "asc"}
    answer = client.call(version, "/users", [(name, values[name]), (name, values[name])])
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert f"`{name}`" in answer.description


@in_one_test
@each_version
@pytest.mark.parametrize(
    ("query", "name"),
    [
        pytest.param("Limit=5", "Limit", id="other-case"),
        pytest.param("limit=5&page=2", "page", id="beside-known-ones"),
        pytest.param("page=2&page=3", "page", id="repeated"),
        pytest.param("shoeSize", "shoeSize", id="without-a-value"),
        pytest.param("=5", "", id="without-a-name"),
        pytest.param("%20limit=5", " limit", id="space-before"),
        pytest.param("li%6Dit=5&%24filter=x", "$filter", id="encoded-names-are-read"),
        pytest.param("access_token=x", "access_token", id="token-in-the-query"),
    ],
)
def test_an_unknown_parameter_is_named(client: RosterClient, version: str, query: str, name: str) -> None:
    answer = client.call(version, "/users", query)
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert f"`{name}`" in answer.description


@each_version
def test_a_very_long_name_and_very_many_parameters_are_refused_in_few_words(client: RosterClient, version: str) -> None:
    for query in ("x" * 50_000 + "=1", "&".join(f"p{number}=1" for number in range(1000)), "limit=1&" * 200):
        answer = client.call(version, "/users", query)
        assert (answer.status, answer.minor) == (400, "invaliddata")
        assert len(answer.body) < 2000
