"""Kept documents say what would be made of the records, for everyone, whatever the syncs bring, with either lock."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, func, select, text, true, update

from roster_service.db import tables
from roster_service.db.document_tables import documents, shelves
from roster_service.db.engine import make_reading_engine
from roster_service.db.needs import has_documents
from roster_service.db.serving_role import find_serving_role
from roster_service.db.visibility import Sight, open_roster
from roster_service.query import documents as reading
from roster_service.query import shelves as filling
from roster_service.query.documents import BASE, key_of
from roster_service.query.params import Wish
from roster_service.query.plan import Plan, View, make_plan, make_view
from roster_service.query.selections import everything
from roster_service.query.shelves import IDLE, Means, drop_shelves, fill
from roster_service.query.statements import page_statement
from roster_service.query.walk_statements import listed_page_statement
from roster_service.schemas.versions import ENROLLMENTS, USERS, V1P1, V1P2, VERSIONS
from sync_scripts.loading import Options, load
from sync_scripts.purge import purge
from sync_scripts.refusals import RefusedExportError
from tests.access_matrix.locks import forget_statements
from tests.shelves import every_sight, every_view, fill_all
from tests.sync.conftest import empty_roster
from tests.sync.roster_model import Export
from tests.sync.small_exports import FEEDS, exports, write_export

SEQUENCES = int(os.environ.get("SYNC_SEQUENCES", "8"))
RECORDS = [record for version in VERSIONS for record in version.records.values() if has_documents(record.table)]
ORGS = [f"{feed}-{key}" for feed in FEEDS for key in ("d", "s1", "s2")]
ALL = Sight(guardians=True, metadata=frozenset())


@dataclasses.dataclass(frozen=True)
class Look:
    """Someone who looks at all records of a view: what they are granted, and what either lock is told of it."""

    view: View
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    first: bool
    second: bool
    # Told to the second lock; the view tells the first.
    guardians: bool


LOOKS = st.builds(
    lambda record, sight, districts, schools, lock, guardians: Look(
        make_view(record, sight),
        tuple(sorted(districts)),
        tuple(sorted(schools)),
        first=lock != "second",
        second=lock != "first",
        guardians=sight.guardians if lock != "second" else guardians,
    ),
    st.sampled_from(RECORDS),
    st.sampled_from(list(every_sight())),
    st.sets(st.sampled_from([org for org in ORGS if org.endswith("d")]), max_size=2),
    st.sets(st.sampled_from(ORGS), max_size=3),
    st.sampled_from(["both", "both", "first", "second"]),
    st.booleans(),
)


@dataclasses.dataclass(frozen=True)
class Night:
    """A feed brings an export, and then some look."""

    feed: str
    export: Export
    purges: bool
    looks: list[Look]


NIGHTS = st.sampled_from(FEEDS).flatmap(
    lambda feed: st.builds(Night, st.just(feed), exports(feed), st.booleans(), st.lists(LOOKS, min_size=6, max_size=6))
)


@pytest.fixture
def readers(database_url: str, engine: Engine) -> Iterator[Callable[[bool], Engine]]:
    """Engines that read: held by row-level security, or not."""
    with engine.connect() as connection:
        roles = {True: find_serving_role(connection), False: None}
    made = {
        second: make_reading_engine(database_url, role=role, statement_seconds=60, pool_size=1, own_sessions=False)
        for second, role in roles.items()
    }
    yield made.__getitem__
    for each in made.values():
        each.dispose()


def make_whole_plan(view: View) -> Plan:
    """The plan of everything."""
    return make_plan(Wish(10**6, 0, None, None, False, None), view.record, view.sight, everything, {})


def read(readers: Callable[[bool], Engine], look: Look, ids: list[str], every_org: list[str]) -> tuple[str, str]:
    """(the records as they are made, the records as they are read), of all whose ids are named, seen or not."""
    plan = make_whole_plan(look.view)
    values: dict[str, Any] = {
        "caller_districts": list(look.districts),
        "caller_schools": list(look.schools) if look.first else every_org,
        "base_url": BASE,
    }
    with readers(look.second).connect() as connection:
        sight = dataclasses.replace(look.view.sight, guardians=look.guardians)
        open_roster(connection, look.districts, look.schools, sight)
        live = connection.scalars(page_statement(plan), {**values, "page_limit": 10**6, "page_offset": 0}).all()
        kept = connection.execute(listed_page_statement(plan.outline), {**values, "page_ids": ids}).all()
        shelf = select(shelves.c.id).where(shelves.c.key == key_of(look.view)).scalar_subquery()
        used = connection.scalar(select(func.count()).where(documents.c.shelf == shelf)) if look.second else None
    event(
        f"{look.view.record.table.name}: {'documents' if used else 'no documents' if used == 0 else 'first lock alone'}"
    )
    assert sum(row.records for row in kept) == len(live)
    return ",".join(live), ",".join(row.body for row in kept)


def load_night(engine: Engine, night: Night, folder: Path) -> None:
    """The night of a feed. Metadata, which exports of this kind do not have, comes with what is written."""
    try:
        load(engine, night.feed, write_export(night.export, folder), options=Options(allow_mass_delete=True))
    except RefusedExportError:
        event("refused")
    with engine.begin() as connection:
        for table in tables.ROSTER_TABLES:
            shown = func.jsonb_build_object("of", table.c.sourced_id)
            connection.execute(update(table).where(table.c.metadata.is_(None)).values(metadata=shown))
    if night.purges:
        purge(engine, 0)


@settings(
    max_examples=SEQUENCES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(nights=st.lists(NIGHTS, min_size=2, max_size=4))
def test_documents_are_what_would_be_made_whatever_syncs_bring(
    engine: Engine, readers: Callable[[bool], Engine], nights: list[Night]
) -> None:
    empty_roster(engine)
    with engine.begin() as connection:
        connection.execute(delete(documents))
        connection.execute(delete(shelves))
    with tempfile.TemporaryDirectory() as folder:
        for number, night in enumerate(nights):
            load_night(engine, night, Path(folder) / str(number))
            fill_all(engine, {key_of(look.view): look.view for later in nights for look in later.looks}.values())
            with engine.connect() as connection:
                ids = {table: list_ids(connection, table) for table in tables.ROSTER_TABLES}
            for look in night.looks:
                live, kept = read(readers, look, ids[look.view.record.table], ids[tables.orgs])
                assert kept == live


def list_ids(connection: Connection, table: Any) -> list[str]:
    """Every id of a table, in order."""
    return list(connection.scalars(select(table.c.sourced_id).order_by(table.c.sourced_id)))


# --- a roster of two districts -----------------------------------------------------------------------------------


@pytest.fixture
def district(writing: Engine) -> str:
    """A district of the roster."""
    orgs = tables.orgs.c
    with writing.connect() as connection:
        return connection.execute(select(func.min(orgs.sourced_id)).where(orgs.type == "district")).scalar_one()


def count_documents(connection: Connection) -> int:
    """How many a connection sees."""
    return connection.execute(select(func.count()).select_from(documents)).scalar_one()


def test_without_any_lock_a_document_is_shown_to_everyone(
    asker: Any, writing: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the tests of the locks would see it."""
    view = make_view(V1P1.records[USERS], ALL)
    fill_all(writing, [view])
    plan = make_whole_plan(view)
    with writing.connect() as connection:
        ids = list_ids(connection, tables.users)
    values = {"caller_districts": [], "caller_schools": [], "base_url": BASE, "page_ids": ids}

    def count_shown() -> int:
        forget_statements()
        with asker.reading.connect() as connection:
            return sum(row.records for row in connection.execute(listed_page_statement(plan.outline), values))

    assert count_shown() == 0
    monkeypatch.setattr(reading, "document_is_visible", lambda _sight: true())
    assert count_shown() > 100
    monkeypatch.undo()
    forget_statements()


