"""The rows that failed checks, and the causes of their rejection.

A row fails by itself, or because it refers to a rejected row. The first is a root cause, the second a consequence. One
wrong column may reject thousands of rows by itself and ten times as many by consequence, so the report has the root
causes first, in groups of the same column and reason, each with the number of its consequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import sqlalchemy as sa

from roster_service.db.tables import CText
from roster_service.feeds.rejected_rows import KEPT
from sync_scripts.checking.cell_checks import CAUSE, DETAIL, REASON, VALUE, Check
from sync_scripts.checking.named_records import is_shifted, list_naming_cells, make_records, select_label
from sync_scripts.formats.model import KEY, LINE, Format, Staged, StagedFile
from sync_scripts.reading.rejections import Cause, Findings, Rejection
from sync_scripts.staging.temporary import analyze_temporary, create_temporary

# The cause of a row that refers to a record whose row another run of the checks has rejected.
UNKNOWN = -1
ROUND, HEADER, IS_CONSEQUENCE = "round", "header", "is_consequence"


class Failures:
    """The failed rows of all files, over the rounds of the checks."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        # By the name of the file, a row for each check that a row of the file fails.
        self._failed: dict[str, sa.Table] = {}
        self._causes: list[Cause] = []
        self._round = 0

    def begin_round(self) -> None:
        """Begins a round: `select_failed` then selects only rows that fail from now on."""
        self._round += 1

    def run(self, file: StagedFile, checks: Iterable[Check]) -> bool:
        """Runs checks of a file; returns whether any row failed."""
        # A list, because every check has to run.
        failed = [self._run(file, check) for check in checks]
        return any(failed)

    def _run(self, file: StagedFile, check: Check) -> bool:
        failing = check.failing.subquery()
        if not self._connection.scalar(sa.select(sa.func.count()).select_from(failing)):
            return False
        table = self._find_table(file)
        columns = [LINE, VALUE, REASON, CAUSE, DETAIL, ROUND, HEADER, IS_CONSEQUENCE, KEY]
        row = file.alias()
        rows = sa.select(
            *(failing.c[name] for name in (LINE, VALUE, REASON, CAUSE)),
            failing.c.get(DETAIL, sa.null()),
            sa.literal(self._round, sa.Integer),
            sa.literal(check.header, CText),
            failing.c[CAUSE].is_not(None),
            row["sourcedId"],
        ).join(row.table, row.line == failing.c[LINE])
        self._connection.execute(table.insert().from_select(columns, rows))
        self._number_causes(file, table, check.header)
        analyze_temporary(self._connection, table)
        return True

    def _find_table(self, file: StagedFile) -> sa.Table:
        name = file.file.name
        if name not in self._failed:
            columns: list[sa.ColumnElement[Any]] = [
                sa.column(LINE, sa.BigInteger),
                sa.column(VALUE, CText),
                sa.column(REASON, CText),
                sa.column(CAUSE, sa.Integer),
                sa.column(DETAIL, CText),
                sa.column(ROUND, sa.Integer),
                sa.column(HEADER, CText),
                sa.column(IS_CONSEQUENCE, sa.Boolean),
                sa.column(KEY, CText),
            ]
            self._failed[name] = create_temporary(
                self._connection, f"failed_{cast(sa.Table, file.table).name}", columns
            )
        return self._failed[name]

    def _number_causes(self, file: StagedFile, table: sa.Table, header: str) -> None:
        """Gives the root causes of a check their numbers, one for each reason."""
        new = table.c[CAUSE].is_(None)
        groups = (
            sa.select(table.c[REASON], sa.func.count(), sa.func.min(table.c[LINE])).where(new).group_by(table.c[REASON])
        )
        for reason, count, line in self._connection.execute(groups.order_by(sa.func.min(table.c[LINE]))).all():
            number = self._add_cause(Cause(file.file.file_name, header, reason, count, line))
            same = sa.and_(new, table.c[REASON] == sa.literal(reason, CText))
            self._connection.execute(sa.update(table).where(same).values(cause=number))

    def _add_cause(self, cause: Cause) -> int:
        for number, known in enumerate(self._causes):
            if (known.file, known.column, known.reason) == (cause.file, cause.column, cause.reason):
                first = min(known.line, cause.line) if known.line and cause.line else None
                self._causes[number] = replace(known, rows=known.rows + cause.rows, line=first)
                return number
        self._causes.append(cause)
        return len(self._causes) - 1

    def select_failed(self, name: str) -> sa.Select[Any]:
        """The lines of a file that failed in this round. Raises KeyError for a file without failed rows."""
        table = self._failed[name]
        return sa.select(table.c[LINE]).where(table.c[ROUND] == self._round)

    def select_causes(self, quarantine: StagedFile) -> sa.FromClause:
        """(sourcedId, cause) of the rows of a quarantine, each id once. The cause is `UNKNOWN` for a row that no check
        of these files has rejected."""
        rejected, failed = quarantine.alias(), self._failed.get(quarantine.file.name)
        name = rejected["sourcedId"].label(KEY)
        if failed is None:
            return sa.select(name, sa.literal(UNKNOWN, sa.Integer).label(CAUSE)).distinct().subquery("causes")
        table = failed.alias()
        both = rejected.table.outerjoin(table, table.c[LINE] == rejected.line)
        cause = sa.func.coalesce(sa.func.min(table.c[CAUSE]), UNKNOWN, type_=sa.Integer).label(CAUSE)
        return sa.select(name, cause).select_from(both).group_by(name).subquery("causes")

    def count_consequences(self) -> None:
        """Adds the rows that failed only as consequences in this round to their causes."""
        for table in self._failed.values():
            rows = (
                sa.select(table.c[LINE], sa.func.min(table.c[CAUSE]).label(CAUSE))
                .where(table.c[ROUND] == self._round)
                .group_by(table.c[LINE])
                .having(sa.func.bool_and(table.c[IS_CONSEQUENCE]))
                .subquery()
            )
            counts = sa.select(rows.c[CAUSE], sa.func.count()).where(rows.c[CAUSE] != UNKNOWN).group_by(rows.c[CAUSE])
            for number, count in self._connection.execute(counts):
                known = self._causes[number]
                self._causes[number] = replace(known, consequences=known.consequences + count)

    def read_findings(self, rows: Staged, form: Format, feed_name: str) -> Findings:
        """The findings of the files, in their order: root causes before consequences, in each file in the order of its
        lines. `rows`: where the failed rows of each file are now, by its name."""
        failed = [(self._failed[name], file) for name, file in rows.items() if name in self._failed]
        parts = [
            self._read(table, file, form, feed_name, is_consequence=is_consequence)
            for is_consequence in (False, True)
            for table, file in failed
        ]
        return replace(Findings.sum(parts), causes=tuple(self._causes))

    def _read(
        self, table: sa.Table, file: StagedFile, form: Format, feed_name: str, *, is_consequence: bool
    ) -> Findings:
        chosen = table.c[IS_CONSEQUENCE].is_(is_consequence)
        total = self._connection.execute(sa.select(sa.func.count()).select_from(table).where(chosen)).scalar_one()
        named = file.alias()
        cells = list(list_naming_cells(named, form, feed_name))
        found = _select_first(table.select().where(chosen), named, [cell.ids for cell in cells])
        rows = self._connection.execute(found) if total else ()
        first = (
            Rejection(
                file.file.file_name,
                row.reason + (row.detail or ""),
                row.line,
                row.header,
                row.value,
                sourced_id=row.sourcedId,
                cause=None if row.cause == UNKNOWN else row.cause,
                is_consequence=is_consequence,
                records=make_records(cells, row[-len(cells) :] if cells else (), row.named_label),
                is_shifted=bool(row.is_shifted),
            )
            for row in rows
        )
        return Findings(total, tuple(first))


def _select_first(failed: sa.Select[Any], rows: StagedFile, ids: Sequence[sa.ColumnElement[Any]]) -> sa.Select[Any]:
    """The first of the failed rows, each with its label, whether it has too few or too many cells and, as the last
    columns, the ids of the records that it names."""
    failed = failed.order_by(LINE, HEADER).limit(KEPT)
    first = failed.subquery("first")
    columns = [first.c[name] for name in (LINE, HEADER, VALUE, REASON, DETAIL, CAUSE, KEY)]
    about = (select_label(rows).label("named_label"), is_shifted(rows).label("is_shifted"))
    found = sa.select(*columns, *about, *ids)
    return found.outerjoin_from(first, rows.table, rows.line == first.c[LINE]).order_by(first.c[LINE], first.c[HEADER])
