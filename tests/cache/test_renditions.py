"""After each sync every rendered record says what would be made of the roster now, and none is missing."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Select, Table, delete, func, make_url, select, text, update

from roster_service.access import clients
from roster_service.access.credentials.signing_keys import ensure_signing_key
from roster_service.access.scopes import Scope, ScopeName
from roster_service.cache import renditions as rendering
from roster_service.cache.rendered_records import has_rendition, make_full_json, make_rendition_id
from roster_service.cache.renditions import refresh_renditions
from roster_service.cache.required_orgs import find_required_orgs, select_common_district
from roster_service.cache.warm_up import list_resource_views
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.feed_states import list_feed_ids
from roster_service.db.tables import rendered_records, renditions
from roster_service.db.visibility import RENDERER, ContentRights, row_is_visible
from roster_service.publication import publish, render_for_clients
from roster_service.query.plan import ResourceView, make_resource_view
from roster_service.query.statements import HREF_ROOT
from roster_service.rostering.endpoints import list_listings
from roster_service.schemas.versions import ENROLLMENTS, USERS, V1P1
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.runs import hold_lock
from sync_scripts.purge import purge
from tests.actors import TESTER
from tests.extent import every_other
from tests.postgres.databases import copy_database, drop_databases
from tests.renditions import MUCH, every_view, render_all
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD
from tests.sync.export_changes import Bend, both, cell_of, column, with_row, without_rows

from .conftest import SECRET_KEY, Questioner, add_vendor, ids_of, list_scopes, make_request
from .plain_pages import Question, plain_page

FEEDS = {"spr": SPRINGFIELD, "shv": SHELBYVILLE}
MEGABYTES = 100
LISTINGS = list(list_listings())


@dataclass(frozen=True)
class Rendered:
    """A rendered record."""

    body: str
    required: frozenset[str]
    district: str | None
    guardians: bool


def read_rendered(connection: Connection, view: ResourceView) -> dict[str, Rendered] | None:
    """The rendered records of a view by their ids; None where it has no rendition, or one that is not kept."""
    number = make_rendition_id(view)
    parts = connection.execute(select(renditions).where(renditions.c.id == number)).all()
    rows = connection.execute(select(rendered_records).where(rendered_records.c.rendition_id == number)).all()
    if not all(part.is_kept for part in parts) or not parts:
        assert not rows
        return None
    of_feeds = connection.execute(select(view.record.table.c.sourced_id, view.record.table.c.feed_id)).all()
    assert {(row.sourced_id, row.feed_id) for row in rows} <= {(row[0], row[1]) for row in of_feeds}
    for part in parts:
        own = [row for row in rows if row.feed_id == part.feed_id]
        assert part.bytes == sum(len(row.body.encode()) + rendering.ROW_BYTES for row in own)
    return {
        row.sourced_id: Rendered(row.body, frozenset(row.required_orgs), row.district_id, row.requires_guardians)
        for row in rows
    }


@functools.cache
def making_statement(view: ResourceView) -> Select[Any]:
    """Selects (id, required orgs, whether guardians are required, text, district) of the records to be rendered."""
    table = view.record.table
    required = find_required_orgs(table, view.rights)
    made = (
        select(
            table.c.sourced_id,
            required.orgs.label("orgs"),
            required.guardians.label("guardians"),
            make_full_json(view).label("body"),
        )
        .where(required.condition)
        .offset(0)
        .subquery()
    )
    return select(made, select_common_district(made.c.orgs).label("district"))


@functools.cache
def live_statement(view: ResourceView) -> Select[Any]:
    """Selects (id, live text) of each visible record."""
    table = view.record.table
    return select(table.c.sourced_id, make_full_json(view)).where(row_is_visible(table, table, view.rights))


def make_rendered(connection: Connection, view: ResourceView) -> dict[str, Rendered]:
    """The records that should be rendered, made anew of the roster."""
    rows = connection.execute(making_statement(view), {"vendor_id": RENDERER, "base_url": HREF_ROOT})
    return {row.sourced_id: Rendered(row.body, frozenset(row.orgs), row.district, row.guardians) for row in rows}


def read_live(connection: Connection, view: ResourceView) -> dict[str, str]:
    """The live text of each record that is visible to who sees every org."""
    rows = connection.execute(live_statement(view), {"vendor_id": RENDERER, "base_url": HREF_ROOT})
    return {row[0]: row[1] for row in rows}


def assert_renditions_are_right(engine: Engine) -> dict[int, dict[str, Rendered]]:
    """For every view that a registered client can ask for: each rendered record is what is made now and what is live,
    and what is live is rendered. The records by the ids of their renditions."""
    found: dict[int, dict[str, Rendered]] = {}
    with engine.connect() as connection:
        views = {
            make_rendition_id(view): view for view in list_resource_views(connection, LISTINGS) if has_rendition(view)
        }
        assert set(connection.scalars(select(renditions.c.id))) == set(views)
        for number, view in views.items():
            rendered, live = read_rendered(connection, view), read_live(connection, view)
            assert rendered is not None
            assert rendered == make_rendered(connection, view)
            for sourced_id in live.keys() & rendered.keys():
                assert rendered[sourced_id].body == live[sourced_id]
            # Whoever may not see guardians is not shown these.
            assert all(rendered[sourced_id].guardians for sourced_id in rendered.keys() - live.keys())
            # A class with a session of another feed is made live.
            assert live.keys() <= rendered.keys() or view.record.table is tables.classes
            found[number] = rendered
    return found


@pytest.fixture(scope="module")
def small_roster(make_database: Callable[[], str]) -> str:
    """Both small exports, and a vendor whose client has every scope; nothing stays connected to it."""
    url = make_database()
    engine = make_engine(url)
    for feed, export in FEEDS.items():
        load(engine, feed, EXPORTS / export)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        scopes = [*list_scopes("v1p1"), *list_scopes("v1p2")]
        add_vendor(connection, "everything", ["spr-district", "shv-district"], scopes)
        assert render_for_clients(connection, Settings())
    engine.dispose()
    return url


@contextmanager
def copy_roster(server_url: str, url: str, name: str) -> Iterator[Engine]:
    """A writing engine on a copy of it."""
    template = make_url(url).database
    engine = make_engine(copy_database(server_url, str(template), f"{template}_{name}"))
    yield engine
    engine.dispose()
    drop_databases(server_url, f"{template}_{name}")


@pytest.fixture
def roster(server_url: str, small_roster: str) -> Iterator[Engine]:
    """A copy of this test's own."""
    with copy_roster(server_url, small_roster, "own") as engine:
        yield engine


