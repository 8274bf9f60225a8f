"""Links between pages, entity tags, and instants in headers."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.instants import format_instant
from roster_service.feeds.roster_state import RosterState, make_state_headers
from roster_service.roster.withheld import WithheldField
from roster_service.rostering.operations import make_etag, make_links

ADDRESS = "https://h/orgs"


def parse(header: str) -> dict[str, list[tuple[str, str]]]:
    """Relation -> the parameters of its link."""
    links = {}
    for part in header.split(", ") if header else []:
        address, _, relation = part.partition("; ")
        assert address.startswith(f"<{ADDRESS}?")
        assert address.endswith(">")
        links[relation.removeprefix('rel="').removesuffix('"')] = parse_qsl(
            address[len(ADDRESS) + 2 : -1], keep_blank_values=True, strict_parsing=True
        )
    return links


REVISION = 7
# limit, offset, total -> the offset of each link.
LINKS = [
    (100, 0, 0, {"last": 0, "first": 0}),
    (100, 0, 1, {"last": 0, "first": 0}),
    (10, 0, 10, {"last": 0, "first": 0}),
    (10, 0, 11, {"next": 10, "last": 10, "first": 0}),
    (10, 10, 503, {"next": 20, "last": 500, "first": 0, "prev": 0}),
    (10, 490, 503, {"next": 500, "last": 500, "first": 0, "prev": 480}),
    (10, 500, 503, {"last": 500, "first": 0, "prev": 490}),
    (10, 5, 503, {"next": 15, "last": 500, "first": 0, "prev": 0}),
    (1, 1, 3, {"next": 2, "last": 2, "first": 0, "prev": 0}),
    (10, 503, 503, {"last": 500, "first": 0, "prev": 500}),
    (10, 5000, 503, {"last": 500, "first": 0, "prev": 500}),
    (10, 10, 10, {"last": 0, "first": 0, "prev": 0}),
    (10, 20, 0, {"last": 0, "first": 0, "prev": 0}),
    (0, 0, 503, {}),
    (0, 7, 503, {}),
]


@pytest.mark.parametrize(
    ("limit", "offset", "total", "offsets"), [pytest.param(*row, id=f"{row[0]}-{row[1]}-of-{row[2]}") for row in LINKS]
)
def test_links_of_a_window(limit: int, offset: int, total: int, offsets: dict[str, int]) -> None:
    links = parse(make_links(ADDRESS, [("revision", "6")], limit, offset, total, REVISION))
    assert {relation: int(dict(pairs)["offset"]) for relation, pairs in links.items()} == offsets
    assert list(links) == [relation for relation in ("next", "last", "first", "prev") if relation in offsets]
    assert all(dict(pairs)["limit"] == str(limit) for pairs in links.values())
    # A first page begins a new pull.
    named = {relation: dict(pairs).get("revision") for relation, pairs in links.items()}
    assert named == {relation: str(REVISION) if start else None for relation, start in offsets.items()}


def test_links_keep_the_other_parameters_in_their_order() -> None:
    pairs = [("fields", "a,b"), ("limit", "1"), ("filter", "x='ü' OR y~'&=+%#'"), ("offset", "0"), ("fields", "c")]
    link = parse(make_links(ADDRESS, pairs, 1, 0, 9, REVISION))["next"]
    assert link == [pairs[0], pairs[2], pairs[4], ("limit", "1"), ("offset", "1"), ("revision", str(REVISION))]


@pytest.mark.parametrize(("length", "relations"), [(100, 4), (1500, 1), (40_000, 1)])
def test_a_long_query_loses_no_page(length: int, relations: int) -> None:
    pairs = [("filter", f"familyName!='{'Ж' * (length // 6)}'")]
    links = parse(make_links(ADDRESS, pairs, 10, 20, 99, REVISION))
    assert (len(links), dict(links["next"])["offset"]) == (relations, "30")
    assert make_links(ADDRESS, pairs, 10, 90, 99, REVISION).count("rel=") == (3 if relations == 4 else 0)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(text=st.text(), limit=st.integers(1, 50), offset=st.integers(0, 200), total=st.integers(0, 150))
def test_links_survive_any_parameter_and_lead_where_they_say(text: str, limit: int, offset: int, total: int) -> None:
    """The header splits on commas; `next` goes on where this page ends, and `last` holds the last record."""
    header = make_links(ADDRESS, [("filter", text)], limit, offset, total, REVISION)
    assert header.isascii()
    links = {relation: dict(pairs) for relation, pairs in parse(header).items()}
    assert header.count(",") == len(links) - 1
    assert {values["filter"] for values in links.values()} == {text}
    starts = {relation: int(values["offset"]) for relation, values in links.items()}
    assert ("next" in starts) is (offset + limit < total)
    assert starts.get("next", offset + limit) == offset + limit
    assert starts["first"] == 0
    assert starts["last"] <= max(0, total - 1) < starts["last"] + limit
    assert ("prev" in starts) is (offset > 0)
    assert starts.get("prev", 0) < max(total, 1)


TOKEN = AccessToken(
    client_id="client-a",
    vendor_id=1,
    grant_version=3,
    client_version=1,
    visibility_key="a key",
    withheld=frozenset({WithheldField.PHONE}),
    metadata_keys=None,
    has_rules=False,
    scopes=(Scope("v1p1", ScopeName.CORE), Scope("v1p1", ScopeName.GUARDIANS)),
    key_id="a key",
    expires_at=0,
)
STATE = RosterState(7, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 14, tzinfo=UTC))

CHANGES = [
    pytest.param({"vendor_id": 2}, {}, id="another-vendor"),
    pytest.param({"grant_version": 4}, {}, id="other-grants"),
    pytest.param({"scopes": (Scope("v1p1", ScopeName.CORE),)}, {}, id="fewer-scopes"),
    pytest.param({"withheld": frozenset({WithheldField.PHONE, WithheldField.SMS})}, {}, id="more-withheld"),
    pytest.param({"withheld": frozenset()}, {}, id="nothing-withheld"),
    pytest.param({}, {"revision": 8}, id="another-revision"),
    pytest.param({}, {"as_of": STATE.deletions_since}, id="another-newest-stamp"),
    pytest.param({}, {"deletions_since": STATE.as_of}, id="another-purge"),
    pytest.param({"vendor_id": 17}, {"revision": 7}, id="17"),
    pytest.param({}, {"later_revision": 8}, id="a-sync-within-a-pull"),
]


@pytest.mark.parametrize(("of_token", "of_state"), CHANGES)
def test_a_tag_changes_with_whatever_changes_an_answer(of_token: dict[str, Any], of_state: dict[str, Any]) -> None:
    token, state = dataclasses.replace(TOKEN, **of_token), dataclasses.replace(STATE, **of_state)
    assert make_etag(token, state, ADDRESS, 1, "100") != make_etag(TOKEN, STATE, ADDRESS, 1, "100")


def test_a_tag_is_the_same_for_the_same_and_other_for_another_address() -> None:
    other_client = dataclasses.replace(TOKEN, client_id="client-b")
    assert make_etag(TOKEN, STATE, ADDRESS, 1, "100") == make_etag(other_client, STATE, ADDRESS, 1, "100")
    assert make_etag(TOKEN, STATE, ADDRESS, 1, "100") != make_etag(TOKEN, STATE, f"{ADDRESS}?limit=1", 1, "100")
    assert make_etag(TOKEN, STATE, ADDRESS, 1, "100") != make_etag(TOKEN, STATE, ADDRESS, 1, "50")


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        pytest.param(datetime(2026, 11, 21, 2, tzinfo=UTC), "2026-11-21T02:00:00.000Z", id="utc"),
        pytest.param(datetime(2026, 11, 21, 2, 0, 0, 1500, tzinfo=UTC), "2026-11-21T02:00:00.001Z", id="microseconds"),
        pytest.param(
            datetime(2026, 11, 21, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
            "2026-11-20T20:30:00.000Z",
            id="offset",
        ),
        pytest.param(datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000Z", id="first-of-all"),
    ],
)
def test_an_instant_is_utc_with_milliseconds(instant: datetime, shown: str) -> None:
    assert format_instant(instant) == shown


def test_the_state_of_the_roster_stands_in_three_headers() -> None:
    assert make_state_headers(STATE) == {
        "X-Roster-Revision": "7",
        "X-Roster-As-Of": "2026-11-21T00:00:00.000Z",
        "X-Roster-Deletions-Since": "2026-11-14T00:00:00.000Z",
    }
