"""Everything that staged files are checked for, set by set: cells, duplicates, references, rules, owners.

A check is a SELECT of the rows that fail it. The cells of a file are first counted all together, in one pass; the
other checks are joins of their own. Only what fails is looked at again, for its line and its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, exists, func, literal, select, true

from roster_service.db.tables import CText, feeds
from sync_scripts.cells import is_blank, to_list
from sync_scripts.formats import Cell, Format, Reference, Staged, StagedFile
from sync_scripts.refusals import SHOWN, Findings, Refusal

HEADER_LINES = 1
Words = Callable[[ColumnElement[str]], ColumnElement[str]]


@dataclass(frozen=True)
class Check:
    """`failing` selects (ctid, value) of the rows that fail, the value being what is shown of them; `reason`: the
    words of the refusal, made from the value where they depend on it."""

    header: str
    failing: Select[Any]
    reason: str | Words


def check(connection: Connection, staged: Staged, form: Format, feed_id: int) -> Findings:
    """Findings of every check of the format on the staged files, in the order of files and lines."""
    findings = Findings()
    for file in staged.values():
        checks = [
            *_list_failing_cell_checks(connection, file),
            *_list_set_checks(file, staged, form, feed_id),
        ]
        found = [_run(connection, file, check) for check in checks]
        total = sum(part.total for part in found)
        first = sorted((refusal for part in found for refusal in part.first), key=lambda refusal: refusal.line or 0)
        findings += Findings(total, tuple(first[:SHOWN]))
    return findings


def _run(connection: Connection, file: StagedFile, check: Check) -> Findings:
    failing = check.failing.subquery()
    total = connection.scalar(select(func.count()).select_from(failing)) or 0
    if not total:
        return Findings()
    few = select(failing.c.ctid, failing.c.value).order_by(failing.c.ctid).limit(SHOWN).cte("few")
    earlier = file.alias()
    line = select(func.count() + HEADER_LINES).where(earlier["ctid"] <= few.c.ctid).scalar_subquery()
    words = literal(check.reason, CText) if isinstance(check.reason, str) else check.reason(few.c.value)
    rows = connection.execute(select(line, few.c.value, words).order_by(few.c.ctid))
    return Findings(
        total,
        tuple(Refusal(file.file.file_name, reason, number, check.header, value) for number, value, reason in rows),
    )


def _select_rows(file: StagedFile, header: str, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(file["ctid"].label("ctid"), file[header].label("value")).where(*conditions)


# --- cells ------------------------------------------------------------------------------------------------------


def _list_failing_cell_checks(connection: Connection, file: StagedFile) -> list[Check]:
    """The checks of the file's cells that some row fails."""
    conditions = list(_list_cell_conditions(file))
    counts = connection.execute(
        select(*(func.count().filter(condition) for _, condition, _ in conditions)).select_from(file.table)
    ).one()
    return [
        Check(header, _select_rows(file, header, condition), reason)
        for (header, condition, reason), count in zip(conditions, counts, strict=True)
        if count
    ]


def _list_cell_conditions(file: StagedFile) -> Iterator[tuple[str, ColumnElement[bool], str]]:
    """(header, condition of a bad cell, reason)."""
    for cell in file.file.cells:
        if cell.kind.secret:
            continue
        column = file[cell.header]
        # Of a row that is flagged as gone, only these two are read.
        relevant = true() if cell.header in ("sourcedId", "status") else file.live
        blank = is_blank(column)
        if cell.required:
            yield cell.header, and_(relevant, blank), "must not be empty"
        if cell.kind.check is not None:
            bad = ~cell.kind.check(column)
            filled = ~blank if cell.required else column.is_not(None)
            yield cell.header, and_(relevant, filled, bad), cell.kind.wants


# --- sets -------------------------------------------------------------------------------------------------------