@pytest.fixture(scope="module")
def shared_roster(server_url: str, small_roster: str) -> Iterator[Engine]:
    """A copy for tests that take their changes back: statements are spelled once for all of them."""
    with copy_roster(server_url, small_roster, "shared") as engine:
        yield engine


def sync(engine: Engine, feed: str, folder: Path) -> None:
    """A sync of one feed, whatever it takes away."""
    report = load(engine, feed, folder, options=Options(allow_mass_delete=True))
    assert report.outcome == "done"


@pytest.mark.parametrize(
    ("feed", "bend"),
    every_other(
        [
            pytest.param("spr", cell_of("users", "spr-student-1", "givenName", "Renamed"), id="name"),
            pytest.param("spr", cell_of("users", "spr-guardian-1", "givenName", "Renamed"), id="name-of-an-agent"),
            pytest.param("spr", cell_of("users", "spr-student-1", "agentSourcedIds", ""), id="no-agent-any-more"),
            pytest.param(
                "spr", cell_of("users", "spr-student-3", "agentSourcedIds", "spr-teacher-1"), id="agent-is-new"
            ),
            pytest.param("spr", cell_of("users", "spr-guardian-1", "orgSourcedIds", "spr-high"), id="org-of-an-agent"),
            pytest.param("spr", cell_of("users", "spr-guardian-1", "role", "aide"), id="an-agent-is-no-guardian"),
            pytest.param("spr", cell_of("users", "spr-teacher-2", "role", "aide"), id="role"),
            pytest.param("spr", cell_of("users", "spr-teacher-2", "role", "parent"), id="an-enrolled-guardian"),
            pytest.param("spr", cell_of("users", "spr-student-1", "role", "guardian"), id="demographics-of-a-guardian"),
            pytest.param("spr", cell_of("users", "spr-student-1", "orgSourcedIds", "spr-high"), id="org-of-a-role"),
            pytest.param("shv", cell_of("roles", "shv-role-05", "role", "aide"), id="one-of-several-roles"),
            pytest.param("shv", without_rows("roles", "shv-role-06", "shv-role-07", "shv-role-08"), id="roles-go"),
            pytest.param(
                "shv", cell_of("users", "shv-teacher-1", "primaryOrgSourcedId", "shv-north"), id="primary-org"
            ),
            pytest.param("spr", cell_of("classes", "spr-class-math3-a", "title", "Renamed"), id="title-of-a-class"),
            pytest.param(
                "spr", cell_of("classes", "spr-class-math3-a", "schoolSourcedId", "spr-high"), id="school-of-a-class"
            ),
            pytest.param("spr", cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027"), id="terms"),
            pytest.param("spr", cell_of("enrollments", "spr-enr-01", "schoolSourcedId", "spr-high"), id="enrollment"),
            pytest.param("spr", cell_of("demographics", "spr-student-1", "sex", "male"), id="demographics"),
            pytest.param("spr", column("users", "phone", "1"), id="every-user"),
            pytest.param("spr", without_rows("enrollments", "spr-enr-01", "spr-enr-02"), id="enrollments-go"),
            pytest.param(
                "spr",
                both(
                    with_row("orgs", sourcedId="spr-second", name="Second", type="district"),
                    cell_of("orgs", "spr-high", "parentSourcedId", "spr-second"),
                ),
                id="a-school-moves-to-another-district",
            ),
            pytest.param("spr", cell_of("orgs", "spr-high", "parentSourcedId", ""), id="a-school-leaves-its-district"),
            pytest.param(
                "spr",
                cell_of("orgs", "spr-high-science", "parentSourcedId", "spr-elementary"),
                id="an-org-of-a-school-moves",
            ),
            pytest.param("spr", with_row("orgs", sourcedId="new", name="New", type="school"), id="an-org-comes"),
            pytest.param("spr", cell_of("orgs", "spr-district", "name", "Renamed"), id="name-of-an-org"),
            pytest.param(
                "spr",
                both(
                    with_row(
                        "orgs", sourcedId="spr-third", name="Third", type="school", parentSourcedId="spr-district"
                    ),
                    cell_of("users", "spr-student-1", "orgSourcedIds", "spr-third,spr-elementary"),
                ),
                id="a-role-at-a-new-school",
            ),
            pytest.param("shv", without_rows("demographics"), id="a-whole-file-is-emptied"),
        ]
    ),
)
def test_every_rendered_record_is_right_after_a_sync(
    shared_roster: Engine, tmp_path: Path, feed: str, bend: Bend
) -> None:
    """And after the next one, which takes the change back, and after a purge of what has gone."""
    folder = Path(shutil.copytree(EXPORTS / FEEDS[feed], tmp_path / feed))
    bend(folder)
    with shared_roster.connect() as connection:
        before = connection.scalar(select(tables.roster_state.c.revision))
    sync(shared_roster, feed, folder)
    after = assert_renditions_are_right(shared_roster)
    # Nothing was forgotten because nothing had changed. A copied database begins with a larger step.
    with shared_roster.connect() as connection:
        assert connection.scalar(select(tables.roster_state.c.revision)) > before
    purge(shared_roster, 0, MEGABYTES)
    assert_renditions_are_right(shared_roster)
    sync(shared_roster, feed, EXPORTS / FEEDS[feed])
    again = assert_renditions_are_right(shared_roster)
    assert after.keys() == again.keys()


def test_a_purge_takes_the_rendered_records_of_what_it_removes(roster: Engine, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / "spr"))
    both(without_rows("enrollments", "spr-enr-01"), without_rows("demographics", "spr-student-5"))(folder)
    sync(roster, "spr", folder)

    def count() -> int:
        own = rendered_records.c.sourced_id.in_(["spr-enr-01"])
        with roster.connect() as connection:
            return connection.execute(select(func.count()).select_from(rendered_records).where(own)).scalar_one()

    # As long as it is `tobedeleted` a consumer has to see it.
    assert count() == 2
    assert purge(roster, 0, MEGABYTES)["enrollments"] == 1
    assert count() == 0
    assert_renditions_are_right(roster)


