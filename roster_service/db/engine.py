"""Connections: one maker for the engine that serves readers, one for the engine that writes.

The reader's connections cannot write: PostgreSQL itself refuses, whatever the code above does. Both fix the session's
time zone and search path, so that no server setting changes what a statement means.
"""

from __future__ import annotations

from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from roster_service.errors import DatabaseUnavailableError

# How requests are planned.
_PLANNING = {
    # Pages are short index walks; compiling machine code for them costs more than running them.
    "jit": "off",
    # A roster that is served lies in memory: looking a row up costs little more than reading it in passing. By the
    # usual guess every role of the roster is read to see which of a few users are visible.
    "random_page_cost": "1.1",
}


def make_engine(url: str) -> Engine:
    """An engine for commands, migrations and the sync: it may write.

    `url`: `postgresql://user:password@host/name`. Raises DatabaseUnavailableError where it is no such address.
    """
    return _make(url, {}, pool_size=2)


def make_reading_engine(url: str, *, statement_seconds: int, pool_size: int) -> Engine:
    """An engine for requests: read only, one snapshot per transaction, and no statement runs longer than told."""
    session = {
        "default_transaction_read_only": "on",
        # A page, its count and the revision in its headers come from one roster, even while a sync commits.
        "default_transaction_isolation": r"repeatable\ read",
        "statement_timeout": f"{statement_seconds}s",
        **_PLANNING,
    }
    return _make(url, session, pool_size=pool_size)


def make_counting_engine(url: str) -> Engine:
    """An engine for counters: each statement commits by itself, none waits long, and a crash may lose the last."""
    session = {
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": "2s",
        "synchronous_commit": "off",
    }
    return _make(url, session, pool_size=2).execution_options(isolation_level="AUTOCOMMIT")


def make_walking_engine(url: str, *, statement_seconds: int) -> Engine:
    """An engine for keeping walks: it may write; each statement sees what was committed before it, and none runs
    longer than told."""
    session = {
        # Who waited for another worker's walk has to see it.
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": f"{statement_seconds}s",
        "synchronous_commit": "off",
        **_PLANNING,
    }
    return _make(url, session, pool_size=1)


def _make(url: str, session: dict[str, str], *, pool_size: int) -> Engine:
    try:
        address = make_url(url)
    except Exception as error:
        raise DatabaseUnavailableError("the database URL cannot be read") from error
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseUnavailableError(f"the database must be PostgreSQL, not {address.get_backend_name()}")
    options = " ".join(f"-c {name}={value}" for name, value in {"timezone": "UTC", **session}.items())
    return create_engine(
        address.set(drivername="postgresql+psycopg2"),
        pool_size=pool_size,
        max_overflow=2,
        pool_pre_ping=False,
        pool_recycle=1800,
        # Values of statements are personal data; an error shall not carry them.
        hide_parameters=True,
        connect_args={"options": options, "connect_timeout": 10, "application_name": "roster"},
    )


def require_reachable(engine: Engine) -> None:
    """Raises DatabaseUnavailableError, in one sentence and without the password, where no connection can be made."""
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        shown = engine.url.set(drivername="postgresql").render_as_string(hide_password=True)
        raise DatabaseUnavailableError(f"the database at {shown} does not answer: {reason}") from None
