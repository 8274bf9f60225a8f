"""The graph of references: each reference is declared, and each use of the graph has it. (The purge has a list of its
own, in tests/sync/test_purge.py; what erases a person leaves none, in tests/people/test_traces.py.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import PART_TABLES, ROSTER_TABLES, feeds, users
from roster_service.explore.references import RELATIONS
from roster_service.explore.roster_facets import FACETS
from roster_service.feeds.checked_roster import StoredRoster
from roster_service.feeds.quality_checks import CHECKS_BY_NAME
from roster_service.feeds.run_history import REFERRING, TYPES
from roster_service.roster.references import PERSONS, REFERENCES, Reference, find_target, is_list, list_references_to
from roster_service.schemas.kinds import Ref, RefList, RosterField, list_roster_fields
from roster_service.schemas.versions import V1P2, VERSIONS
from sync_scripts.applying.change_log import PARTS
from sync_scripts.formats import oneroster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD

# The ids of what is no record of the roster.
OTHER_IDS = {"feed_id", "label_id", "profile_id", "row_id", "vendor_id", "application_id"}
STORED = [it for it in REFERENCES.values() if not it.computed]


def test_every_column_with_an_id_says_of_which_records() -> None:
    columns = [column for table in (*ROSTER_TABLES, *PART_TABLES) for column in table.c if column.name.endswith("_id")]
    silent = {str(it) for it in columns if it.name not in {"sourced_id", *OTHER_IDS} and find_target(it) is None}
    assert silent == set()


@pytest.mark.parametrize("version", oneroster.VERSIONS)
def test_exports_have_every_reference(version: str) -> None:
    cells = [cell for file in oneroster.VERSIONS[version].files for cell in file.cells if cell.refers is not None]
    named = {(column, cell.refers and cell.refers.file) for cell in cells for column in (cell.column, cell.items)}
    assert [str(it.column) for it in STORED if (it.column, TYPES[it.target.name]) not in named] == []


def list_refs(members: Mapping[str, RosterField]) -> Iterator[Ref | RefList]:
    """The fields that show references, at every depth."""
    for member in members.values():
        if isinstance(member, Ref | RefList):
            yield member
        yield from list_refs(member.members)


def find_stored(ref: Ref | RefList) -> Any:
    """The column that has the id of a reference, or the list in which it is an item."""
    rows = ref.identifier.table if isinstance(ref.identifier, sa.ColumnClause) else None
    return next(iter(rows.element.clauses)) if isinstance(rows, sa.TableValuedAlias) else ref.identifier


def test_records_show_every_reference() -> None:
    refs = [ref for record in V1P2.records.values() for ref in list_refs(list_roster_fields(record))]
    shown = {(find_stored(ref), ref.kind.path) for ref in refs}
    # Demographics have the id of their user.
    others = [it for it in STORED if it.column is not it.own]
    assert [str(it.column) for it in others if (it.column, TYPES[it.target.name]) not in shown] == []


def test_the_person_of_a_record_is_the_one_whom_it_names() -> None:
    records = [record for version in VERSIONS for record in version.records.values()]
    assert [record for record in records if record.person is not PERSONS.get(record.table)] == []
    headers = {cell.column: cell.header for file in oneroster.ONEROSTER_1_2.files for cell in file.cells}
    naming = {PARTS.get(it.column.table) or headers[it.column] for it in list_references_to(users)}
    assert naming == {*REFERRING, "sourcedId"}


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """With the roster of a district, in a transaction that ends with the test."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.connect() as connection:
        yield connection


def find_pair(connection: sa.Connection, reference: Reference) -> tuple[str, str]:
    """The ids of a record and of another one to which it refers."""
    own, column = reference.own, reference.column[1] if is_list(reference.column) else reference.column
    others = () if column is own else (column != own,)
    row = connection.execute(sa.select(own, column.label("other")).where(column.is_not(None), *others).limit(1)).one()
    return row[0], row[1]


def list_shown(connection: sa.Connection, table: sa.Table, sourced_id: str, other: sa.Table) -> set[str]:
    """The ids of the records of another table that the page of a record shows or lists."""
    relations = [relation for relation in RELATIONS[table] if relation.target is other]
    return {row.id for relation in relations for row in connection.execute(relation.ids(sourced_id))}


def test_pages_show_every_reference_both_ways(connection: sa.Connection) -> None:
    hidden = []
    for it in REFERENCES.values():
        own, other = find_pair(connection, it)
        if other not in list_shown(connection, it.record, own, it.target):
            hidden.append(f"{it.column}")
        if own not in list_shown(connection, it.target, other, it.record):
            hidden.append(f"{it.column}, backwards")
    assert hidden == []


def test_the_list_of_all_references_is_the_facet_of_a_collection(connection: sa.Connection) -> None:
    for table, relations in RELATIONS.items():
        for relation in (it for it in relations if it.facet is not None):
            facet = FACETS[relation.target][relation.facet or ""]
            assert facet.names is table, relation.title
            for sourced_id in connection.scalars(sa.select(table.c.sourced_id)).all():
                ids = sa.select(relation.target.c.sourced_id).where(facet.condition(sourced_id))
                shown = {row.id for row in connection.execute(relation.ids(sourced_id))}
                assert shown <= set(connection.scalars(ids)), (relation.title, sourced_id)


def test_a_reference_that_leads_nowhere_is_found(connection: sa.Connection) -> None:
    stored = StoredRoster(connection.execute(sa.select(feeds.c.id)).scalar_one())
    unseen = []
    for it in STORED:
        own, _ = find_pair(connection, it)
        changed = connection.begin_nested()
        other = ["nowhere"] if is_list(it.column) else "nowhere"
        connection.execute(sa.update(it.column.table).where(it.own == own).values({it.column.name: other}))
        found = {(row.kind, row.id, row.detail) for row in connection.execute(CHECKS_BY_NAME["orphans"].find(stored))}
        changed.rollback()
        if (TYPES[it.record.name], "nowhere" if it.column is it.own else own, "nowhere") not in found:
            unseen.append(str(it.column))
    assert unseen == []