def test_a_class_with_a_session_of_another_feed_is_made_live(roster: Engine) -> None:
    with roster.begin() as connection:
        moved = text(
            "INSERT INTO class_terms (class_id, ordinal, session_id) "
            "SELECT 'spr-class-chem-1', 9, min(s.sourced_id) FROM academic_sessions s WHERE s.sourced_id LIKE 'shv%'"
        )
        connection.execute(moved)
        change(connection, tables.classes, "spr-class-chem-1", title="Changed")
    for rendered in assert_renditions_are_right(roster).values():
        assert "spr-class-chem-1" not in rendered


def change(connection: Connection, table: Table, sourced_id: str, **values: Any) -> None:
    """As a sync does: a record changes, with its stamp, and a new roster is published."""
    later = select(tables.roster_state.c.as_of + text("interval '1 second'")).scalar_subquery()
    stamp = connection.execute(select(later)).scalar_one()
    changed = update(table).where(table.c.sourced_id == sourced_id)
    assert connection.execute(changed.values(**values, date_last_modified=stamp)).rowcount == 1
    publish(connection, list_feed_ids(connection), MEGABYTES, as_of=stamp)


def list_versions(connection: Connection) -> dict[tuple[int, str], str]:
    """Who wrote each rendered record."""
    written = select(rendered_records.c.rendition_id, rendered_records.c.sourced_id, text("xmin::text"))
    return {(row[0], row[1]): row[2] for row in connection.execute(written)}


