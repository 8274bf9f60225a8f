"""The checks of staged files: cells, duplicates, references, rules, owners.

A check is a SELECT of the rows that fail it (`failing`). The checks of cells are in `cell_checks.py`; each other check
is a join of its own. The sync fetches lines and reasons only for rows that fail.

A failing row is rejected alone: the sync moves it to the quarantine, then every row that refers to it and to no
retained record, and so on until no row fails. Nothing tells which of the rows with the same id counts, so all of them
fail. Where they are orgs or sessions, or rows of a delta, the sync refuses the whole export: too much follows from an
org, and a delta says nothing of the rest.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, academic_sessions, feeds, orgs
from sync_scripts.checking.cell_checks import (
    CAUSE,
    DETAIL,
    REASON,
    VALUE,
    Check,
    list_failing_cell_checks,
    may_have_bad_cells,
    select_rows,
)
from sync_scripts.checking.failures import Failures
from sync_scripts.checking.references import DroppedReferences, follow_needs, list_found
from sync_scripts.formats.cells import UNREAD, to_list
from sync_scripts.formats.model import FAULT, HASH, LINE, Cell, CellReference, CsvFile, Format, Staged, StagedFile
from sync_scripts.formats.tolerated import DUPLICATE_ROW, Notice, Tolerated
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.retained import Retention, Target, Targets
from sync_scripts.staging.temporary import Follow, count_lines, delete_quarantined, quarantine_rows


@dataclass(frozen=True)
class CheckResult:
    """The result of the checks: the reasons of all rejections, the number of rejected rows of each file, the retention
    with their quarantines, and the notices about tolerated deviations."""

    findings: Findings
    rejected: Mapping[CsvFile, int]
    retention: Retention
    notices: tuple[Notice, ...]


def check_files(connection: sa.Connection, form: Format, retention: Retention, follow: Follow) -> CheckResult:
    """Checks the staged rows of `retention`, and moves the failing ones from their files to quarantines. `follow`: of
    the step.

    Raises RefusedExportError for an id of an org or session, or in a delta, that occurs twice in its file, and for an
    export of another feed.
    """
    staged = retention.staged
    owner = _find_owner(connection, retention)
    if owner is not None:
        _refuse_export_of_another_feed(connection, retention, owner)
    doubled = _list_doubled(connection, staged)
    notices = list(_delete_copies(connection, doubled))
    _refuse_doubled(connection, form, retention, doubled)
    retention = follow_needs(connection, form, retention)
    failures, dropped = Failures(connection), DroppedReferences()
    rejected = {file.file: 0 for file in staged.values()}

    def reject(failing: Collection[str]) -> Retention:
        # All checks of a round see the same rows, so the failing rows are deleted only after the round.
        quarantines = dict(retention.rejected)
        for name in failing:
            lines = failures.select_failed(name)
            quarantines[name], count = quarantine_rows(connection, staged[name], lines, quarantines.get(name))
            rejected[staged[name].file] += count
        for name in failing:
            delete_quarantined(connection, staged[name], quarantines[name])
        failures.count_consequences()
        return follow_needs(connection, form, replace(retention, rejected=quarantines))

    # Rows with too few or too many cells go first: the other checks cannot tell which cell is which. The other checks
    # expect each id once.
    if failing := _run_row_checks(staged, doubled, failures):
        retention = reject(failing)
    failing = _run_first(connection, form, retention.list_targets(form), owner, failures, dropped, follow)
    while failing:
        returned = retention.returning
        retention = reject(failing)
        moved = {*retention.orphans, *returned}
        lost = {*failing, *(name for name, file in staged.items() if file.file.table in moved)}
        failing = _run_again(connection, form, retention.list_targets(form), failing, lost, failures, dropped)
    quarantines = {name: retention.rejected[name] for name in staged if name in retention.rejected}
    findings = failures.read_findings(quarantines, form, retention.feed_name)
    return CheckResult(findings, rejected, retention, (*notices, *dropped.list_notices()))


def _delete_copies(connection: sa.Connection, doubled: Iterable[StagedFile]) -> Iterator[Notice]:
    """Deletes rows that repeat another row exactly. `doubled`: the files where an id occurs twice."""
    for file in doubled:
        if HASH in file.table.c:
            first = file.alias()
            unread = {LINE, HASH, *(cell.header for cell in file.file.cells if cell.kind is UNREAD)}
            read = (column.name for column in file.columns if column.name not in unread)
            is_copy = [first["sourcedId"] == file["sourcedId"]]
            is_copy += [first.table.c[name].is_not_distinct_from(file.table.c[name]) for name in read]
            repeated = sa.delete(typing.cast(sa.Table, file.table)).where(
                sa.exists().where(*is_copy, first.line < file.line)
            )
            count, line = count_lines(connection, repeated.returning(file.line).cte("repeated"))
            if count:
                yield Tolerated(file.file.file_name, DUPLICATE_ROW, count=count, line=line)


def _refuse_doubled(
    connection: sa.Connection, form: Format, retention: Retention, doubled: Iterable[StagedFile]
) -> None:
    """Raises RefusedExportError if an id of an org or session, or in a delta, occurs twice in its file."""
    failures, failing = Failures(connection), dict[str, StagedFile]()
    for file in doubled:
        is_whole = file.file.name in retention.deltas or file.file.table in (orgs, academic_sessions)
        if is_whole and failures.run(file, [_check_doubled(file)]):
            failing[file.file.name] = file
    refuse_if(failures.read_findings(failing, form, retention.feed_name))


@dataclass(frozen=True)
class _Owner:
    """The feed that must own the records of an export. `name`: part of some of their ids."""

    feed_id: int
    name: str


def _find_owner(connection: sa.Connection, retention: Retention) -> _Owner | None:
    """The feed of an export; None while the service has no other one that could own its records."""
    has_others = connection.scalar(sa.select(sa.exists().where(feeds.c.id != retention.feed_id)))
    return _Owner(retention.feed_id, retention.feed_name) if has_others else None


def _run_row_checks(staged: Staged, doubled: Collection[StagedFile], failures: Failures) -> list[str]:
    """Runs the checks of whole rows: that they have as many cells as the header, and an id that no other has.
    `doubled`: the files where an id occurs twice. Returns the names of the files with failing rows."""
    failures.begin_round()

    def list_checks(file: StagedFile) -> Iterator[Check]:
        if file.has_faults:
            yield _check_fault(file)
        if file in doubled:
            yield _check_doubled(file)

    return [name for name, file in staged.items() if failures.run(file, list_checks(file))]


def _check_fault(file: StagedFile) -> Check:
    fault = file.table.c[FAULT]
    return Check(file.file.key, select_rows(file, "sourcedId", fault, fault.is_not(None)))


def _list_staged(targets: Targets) -> Staged:
    return {name: target.staged for name, target in targets.items() if target.staged is not None}


def _leave_out_known(staged: Staged) -> Staged:
    """The files with a row to check."""
    return {name: file for name, file in staged.items() if not file.is_known}


def _list_cell_targets(
    targets: Targets, file: StagedFile, name: sa.ColumnElement[str], cell: Cell
) -> list[sa.ColumnElement[bool]]:
    """The conditions of which one holds if a name in a cell has a target; none for a reference to an absent file of
    which nothing is stored."""
    refers = cell.refers
    if refers is None or refers.file not in targets:
        return []
    target = targets[refers.file]
    return list(list_found(name, refers, target.staged, target.retained, naming=file))


def _refuse_export_of_another_feed(connection: sa.Connection, retention: Retention, owner: _Owner) -> None:
    """Raises RefusedExportError if every org of a bulk file belongs to another feed: then no row could be loaded, and
    to reject each of them takes many times as long."""
    for file in retention.staged.values():
        if file.file.table is not orgs or file.file.name in retention.deltas:
            continue
        count = connection.scalar(sa.select(sa.func.count()).select_from(file.table))
        for check in _list_owner_checks(file, owner):
            foreign = check.failing.subquery()
            by_reason = sa.select(foreign.c[REASON], sa.func.count()).group_by(foreign.c[REASON])
            found: dict[str, int] = dict(connection.execute(by_reason).all())
            if found and sum(found.values()) == count:
                refuse_if(Findings.of(Rejection(file.file.file_name, f"every org {reason}") for reason in found))


def _run_first(
    connection: sa.Connection,
    form: Format,
    targets: Targets,
    owner: _Owner | None,
    failures: Failures,
    dropped: DroppedReferences,
    follow: Follow,
) -> list[str]:
    """Runs all checks, but those of cells only if a cell may be bad. Returns the names of the files with failing
    rows."""
    staged = _list_staged(targets)
    looked_at = _leave_out_known(staged)
    failures.begin_round()
    dropped.drop(connection, looked_at, partial(_list_cell_targets, targets), None)
    failing = {
        name
        for name, file in follow(looked_at.items())
        if failures.run(
            file,
            (
                *_list_reference_checks(file, targets, targets, failures),
                *_list_rule_checks(file, form, targets),
                *_list_owner_checks(file, owner),
            ),
        )
    }
    if failing or any(may_have_bad_cells(connection, file, staged) for file in looked_at.values()):
        failing |= {
            name for name, file in looked_at.items() if failures.run(file, list_failing_cell_checks(connection, file))
        }
    return [name for name in staged if name in failing]


def _run_again(
    connection: sa.Connection,
    form: Format,
    targets: Targets,
    failed: Collection[str],
    lost: Collection[str],
    failures: Failures,
    dropped: DroppedReferences,
) -> list[str]:
    """Runs the checks that may fail because rows of the files `failed` are rejected, and records of the files `lost`
    are gone: a row that refers to one is rejected too, unless the record that it names is retained. Returns the names
    of the files with failing rows."""
    looked_at = _leave_out_known(_list_staged(targets))
    failures.begin_round()
    dropped.drop(connection, looked_at, partial(_list_cell_targets, targets), lost)
    return [
        name
        for name, file in looked_at.items()
        if failures.run(
            file,
            (
                *_list_reference_checks(file, targets, lost, failures),
                *(_list_rule_checks(file, form, targets) if file.file.name in failed else ()),
            ),
        )
    ]


# --- sets -------------------------------------------------------------------------------------------------------


def _list_doubled(connection: sa.Connection, staged: Staged) -> list[StagedFile]:
    """The files where an id occurs twice, of those where none may."""
    files = [file for file in staged.values() if file.file.unique and not file.is_known]
    if not files:
        return []
    # A count of distinct ids sorts them, which takes two thirds of the time of grouping them.
    ids = ((file, file["sourcedId"]) for file in files)
    is_doubled = (
        sa.select(sa.func.count(named) > sa.func.count(named.distinct())).select_from(file.table).scalar_subquery()
        for file, named in ids
    )
    found = connection.execute(sa.select(*is_doubled)).one()
    return [file for file, is_one in zip(files, found, strict=True) if is_one]


def _check_doubled(file: StagedFile) -> Check:
    copy = file.alias()
    name, line = copy["sourcedId"].label("name"), copy.line
    lines = (sa.func.min(line).label("first"), sa.func.max(line).label("last"))
    twice = sa.select(name, *lines).group_by(name).having(sa.func.count() > 1).subquery()
    other = sa.case((file.line == twice.c.first, twice.c.last), else_=twice.c.first)
    detail = sa.func.concat(", also in line ", other, type_=CText)
    rows = select_rows(file, "sourcedId", "stands in more than one row", file["sourcedId"] == twice.c.name)
    return Check(file.file.key, rows.add_columns(detail.label(DETAIL)))


def _list_reference_checks(
    file: StagedFile, targets: Targets, lost: Collection[str], failures: Failures
) -> Iterator[Check]:
    """The checks of the file's references to rows of the files `lost`; in the first round (all `targets`), also of
    references to absent files. The checks of trees come with them."""
    for cell in file.file.cells:
        refers = cell.refers
        if refers is not None and (refers.file in lost or lost is targets):
            if not cell.is_dropped:
                target = targets.get(refers.file)
                # No record is made of a row alone that must name one of an absent file: a seat has the school of its
                # section.
                is_alone = target is not None and target.staged is None and cell.required
                yield _check_reference(file, cell, refers, None if is_alone else target, failures)
            if refers.tree and refers.file in targets:
                yield _check_tree(file, cell.header, targets[file.file.name].join_rows())


def _check_reference(
    file: StagedFile, cell: Cell, refers: CellReference, target: Target | None, failures: Failures
) -> Check:
    name: sa.ColumnElement[str] = file[cell.header]
    rows: sa.FromClause = file.table
    if cell.many:
        items = sa.func.unnest(to_list(file[cell.header])).table_valued("item").render_derived()
        name, rows = items.c.item, rows.join(items, sa.true())
    # The check of the cell rejects an empty item.
    conditions = [file.live, file[cell.header].is_not(None), name != ""]
    reason: sa.ColumnElement[str] = sa.literal(f"names a row of {refers.file_name}, which is absent", CText)
    cause: sa.ColumnElement[Any] = sa.cast(sa.null(), sa.Integer)
    if target is not None:
        conditions += [~found for found in list_found(name, refers, target.staged, target.retained)]
    if target is not None and target.staged is not None:
        reason = _explain_reference(name, refers, target.staged)
        if target.rejected is not None:
            causes = failures.select_causes(target.rejected)
            rows = rows.outerjoin(causes, causes.c.sourcedId == name)
            is_consequence = sa.and_(causes.c.cause.is_not(None), ~_is_staged(name, target.staged))
            cause = sa.case((is_consequence, causes.c.cause))
            reason = sa.case((is_consequence, f"names a row of {refers.file_name} that is rejected"), else_=reason)
    columns = (file.line.label(LINE), name.label(VALUE), reason.label(REASON), cause.label(CAUSE))
    return Check(cell.header, sa.select(*columns).select_from(rows).where(*conditions))


def _is_staged(name: sa.ColumnElement[str], staged: StagedFile) -> sa.ColumnElement[bool]:
    return sa.exists().where(staged.look_up()["sourcedId"] == name)


def _explain_reference(name: sa.ColumnElement[str], refers: CellReference, staged: StagedFile) -> sa.ColumnElement[str]:
    """The reason for a reference without a target: to a row that is marked as gone, of a wrong type, or to none."""
    gone = staged.look_up()
    marked = sa.exists().where(gone["sourcedId"] == name, ~gone.live)
    # The reason does not quote the wrong type, because it is a text of the export.
    wrong = f"must name a row of {refers.file_name} of type {' or '.join(refers.types)}"
    return sa.case(
        (marked, f"names a row of {refers.file_name} that is marked as gone"),
        (_is_staged(name, staged), wrong),
        else_=sa.literal(f"names no row of {refers.file_name}", CText),
    )


def _check_tree(file: StagedFile, header: str, every: StagedFile) -> Check:
    """The check for rows that are their own ancestors, through any row of `every`: of the file, or retained. UNION
    drops rows that the recursion has already found, so the recursion ends in a circle too."""
    first, more = file.alias(), every.alias()
    chain = (
        sa.select(first["sourcedId"].label("start"), first[header].label("above"))
        .where(first.live, first[header].is_not(None))
        .cte(f"ancestors_{file.file.name}", recursive=True)
    )
    chain = chain.union(
        sa.select(chain.c.start, more[header]).where(
            more["sourcedId"] == chain.c.above, more.live, more[header].is_not(None)
        )
    )
    circular = sa.select(chain.c.start).where(chain.c.start == chain.c.above)
    in_circle = file["sourcedId"].in_(circular)
    return Check(header, select_rows(file, header, "leads back to the row itself", file.live, in_circle))


def _list_rule_checks(file: StagedFile, form: Format, targets: Targets) -> Iterator[Check]:
    """The checks of the file's rules. After a rejection the stored record is retained, and another row may break a rule
    together with it, so the rules run again."""
    for rule in form.rules:
        if rule.file == file.file.name:
            breaks = rule.breaks(file, targets[file.file.name].retained)
            yield Check(rule.header, select_rows(file, rule.header, rule.reason, file.live, breaks))


def _list_owner_checks(file: StagedFile, owner: _Owner | None) -> Iterator[Check]:
    """The check that an id does not belong to another feed. An id belongs to the feed that first had it, so no feed can
    overwrite the record of another."""
    table, identify = file.file.table, file.file.identify
    if owner is not None and table is not None and identify is not None:
        is_foreign = (table.c.sourced_id == identify(owner.name, file["sourcedId"]), table.c.feed_id != owner.feed_id)
        reason = sa.func.concat("belongs to the feed ", feeds.c.name, type_=CText)
        foreign = select_rows(file, "sourcedId", reason, *is_foreign, table.c.feed_id == feeds.c.id)
        yield Check(file.file.key, foreign)
