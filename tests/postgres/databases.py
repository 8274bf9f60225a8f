"""Databases on the PostgreSQL of the tests."""

from __future__ import annotations

import functools
from typing import Any

import sqlalchemy as sa


def administer(server_url: str, *statements: str) -> None:
    """Run statements that cannot stand in a transaction, such as CREATE DATABASE."""
    engine = _make_engine(server_url)
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))
    finally:
        engine.dispose()


def url_of(server_url: str, database: str) -> str:
    """The URL of another database on the same server."""
    return sa.make_url(server_url).set(database=database).render_as_string(hide_password=False)


def copy_database(server_url: str, template: str, name: str) -> str:
    """Copies a database that nothing is connected to; the URL of the copy."""
    # The other strategy writes each page of the copy to the WAL, which takes twice as long.
    _administer_again(server_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    return url_of(server_url, name)


def drop_databases(server_url: str, *names: str) -> None:
    """Drops databases, whoever is connected to them."""
    _administer_again(server_url, *(f"DROP DATABASE {name} WITH (FORCE)" for name in names))


def close_database(server_url: str, name: str) -> None:
    """Ends every connection to a database, and lets none in."""
    administer(
        server_url,
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    )


def _make_engine(server_url: str, **options: Any) -> sa.Engine:
    url = sa.make_url(server_url).set(drivername="postgresql+psycopg2")
    return sa.create_engine(url, isolation_level="AUTOCOMMIT", **options)


def _administer_again(server_url: str, *statements: str) -> None:
    """As `administer`, with a connection that stays open: to connect takes as long as to drop a database."""
    with _keep_engine(server_url).connect() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


@functools.cache
def _keep_engine(server_url: str) -> sa.Engine:
    return _make_engine(server_url, pool_pre_ping=True)