def list_renditions(connection: Connection) -> list[Any]:
    return list(connection.execute(select(renditions).order_by(renditions.c.id, renditions.c.feed_id)))


@pytest.mark.parametrize(
    ("table", "sourced_id", "anew"),
    [
        pytest.param(
            tables.users,
            "spr-guardian-1",
            {"spr-guardian-1", "spr-student-1", "spr-student-2"},
            id="a-user-and-whose-agent-it-is",
        ),
        pytest.param(
            tables.users,
            "spr-student-3",
            {"spr-student-3", "spr-enr-09"},
            id="a-user-with-enrollments-and-demographics",
        ),
        pytest.param(
            tables.classes,
            "spr-class-chem-summer",
            {"spr-class-chem-summer", "spr-enr-17"},
            id="a-class-and-its-enrollments",
        ),
        pytest.param(tables.enrollments, "spr-enr-01", {"spr-enr-01"}, id="an-enrollment"),
        pytest.param(tables.courses, "spr-course-chem", set(), id="what-is-not-rendered"),
    ],
)
def test_only_what_may_have_changed_is_rendered_anew(
    roster: Engine, table: Table, sourced_id: str, anew: set[str]
) -> None:
    with roster.begin() as connection:
        before = list_versions(connection)
        change(connection, table, sourced_id, status="tobedeleted")
    with roster.connect() as connection:
        after = list_versions(connection)
    assert after.keys() == before.keys()
    assert {key[1] for key in after if after[key] != before[key]} == anew
    assert_renditions_are_right(roster)


def test_a_transaction_that_is_rolled_back_leaves_the_renditions_as_they_were(roster: Engine) -> None:
    with roster.connect() as connection:
        known, versions = list_renditions(connection), list_versions(connection)
        change(connection, tables.users, "spr-student-1", given_name="Renamed")
        renamed = select(func.count()).where(rendered_records.c.body.contains('"givenName":"Renamed"'))
        assert connection.scalar(renamed) > 0
        connection.rollback()
    with roster.connect() as connection:
        assert list_renditions(connection) == known
        assert list_versions(connection) == versions
    assert_renditions_are_right(roster)


