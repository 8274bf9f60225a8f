"""The rejected rows of a run with the names of the records that they name, the search among them, and the rows that
explain why a record is not as its export has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oneroster_filter import fold
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables import ROSTER_TABLES, CTexts, sync_rejections, sync_runs
from roster_service.explore.references import read_labels
from roster_service.explore.roster_search import make_search_condition
from roster_service.feeds.rejected_rows import (
    NamedRecord,
    RejectedRow,
    count_rejected_rows,
    find_explaining_runs,
    names_record,
    read_rejected_rows,
)
from roster_service.feeds.run_history import TYPES

_TABLES = {TYPES[table.name]: table for table in ROSTER_TABLES}
# The rows of an explanation.
EXPLAINED = 5


@dataclass(frozen=True)
class LabelledRecord(NamedRecord):
    """A record that a row names. `label`: its name in the roster, else in a rejected row of the run that describes it,
    else None; `in_roster`: whether the roster has it and it is not deleted."""

    in_roster: bool


@dataclass(frozen=True)
class LabelledRow(RejectedRow):
    """A rejected row with the names of its records."""

    records: tuple[LabelledRecord, ...]


@dataclass(frozen=True)
class Explanation:
    """The rejected rows of a run that name a record. `count`: of the rows; `rows`: the first of them, each with its
    first reason; `missing`: the rejected rows that the run does not store, of which any may name the record too."""

    run: int
    outcome: str
    count: int
    rows: Sequence[LabelledRow]
    missing: int


def label_rows(connection: sa.Connection, run: int, rows: Sequence[RejectedRow]) -> list[LabelledRow]:
    """Returns rejected rows of a run with the names of their records: one query for each type of record, and one for
    the names of records that the roster does not have."""
    labelled = iter(label_records(connection, run, [record for row in rows for record in row.records]))
    return [LabelledRow(**{**vars(row), "records": tuple(next(labelled) for _ in row.records)}) for row in rows]


def label_records(connection: sa.Connection, run: int, records: Sequence[NamedRecord]) -> list[LabelledRecord]:
    """Returns records that rejected rows of a run name with their names."""
    named = {(record.type, record.sourcedId) for record in records}
    labels = {
        (type_, key): label
        for type_, table in _TABLES.items()
        for key, label in read_labels(connection, table, (key for of, key in named if of == type_)).items()
    }
    others = _read_own_labels(connection, run, named - labels.keys())
    return [_label(record, labels, others) for record in records]


def make_row_search(connection: sa.Connection, run: int, typed: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a rejected row of a run has a text in its file, its value or its id, or names a record
    with the text in its id or name. The names of the roster are found as its own search finds them."""
    record = _unnest_records()
    pairs = [f"{type_} {key}" for type_, key in _find_named(connection, run, typed)]
    pair = sa.func.concat(_get(record, "type"), " ", _get(record, "sourcedId"), type_=sa.Text)
    named = sa.exists(sa.select(1).select_from(record).where(pair == sa.any_(sa.literal(pairs, CTexts))))
    own = (sync_rejections.c.file, sync_rejections.c.value, sync_rejections.c.sourced_id)
    return sa.or_(named, *(sa.func.contains_folded(column, typed) for column in own))


def explain_record(connection: sa.Connection, type_: str, sourced_id: str, feed: str) -> Explanation | None:
    """Returns the rejected rows that name a record of a feed, of the newest run that explains its feed and has such
    rows; None if there is none."""
    for run in find_explaining_runs(connection, feed):
        by_line: dict[tuple[Any, ...], RejectedRow] = {}
        for row in read_rejected_rows(connection, run, None, names_record(type_, sourced_id)):
            by_line.setdefault((row.file, row.line, row.sourcedId), row)
        if by_line:
            rows = label_rows(connection, run, list(by_line.values())[:EXPLAINED])
            of_run = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == run)).one()
            missing = of_run.rejected - count_rejected_rows(connection, run)
            return Explanation(run, of_run.outcome, len(by_line), rows, max(missing, 0))
    return None


def count_naming_rows(
    connection: sa.Connection, run: int, wanted: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], int]:
    """Returns the number of rejected rows of a run that name each of the wanted records, given by (type, id), without
    those that none names."""
    record = _unnest_records()
    keys = sorted({key for _, key in wanted})
    place = sa.func.concat_ws(" ", sync_rejections.c.file, sync_rejections.c.line, sync_rejections.c.sourced_id)
    rows = (
        sa.select(_get(record, "type"), _get(record, "sourcedId"), sa.func.count(place.distinct()))
        .select_from(sync_rejections.join(record, sa.literal(True)))
        .where(sync_rejections.c.run_id == run, _get(record, "sourcedId") == sa.any_(sa.literal(keys, CTexts)))
        .group_by(_get(record, "type"), _get(record, "sourcedId"))
    )
    return {(row[0], row[1]): row[2] for row in connection.execute(rows) if (row[0], row[1]) in wanted}


def _label(
    record: NamedRecord, labels: Mapping[tuple[str, str], str], others: Mapping[tuple[str, str], str]
) -> LabelledRecord:
    pair = (record.type, record.sourcedId)
    label = labels.get(pair) or record.label or others.get(pair)
    return LabelledRecord(record.type, record.sourcedId, record.own, label, pair in labels)


def _unnest_records() -> sa.TableValuedAlias:
    return sa.func.jsonb_array_elements(sync_rejections.c.records, type_=JSONB).table_valued("value").render_derived()


def _get(record: sa.TableValuedAlias, name: str) -> sa.ColumnElement[str]:
    return sa.func.jsonb_extract_path_text(record.c.value, name, type_=sa.Text)


def _read_own_labels(
    connection: sa.Connection, run: int, wanted: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], str]:
    """The names that rejected rows of a run give the wanted records, which they describe."""
    keys = sorted({key for _, key in wanted})
    if not keys:
        return {}
    record = _unnest_records()
    rows = _select_pairs(run, record, _get(record, "label"))
    rows = rows.where(
        _get(record, "label").is_not(None), _get(record, "sourcedId") == sa.any_(sa.literal(keys, CTexts))
    )
    return {(row[0], row[1]): row[2] for row in connection.execute(rows)}


def _find_named(connection: sa.Connection, run: int, typed: str) -> Iterator[tuple[str, str]]:
    """The (type, id) of the records that the rows of a run name and that a typed text finds: in the roster, and among
    the ids and names that the rows have."""
    record, wanted = _unnest_records(), fold(typed)
    ids: dict[str, set[str]] = {}
    for type_, key, label in connection.execute(_select_pairs(run, record, _get(record, "label"))):
        ids.setdefault(type_, set()).add(key)
        if wanted in fold(key) or wanted in fold(label or ""):
            yield type_, key
    for type_, keys in ids.items():
        own_id = _TABLES[type_].c.sourced_id
        in_run = own_id == sa.any_(sa.literal(list(keys), CTexts))
        condition = make_search_condition(_TABLES[type_], typed)
        yield from ((type_, key) for key in connection.scalars(sa.select(own_id).where(in_run, condition)))


def _select_pairs(run: int, record: sa.TableValuedAlias, *more: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Selects the (type, id) of all records that the rows of a run name, each once, with further columns."""
    columns = (_get(record, "type"), _get(record, "sourcedId"), *more)
    rows = sa.select(*columns).distinct().select_from(sync_rejections.join(record, sa.literal(True)))
    return rows.where(sync_rejections.c.run_id == run)
