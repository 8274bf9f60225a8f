"""What grants open is kept until the roster changes, and is then the very thing that it would be without."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence

import pytest
from sqlalchemy import Connection, Engine, text

from roster_service.access.known_callers import KnownCallers
from roster_service.app import make_serving_engine
from roster_service.db.serving_role import find_serving_role
from roster_service.db.visibility import Sight, keep_sight, open_roster, read_opening
from roster_service.query.warming import warm
from roster_service.rostering.endpoints import list_listings

from .conftest import GRANTS, Served

GRANTED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "nothing": ((), ()),
    "a district": (("spr-district",), ()),
    "two districts": (("spr-district", "shv-district"), ()),
    "a school": ((), ("spr-elementary",)),
    "a district, and a school of another": (("spr-district",), ("shv-north",)),
    "what is not there": (("none",), ("none",)),
}
MOVE = "UPDATE orgs SET district_id = 'shv-district' WHERE sourced_id = 'spr-elementary'"
MOVE_ON = "UPDATE roster_state SET revision = revision + 1"


@pytest.fixture
def own(make_served: Callable[..., Served]) -> Served:
    return make_served()


@pytest.fixture
def serving(own: Served) -> Iterator[Engine]:
    with own.engine.connect() as connection:
        role = find_serving_role(connection)
    engine = make_serving_engine(own.url, role, 5, own_sessions=False)
    yield engine
    engine.dispose()


def open_all(serving: Engine) -> dict[str, object]:
    """What each list of grants opens, with guardians and without: the settings, and the hash that is told of them.

    But for the one that says that no user need be asked for: that is known of nothing but what is kept.
    """
    found: dict[str, object] = {}
    for name, granted in GRANTED.items():
        for guardians in (True, False):
            with serving.connect() as connection:
                told = open_roster(connection, *granted, Sight(guardians, frozenset()))
                opening = dataclasses.replace(read_opening(connection), everyone="")
                found[f"{name}, {guardians}"] = (told, opening)
    assert len({told for told, _ in found.values()}) == len(found) - 2  # type: ignore[misc]
    return found


def count_kept(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(text("SELECT count(*) FROM sights")).scalar_one()


def keep_all(engine: Engine) -> None:
    with engine.begin() as connection:
        for granted in GRANTED.values():
            keep_sight(connection, *granted)


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_what_is_kept_is_what_would_be_worked_out(own: Served, serving: Engine) -> None:
    worked_out = open_all(serving)
    for _ in range(2):
        keep_all(own.engine)
        assert count_kept(own.engine) == len(GRANTED)
        assert open_all(serving) == worked_out
    # So it is indeed read from there.
    run(own.engine, "UPDATE sights SET granted_orgs = '{x}'")
    assert open_all(serving) != worked_out


ADD_USER = (
    "INSERT INTO users (sourced_id, feed_id, status, date_last_modified, enabled_user, given_name, family_name) "
    "SELECT 'alone', feed_id, status, date_last_modified, true, 'A', 'B' FROM users WHERE sourced_id = 'spr-student-1'"
)
ADD_ROLE = (
    "INSERT INTO user_roles (user_id, ordinal, org_id, role, role_type, origin) "
    "VALUES ('alone', 1, '{org}', '{role}', 'primary', 'export')"
)
ADD_DEMOGRAPHICS = (
    "INSERT INTO demographics (sourced_id, feed_id, status, date_last_modified) "
    "SELECT 'alone', feed_id, status, date_last_modified FROM users WHERE sourced_id = 'spr-student-1'"
)
# What was added to the roster -> to whom everyone is open then, with every org granted: to who may see guardians, and
# to who may not.
EVERYONE = {
    "nothing": ((), True),
    "a user without a role": ((ADD_USER,), False),
    "a user of an org that is not there": ((ADD_USER, ADD_ROLE.format(org="gone", role="student")), False),
    "a user with a role": ((ADD_USER, ADD_ROLE.format(org="spr-high", role="student")), True),
    "demographics of nobody": ((ADD_DEMOGRAPHICS,), False),
}


@pytest.mark.parametrize(("added", "everyone"), EVERYONE.values(), ids=EVERYONE)
def test_everyone_is_open_where_no_user_is_hidden(
    own: Served, serving: Engine, added: Sequence[str], everyone: bool
) -> None:
    """From when it is kept: until then each user is asked for."""
    guardians = "SELECT DISTINCT user_id FROM user_roles WHERE role IN ('guardian', 'parent', 'relative')"
    with own.engine.connect() as connection:
        have_guardians = connection.execute(text(guardians)).first() is not None
    assert have_guardians
    run(own.engine, *added, MOVE_ON)
    for kept in (False, True):
        if kept:
            keep_all(own.engine)
        for name, granted in GRANTED.items():
            for sees_guardians in (True, False):
                with serving.connect() as connection:
                    open_roster(connection, *granted, Sight(sees_guardians, frozenset()))
                    told = read_opening(connection).everyone
                    seen = connection.execute(text("SELECT count(*) FROM users")).scalar_one()
                assert told == str(kept and everyone and sees_guardians and name == "two districts").lower()
                if told == "true":
                    with own.engine.connect() as connection:
                        assert seen == connection.execute(text("SELECT count(*) FROM users")).scalar_one()
    run(own.engine, f"DELETE FROM users WHERE sourced_id IN ({guardians})", MOVE_ON)
    keep_all(own.engine)
    with serving.connect() as connection:
        open_roster(connection, *GRANTED["two districts"], Sight(False, frozenset()))
        assert read_opening(connection).everyone == str(everyone).lower()


def test_whoever_hears_that_everyone_is_open_holds_it_against_the_orgs(own: Served) -> None:
    """The first lock is told by the second one what it need not ask, and does not believe it."""
    own.client.call("v1p1", "/users", vendor="springfield")
    run(own.engine, "UPDATE sights SET everyone = true")
    total = {vendor: own.client.call("v1p1", "/users", vendor=vendor).total for vendor in ("springfield", "both")}
    assert 0 < total["springfield"] < total["both"]
    sql = "status='active' OR sourcedId!='x'"
    found = own.client.call("v1p1", "/users", {"filter": sql, "limit": "1000"}, vendor="springfield")
    assert found.total == total["springfield"]
    assert all(not sourced_id.startswith("shv") for sourced_id in found.ids)


@pytest.mark.parametrize(
    ("districts", "schools", "expected"),
    [
        (["spr-district", "shv-district"], [], True),
        (["spr-district"], [], False),
        (["spr-district", None], [None], False),
        ([], None, False),
        (None, None, False),
    ],
)
def test_every_org_is_granted_by_lists_that_name_them_all(
    own: Served, districts: list[str] | None, schools: list[str] | None, expected: bool
) -> None:
    """Whatever else is in the lists."""
    asked = text("SELECT grants_every_org(CAST(:districts AS text[]), CAST(:schools AS text[]))")
    with own.engine.connect() as connection:
        assert connection.scalar(asked, {"districts": districts, "schools": schools}) is expected


def test_of_another_roster_nothing_counts(own: Served, serving: Engine) -> None:
    keep_all(own.engine)
    before = open_all(serving)
    run(own.engine, MOVE, MOVE_ON)
    after = open_all(serving)
    assert after != before
    keep_all(own.engine)
    assert open_all(serving) == after
    assert count_kept(own.engine) == len(GRANTED)


def test_a_reader_of_the_roster_before_has_what_was_open_there(own: Served, serving: Engine) -> None:
    grants, sight = GRANTED["a school"], Sight(guardians=True, metadata=frozenset())
    keep_all(own.engine)

    def open_here(connection: Connection) -> object:
        return open_roster(connection, *grants, sight), read_opening(connection)

    with serving.connect() as connection:
        before = open_here(connection)
        run(own.engine, MOVE, MOVE_ON)
        keep_all(own.engine)
        assert open_here(connection) == before
    with serving.connect() as connection:
        assert open_here(connection) != before


def test_the_sights_of_older_rosters_go(own: Served) -> None:
    keep_all(own.engine)
    run(own.engine, MOVE_ON)
    with own.engine.begin() as connection:
        keep_sight(connection, ("spr-district",), ())
    assert count_kept(own.engine) == 1


def test_the_first_request_of_a_caller_has_it_kept(own: Served) -> None:
    assert count_kept(own.engine) == 0
    own.client.call("v1p2", "/users", vendor="elementary")
    own.client.call("v1p1", "/orgs", vendor="elementary")
    assert count_kept(own.engine) == 1


def test_the_end_of_a_night_has_it_kept_for_every_vendor(own: Served) -> None:
    listings = list_listings()
    warm(own.engine, own.app.extensions["roster_walking_engine"], listings, megabytes=0, seconds=0)
    assert count_kept(own.engine) == len(GRANTS)


def test_a_database_that_takes_no_writes_does_not_keep_callers_out(
    own: Served, serving: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    own.client.call("v1p2", "/users", vendor="elementary")
    (token, known), *_ = own.app.extensions["roster_callers"]._known.items()
    run(own.engine, MOVE_ON)
    reading = KnownCallers(serving)
    with caplog.at_level(logging.WARNING):
        reading.remember(token, known.caller)
    assert reading.recall(token) is not None
    assert "could not be kept: ReadOnlySqlTransaction" in caplog.text