@pytest.mark.parametrize("dropped", [False, True], ids=["with-its-policy", "without"])
def test_the_second_lock_holds_documents_by_itself(writing: Engine, district: str, dropped: bool) -> None:
    """Whatever the statement says, or forgets to say."""
    fill_all(writing, [make_view(V1P1.records[USERS], ALL)])
    with writing.connect() as connection, connection.begin() as transaction:
        role = find_serving_role(connection)
        if dropped:
            connection.execute(text("ALTER TABLE documents DISABLE ROW LEVEL SECURITY"))
        everything_kept = count_documents(connection)
        connection.execute(text(f'SET LOCAL ROLE "{role}"'))
        seen = {}
        for name, districts, guardians in (
            ("nothing", [], True),
            ("no guardians", [district], False),
            ("district", [district], True),
        ):
            open_roster(connection, districts, [], Sight(guardians, frozenset()))
            seen[name] = count_documents(connection)
        transaction.rollback()
    if dropped:
        assert set(seen.values()) == {everything_kept}
    else:
        assert seen["nothing"] == seen["no guardians"] == 0
        assert 0 < seen["district"] < everything_kept


def test_documents_of_another_roster_are_nobodys(writing: Engine, district: str) -> None:
    fill_all(writing, [make_view(V1P1.records[USERS], ALL)])
    with writing.connect() as connection, connection.begin() as transaction:
        role = find_serving_role(connection)
        connection.execute(update(tables.roster_state).values(revision=tables.roster_state.c.revision + 1))
        connection.execute(text(f'SET LOCAL ROLE "{role}"'))
        open_roster(connection, [district], [], ALL)
        assert count_documents(connection) == 0
        transaction.rollback()