def test_a_sync_that_changes_nothing_renders_nothing(roster: Engine) -> None:
    with roster.connect() as connection:
        before = list_versions(connection), list_renditions(connection)
    assert load(roster, "spr", EXPORTS / SPRINGFIELD).outcome == "unchanged"
    with roster.connect() as connection:
        assert (list_versions(connection), list_renditions(connection)) == before


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(update(renditions).values(dependency_hash="of other orgs"), id="other-orgs"),
        pytest.param(update(renditions).values(as_of=text("now() + interval '1 year'")), id="a-later-roster"),
    ],
)
def test_renditions_of_another_history_are_rendered_anew(roster: Engine, spoil: Any) -> None:
    """As after a backup was restored: stamps say nothing then."""
    with roster.begin() as connection:
        connection.execute(update(rendered_records).values(body="of another roster"))
        connection.execute(spoil)
        publish(connection, list_feed_ids(connection), MEGABYTES)
    assert_renditions_are_right(roster)


def test_what_a_dump_left_out_is_rendered_by_the_next_sync(roster: Engine) -> None:
    with roster.begin() as connection:
        connection.execute(text("TRUNCATE renditions, rendered_records"))
        publish(connection, list_feed_ids(connection), MEGABYTES)
    assert_renditions_are_right(roster)


# --- which views ------------------------------------------------------------------------------------------------------


CORE = Scope("v1p2", ScopeName.CORE)


@pytest.fixture
def narrow(roster: Engine) -> Engine:
    """The roster, where one vendor has one client with the core scope of 1.2."""
    with roster.begin() as connection:
        connection.execute(delete(tables.oauth_clients))
        clients.add_client(connection, TESTER, "everything@vendors.example", "core", [CORE])
        publish(connection, list_feed_ids(connection), MEGABYTES)
    assert len(assert_renditions_are_right(roster)) == 3
    return roster


def test_a_client_with_other_scopes_has_them_rendered_beside_the_others(narrow: Engine) -> None:
    with narrow.begin() as connection:
        before = list_versions(connection)
        clients.add_client(
            connection, TESTER, "everything@vendors.example", "more", [CORE, Scope("v1p2", ScopeName.GUARDIANS)]
        )
        assert render_for_clients(connection, Settings())
    assert len(assert_renditions_are_right(narrow)) == 4
    with narrow.connect() as connection:
        after = list_versions(connection)
    assert before.items() <= after.items()


def test_while_a_sync_is_under_way_nothing_is_rendered_for_a_client(narrow: Engine) -> None:
    with narrow.connect() as other, hold_lock(other, "feed"), narrow.begin() as connection:
        before = list_versions(connection)
        clients.add_client(connection, TESTER, "everything@vendors.example", "more", list_scopes("v1p2"))
        assert not render_for_clients(connection, Settings())
        assert list_versions(connection) == before
    with narrow.begin() as connection:
        publish(connection, list_feed_ids(connection), MEGABYTES)
    assert len(assert_renditions_are_right(narrow)) > 4


@pytest.mark.parametrize("table", [tables.oauth_clients, tables.vendors], ids=lambda table: table.name)
def test_what_nobody_can_ask_for_any_more_goes_with_the_next_sync(narrow: Engine, table: Table) -> None:
    with narrow.begin() as connection:
        connection.execute(update(table).values(enabled=False))
        publish(connection, list_feed_ids(connection), MEGABYTES)
        assert list_versions(connection) == {}
        assert list_renditions(connection) == []


def test_a_scope_that_nobody_has_any_more_goes_with_the_next_sync(roster: Engine) -> None:
    assert len(assert_renditions_are_right(roster)) == len(every_view())
    with roster.begin() as connection:
        connection.execute(update(tables.oauth_clients).values(scopes=["v1p1/roster-core.readonly"]))
        publish(connection, list_feed_ids(connection), MEGABYTES)
    found = assert_renditions_are_right(roster)
    assert len(found) == 3
    with roster.connect() as connection:
        assert {key[0] for key in list_versions(connection)} == {row.id for row in list_renditions(connection)}


# --- how much ----------------------------------------------------------------------------------------------------

VIEWS = [
    make_resource_view(V1P1.records[name], ContentRights(guardians=True, metadata=frozenset(), withheld=frozenset()))
    for name in (USERS, ENROLLMENTS)
]


