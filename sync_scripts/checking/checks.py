"""The checks of staged files: cells, duplicates, references, rules, owners.

A check is a SELECT of the rows that fail it (`failing`). The checks of cells are in `cell_checks.py`; each other check
is a join of its own. The sync fetches lines and reasons only for rows that fail.

A repeated id in a file makes the sync refuse the whole export, because nothing tells which of the rows counts. Any
other failing row is rejected alone: the sync moves it to the quarantine, then every row that refers to it and to no
retained record, and so on until no row fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    case,
    exists,
    func,
    literal,
    select,
    true,
)

from roster_service.db.tables import CText, feeds
from sync_scripts.checking.cell_checks import list_failing_cell_checks, may_have_bad_cells
from sync_scripts.checking.check import Check, Words, select_rows
from sync_scripts.checking.orphans import leave_out_orphans
from sync_scripts.formats.cells import to_list
from sync_scripts.formats.model import LINE, Cell, Format, Reference, StagedFile
from sync_scripts.reading.rejections import KEPT, Findings, Rejection, refuse_if
from sync_scripts.staging.quarantine import delete_quarantined, quarantine_rows
from sync_scripts.staging.retained import Retention


@dataclass(frozen=True)
class CheckResult:
    """The result of the checks: the reasons of all rejections, the number of rejected rows of each file by its name,
    and the retention with their quarantines."""

    findings: Findings
    rejected: Mapping[str, int]
    retention: Retention


def check_files(connection: Connection, form: Format, retention: Retention) -> CheckResult:
    """Checks the staged rows of `retention`, and moves the failing ones from their files to quarantines.

    Raises RefusedExportError for ids that occur twice in a file.
    """
    staged = retention.staged
    _refuse_duplicates(connection, staged.values())
    retention = leave_out_orphans(connection, form, retention)
    findings = dict.fromkeys(staged, Findings())
    rejected = dict.fromkeys(staged, 0)
    found = _run_first(connection, form, retention)
    while any(failed for results in found.values() for _, _, failed in results):
        failing_files: dict[str, list[Select[Any]]] = {}
        for name, results in found.items():
            findings[name] += Findings.sum(part for _, part, _ in results)
            failing = [check.failing for check, _, failed in results if failed]
            if failing:
                failing_files[name] = failing
        # All checks of a round see the same rows, so the failing rows are deleted only after the round.
        quarantines = dict(retention.rejected)
        for name, failing in failing_files.items():
            quarantines[name], count = quarantine_rows(connection, staged[name], failing, quarantines.get(name))
            rejected[name] += count
        for name in failing_files:
            delete_quarantined(connection, staged[name], quarantines[name])
        retention = leave_out_orphans(connection, form, replace(retention, rejected=quarantines))
        # The next round rejects rows that refer to rejected ones, unless the record that they name is retained.
        targets = {*failing_files, *(name for name, file in staged.items() if file.file.table in retention.orphans)}
        found = {
            name: _run_all(
                connection,
                file,
                (
                    *_list_reference_checks(file, retention, targets),
                    *_list_rule_checks(file, form, retention, failing_files),
                ),
            )
            for name, file in staged.items()
        }
    return CheckResult(Findings.sum(it.sort_by_line() for it in findings.values()), rejected, retention)


def _refuse_duplicates(connection: Connection, files: Iterable[StagedFile]) -> None:
    """Raises RefusedExportError for ids that occur twice in one of the files."""
    single = (file for file in files if file.file.unique and _has_duplicates(connection, file))
    refuse_if(Findings.sum(_run_check(connection, file, _check_duplicates(file))[0] for file in single))


# (check, its findings, whether any row failed)
_Result = tuple[Check, Findings, bool]


def _run_first(connection: Connection, form: Format, retention: Retention) -> dict[str, list[_Result]]:
    """The results of the first round, by file: all checks, but those of cells only if a cell may be bad."""
    found = {
        name: _run_all(connection, file, _list_set_checks(file, form, retention))
        for name, file in retention.staged.items()
    }
    is_closed = not any(failed for results in found.values() for _, _, failed in results)
    if is_closed and not any(may_have_bad_cells(connection, file, retention) for file in retention.staged.values()):
        return found
    return {
        name: [*_run_all(connection, file, list_failing_cell_checks(connection, file)), *found[name]]
        for name, file in retention.staged.items()
    }


def _run_all(connection: Connection, file: StagedFile, checks: Iterable[Check]) -> list[_Result]:
    return [(check, *_run_check(connection, file, check)) for check in checks]


def _run_check(connection: Connection, file: StagedFile, check: Check) -> tuple[Findings, bool]:
    """(findings of a check, whether any row failed)."""
    failing = check.failing.subquery()
    total = connection.scalar(select(func.count()).select_from(failing)) or 0
    if not total:
        return Findings(), False
    few = select(failing.c.line, failing.c.value).order_by(failing.c.line).limit(KEPT).cte("few")
    words = literal(check.reason, CText) if isinstance(check.reason, str) else check.reason(few.c.value)
    rows = connection.execute(select(few.c.line, few.c.value, words).order_by(few.c.line))
    first = tuple(Rejection(file.file.file_name, reason, line, check.header, value) for line, value, reason in rows)
    return Findings(total, first), True


def _list_set_checks(file: StagedFile, form: Format, retention: Retention) -> Iterator[Check]:
    yield from _list_reference_checks(file, retention, retention.staged)
    yield from _list_rule_checks(file, form, retention, retention.staged)
    if file.file.table is not None:
        yield _check_owner(file, file.file.table, retention.feed_id, lambda key: key)
    subject = file.file.subject
    if subject is not None and subject.identify is not None:
        yield _check_owner(file, subject.table, retention.feed_id, partial(subject.identify, retention.feed_name))


# --- sets -------------------------------------------------------------------------------------------------------


def _has_duplicates(connection: Connection, file: StagedFile) -> bool:
    # A count of distinct ids sorts them, which takes two thirds of the time of grouping them.
    named = file["sourcedId"]
    return connection.scalar(select(func.count(named) > func.count(named.distinct())).select_from(file.table)) is True


def _check_duplicates(file: StagedFile) -> Check:
    copy = file.alias()
    first = func.min(copy.line).label("first")
    name = copy["sourcedId"].label("name")
    twice = select(name, first).group_by(name).having(func.count() > 1).subquery()
    failing = select_rows(file, "sourcedId", file["sourcedId"] == twice.c.name, file.line != twice.c.first)
    return Check(file.file.key, failing, "stands in this file a second time")


def _list_reference_checks(file: StagedFile, retention: Retention, targets: Iterable[str]) -> Iterator[Check]:
    """The checks of the file's references to rows of `targets`; in the first round (`targets` is the staged files),
    also of references to absent files. The checks of trees come with them."""
    for cell in file.file.cells:
        refers = cell.refers
        if refers is not None and (refers.file in targets or (targets is retention.staged)):
            yield _check_reference(file, cell, refers, retention)
            if refers.tree and refers.file in retention.staged:
                yield _check_tree(file, cell.header, retention)


def _check_reference(file: StagedFile, cell: Cell, refers: Reference, retention: Retention) -> Check:
    if cell.many:
        items = func.unnest(to_list(file[cell.header])).table_valued("item").render_derived()
        name: ColumnElement[str] = items.c.item
        failing = select(file.line.label(LINE), name.label("value")).select_from(file.table.join(items, true()))
    else:
        name = file[cell.header]
        failing = select_rows(file, cell.header)
    # The check of the cell rejects an empty item.
    failing = failing.where(file.live, file[cell.header].is_not(None), name != "")
    if refers.file in retention.staged:
        failing = failing.where(*(~found for found in _list_targets(name, refers, retention)))
    return Check(cell.header, failing, _explain_reference(refers, retention))


def _list_targets(name: ColumnElement[str], refers: Reference, retention: Retention) -> Iterator[ColumnElement[bool]]:
    """The conditions that a name has a target: a live row of the export, or a stored record that stays active."""
    for target in (retention.staged[refers.file].alias(), retention.find_retained(retention.staged[refers.file].file)):
        if target is not None:
            conditions = [target["sourcedId"] == name, target.live]
            if refers.types:
                conditions.append(target["type"].in_(refers.types))
            yield exists().where(*conditions)


def _explain_reference(refers: Reference, retention: Retention) -> Words:
    """The function that makes the reason for a reference without a target."""
    file_name = refers.file_name

    def explain(name: ColumnElement[str]) -> ColumnElement[str]:
        if refers.file not in retention.staged:
            return literal(f"names a row of {file_name}, which is absent", CText)
        target = retention.staged[refers.file].alias()
        # The reason does not quote the wrong type, because it is a text of the export.
        wrong = literal(f"must name a row of {file_name} of type {' or '.join(refers.types)}", CText)
        reason = case((~target.live, literal(f"names a row of {file_name} that is marked as gone", CText)), else_=wrong)
        words = [select(reason).where(target["sourcedId"] == name).limit(1).scalar_subquery()]
        if refers.file in retention.rejected:
            out = retention.rejected[refers.file].alias()
            rejected = literal(f"names a row of {file_name} that is rejected", CText)
            words.append(select(rejected).where(out["sourcedId"] == name).limit(1).scalar_subquery())
        return func.coalesce(*words, f"names no row of {file_name}")

    return explain


def _check_tree(file: StagedFile, header: str, retention: Retention) -> Check:
    """The check for rows that are their own ancestors, also through retained records. UNION drops rows that the
    recursion has already found, so the recursion ends in a circle too."""
    first, more = file.alias(), retention.include_retained(file).alias()
    chain = (
        select(first["sourcedId"].label("start"), first[header].label("above"))
        .where(first.live, first[header].is_not(None))
        .cte(f"ancestors_{file.file.name}", recursive=True)
    )
    chain = chain.union(
        select(chain.c.start, more[header]).where(
            more["sourcedId"] == chain.c.above, more.live, more[header].is_not(None)
        )
    )
    circular = select(chain.c.start).where(chain.c.start == chain.c.above)
    return Check(
        header, select_rows(file, header, file.live, file["sourcedId"].in_(circular)), "leads back to the row itself"
    )


def _list_rule_checks(
    file: StagedFile, form: Format, retention: Retention, looked_at: Iterable[str]
) -> Iterator[Check]:
    """The checks of the file's rules that read one of the files `looked_at`. After a rejection the stored record is
    retained, and another row may break a rule together with it, so the rules run again."""
    for rule in form.rules:
        names = (rule.file, *rule.needs)
        if rule.file != file.file.name or not all(name in retention.staged for name in names):
            continue
        if any(name in looked_at for name in names):
            found = {name: retention.find_retained(retention.staged[name].file) for name in names}
            retained = {name: it for name, it in found.items() if it is not None}
            failing = select_rows(file, rule.header, file.live, rule.breaks(retention.staged, retained))
            yield Check(rule.header, failing, rule.reason)


def _check_owner(file: StagedFile, table: Table, feed_id: int, identify: Words) -> Check:
    """The check that an id does not belong to another feed. An id belongs to the feed that first had it, so no feed can
    overwrite the record of another. `identify` makes the id of the record from the key of the row."""
    own_id = identify(file["sourcedId"])
    failing = select_rows(file, "sourcedId", table.c.sourced_id == own_id, table.c.feed_id != feed_id)

    def explain(key: ColumnElement[str]) -> ColumnElement[str]:
        return (
            select(func.concat("belongs to the feed ", feeds.c.name))
            .join(table, table.c.feed_id == feeds.c.id)
            .where(table.c.sourced_id == identify(key))
            .scalar_subquery()
        )

    return Check(file.file.key, failing, explain)