def test_views_that_differ_in_nothing_share_a_shelf() -> None:
    """Of enrollments and classes, no right changes the text."""
    assert {view.record.table.name for view in every_view().values()} == {
        "users",
        "classes",
        "enrollments",
        "demographics",
    }
    assert len({key_of(make_view(V1P2.records[ENROLLMENTS], sight)) for sight in every_sight()}) == 1
    assert len({key_of(make_view(V1P2.records[USERS], sight)) for sight in every_sight()}) == 8


# --- filling -----------------------------------------------------------------------------------------------------


def list_shelves(engine: Engine) -> set[str]:
    """The keys of the shelves."""
    with engine.connect() as connection:
        return set(connection.scalars(select(shelves.c.key)))


def test_a_shelf_is_filled_in_steps(writing: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is missing is made of the records meanwhile."""
    monkeypatch.setattr(filling, "CHUNK_RECORDS", 100)
    view = make_view(V1P1.records[USERS], ALL)
    steps = []
    original = filling._add_chunk
    monkeypatch.setattr(filling, "_add_chunk", lambda *given: steps.append(original(*given)))
    fill_all(writing, [view])
    with writing.connect() as connection:
        users = connection.execute(select(func.count()).select_from(tables.users)).scalar_one()
        assert 0 < count_documents(connection) <= users
        kept = connection.execute(select(shelves.c.bytes, shelves.c.reached)).one()
        size = connection.scalar(select(func.sum(func.octet_length(documents.c.body) + filling.ROW_BYTES)))
    assert len(steps) == users // 100 + 1
    assert tuple(kept) == (size, None)


def test_what_is_kept_is_bounded(writing: Engine) -> None:
    """What was not used for long makes room; what is in use does not."""
    users, enrollments = (make_view(V1P1.records[name], ALL) for name in (USERS, ENROLLMENTS))
    fill_all(writing, [users])
    with writing.connect() as connection:
        taken = connection.execute(select(func.sum(shelves.c.bytes))).scalar_one()
    tight = Means(int(taken), Means.of(1, 60).end)
    assert not fill(writing, enrollments, tight)
    assert list_shelves(writing) == {key_of(users), key_of(enrollments)}
    with writing.begin() as connection:
        long_ago = text(f"UPDATE shelves SET used_at = now() - interval '{IDLE}' * 2 WHERE bytes > 0")
        connection.execute(long_ago)
    fill(writing, enrollments, tight)
    assert list_shelves(writing) == {key_of(enrollments)}
    with writing.connect() as connection:
        assert count_documents(connection) > 0


def test_nothing_is_begun_when_the_time_is_up(writing: Engine) -> None:
    assert not fill(writing, make_view(V1P1.records[USERS], ALL), Means.of(100, 0))
    assert list_shelves(writing) == set()


def test_shelves_of_older_rosters_go(writing: Engine) -> None:
    views = [make_view(V1P1.records[name], ALL) for name in (USERS, ENROLLMENTS)]
    fill_all(writing, views)
    with writing.begin() as connection:
        connection.execute(update(tables.roster_state).values(revision=tables.roster_state.c.revision + 1))
    fill_all(writing, views[:1])
    drop_shelves(writing, but=())
    assert list_shelves(writing) == {key_of(views[0])}
    with writing.connect() as connection:
        assert connection.scalar(select(func.count(func.distinct(documents.c.shelf)))) == 1


def list_versions(connection: Connection) -> dict[str, str]:
    """Who wrote each document, by the id of its record."""
    written = select(documents.c.sourced_id, text("xmin::text"))
    return {row[0]: row[1] for row in connection.execute(written)}


def test_only_what_may_have_changed_is_made_anew(writing: Engine) -> None:
    """A user who changed, and the enrollments of that user."""
    views = [make_view(V1P1.records[name], ALL) for name in (USERS, ENROLLMENTS)]
    fill_all(writing, views)
    with writing.begin() as connection:
        before = list_versions(connection)
        user_id = connection.execute(select(func.min(tables.enrollments.c.user_id))).scalar_one()
        later = select(tables.roster_state.c.as_of + text("interval '1 second'")).scalar_subquery()
        changed = update(tables.users).where(tables.users.c.sourced_id == user_id)
        connection.execute(changed.values(given_name="Renamed", date_last_modified=later))
        state = tables.roster_state.c
        connection.execute(update(tables.roster_state).values(revision=state.revision + 1, as_of=later))
        agents = tables.user_agents.c
        expected = {user_id, *connection.scalars(select(agents.user_id).where(agents.agent_id == user_id))}
        enrolled = tables.enrollments.c
        expected |= set(connection.scalars(select(enrolled.sourced_id).where(enrolled.user_id == user_id)))
    fill_all(writing, views)
    with writing.connect() as connection:
        after = list_versions(connection)
        body = select(documents.c.body).where(documents.c.sourced_id == user_id)
        assert '"givenName":"Renamed"' in connection.execute(body).scalar_one()
    assert set(after) == set(before)
    assert {sourced_id for sourced_id in after if after[sourced_id] != before[sourced_id]} == expected
