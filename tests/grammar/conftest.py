"""The two databases that the SQL of this library is run on."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from oneroster_filter import add_sqlite_functions

from .mariadb import open_mariadb, require_mariadb
from .samples import METADATA


@pytest.fixture(scope="session")
def sqlite() -> Iterator[sa.Connection]:
    """A connection to SQLite, with empty tables."""
    engine = sa.create_engine("sqlite://")
    sa.event.listen(engine, "connect", add_sqlite_functions)
    with engine.connect() as connection:
        METADATA.create_all(connection)
        yield connection
    engine.dispose()


@pytest.fixture(scope="session")
def postgresql(server_url: str) -> Iterator[sa.Connection]:
    """A connection to PostgreSQL, with empty tables that vanish with it."""
    engine = sa.create_engine(sa.make_url(server_url).set(drivername="postgresql+psycopg2"))
    with engine.connect() as connection:
        METADATA.create_all(connection)
        yield connection
    engine.dispose()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[sa.Connection]:
    """A connection to MariaDB, with empty tables."""
    require_mariadb()
    with open_mariadb() as engine, engine.connect() as connection:
        METADATA.create_all(connection)
        yield connection


@pytest.fixture(scope="session")
def collation(postgresql: sa.Connection) -> str:
    """A collation of that PostgreSQL whose `lower` knows Unicode."""
    version = postgresql.dialect.server_version_info or (0,)
    return "pg_c_utf8" if version[0] >= 17 else "und-x-icu"
