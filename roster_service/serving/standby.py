"""A hot standby of the database: whether a worker may read from it, how far it lags, and the reader that uses it.

No request fails because of the standby, and none waits for one that is away: after a failure, a thread asks it every
`RETRY_SECONDS` until it answers, and meanwhile the primary answers alone.

The primary admits each request first. So a right that has ended ends at once, however far the standby lags, and the
answer is one that the primary would have given: the standby's counts only if it was read from the same state of the
roster, with the same visible orgs, in the same ordering. A standby that lags behind a sync is not asked again until it
has replayed that sync, so no client sees an older revision after a newer one, and a pull can change between the servers
at each of its pages. The standby writes nothing; the primary makes orderings and remembers pulls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from psycopg2.errors import QueryCanceled, SerializationFailure
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from roster_service.db.deadline import find_time_left, limit_time
from roster_service.db.engine import require_reading
from roster_service.db.outages import Outage
from roster_service.db.round_trip import RoundTrips
from roster_service.errors import Problem, RefusedRequestError, SettingError, ThrottledRequestError
from roster_service.metrics import READS
from roster_service.serving.orderings import Orderings
from roster_service.serving.reader import Reader, ReadPage, ReadRecord
from roster_service.serving.request import AuthorizedRequest

RETRY_SECONDS = 5.0
# The longest time for asking the standby whether it answers, or how far it lags.
CHECK_SECONDS = 3.0
# The part of a request's time that the standby may use, so that the primary has time to answer in its place.
TIME_SHARE = 0.5
# Replay removes rows or takes locks that a query on the standby needs: PostgreSQL cancels that query alone.
_CONFLICTS = (SerializationFailure, QueryCanceled)

# Every role may ask for these.
_WRITTEN = sa.text(
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text"
)
# A server that is no standby (any more) does not lag.
_LAG = sa.text("""
    SELECT CASE WHEN pg_is_in_recovery() AND pg_last_wal_replay_lsn() < CAST(:written AS pg_lsn)
        THEN extract(
            epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())
        ) ELSE 0 END
""")

Found = TypeVar("Found")


class Standby:
    """The standby of one worker. Threads may share it."""

    def __init__(self, primary: sa.Engine, standby: sa.Engine) -> None:
        """`primary`, `standby`: of `make_reading_engine`, for the same role."""
        self.round_trips = RoundTrips(standby)
        self._primary = primary
        self._standby = standby
        self._outage = Outage("the standby", "the primary answers in its place")
        self._is_away = False
        self._lock = threading.Lock()
        self._closed = threading.Event()

    @property
    def is_away(self) -> bool:
        """Whether the standby did not answer when it was last asked."""
        return self._is_away

    def start(self) -> None:
        """Asks the standby for the first time. Raises SettingError if its sessions ignore the settings of the
        service."""
        try:
            self._check()
        except SQLAlchemyError as error:
            self._set_away(error)

    def read(self, read: Callable[[], Found]) -> Found | None:
        """Returns what `read` reads from the standby; None if the primary has to answer: the standby is away, it has
        canceled the query, or it does not admit the caller or know its pull, as one that lags.

        Raises ThrottledRequestError if the vendor has too many requests at the same time.
        """
        if self._is_away:
            return None
        try:
            with limit_time(find_time_left() * TIME_SHARE):
                return read()
        except ThrottledRequestError:
            raise
        except RefusedRequestError:
            return None
        except SQLAlchemyError as error:
            if not (isinstance(error, DBAPIError) and isinstance(error.orig, _CONFLICTS)):
                self._set_away(error)
            return None

    def read_lag(self) -> float | None:
        """Returns the seconds since the last transaction that the standby has replayed, or since its start; 0 if it has
        replayed all that the primary has written. None if one of them does not answer."""
        if self._is_away:
            return None
        try:
            with limit_time(CHECK_SECONDS):
                with self._primary.connect() as connection:
                    written = connection.scalar(_WRITTEN)
                with self._standby.connect() as connection:
                    lag = connection.scalar(_LAG, {"written": written})
        except SQLAlchemyError:
            return None
        return float(lag or 0)

    def close(self) -> None:
        """Closes the connections of this thread and of the pool, and ends the thread that asks."""
        self._closed.set()
        self.round_trips.close()
        self._standby.dispose()

    def _check(self) -> None:
        with limit_time(CHECK_SECONDS):
            require_reading(self._standby)

    def _set_away(self, error: SQLAlchemyError) -> None:
        # Without the driver's message, which can quote an address or values.
        self._outage.add_failure(type(error).__name__)
        with self._lock:
            if self._is_away:
                return
            self._is_away = True
        threading.Thread(target=self._ask_until_it_answers, name="standby", daemon=True).start()

    def _ask_until_it_answers(self) -> None:
        while not self._closed.wait(RETRY_SECONDS):
            try:
                self._check()
            except (SQLAlchemyError, SettingError) as error:
                self._outage.add_failure(type(error).__name__)
            else:
                self._is_away = False
                self._outage.end()
                return


FoundPage = TypeVar("FoundPage", ReadPage, ReadRecord)


class StandbyReader(Reader):
    """Reads pages and records for the requests of one worker, from two servers."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings, standby: Standby) -> None:
        """`round_trips`, `orderings`: of the primary."""
        super().__init__(round_trips, orderings)
        self._standby = standby
        self._on_standby = Reader(standby.round_trips, orderings)

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """Reads the record that the path of the request names. Raises as `admit`."""
        return self._read_record_there(request) or _count("primary", super().read_record(request))

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the requested page. Raises as `Reader.read_page`."""
        return self._read_page_there(request) or _count("primary", super().read_page(request))

    def _read_record_there(self, request: AuthorizedRequest) -> ReadRecord | None:
        if self._standby.is_away:
            return None
        admitted = self.read_admitted(request.admission, request.vendor_id)
        found = self._standby.read(lambda: self._on_standby.read_record(request))
        if found is None or (found.state, found.visible_set) != (admitted.state, admitted.visible_set):
            return None
        return _count("standby", found)

    def _read_page_there(self, request: AuthorizedRequest) -> ReadPage | None:
        if self._standby.is_away:
            return None
        try:
            known = self.read_collection_state(request)
        except RefusedRequestError as error:
            if error.problem is not Problem.PULL_ENDED:
                raise
            # A page that needs no ordering belongs to no pull: the primary decides.
            return None
        found = self._standby.read(lambda: self._on_standby.read_present_page(request))
        if found is None or (found.state, found.visible_set) != (known.shown, known.visible_set):
            return None
        return _count("standby", found) if self._keep_pull(request, known, found.page) else None


def _count(server: str, found: FoundPage) -> FoundPage:
    """Counts what was read in the metrics, and returns it."""
    READS.labels(server).inc()
    return found