def refresh(engine: Engine, feed: str, most_bytes: int) -> dict[int, tuple[bool, int, int]]:
    """As a sync of the feed does. (Whether it is kept, its bytes, its rendered records) by the id of the rendition."""
    of_part = (rendered_records.c.rendition_id == renditions.c.id, rendered_records.c.feed_id == renditions.c.feed_id)
    counted = select(func.count()).where(*of_part).scalar_subquery()
    with engine.begin() as connection:
        feed_id = connection.execute(select(tables.feeds.c.id).where(tables.feeds.c.name == feed)).scalar_one()
        refresh_renditions(connection, VIEWS, [feed_id], most_bytes)
        parts = select(renditions.c.id, renditions.c.is_kept, renditions.c.bytes, counted)
        rows = connection.execute(parts.where(renditions.c.feed_id == feed_id)).all()
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def test_what_does_not_fit_beside_other_feeds_is_not_kept_until_there_is_room(roster: Engine) -> None:
    users, enrollments = map(make_rendition_id, VIEWS)
    taken = sum(size for _, size, _ in refresh(roster, "shv", MUCH).values())
    whole = refresh(roster, "spr", MUCH)
    assert all(is_kept and size and records for is_kept, size, records in whole.values())
    room = whole[users][1] + whole[enrollments][1]
    for most, kept in (
        (room, {users, enrollments}),
        (room - 1, {users}),
        (room - 1, {users}),
        (room, {users, enrollments}),
        (whole[users][1] - 1, {enrollments} if whole[enrollments][1] < whole[users][1] else set()),
        (room, {users, enrollments}),
    ):
        found = refresh(roster, "spr", taken + most)
        assert {key for key, (is_kept, _, _) in found.items() if is_kept} == kept
        for key, (is_kept, size, records) in found.items():
            assert (size, records) == (whole[key][1:] if is_kept else (size, 0))
        assert sum(size for is_kept, size, _ in found.values() if is_kept) <= most


def test_no_megabytes_are_no_renditions(roster: Engine) -> None:
    with roster.begin() as connection:
        publish(connection, list_feed_ids(connection), 0)
        assert list_renditions(connection) == []
        assert list_versions(connection) == {}
        assert render_for_clients(connection, Settings(rendition_megabytes=0))
        assert list_renditions(connection) == []


def test_records_are_rendered_in_chunks(roster: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "CHUNK_RECORDS", 4)
    with roster.begin() as connection:
        connection.execute(text("TRUNCATE renditions, rendered_records"))
    render_all(roster)
    assert_renditions_are_right(roster)


# --- what is read ------------------------------------------------------------------------------------------------


@pytest.fixture
def reading(roster: Engine) -> Iterator[Questioner]:
    """A worker on the roster."""
    made = Questioner(roster.url.render_as_string(hide_password=False))
    yield made
    made.close()


QUESTION = Question(path="/users", districts=("spr-district",), schools=(), school="")


@pytest.mark.parametrize(
    ("lost", "source"),
    [
        pytest.param(None, "rendered", id="rendered"),
        pytest.param("DELETE FROM rendered_records WHERE sourced_id = 'spr-aide-1'", "live", id="one-is-missing"),
        pytest.param("TRUNCATE rendered_records, renditions", "live", id="left-out-of-a-dump"),
        pytest.param("SELECT 'some fields'", "live", id="some-fields"),
    ],
)
def test_a_page_is_read_rendered_or_else_made_live(reading: Questioner, lost: str | None, source: str) -> None:
    """From an ordering and in one pass. What is rendered says `Rendered`, to tell."""
    token = reading.find_token(QUESTION)
    fields = ("sourcedId", "givenName") if lost and "some fields" in lost else None
    with reading.owner.begin() as connection:
        assert render_for_clients(connection, Settings())
        body = func.replace(rendered_records.c.body, '"givenName":"', '"givenName":"Rendered ')
        connection.execute(update(rendered_records).values(body=body))
        if lost is not None:
            connection.execute(text(lost))
        ids = plain_page(connection, QUESTION, 4, 0)
    for _ in range(3):
        page = reading.workers[0].read_page(make_request(token, QUESTION, 4, 0, fields)).page
        assert ids_of(page) == ids
        names = "".join(page.pieces)
        assert names.count('"givenName":"Rendered ') == (page.records if source == "rendered" else 0)
