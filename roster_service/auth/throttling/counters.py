"""The counters of the throttles, in the database: all workers and machines share them.

A hit is one call of the SQL function `take_hits`, which implements the window: concurrent hits of a counter wait for
its row, and the function lets a hit pass if the hit that is `most` hits older has left the window.

A circuit breaker bounds the delay: after a failure, this process leaves the counters alone for `PAUSE_SECONDS`, and
then lets a request try them again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from roster_service.db.deadline import allow_time
from roster_service.db.engine import COUNTING_SECONDS
from roster_service.db.tables import RATE_DAYS, rate_hits, rate_windows

PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


def _name() -> sa.BindParameter[str]:
    return sa.bindparam("name", type_=sa.Text)


_TAKE = sa.select(
    sa.func.take_hits(_name(), sa.bindparam("most"), sa.bindparam("seconds", type_=sa.Double), sa.bindparam("amount"))
)
_READ = sa.text("SELECT wait, hits FROM read_window(:name, :most, :seconds)")


class WhenAway(Enum):
    """What a throttle does while the counters cannot be reached. The text is that of `docs/run.md`."""

    OPENS = "requests pass"
    COUNTS_ALONE = "each worker counts by itself"


@dataclass(frozen=True)
class Throttle:
    """What a throttle counts, and what it does while the counters cannot be reached."""

    counted: str
    when_away: WhenAway


# A vendor must not lose the roster because the database takes no writes. But an outage must not give a guesser of
# passwords, which people choose, as many tries as they like. Client secrets have 256 random bits.
THROTTLES: Mapping[str, Throttle] = {
    "login-account": Throttle("failed logins with an e-mail address", WhenAway.COUNTS_ALONE),
    "login-key": Throttle("failed logins with the API keys of a vendor", WhenAway.COUNTS_ALONE),
    "operator-account": Throttle("failed logins of an operator from an address", WhenAway.COUNTS_ALONE),
    "operator-address": Throttle("failed logins of operators from an address", WhenAway.COUNTS_ALONE),
    "operator-browser": Throttle("failed logins from a browser of an operator", WhenAway.COUNTS_ALONE),
    "operator-code": Throttle("wrong one-time codes of an operator", WhenAway.COUNTS_ALONE),
    "token-client": Throttle("tokens of a client", WhenAway.OPENS),
    "token-address": Throttle("requests of an address for tokens", WhenAway.OPENS),
    "vendor": Throttle("requests of a vendor on `/v1`", WhenAway.OPENS),
    "rostering": Throttle("requests of a vendor on the rostering interface", WhenAway.OPENS),
    "orderings": Throttle("time of the database for new filters and sorts of a vendor", WhenAway.OPENS),
}


@dataclass(frozen=True)
class Window:
    """At most `most` hits in any `seconds`. `throttle`: a key of `THROTTLES`."""

    throttle: str
    most: int
    seconds: int = 60

    def name_counter(self, subject: str) -> str:
        """Returns the name of the counter of a subject. Windows of different bounds do not share one."""
        return f"{self.throttle}/{subject}/{self.most}/{self.seconds}"


@dataclass(frozen=True)
class WindowState:
    """How many hits a window still takes, and the instant at which the oldest hit in it leaves it, by the clock of this
    machine, in seconds since 1970."""

    remaining: int
    resets_at: float


class Counters:
    """Exact moving windows, each of one subject. Threads may share them."""

    def __init__(self, engine: sa.Engine) -> None:
        """`engine`: of `make_counting_engine`, which commits each statement by itself."""
        self._engine = engine
        # Made by the first failure, and dropped with its hits when the database counts again.
        self._own: _OwnHits | None = None
        self._tries_at = float("-inf")

    def take(self, window: Window, subject: str, amount: int = 1) -> bool:
        """Counts `amount` hits, unless they do not fit into the window. Returns whether it has counted them; True if it
        knows nothing."""
        rows = self._ask(_TAKE, window, subject, amount=amount)
        if rows is not None:
            self._set_back()
            return bool(rows[0][0])
        own = self._find_own(window)
        return own is None or own.take(window, subject, amount)

    def read(self, window: Window, subject: str) -> WindowState | None:
        """Returns the state of the window; None if it knows nothing."""
        # A read is no sign that hits are counted again: a database that takes no writes answers it.
        rows = self._ask(_READ, window, subject) if self._find_own(window) is None else None
        if rows is not None:
            return WindowState(window.most - rows[0].hits, time.time() + rows[0].wait)
        own = self._find_own(window)
        return None if own is None else own.read(window, subject)

    def find_wait(self, window: Window, subject: str) -> int:
        """Returns the whole seconds until the window takes a hit; 0 if it takes one now, or if it knows nothing."""
        state = self.read(window, subject)
        if state is None or state.remaining > 0:
            return 0
        return max(1, math.ceil(state.resets_at - time.time()))

    def _ask(
        self, statement: sa.Executable, window: Window, subject: str, **values: int
    ) -> Sequence[sa.Row[tuple[object, ...]]] | None:
        """The rows of a statement about a counter; None while the database is away. It has its own time: a request that
        is overdue says nothing of the database, and its work must be counted."""
        if time.monotonic() < self._tries_at:
            return None
        bounds = {"name": window.name_counter(subject), "most": window.most, "seconds": window.seconds}
        try:
            with allow_time(COUNTING_SECONDS), self._engine.connect() as connection:
                rows = connection.execute(statement, {**bounds, **values}).all()
        except SQLAlchemyError as error:
            self._set_away(error)
            return None
        return rows

    def _find_own(self, window: Window) -> _OwnHits | None:
        return None if THROTTLES[window.throttle].when_away is WhenAway.OPENS else self._own

    def _set_away(self, error: Exception) -> None:
        self._tries_at = time.monotonic() + PAUSE_SECONDS
        if self._own is None:
            self._own = _OwnHits()
            # Without the driver's message, which can quote the address with a password.
            _log.warning("throttle: the counters cannot be reached (%s)", type(error).__name__)

    def _set_back(self) -> None:
        if self._own is not None:
            self._own = None
            _log.warning("throttle: the counters can be reached again")


class _OwnHits:
    """The hits that this worker counts by itself while the database is away: few, as each is a failed login."""

    def __init__(self) -> None:
        # (name of the counter, instant at which the hit leaves its window).
        self._hits: list[tuple[str, float]] = []
        self._lock = threading.Lock()

    def take(self, window: Window, subject: str, amount: int) -> bool:
        """As of `Counters`."""
        with self._lock:
            self._hits = [hit for hit in self._hits if hit[1] > time.time()]
            if len(self._list_ends(window, subject)) + amount > window.most:
                return False
            self._hits += [(window.name_counter(subject), time.time() + window.seconds)] * amount
            return True

    def read(self, window: Window, subject: str) -> WindowState:
        """As of `Counters`."""
        with self._lock:
            ends = self._list_ends(window, subject)
        return WindowState(window.most - len(ends), min(ends, default=time.time() + window.seconds))

    def _list_ends(self, window: Window, subject: str) -> list[float]:
        name, now = window.name_counter(subject), time.time()
        return [end for of, end in self._hits if of == name and end > now]


def delete_old_windows(connection: sa.Connection) -> None:
    """Deletes the counters without a hit for `RATE_DAYS`: of former limits of a vendor, and of vendors that left."""
    old = sa.select(rate_windows.c.key).where(
        rate_windows.c.last_hit < sa.func.now() - sa.text(f"interval '{RATE_DAYS} days'")
    )
    connection.execute(sa.delete(rate_hits).where(rate_hits.c.key.in_(old)))
    connection.execute(sa.delete(rate_windows).where(rate_windows.c.key.in_(old)))
