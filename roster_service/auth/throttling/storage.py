"""The storage of throttle counters, for the `limits` library: Redis, or PostgreSQL with an exact moving window.

All workers and machines on one storage share the counters. In PostgreSQL a hit is one call of the SQL function
`take_hits`, which implements the window: concurrent hits of a counter wait for its row, and the function lets a hit
pass if the hit that is `limit` hits older has left the window.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from limits.errors import ConfigurationError
from limits.storage import MovingWindowSupport, RedisStorage, Storage
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
