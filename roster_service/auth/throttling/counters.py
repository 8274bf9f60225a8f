"""The counters of the throttles: in the database, or in Redis if there is one.

All workers and machines on one storage share the counters. In PostgreSQL a hit is one call of the SQL function
`take_hits`, which implements the window: concurrent hits of a counter wait for its row, and the function lets a hit
pass if the hit that is `limit` hits older has left the window.

A circuit breaker bounds the delay: after a failure, this process leaves the counters alone for `PAUSE_SECONDS`, and
then lets a request try them again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import sqlalchemy as sa
from limits import RateLimitItem, WindowStats
from limits.errors import ConfigurationError
from limits.storage import MemoryStorage, MovingWindowSupport, RedisStorage, Storage
from limits.strategies import MovingWindowRateLimiter
from sqlalchemy.exc import SQLAlchemyError

from roster_service.db.tables import rate_hits, rate_windows
from roster_service.errors import SettingError

SCHEME = "roster"
# The longest wait for Redis to accept a connection, and for each of its replies.
REDIS_SECONDS = 0.1
# No window is longer than a day, so a counter without a hit for two days can be deleted.
KEPT_DAYS = 2


def _name() -> sa.BindParameter[str]:
    return sa.bindparam("name", type_=sa.Text)


_TAKE = sa.select(
    sa.func.take_hits(_name(), sa.bindparam("most"), sa.bindparam("seconds", type_=sa.Double), sa.bindparam("amount"))
)
_READ = sa.text("SELECT extract(epoch FROM oldest)::float8 AS oldest, hits FROM read_window(:name, :most, :seconds)")


class PostgresStorage(MovingWindowSupport, Storage):
    """Counters in the tables `rate_windows` and `rate_hits`."""

    STORAGE_SCHEME = [SCHEME]  # noqa: RUF012  (the library's own declaration)

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        """`options["engine"]`: of `make_counting_engine`, which commits each statement by itself."""
        super().__init__(uri, wrap_exceptions)
        self._engine: sa.Engine = options["engine"]

    @property
    def base_exceptions(self) -> type[Exception]:
        """The class of the errors that a call raises if the database fails."""
        return SQLAlchemyError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts `amount` hits if they fit into the window of `limit` hits in `expiry` seconds. Returns whether they
        do."""
        values = {"name": key, "most": limit, "seconds": expiry, "amount": amount}
        with self._engine.connect() as connection:
            return bool(connection.execute(_TAKE, values).scalar_one())

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns (time of the oldest hit in the window, in seconds since the epoch; number of hits in it)."""
        with self._engine.connect() as connection:
            row = connection.execute(_READ, {"name": key, "most": limit, "seconds": expiry}).one()
        return row.oldest, row.hits

    def check(self) -> bool:
        """Returns True if the database can read the counters; else it raises."""
        with self._engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(rate_windows)).scalar_one() >= 0

    def clear(self, key: str) -> None:
        """Deletes a counter."""
        with self._engine.connect() as connection:
            connection.execute(sa.delete(rate_hits).where(rate_hits.c.key == key))
            connection.execute(sa.delete(rate_windows).where(rate_windows.c.key == key))

    def reset(self) -> int | None:
        """Deletes all counters; returns how many there were."""
        with self._engine.connect() as connection:
            connection.execute(sa.delete(rate_hits))
            return connection.execute(sa.delete(rate_windows)).rowcount

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Not for moving windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """The library does not call it for moving windows."""
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        """The library does not call it for moving windows."""
        raise NotImplementedError


def make_storage(engine: sa.Engine, redis_url: str | None) -> Storage:
    """Returns the storage: on the Redis server at `redis_url`; None: in the database of `engine`, of
    `make_counting_engine`. It does not connect yet.

    Raises SettingError if the package for Redis is not installed.
    """
    if redis_url is None:
        return PostgresStorage(engine=engine)
    try:
        return RedisStorage(redis_url, socket_connect_timeout=REDIS_SECONDS, socket_timeout=REDIS_SECONDS)
    except ConfigurationError:
        raise SettingError(
            "ROSTER_RATE_STORAGE_URL needs the package `redis`: pip install 'roster-service[redis]'"
        ) from None


def delete_old_windows(connection: sa.Connection) -> None:
    """Deletes the counters without a hit for `KEPT_DAYS`: of former limits of a vendor, and of vendors that left."""
    old = sa.select(rate_windows.c.key).where(
        rate_windows.c.last_hit < sa.func.now() - sa.text(f"interval '{KEPT_DAYS} days'")
    )
    connection.execute(sa.delete(rate_hits).where(rate_hits.c.key.in_(old)))
    connection.execute(sa.delete(rate_windows).where(rate_windows.c.key.in_(old)))


PAUSE_SECONDS = 5.0

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class WhenAway(Enum):
    """What a throttle does while the counters cannot be reached. The text is that of `docs/run.md`."""

    OPENS = "requests pass"
    COUNTS_ALONE = "each worker counts by itself"


@dataclass(frozen=True)
class Throttle:
    """What a throttle counts, and what it does while the counters cannot be reached."""

    counted: str
    when_away: WhenAway


# By the namespace of the counters. A vendor must not lose the roster because Redis is away. But an outage must not give
# a guesser of passwords, which people choose, as many tries as they like. Client secrets have 256 random bits.
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


class Counters:
    """Exact moving windows in a storage that all workers share. The namespace of an item is a key of `THROTTLES`."""

    def __init__(self, storage: Storage) -> None:
        self._shared = MovingWindowRateLimiter(storage)
        self._errors = storage.base_exceptions
        # Made by the first failure, and dropped with its counters when the storage is back.
        self._own: MovingWindowRateLimiter | None = None
        self._tries_at = float("-inf")

    def hit(self, item: RateLimitItem, *names: str, cost: int = 1) -> bool:
        """Counts `cost` hits, unless they do not fit into the window of `item`. Returns whether it has counted them;
        True if it knows nothing."""
        return self._ask(lambda limiter: limiter.hit(item, *names, cost=cost), item, unknown=True)

    def has_room(self, item: RateLimitItem, *names: str) -> bool:
        """Returns whether a hit would be counted now; True if it knows nothing."""
        return self._ask(lambda limiter: limiter.test(item, *names), item, unknown=True)

    def read_window(self, item: RateLimitItem, *names: str) -> WindowStats | None:
        """Returns the window's number of hits to come, and the instant at which its oldest hit leaves it, in seconds
        since 1970. None if it knows nothing."""
        return self._ask(lambda limiter: limiter.get_window_stats(item, *names), item, unknown=None)

    def find_wait(self, item: RateLimitItem, *names: str) -> float:
        """Returns the seconds until the oldest hit leaves the window; 0 if it knows nothing."""
        window = self.read_window(item, *names)
        return 0.0 if window is None else window.reset_time - time.time()

    def _ask(self, ask: Callable[[MovingWindowRateLimiter], Answer], item: RateLimitItem, *, unknown: Answer) -> Answer:
        if time.monotonic() >= self._tries_at:
            try:
                answer = ask(self._shared)
            except self._errors as error:
                self._set_away(error)
            else:
                self._set_back()
                return answer
        own = self._own
        if own is None or THROTTLES[item.namespace].when_away is WhenAway.OPENS:
            return unknown
        return ask(own)

    def _set_away(self, error: Exception) -> None:
        self._tries_at = time.monotonic() + PAUSE_SECONDS
        if self._own is None:
            self._own = MovingWindowRateLimiter(MemoryStorage())
            # Without the driver's message, which can quote the address with a password.
            _log.warning("throttle: the counters cannot be reached (%s)", type(error).__name__)

    def _set_back(self) -> None:
        if self._own is not None:
            self._own = None
            _log.warning("throttle: the counters can be reached again")
