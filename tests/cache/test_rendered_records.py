"""What a vendor reads of rendered records is what would be made live for it, whatever the syncs bring, through either
layer of visibility."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, Select, func, select, text, true, update

from roster_service import publication
from roster_service.access import clients, vendors
from roster_service.access.credentials.signing_keys import ensure_signing_key
from roster_service.cache.rendered_records import make_full_json, make_rendition_id, select_rendered_text
from roster_service.cache.required_orgs import has_rendered_records
from roster_service.db import tables
from roster_service.db.feed_states import list_feed_ids
from roster_service.db.tables import rendered_records
from roster_service.db.visibility import ContentRights, rendered_record_is_visible, row_is_visible
from roster_service.db.withheld import WithheldField
from roster_service.publication import publish
from roster_service.query.plan import ResourceView, make_resource_view
from roster_service.query.statements import HREF_ROOT
from roster_service.schemas.flags import find_withheld
from roster_service.schemas.versions import ENROLLMENTS, USERS, V1P1, V1P2, VERSIONS
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from sync_scripts.reading.rejections import RefusedExportError
from tests.extent import examples
from tests.renditions import every_rights, every_view, render_all
from tests.sync.conftest import empty_roster
from tests.sync.roster_model import Export
from tests.sync.small_exports import FEEDS, exports, write_export

from .conftest import SECRET_KEY, Questioner, add_vendor, list_scopes

SEQUENCES = examples(2, 4, 30)
RECORDS = [record for version in VERSIONS for record in version.records.values() if has_rendered_records(record.table)]
ORGS = [f"{feed}-{key}" for feed in FEEDS for key in ("d", "s1", "s2")]
ALL = ContentRights(guardians=True, metadata=frozenset(), withheld=frozenset())
# Sets of withheld fields by name; the second is that of a vendor without flags.
WITHHELD: dict[str, frozenset[WithheldField]] = {
    "nothing": frozenset(),
    "phones": find_withheld((), ()),
    "everything": frozenset(WithheldField),
}
MEGABYTES = 100
VENDOR = "looks@vendors.example"


@dataclasses.dataclass(frozen=True)
class Look:
    """A vendor with these grants looks at all records of a view."""

    view: ResourceView
    orgs: tuple[str, ...]


LOOKS = st.builds(
    lambda record, rights, withheld, orgs: Look(
        make_resource_view(record, dataclasses.replace(rights, withheld=WITHHELD[withheld])), tuple(sorted(orgs))
    ),
    st.sampled_from(RECORDS),
    st.sampled_from(list(every_rights())),
    st.sampled_from(list(WITHHELD)),
    st.sets(st.sampled_from(ORGS), max_size=3),
)


@dataclasses.dataclass(frozen=True)
class LoadRun:
    """A feed brings an export, and then some look."""

    feed: str
    export: Export
    purges: bool
    looks: list[Look]


LOAD_RUNS = st.sampled_from(FEEDS).flatmap(
    lambda feed: st.builds(
        LoadRun, st.just(feed), exports(feed), st.booleans(), st.lists(LOOKS, min_size=6, max_size=6)
    )
)


@pytest.fixture
def reading(database_url: str) -> Iterator[Questioner]:
    """A worker, and the owner, on an empty roster."""
    made = Questioner(database_url)
    yield made
    made.close()


def read_texts(connection: Connection, statement: Select[str, str], vendor_id: int) -> dict[str, str]:
    """The texts by the ids of their records."""
    rows = connection.execute(statement, {"vendor_id": vendor_id, "base_url": HREF_ROOT})
    return {row[0]: row[1] for row in rows}


def live_texts(view: ResourceView) -> Select[str, str]:
    """What is made live for the bound vendor."""
    table = view.record.table
    return select(table.c.sourced_id, make_full_json(view)).where(row_is_visible(table, table, view.rights))


def rendered_texts(view: ResourceView, *conditions: object) -> Select[str, str]:
    """The rendered records of a view, as far as row-level security shows them."""
    own = select(rendered_records.c.sourced_id, rendered_records.c.body)
    return own.where(rendered_records.c.rendition_id == make_rendition_id(view), *conditions)  # type: ignore[arg-type]


def look_at(reading: Questioner, look: Look) -> None:
    """Asserts that rendered records are the live ones: with both layers of visibility, and with each by itself."""
    view = look.view
    is_shown = rendered_record_is_visible(view.rights)
    with reading.owner.connect() as connection, connection.begin() as transaction:
        grant_as_it_is(connection, look.orgs)
        client = connection.execute(select(tables.oauth_clients.c.client_id)).scalar_one()
        found = clients.find_client(connection, client)
        assert found is not None
        # The owner of the tables is not held by row-level security.
        filtered = read_texts(connection, rendered_texts(view, is_shown), found.vendor_id)
        live = read_texts(connection, live_texts(view), found.vendor_id)
        # As the serving role, with what an admission sets.
        key = select(func.set_config("roster.visibility_key", found.visibility_key, True))
        connection.execute(key)
        connection.execute(select(func.set_config("roster.guardians", str(view.rights.guardians), True)))
        connection.execute(text(f'SET LOCAL ROLE "{reading.reading.url.username}"'))
        held = read_texts(connection, rendered_texts(view), found.vendor_id)
        both = read_texts(connection, rendered_texts(view, is_shown), found.vendor_id)
        live_as_served = read_texts(connection, live_texts(view), found.vendor_id)
        transaction.rollback()
    assert live_as_served == live
    for shown in (filtered, held, both):
        assert shown.items() <= live.items()
    assert filtered == held == both
    event(f"{view.record.table.name}: {'rendered' if both else 'nothing rendered' if live else 'nothing'}")


def grant_as_it_is(connection: Connection, orgs: tuple[str, ...]) -> None:
    """Grants the vendor these orgs, whatever they are now: one may have been a district once."""
    vendor_id = vendors.find_vendor(connection, VENDOR).id
    known = tables.orgs.c
    for row in connection.execute(select(known.sourced_id, known.district_id).where(known.sourced_id.in_(orgs))):
        school = None if row.sourced_id.endswith("-d") else row.sourced_id
        given = {"vendor_id": vendor_id, "district_id": row.district_id or row.sourced_id, "school_id": school}
        connection.execute(tables.vendor_grants.insert().values(given))
    vendors.invalidate_tokens(connection, vendor_id)


def load_next(engine: Engine, load_run: LoadRun, folder: Path) -> None:
    """The night of a feed. Metadata, which exports of this kind do not have, comes with a stamp of its own."""
    try:
        load(engine, load_run.feed, write_export(load_run.export, folder), options=Options(allow_mass_delete=True))
    except RefusedExportError:
        event("refused")
    with engine.begin() as connection:
        later = tables.roster_state.c.as_of + text("interval '1 millisecond'")
        stamp = connection.execute(select(later)).scalar_one()
        for table in (it for it in tables.ROSTER_TABLES if "metadata" in it.c):
            shown = func.jsonb_build_object("of", table.c.sourced_id)
            without = update(table).where(table.c.metadata.is_(None))
            connection.execute(without.values(metadata=shown, date_last_modified=stamp))
        publish(connection, list_feed_ids(connection), MEGABYTES, as_of=stamp)
    if load_run.purges:
        purge(engine, 0, MEGABYTES)


@settings(
    max_examples=SEQUENCES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(load_runs=st.lists(LOAD_RUNS, min_size=2, max_size=4))
def test_rendered_records_are_the_live_ones_whatever_syncs_bring(reading: Questioner, load_runs: list[LoadRun]) -> None:
    empty_roster(reading.owner)
    with reading.owner.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        add_vendor(connection, "looks", [], list_scopes("v1p2"))
    views = {make_rendition_id(look.view): look.view for load_run in load_runs for look in load_run.looks}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # All that a client could ask for takes longer, and tells no more.
        patch.setattr(publication, "list_resource_views", lambda *_: list(views.values()))
        for number, load_run in enumerate(load_runs):
            load_next(reading.owner, load_run, Path(folder) / str(number))
            for look in load_run.looks:
                look_at(reading, look)


# --- a roster of two districts ---------------------------------------------------------------------------------------


def count_seen(questioner: Questioner, name: str, orgs: list[str], *, guardians: bool) -> int:
    """How many rendered records the serving role sees for a vendor, whatever the statement says or forgets to say."""
    with questioner.owner.begin() as connection:
        scopes = [scope for scope in list_scopes("v1p2") if guardians or scope.name != "guardians.readonly"]
        token = add_vendor(connection, name, orgs, scopes)
    with questioner.ordering.connect() as connection:
        assert token.rights.guardians is guardians
        connection.execute(token.admission.statement, token.admission.values)
        return connection.execute(select(func.count()).select_from(rendered_records)).scalar_one()


@pytest.mark.parametrize("dropped", [False, True], ids=["with-its-policy", "without"])
def test_row_level_security_holds_rendered_records_by_itself(
    questioner: Questioner, district: str, dropped: bool
) -> None:
    """Without it, the test would see them."""
    render_all(questioner.owner, [make_resource_view(V1P1.records[USERS], ALL)])
    if dropped:
        with questioner.owner.begin() as connection:
            connection.execute(text("ALTER TABLE rendered_records DISABLE ROW LEVEL SECURITY"))
    every = questioner.count_rows(rendered_records)
    seen = {
        "nothing": count_seen(questioner, "nothing", [], guardians=True),
        "no guardians": count_seen(questioner, "no-guardians", [district], guardians=False),
        "district": count_seen(questioner, "district", [district], guardians=True),
    }
    with questioner.ordering.connect() as connection:
        seen["nobody"] = connection.execute(select(func.count()).select_from(rendered_records)).scalar_one()
    if dropped:
        assert set(seen.values()) == {every}
    else:
        assert seen["nothing"] == seen["no guardians"] == seen["nobody"] == 0
        assert 0 < seen["district"] < every


def test_the_query_filter_holds_rendered_records_by_itself(questioner: Questioner, district: str) -> None:
    """For the owner of the tables, whom row-level security does not hold."""
    view = make_resource_view(V1P1.records[USERS], ALL)
    render_all(questioner.owner, [view])
    with questioner.owner.begin() as connection:
        ids = {name: add_vendor(connection, name, orgs).vendor_id for name, orgs in (("a", []), ("b", [district]))}
        seen = {}
        for name, shown in (("a", rendered_record_is_visible(ALL)), ("b", rendered_record_is_visible(ALL))):
            seen[name] = len(read_texts(connection, rendered_texts(view, shown), ids[name]))
        plain = len(read_texts(connection, rendered_texts(view, true()), ids["a"]))
    assert seen["a"] == 0
    assert 0 < seen["b"] < plain


def test_a_single_record_is_read_rendered(questioner: Questioner, district: str) -> None:
    """And not what another vendor would be shown."""
    view = make_resource_view(V1P1.records[USERS], ALL)
    render_all(questioner.owner, [view])
    with questioner.owner.begin() as connection:
        token = add_vendor(connection, "a", [district])
        key = tables.users.c.sourced_id
        for sourced_id, text_of in read_texts(connection, live_texts(view), token.vendor_id).items():
            own = select_rendered_text(view, select(key).where(key == sourced_id).scalar_subquery())
            assert connection.scalar(own, {"vendor_id": token.vendor_id}) == text_of
            break
        other = add_vendor(connection, "b", [])
        assert connection.scalar(own, {"vendor_id": other.vendor_id}) is None


def test_views_that_differ_in_nothing_share_a_rendition() -> None:
    """Of enrollments and classes, no right changes the text."""
    assert {view.record.table.name for view in every_view().values()} == {
        "users",
        "classes",
        "enrollments",
        "demographics",
    }
    assert (
        len({make_rendition_id(make_resource_view(V1P2.records[ENROLLMENTS], rights)) for rights in every_rights()})
        == 1
    )
    assert len({make_rendition_id(make_resource_view(V1P2.records[USERS], rights)) for rights in every_rights()}) == 8
