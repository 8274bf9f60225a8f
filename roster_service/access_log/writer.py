"""Writes the access log, the usage counters and the last uses.

A response with records leaves only once its row of the access log is safe from the end of the worker: in the spool, or
if the disk refuses it, in the database. The usage counters wait in memory; a worker that is killed loses those of about
a second.

About once a second, and when the worker ends, a thread adds the entries to the counters of their day, and moves the
rows of the spool to the database.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from roster_service.access_log.entries import Disclosure, Entry
from roster_service.access_log.spool import Spool, SpoolFile, make_batches
from roster_service.auth.signed_requests import delete_old_nonces
from roster_service.auth.throttling.counters import delete_old_windows
from roster_service.db.deadline import limit_time
from roster_service.db.outages import Outage
from roster_service.db.tables import (
    NOBODY,
    UNKNOWN,
    CTexts,
    api_keys,
    audit,
    last_uses,
    oauth_clients,
    refused_requests,
    usage,
)
from roster_service.errors import Problem, RefusedRequestError, name_fault
from roster_service.feeds.roster_state import read_database_id
from roster_service.metrics import REFUSED_ROWS, WAITING

FLUSH_SECONDS = 0.8
ADOPT_EVERY = timedelta(minutes=1)
PURGE_EVERY = timedelta(hours=1)
# The longest that one attempt to write may take: a worker that ends waits for it.
WRITE_SECONDS = 10
# The same for a row that a request writes, because the disk refuses it.
DIRECT_SECONDS = 5
# While the database is away, a worker drops its oldest entries beyond this number, to bound its memory.
KEPT_ENTRIES = 100_000
# Of a row of refused requests: the latest of its addresses; and the methods that it names.
KEPT_ADDRESSES = 8
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_log = logging.getLogger(__name__)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class AccessLog:
    """The rows and entries that are not in the database yet, and the thread that writes them. Threads may share it."""

    def __init__(self, engine: sa.Engine, spool: Spool, *, is_required: bool) -> None:
        """`engine`: of the role that writes the access log. `is_required`: whether a response that cannot be recorded
        is refused."""
        self._engine = engine
        self._spool = spool
        self._is_required = is_required
        self._entries: list[Entry] = []
        # Rows that neither the disk nor the database took, if they are not required.
        self._unsaved: list[bytes] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._outage = Outage("the access log", "its entries wait")
        self._disk_outage = Outage("the folder of the access log", "requests write their rows to the database")
        self._purged_at = self._adopted_at = _LONG_AGO

    def start(self) -> None:
        """Starts the thread, if it does not run. The first request calls it: a fork before would lose the thread."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def add(self, entry: Entry) -> None:
        """Adds an entry, which the thread counts within about a second."""
        with self._lock:
            self._entries.append(entry)
        self._show_waiting()

    def record(self, disclosure: Disclosure) -> None:
        """Records a disclosure, so that its response may leave.

        Raises RefusedRequestError (BUSY) if neither the disk nor the database takes the row, and rows are required.
        """
        line = disclosure.make_line()
        try:
            self._spool.append(line)
        except OSError as error:
            self._disk_outage.add_failure(name_fault(error))
        else:
            self._disk_outage.end()
            return
        try:
            self._write_rows([line], DIRECT_SECONDS)
        except SQLAlchemyError as error:
            self._outage.add_failure(type(error).__name__)
            if self._is_required:
                raise RefusedRequestError(Problem.BUSY, "the access log cannot be written; try again") from None
            with self._lock:
                self._unsaved.append(line)

    def close(self) -> None:
        """Writes what waits, and ends the thread. Another worker adopts what the database does not take."""
        self._ended.set()
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join(5)
        self.flush()
        self._spool.close()

    def move_ended(self) -> None:
        """Moves the rows of workers that have ended to the database. Raises OSError and SQLAlchemyError."""
        try:
            self._spool.adopt()
            for file in self._spool.list_waiting():
                self._move(file)
        finally:
            self._spool.close()

    def flush(self) -> None:
        """Writes what waits. If that fails, it logs so once, and keeps the rest for the next call."""
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
                unsaved, self._unsaved = self._unsaved, []
            try:
                if entries:
                    with limit_time(WRITE_SECONDS), self._engine.begin() as connection:
                        write_entries(connection, entries)
                        self._purge(connection)
                    entries = []
                for rows in make_batches(unsaved):
                    self._save_rows(rows)
                unsaved = []
                self._move_files()
            except Exception as error:  # noqa: BLE001  (a fault must end neither the thread nor the counters)
                outage = self._disk_outage if isinstance(error, OSError) else self._outage
                outage.add_failure(name_fault(error))
                with self._lock:
                    self._entries = (entries + self._entries)[-KEPT_ENTRIES:]
                    self._unsaved = (unsaved + self._unsaved)[-KEPT_ENTRIES:]
            else:
                self._outage.end()
            self._show_waiting()

    def _run(self) -> None:
        while not self._ended.wait(FLUSH_SECONDS):
            self.flush()

    def _show_waiting(self) -> None:
        WAITING.set(len(self._entries) + len(self._unsaved) + self._spool.rows)

    def _move_files(self) -> None:
        """Moves the rows of the spool to the database. While the database is away, the spool has few files, because the
        current one is sealed last."""
        now = datetime.now(UTC)
        if now - self._adopted_at >= ADOPT_EVERY:
            self._adopted_at = now
            try:
                self._spool.adopt()
            except OSError as error:
                self._disk_outage.add_failure(name_fault(error))
        for file in self._spool.list_waiting():
            self._move(file)
        self._spool.seal()
        for file in self._spool.list_waiting():
            self._move(file)

    def _move(self, file: SpoolFile) -> None:
        try:
            for rows in file.read_batches():
                self._save_rows(rows)
            self._spool.remove(file)
        except OSError as error:
            # The file stays; the table takes none of its rows twice.
            self._disk_outage.add_failure(name_fault(error))

    def _save_rows(self, rows: Sequence[bytes]) -> None:
        """Writes rows, and puts those aside that the database refuses for their content: they would hold up all others.
        Raises OSError if the disk does not take one of these, and SQLAlchemyError for any other failure."""
        try:
            self._write_rows(rows, WRITE_SECONDS)
        # ValueError: the driver takes no NUL, and bytes that are not UTF-8 are no text.
        except (DataError, IntegrityError, ValueError) as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                self._save_rows(rows[:middle])
                self._save_rows(rows[middle:])
            else:
                path = self._spool.put_aside(rows[0])
                REFUSED_ROWS.inc()
                _log.error("the database refuses a row of the access log (%s): it is in %s", type(error).__name__, path)

    def _write_rows(self, rows: Sequence[bytes], seconds: float) -> None:
        with limit_time(seconds), self._engine.begin() as connection:
            write_rows(connection, rows)

    def _purge(self, connection: sa.Connection) -> None:
        now = datetime.now(UTC)
        if now - self._purged_at >= PURGE_EVERY:
            self._purged_at = now
            delete_old_windows(connection)
            delete_old_nonces(connection)