def _list_set_checks(file: StagedFile, staged: Staged, form: Format, feed_id: int) -> Iterator[Check]:
    yield _check_duplicates(file)
    for cell in file.file.cells:
        if cell.refers is not None:
            yield _check_reference(file, cell, cell.refers, staged)
            if cell.refers.tree:
                yield _check_tree(file, cell.header)
    for rule in form.rules:
        if rule.file == file.file.name and all(name in staged for name in rule.needs):
            yield Check(rule.header, _select_rows(file, rule.header, file.live, rule.breaks(staged)), rule.reason)
    if file.file.table is not None:
        yield _check_owner(file, file.file.table, feed_id)


def _check_duplicates(file: StagedFile) -> Check:
    copy = file.alias()
    first = func.min(copy["ctid"]).label("first")
    twice = select(copy["sourcedId"], first).group_by(copy["sourcedId"]).having(func.count() > 1).subquery()
    failing = _select_rows(file, "sourcedId", file["sourcedId"] == twice.c.sourcedId, file["ctid"] != twice.c.first)
    return Check("sourcedId", failing, "stands in this file a second time")


def _check_reference(file: StagedFile, cell: Cell, refers: Reference, staged: Staged) -> Check:
    target = staged[refers.file].alias() if refers.file in staged else None
    words = _explain_reference(refers, staged)
    if cell.many:
        items = func.unnest(to_list(file[cell.header])).table_valued("item").render_derived()
        name: ColumnElement[str] = items.c.item
        failing = select(file["ctid"].label("ctid"), name.label("value")).select_from(file.table.join(items, true()))
    else:
        name = file[cell.header]
        failing = _select_rows(file, cell.header)
    # An empty item is the cell check's to refuse.
    failing = failing.where(file.live, file[cell.header].is_not(None), name != "")
    if target is not None:
        conditions = [target["sourcedId"] == name, target.live]
        if refers.types:
            conditions.append(target["type"].in_(refers.types))
        failing = failing.where(~exists().where(*conditions))
    return Check(cell.header, failing, words)


def _explain_reference(refers: Reference, staged: Staged) -> Words:
    """The words for a reference that leads nowhere."""
    file_name = f"{refers.file}.csv"

    def explain(name: ColumnElement[str]) -> ColumnElement[str]:
        target = staged[refers.file].alias() if refers.file in staged else None
        if target is None:
            return literal(f"names a row of {file_name}, which is absent", CText)
        wrong = func.concat(
            f"must name a row of {file_name} of type {' or '.join(refers.types)}, this one is of type ",
            target["type"] if refers.types else "",
        )
        reason = case((~target.live, literal(f"names a row of {file_name} that is marked as gone", CText)), else_=wrong)
        found = select(reason).where(target["sourcedId"] == name).limit(1).scalar_subquery()
        return func.coalesce(found, f"names no row of {file_name}")

    return explain


def _check_tree(file: StagedFile, header: str) -> Check:
    """Rows that are their own ancestors. UNION drops what was walked already, so circles come to an end."""
    first, more = file.alias(), file.alias()
    walk = (
        select(first["sourcedId"].label("start"), first[header].label("above"))
        .where(first[header].is_not(None))
        .cte(f"walk_{file.file.name}", recursive=True)
    )
    walk = walk.union(
        select(walk.c.start, more[header]).where(more["sourcedId"] == walk.c.above, more[header].is_not(None))
    )
    circular = select(walk.c.start).where(walk.c.start == walk.c.above)
    return Check(header, _select_rows(file, header, file["sourcedId"].in_(circular)), "leads back to the row itself")


def _check_owner(file: StagedFile, table: Table, feed_id: int) -> Check:
    """An id belongs to the feed that brought it first; another one can never overwrite its record."""
    failing = _select_rows(file, "sourcedId", table.c.sourced_id == file["sourcedId"], table.c.feed_id != feed_id)

    def explain(identifier: ColumnElement[str]) -> ColumnElement[str]:
        return (
            select(func.concat("belongs to the feed ", feeds.c.name))
            .join(table, table.c.feed_id == feeds.c.id)
            .where(table.c.sourced_id == identifier)
            .scalar_subquery()
        )

    return Check("sourcedId", failing, explain)
