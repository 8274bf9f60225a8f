"""The rejected rows of a run: where each is, why it was rejected, and whom and what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from roster_service.change_log.actors import OperatorRole
from roster_service.console.list_pages import Paged, find_window, make_paged
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.errors import CommandError
from roster_service.explore.rejected_rows import LabelledRecord, label_records, label_rows, make_row_search
from roster_service.explore.roster_search import LEAST_CHARACTERS, MOST_CHARACTERS
from roster_service.feeds.rejected_rows import (
    NamedRecord,
    count_rejected_rows,
    explain_missing,
    has_cause,
    list_names,
    names_record,
    read_rejected_rows,
)
from roster_service.feeds.run_history import TYPES, Cause, RunDetails, find_run


@dataclass(frozen=True)
class RejectedPage:
    """A page of the rejected rows of a run, with their values. `cause`: only the rows of this root cause; `search`:
    only rows with this text, or that name a record of it; `record`: only rows that name it; `without`: the query
    without that record; `problem`: why nothing was looked for; `missing`: rows that were rejected and are not
    stored."""

    run: int
    feed: str
    outcome: str
    rows: Paged
    causes: Sequence[Cause]
    cause: int | None
    search: str | None
    record: LabelledRecord | None
    without: str
    problem: str | None
    missing: str


@dataclass(frozen=True)
class RejectedLine:
    """A rejected row in CSV. `records`: that it names, as `list_names` writes them."""

    file: str
    line: int | None
    column: str | None
    value: str | None
    reason: str
    sourcedId: str | None  # noqa: N815  (the name in exports)
    kind: str
    cause: int | None
    records: str


def read_rejected(visit: Visit) -> RejectedPage:
    """Reads a page of the rejected rows of a run."""
    connection, number = visit.connection, int(visit.place["run"])
    run = find_run(connection, number)
    search = (visit.get("search") or "").strip() or None
    cause, record = _find_cause(visit, run), _find_record(visit)
    problem = _find_problem(search)
    skipped, count = find_window(visit)
    conditions = [] if cause is None else [has_cause(cause)]
    conditions += [] if record is None else [names_record(record.type, record.sourcedId)]
    conditions += [] if search is None or problem else [make_row_search(connection, number, search)]
    found = [] if problem else list(read_rejected_rows(connection, number, count, *conditions, offset=skipped))
    page = make_paged(visit, found)
    return RejectedPage(
        run=number,
        feed=run.feed,
        outcome=run.outcome,
        rows=replace(page, rows=label_rows(connection, number, page.rows)),
        causes=run.causes,
        cause=cause,
        search=search,
        record=next(iter(label_records(connection, number, [] if record is None else [record])), None),
        without=urlencode(
            {name: value for name, value in visit.query.items() if name not in ("type", "record", "page")}
        ),
        problem=problem,
        missing=explain_missing(run.rejected, count_rejected_rows(connection, number)),
    )


def _find_cause(visit: Visit, run: RunDetails) -> int | None:
    """The root cause that the query chooses. Raises CommandError if the run does not have it."""
    cause = visit.get("cause")
    found = None if cause is None else next((group.number for group in run.causes if str(group.number) == cause), None)
    if cause is not None and found is None:
        raise CommandError(f"the run {run.run} has no root cause {cause}")
    return found


def _find_record(visit: Visit) -> NamedRecord | None:
    """The record that the query chooses. Raises CommandError for an unknown type."""
    type_, sourced_id = visit.get("type"), visit.get("record")
    if type_ is None or sourced_id is None:
        return None
    if type_ not in TYPES.values():
        raise CommandError(f"there is no type {type_[:80]}; the types are {', '.join(TYPES.values())}")
    return NamedRecord(type_, sourced_id, False, None)


def _find_problem(search: str | None) -> str | None:
    """Why a text cannot be looked for; None if it can."""
    if search is None:
        return None
    if not LEAST_CHARACTERS <= len(search) <= MOST_CHARACTERS:
        return f"a search has {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters"
    return None


def list_csv(content: RejectedPage) -> Sequence[RejectedLine]:
    """Returns the rows of a page with the records of each as one text."""
    return [RejectedLine(**{**vars(row), "records": list_names(row.records)}) for row in content.rows.rows]


SCREENS = (
    Screen(
        "run_rejected", "/runs/<int:run>/rejected", "Rejected rows", OperatorRole.VIEWER, read_rejected, list_csv, None
    ),
)
FORMS: Sequence[Form] = ()
