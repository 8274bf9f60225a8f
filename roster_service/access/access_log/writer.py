"""Writes the usage counters, the last uses and the access log, in a thread of each worker: requests do not wait for it.

A request adds an entry in memory. About once a second, and when the worker ends, the thread writes the entries: it adds
them to the counters of their day, and writes a row of the access log for each response with records. The thread also
masks the filters.
"""

from __future__ import annotations

import atexit
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from oneroster_filter import fold_tree, parse
from sqlalchemy import JSON, Connection, Engine, Text, bindparam, cast, column, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access.credentials.nonces import delete_old_nonces
from roster_service.access.throttling.storage import delete_old_windows
from roster_service.db.deadline import limit_time
from roster_service.db.tables import audit, last_uses, usage
from roster_service.metrics import WAITING
from roster_service.outages import Outage

FLUSH_SECONDS = 0.8
PURGE_EVERY = timedelta(hours=1)
# The longest that one attempt to write may take: a worker that ends waits for it.
WRITE_SECONDS = 10
# While the database is away, a worker drops its oldest entries beyond this number, to bound its memory.
KEPT_ENTRIES = 100_000

# Returns the column `filter` of the access log: the filter or the body of a request, with every value masked.
MakeFilterText = Callable[[], str | None]


@dataclass(frozen=True)
class Disclosure:
    """The records that a response discloses: their number, and the function that makes the masked filter text. The
    writer calls it, not the request."""

    records: int
    make_filter_text: MakeFilterText


@dataclass(frozen=True)
class Entry:
    """A request of an authenticated vendor. `caller`: an OAuth client id, or the prefix of an API key; `address`: the
    network address that it came from; `path`: as it is documented, without ids; `bytes`: of the response body;
    `disclosure`: None if the response has no records."""

    at: datetime
    vendor_id: int
    caller: str
    address: str | None
    method: str
    path: str
    status: int
    bytes: int
    request_id: str
    disclosure: Disclosure | None


class AccessLog:
    """The entries that are not written yet, and the thread that writes them. Threads may share it."""

    def __init__(self, engine: Engine, audit_days: int) -> None:
        """`engine`: of the role that writes the access log. `audit_days`: how many days the log keeps a row."""
        self._engine = engine
        self._audit_days = audit_days
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._outage = Outage("the access log", "its entries wait")
        self._purged_at = datetime.min.replace(tzinfo=UTC)

    def add(self, entry: Entry) -> None:
        """Adds an entry, which the thread writes within about a second."""
        with self._lock:
            self._entries.append(entry)
            WAITING.set(len(self._entries))
            if self._thread is None:
                # The first request starts the thread: a fork before it would lose it.
                self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def close(self) -> None:
        """Writes the remaining entries and ends the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(5)
        self.flush()

    def flush(self) -> None:
        """Writes the entries. If the database fails, it logs that once, and keeps them for the next call."""
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
            if not entries:
                return
            try:
                with limit_time(WRITE_SECONDS), self._engine.begin() as connection:
                    write_entries(connection, entries)
                    self._purge(connection)
            except SQLAlchemyError as error:
                self._outage.add_failure(type(error).__name__)
                with self._lock:
                    self._entries = (entries + self._entries)[-KEPT_ENTRIES:]
            else:
                self._outage.end()
            WAITING.set(len(self._entries))

    def _run(self) -> None:
        while not self._ended.wait(FLUSH_SECONDS):
            self.flush()

    def _purge(self, connection: Connection) -> None:
        now = datetime.now(UTC)
        if now - self._purged_at >= PURGE_EVERY:
            self._purged_at = now
            connection.execute(delete(audit).where(audit.c.at < func.now() - timedelta(days=self._audit_days)))
            delete_old_windows(connection)
            delete_old_nonces(connection)


def write_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    """Adds the entries to the usage counters of their day, and those with a disclosure to the access log. Stores the
    last use of each caller."""
    counted: dict[tuple[Any, ...], list[int]] = {}
    for entry in entries:
        key = (entry.vendor_id, entry.at.date(), f"{entry.method} {entry.path}", f"{entry.status // 100}xx")
        sums = counted.setdefault(key, [0, 0, 0])
        for index, value in enumerate((1, 0 if entry.disclosure is None else entry.disclosure.records, entry.bytes)):
            sums[index] += value
    names = ("vendor_id", "day", "endpoint", "status_class", "requests", "records", "bytes")
    # Every worker takes the row locks in the same order, so that two workers do not deadlock.
    rows = [dict(zip(names, (*key, *counted[key]), strict=True)) for key in sorted(counted)]
    adding = upsert(usage).values(rows)
    sums_of = {name: usage.c[name] + adding.excluded[name] for name in names[4:]}
    connection.execute(adding.on_conflict_do_update(index_elements=names[:4], set_=sums_of))
    _store_last_uses(connection, entries)
    disclosed = [_to_row(entry, entry.disclosure) for entry in entries if entry.disclosure is not None]
    if disclosed:
        connection.execute(_ADD_ROWS, {"rows": json.dumps(disclosed)})


def _store_last_uses(connection: Connection, entries: Sequence[Entry]) -> None:
    latest = {(entry.vendor_id, entry.caller): entry for entry in sorted(entries, key=lambda entry: entry.at)}
    rows = [
        {"vendor_id": vendor_id, "caller": caller, "used_at": entry.at, "address": entry.address}
        for (vendor_id, caller), entry in sorted(latest.items(), key=lambda item: item[0])
    ]
    storing = upsert(last_uses).values(rows)
    later = {name: storing.excluded[name] for name in ("used_at", "address")}
    # Another worker may have stored a later one.
    is_later = storing.excluded.used_at > last_uses.c.used_at
    keys = (last_uses.c.vendor_id, last_uses.c.caller)
    connection.execute(storing.on_conflict_do_update(index_elements=keys, set_=later, where=is_later))


# The rows are one JSON text: binding the values one by one would take longer than inserting the rows.
_ROWS = (
    func.json_to_recordset(cast(bindparam("rows", type_=Text), JSON))
    .table_valued(*(column(it.name, it.type) for it in audit.c if it.identity is None))
    .render_derived(with_types=True)
)
_ADD_ROWS = insert(audit).from_select([it.name for it in _ROWS.c], select(*_ROWS.c))


def _to_row(entry: Entry, disclosure: Disclosure) -> dict[str, Any]:
    return {
        "at": entry.at.isoformat(),
        "vendor_id": entry.vendor_id,
        "caller": entry.caller,
        "method": entry.method,
        "path": entry.path,
        "filter": disclosure.make_filter_text(),
        "records": disclosure.records,
        "request_id": entry.request_id,
    }


def mask_filter(text: str | None) -> str | None:
    """Returns a filter with every value replaced by `*`. The filter must be one that the request could parse."""
    if text is None:
        return None
    return fold_tree(parse(text), lambda clause: f"{clause.field}{clause.operator.value}'*'", " AND ".join, " OR ".join)
