"""The database role of the console: a raw session of it, and what each statement gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from psycopg2.errors import InsufficientPrivilege
from sqlalchemy.exc import ProgrammingError

from roster_service.db.engine import make_engine
from roster_service.db.roles import DatabaseRole, make_role_urls
from tests.contract.conftest import Roster, Served, make_served, roster, served

__all__ = ["make_served", "roster", "served"]

MAY = {
    "read every pupil": "SELECT given_name FROM users",
    "read the access log": "SELECT * FROM disclosures",
    "read rejected rows": "SELECT value FROM sync_rejections",
    "see which keys sign": "SELECT key_id, public_jwk, retired_at FROM signing_keys",
    "add a vendor": "INSERT INTO vendors (email, name) VALUES ('v@example.org', 'V')",
    "end the session of an operator": "DELETE FROM operator_sessions",
    "add to the change log": "INSERT INTO changes (actor_kind, actor, verb, kind, subject) VALUES ('', '', '', '', '')",
    "pause a feed": "UPDATE feeds SET enabled = false",
    "erase a person": "DELETE FROM users WHERE sourced_id = 'spr-student-1'",
    "make rights count": "SELECT refresh_visible_orgs(id) FROM vendors",
}
MAY_NOT = {
    "read a private key": "SELECT private_sealed FROM signing_keys",
    "add a signing key": "INSERT INTO signing_keys (key_id, public_jwk, private_sealed) VALUES ('k', '{}', 'x')",
    "change a name of a pupil": "UPDATE users SET given_name = 'X'",
    "add a pupil": "INSERT INTO users (sourced_id) VALUES ('x')",
    "change a school": "UPDATE orgs SET name = 'X'",
    "delete a class": "DELETE FROM classes",
    "change the access log": "DELETE FROM audit",
    "change the days of the access log": "UPDATE audit_days SET records = 0",
    "rewrite the change log": "UPDATE changes SET actor = 'somebody else'",
    "delete from the change log": "DELETE FROM changes",
    "delete a run": "DELETE FROM sync_runs",
    "read the counters of the throttles": "SELECT * FROM rate_hits",
    "number people": "SELECT number_people('', current_date)",
    "change the schema": "ALTER TABLE users ADD COLUMN x text",
    "drop a table": "DROP TABLE users",
    "make a table": "CREATE TABLE x (y text)",
    "lift row-level security": "ALTER TABLE users DISABLE ROW LEVEL SECURITY",
    "make a role": "CREATE ROLE roster_test_other",
    "become the owner": "SET SESSION AUTHORIZATION postgres",
    "read a file of the server": "SELECT pg_read_file('postgresql.conf')",
}


@pytest.fixture(scope="module")
def session(roster: Roster, make_served: Callable[..., Served]) -> sa.Engine:
    """Logs in as the role of the console, on a copy of the roster."""
    with make_served().engine.connect() as connection:
        return make_engine(make_role_urls(connection, None)[DatabaseRole.CONSOLE])


@pytest.mark.parametrize("statement", MAY.values(), ids=MAY)
def test_the_role_of_the_console_may(session: sa.Engine, statement: str) -> None:
    with session.connect() as connection:
        connection.exec_driver_sql(statement)
        connection.rollback()


@pytest.mark.parametrize("statement", MAY_NOT.values(), ids=MAY_NOT)
def test_the_role_of_the_console_may_not(session: sa.Engine, statement: str) -> None:
    with session.connect() as connection, pytest.raises(ProgrammingError) as refused:
        connection.exec_driver_sql(statement)
    assert isinstance(refused.value.orig, InsufficientPrivilege)


def test_every_row_of_the_roster_is_readable(session: sa.Engine, roster: Roster) -> None:
    """Row-level security hides nothing from it, as it does from the serving role without an admission."""
    owner = make_engine(roster.url)
    for table in ("users", "enrollments", "orgs", "departures", "visible_orgs"):
        counted = f"SELECT count(*) FROM {table}"
        with session.connect() as own, owner.connect() as other:
            assert own.exec_driver_sql(counted).scalar() == other.exec_driver_sql(counted).scalar(), table
    owner.dispose()
