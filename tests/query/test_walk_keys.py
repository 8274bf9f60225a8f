"""Which requests are pages of one walk, and which never may be."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from roster_service.access.roster_state import RosterState
from roster_service.db.visibility import MetadataOf, Sight
from roster_service.query.plan import make_plan
from roster_service.query.selections import everything, users_with_role
from roster_service.query.walks import make_walk
from roster_service.schemas import v1p1, v1p2

from .test_statements import wish

STUDENTS, TEACHERS = users_with_role("student"), users_with_role("teacher")
STATE = RosterState(7, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 14, tzinfo=UTC))
PLAIN: dict[str, Any] = {
    "wish": {"filter": "metadata.a='b'", "limit": 10},
    "sight": Sight(guardians=True, metadata=frozenset({MetadataOf.STUDENTS})),
    "selection": STUDENTS,
    "values": {"caller_districts": ["a", "b"], "caller_schools": ["c"], "base_url": "http://one"},
    "state": STATE,
    "opening": "what row-level security was told",
    "everyone": False,
    "record": v1p2.User,
}


def key_of(**changed: Any) -> bytes:
    """The key of a walk of users; a change of a mapping adds to it."""
    facts = {
        name: value | changed.get(name, {}) if isinstance(value, dict) else changed.get(name, value)
        for name, value in PLAIN.items()
    }
    made = make_plan(wish(**facts["wish"]), facts["record"], facts["sight"], facts["selection"], {})
    return make_walk(made, facts["values"], facts["state"], facts["opening"], everyone=facts["everyone"]).key


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"wish": {"limit": 3}}, id="page-size"),
        pytest.param({"wish": {"offset": 3}}, id="offset"),
        pytest.param({"wish": {"fields": ("email",)}}, id="fields"),
        pytest.param({"wish": {"descending": True}}, id="direction"),
        pytest.param({"values": {"base_url": "http://two"}}, id="address"),
        pytest.param({"values": {"caller_districts": ["b", "a"]}}, id="order-of-the-grants"),
        pytest.param({"everyone": True}, id="how-it-is-found"),
    ],
)
def test_one_walk(changed: dict[str, Any]) -> None:
    assert key_of(**changed) == key_of()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"state": dataclasses.replace(STATE, revision=8)}, id="revision"),
        pytest.param({"opening": "something else"}, id="second-lock"),
        pytest.param({"state": dataclasses.replace(STATE, as_of=STATE.deletions_since)}, id="another-history"),
        pytest.param({"values": {"caller_districts": ["a"]}}, id="districts"),
        pytest.param({"values": {"caller_schools": []}}, id="schools"),
        pytest.param(
            {"values": {"caller_districts": ["a"], "caller_schools": ["b", "c"]}}, id="a-school-for-a-district"
        ),
        pytest.param({"sight": Sight(guardians=False, metadata=frozenset({MetadataOf.STUDENTS}))}, id="guardians"),
        pytest.param({"sight": Sight(guardians=True, metadata=frozenset({MetadataOf.GUARDIANS}))}, id="metadata"),
        pytest.param({"selection": TEACHERS}, id="another-role"),
        pytest.param({"record": v1p1.User}, id="a-filter-of-another-version"),
        pytest.param({"selection": everything}, id="another-path"),
        pytest.param({"wish": {"filter": "metadata.a='c'"}}, id="value"),
        pytest.param({"wish": {"filter": "metadata.c='b'"}}, id="key-of-metadata"),
        pytest.param({"wish": {"filter": "metadata.a!='b'"}}, id="operator"),
        pytest.param({"wish": {"filter": None}}, id="no-filter"),
        pytest.param({"wish": {"sort": "familyName"}}, id="sort"),
    ],
)
def test_another_walk(changed: dict[str, Any]) -> None:
    assert key_of(**changed) != key_of()


def test_who_only_counts_asks_for_no_order() -> None:
    assert key_of(wish={"limit": 0, "sort": "familyName"}) == key_of()
