"""Usage counters and the access log, written in batches by a thread of each worker, never by a request.

A request leaves an entry in memory. Once a second, and when the worker ends, the entries become rows: added to the
counters of their day, and for answers with data a row each in the access log. What is masked is masked here, so a
request does not wait for that either.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from oneroster_filter import fold_tree, parse
from sqlalchemy import JSON, Connection, Engine, Text, bindparam, cast, column, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access.throttles.storage import delete_old_windows
from roster_service.db.tables import audit, usage

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.8
PURGE_EVERY = timedelta(hours=1)
# A database that is away for long costs the oldest entries, not the worker's memory.
KEPT_ENTRIES = 100_000

MakeFilterText = Callable[[], str | None]


@dataclass(frozen=True)
class Disclosure:
    """The data of an answer: how many records, and how to say what was asked, with every value masked."""

    records: int
    describe: MakeFilterText


@dataclass(frozen=True)
class Entry:
    """A request of a known vendor. `disclosure`: None where the answer held no data."""

    at: datetime
    vendor_id: int
    caller: str
    method: str
    path: str
    status: int
    bytes: int
    request_id: str
    disclosure: Disclosure | None


class AccessLog:
    """The entries that are not written yet, and the thread that writes them."""

    def __init__(self, engine: Engine, audit_days: int) -> None:
        """`engine`: one that may write. `audit_days`: how long the access log is kept."""
        self._engine = engine
        self._audit_days = audit_days
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._purged_at = datetime.min.replace(tzinfo=UTC)

    def note(self, entry: Entry) -> None:
        """Remembers an entry; it is a row within a second."""
        with self._lock:
            self._entries.append(entry)
            if self._thread is None:
                # Not before the first request: a process that forks has no thread to lose.
                self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def close(self) -> None:
        """Writes what is left, and ends the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(5)
        self.flush()

    def flush(self) -> None:
        """Writes the entries. Where the database is away they are kept for the next time."""
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
            if not entries:
                return
            try:
                with self._engine.begin() as connection:
                    write_entries(connection, entries)
                    self._purge(connection)
            except SQLAlchemyError as error:
                log.warning("access log: %d entries could not be written (%s)", len(entries), type(error).__name__)
                with self._lock:
                    self._entries = (entries + self._entries)[-KEPT_ENTRIES:]

    def _run(self) -> None:
        while not self._ended.wait(FLUSH_SECONDS):
            self.flush()

    def _purge(self, connection: Connection) -> None:
        now = datetime.now(UTC)
        if now - self._purged_at >= PURGE_EVERY:
            self._purged_at = now
            connection.execute(delete(audit).where(audit.c.at < func.now() - timedelta(days=self._audit_days)))
            delete_old_windows(connection)


def write_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    """Adds the entries to the counters of their day, and those with data to the access log."""
    counted: dict[tuple[Any, ...], list[int]] = {}
    for entry in entries:
        key = (entry.vendor_id, entry.at.date(), f"{entry.method} {entry.path}", f"{entry.status // 100}xx")
        sums = counted.setdefault(key, [0, 0, 0])
        for index, value in enumerate((1, 0 if entry.disclosure is None else entry.disclosure.records, entry.bytes)):
            sums[index] += value
    names = ("vendor_id", "day", "endpoint", "status_class", "requests", "records", "bytes")
    # In one order in every worker, so that two never wait for each other.
    rows = [dict(zip(names, (*key, *counted[key]), strict=True)) for key in sorted(counted)]
    adding = upsert(usage).values(rows)
    sums_of = {name: usage.c[name] + adding.excluded[name] for name in names[4:]}
    connection.execute(adding.on_conflict_do_update(index_elements=names[:4], set_=sums_of))
    disclosure = [_to_audit(entry, entry.disclosure) for entry in entries if entry.disclosure is not None]
    if disclosure:
        connection.execute(_ADD_DISCLOSURE, {"disclosure": json.dumps(disclosure)})


# As one text: bound one by one, the values would cost more than the rows.
_DISCLOSURE = (
    func.json_to_recordset(cast(bindparam("disclosure", type_=Text), JSON))
    .table_valued(*(column(it.name, it.type) for it in audit.c if it.identity is None))
    .render_derived(with_types=True)
)
_ADD_DISCLOSURE = insert(audit).from_select([it.name for it in _DISCLOSURE.c], select(*_DISCLOSURE.c))


def _to_audit(entry: Entry, disclosure: Disclosure) -> dict[str, Any]:
    return {
        "at": entry.at.isoformat(),
        "vendor_id": entry.vendor_id,
        "caller": entry.caller,
        "method": entry.method,
        "path": entry.path,
        "filter": disclosure.describe(),
        "records": disclosure.records,
        "request_id": entry.request_id,
    }


def mask_filter(text: str | None) -> str | None:
    """A filter that was understood, with `*` for every value."""
    if text is None:
        return None
    return fold_tree(parse(text), lambda clause: f"{clause.field}{clause.operator.value}'*'", " AND ".join, " OR ".join)