def move_rows_of_ended_workers(engine: sa.Engine, folder: Path) -> str | None:
    """Moves the rows that ended workers of this machine have left to the database: a running worker does so once it has
    answered a request. `engine`: of a role that may write the access log; `folder`: of the spools of all databases.
    Returns why it cannot, None if nothing is left."""
    try:
        with engine.connect() as connection:
            spool = Spool(folder / read_database_id(connection))
        AccessLog(engine, spool, is_required=False).move_ended()
    except (OSError, SQLAlchemyError) as error:
        return f"rows that ended workers have left in {folder} may be missing: {name_fault(error)}"
    return None


def write_entries(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    """Adds the entries to the usage counters of their day, those with a cause also by that, and stores the last use of
    each caller."""
    admitted = [entry for entry in entries if entry.vendor_id is not None]
    if admitted:
        _count_usage(connection, admitted)
        _store_last_uses(connection, admitted)
    with_cause = [entry for entry in entries if entry.cause is not None]
    if with_cause:
        _count_causes(connection, with_cause)


def _count_usage(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    counted: dict[tuple[Any, ...], list[int]] = {}
    for entry in entries:
        key = (entry.vendor_id, entry.at.date(), f"{entry.method} {entry.path}", f"{entry.status // 100}xx")
        sums = counted.setdefault(key, [0, 0, 0])
        for index, value in enumerate((1, entry.records, entry.bytes)):
            sums[index] += value
    names = ("vendor_id", "day", "endpoint", "status_class", "requests", "records", "bytes")
    # Every worker takes the row locks in the same order, so that two workers do not deadlock.
    rows = [dict(zip(names, (*key, *counted[key]), strict=True)) for key in sorted(counted)]
    adding = upsert(usage).values(rows)
    sums_of = {name: usage.c[name] + adding.excluded[name] for name in names[4:]}
    connection.execute(adding.on_conflict_do_update(index_elements=names[:4], set_=sums_of))


def _count_causes(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    named = {entry.caller for entry in entries if entry.vendor_id is None and entry.caller is not None}
    vendor_of = _find_vendors(connection, sorted(named)) if named else {}
    counted: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.at):
        vendor_id = vendor_of.get(entry.caller) if entry.vendor_id is None else entry.vendor_id
        caller = (NOBODY, UNKNOWN) if vendor_id is None else (vendor_id, entry.caller)
        hour = entry.at.replace(minute=0, second=0, microsecond=0)
        # A caller may send any word as the method.
        endpoint = f"{entry.method if entry.method in _METHODS else '(other)'} {entry.path}"
        counted.setdefault((caller[0], hour, caller[1], entry.status, entry.cause, endpoint), []).append(entry)
    keys = ("vendor_id", "hour", "caller", "status", "cause", "endpoint")
    rows = [dict(zip(keys, key, strict=True)) | _sum_refused(counted[key]) for key in sorted(counted)]
    adding = upsert(refused_requests).values(rows)
    new, old = adding.excluded, refused_requests.c
    # Another worker may have stored an earlier or a later one.
    is_first, is_last = new.first_at < old.first_at, new.last_at >= old.last_at
    changed = {
        "requests": old.requests + new.requests,
        **{name: sa.case((is_first, new[name]), else_=old[name]) for name in ("first_at", "first_request_id")},
        **{name: sa.case((is_last, new[name]), else_=old[name]) for name in ("last_at", "last_request_id")},
        "addresses": sa.case(
            (is_last, _join_lists(new.addresses, old.addresses, KEPT_ADDRESSES)),
            else_=_join_lists(old.addresses, new.addresses, KEPT_ADDRESSES),
        ),
        "fields": _join_lists(old.fields, new.fields, None),
    }
    connection.execute(adding.on_conflict_do_update(index_elements=keys, set_=changed))


def _sum_refused(entries: Sequence[Entry]) -> dict[str, Any]:
    """Returns what a row says of requests of one hour, the oldest first."""
    first, last = entries[0], entries[-1]
    addresses = dict.fromkeys(entry.address for entry in reversed(entries) if entry.address is not None)
    return {
        "requests": len(entries),
        "first_at": first.at,
        "first_request_id": first.request_id,
        "last_at": last.at,
        "last_request_id": last.request_id,
        "addresses": list(addresses)[:KEPT_ADDRESSES],
        "fields": sorted({name for entry in entries for name in entry.fields}),
    }


def _join_lists(first: sa.ColumnElement[Any], second: sa.ColumnElement[Any], most: int | None) -> sa.ColumnElement[Any]:
    """Returns both lists as one that has each text once, at its first place. `most`: of the texts, None for all."""
    joined = sa.func.unnest(first.op("||")(second)).table_valued("text", with_ordinality="place").render_derived()
    texts = sa.select(joined.c.text).group_by(joined.c.text).order_by(sa.func.min(joined.c.place))
    return sa.func.array(texts.limit(most).scalar_subquery(), type_=CTexts)


def _find_vendors(connection: sa.Connection, callers: Sequence[str]) -> Mapping[str | None, int]:
    """Returns the vendors of those of the client ids and prefixes of API keys that the service knows."""
    known = sa.union_all(
        sa.select(oauth_clients.c.client_id, oauth_clients.c.vendor_id).where(oauth_clients.c.client_id.in_(callers)),
        sa.select(api_keys.c.prefix, api_keys.c.vendor_id).where(api_keys.c.prefix.in_(callers)),
    )
    return {row.client_id: row.vendor_id for row in connection.execute(known)}


def _store_last_uses(connection: sa.Connection, entries: Sequence[Entry]) -> None:
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
    sa.func.json_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text), sa.JSON))
    .table_valued(*(sa.column(column.name, column.type) for column in audit.c if column.identity is None))
    .render_derived(with_types=True)
)
# A row that was written before a crash is in the spool still, and is left out.
_ADD_ROWS = upsert(audit).from_select([column.name for column in _ROWS.c], sa.select(*_ROWS.c)).on_conflict_do_nothing()


def write_rows(connection: sa.Connection, rows: Sequence[bytes]) -> None:
    """Adds rows to the access log that it does not have yet. `rows`: of `Disclosure.make_line`."""
    connection.execute(_ADD_ROWS, {"rows": f"[{b','.join(rows).decode()}]"})
