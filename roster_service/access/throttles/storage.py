"""The storage of throttle counters in PostgreSQL, for the `limits` library: an exact moving window, one call a hit.

Every worker and machine on the database counts together. The window itself is SQL (`take_hits`): concurrent hits wait
for the counter's row, and a hit is let through when the one as many places before it as the limit has left the window.
"""

from __future__ import annotations

from typing import Any

from limits.storage import MovingWindowSupport, Storage
from sqlalchemy import BindParameter, Connection, Double, Engine, Text, bindparam, delete, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from roster_service.db.tables import rate_hits, rate_windows

SCHEME = "roster"
URI = f"{SCHEME}://"
# No window is longer than a day; what was not hit for two can go.
KEPT_DAYS = 2


def _name() -> BindParameter[str]:
    return bindparam("name", type_=Text)


_TAKE = select(func.take_hits(_name(), bindparam("most"), bindparam("seconds", type_=Double), bindparam("amount")))
_READ = text("SELECT extract(epoch FROM oldest)::float8 AS oldest, hits FROM read_window(:name, :most, :seconds)")


class PostgresStorage(MovingWindowSupport, Storage):
    """Counters in the tables `rate_windows` and `rate_hits`."""

    STORAGE_SCHEME = [SCHEME]  # noqa: RUF012  (the library's own declaration)

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        """`options["engine"]`: an engine that may write, and that commits each statement by itself."""
        super().__init__(uri, wrap_exceptions)
        self._engine: Engine = options["engine"]

    @property
    def base_exceptions(self) -> type[Exception]:
        """What a storage that is away raises."""
        return SQLAlchemyError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Whether `amount` hits fit into the window of `expiry` seconds; if so, they are counted."""
        values = {"name": key, "most": limit, "seconds": expiry, "amount": amount}
        with self._engine.connect() as connection:
            return bool(connection.execute(_TAKE, values).scalar_one())

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """(when the oldest hit of the window was, as seconds since the epoch; how many there are)."""
        with self._engine.connect() as connection:
            row = connection.execute(_READ, {"name": key, "most": limit, "seconds": expiry}).one()
        return row.oldest, row.hits

    def check(self) -> bool:
        """Whether the storage answers."""
        with self._engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(rate_windows)).scalar_one() >= 0

    def clear(self, key: str) -> None:
        """Forgets a counter."""
        with self._engine.connect() as connection:
            connection.execute(delete(rate_hits).where(rate_hits.c.key == key))
            connection.execute(delete(rate_windows).where(rate_windows.c.key == key))

    def reset(self) -> int | None:
        """Forgets every counter."""
        with self._engine.connect() as connection:
            connection.execute(delete(rate_hits))
            return connection.execute(delete(rate_windows)).rowcount

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Not for moving windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Not for moving windows."""
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        """Not for moving windows."""
        raise NotImplementedError


def delete_old_windows(connection: Connection) -> None:
    """Removes the counters that nobody hit for days: a vendor's older limits, vendors that left."""
    old = select(rate_windows.c.key).where(rate_windows.c.last_hit < func.now() - text(f"interval '{KEPT_DAYS} days'"))
    connection.execute(delete(rate_hits).where(rate_hits.c.key.in_(old)))
    connection.execute(delete(rate_windows).where(rate_windows.c.key.in_(old)))
