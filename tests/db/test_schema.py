"""The schema that a fresh upgrade makes: the snapshot that a reviewer reads, and the files that it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

import roster_service.db
from roster_service.db.sql_objects import FUNCTIONS, POLICY, REMOVED, VARIANTS, apply_objects
from tests.db.schema_snapshot import SNAPSHOT, read_schema
from tests.offenders import in_one_test
from tests.postgres.server import drop_indexes

SQL = Path(roster_service.db.__file__).parent / "sql"
WRITE = (
    "the schema has changed; if that is meant, run `python -m tests.db.schema_snapshot` and commit tests/db/schema.sql"
)
# What the snapshot was made with: another PostgreSQL has another collation, and only a superuser declares LEAKPROOF.
IS_LIKE_THE_EMBEDDED = sa.text(
    "SELECT current_setting('server_version_num')::integer / 10000 = 18 AND rolsuper "
    "FROM pg_roles WHERE rolname = current_user"
)


@pytest.fixture
def url(engine: sa.Engine, database_url: str) -> str:
    """A database after a fresh upgrade, on a server like the embedded one."""
    with engine.connect() as connection:
        if not connection.scalar(IS_LIKE_THE_EMBEDDED):
            pytest.skip("the snapshot is of PostgreSQL 18 and a superuser")
    drop_indexes(engine)
    return database_url


def test_a_fresh_upgrade_makes_the_schema_of_the_snapshot(url: str) -> None:
    assert read_schema(url) == SNAPSHOT.read_text(), WRITE


def test_objects_that_are_applied_again_are_the_same(url: str, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        path = connection.scalar(sa.text("SHOW search_path"))
        apply_objects(connection)
        assert connection.scalar(sa.text("SHOW search_path")) == path
    assert read_schema(url) == SNAPSHOT.read_text()


def test_each_function_and_each_policy_has_a_file_of_its_name(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        functions = connection.scalars(
            sa.text("SELECT proname FROM pg_proc WHERE pronamespace = CAST(current_schema() AS regnamespace)")
        ).all()
        policies = connection.execute(sa.text("SELECT tablename, policyname FROM pg_policies")).all()
    assert sorted(functions) == sorted(FUNCTIONS) == [file.stem for file in sorted((SQL / "functions").glob("*.sql"))]
    assert {file.stem for file in (SQL / "functions").glob("*/*.sql")} <= set(FUNCTIONS)
    assert {folder.name for folder in (SQL / "functions").iterdir() if folder.is_dir()} == set(VARIANTS)
    tables = sorted(file.stem for file in (SQL / "policies").glob("*.sql"))
    # The console sees every row of each of them.
    assert sorted(policies) == sorted((table, policy) for table in tables for policy in (POLICY, "console"))


@in_one_test
@pytest.mark.parametrize("file", sorted(SQL.rglob("*.sql")), ids=lambda file: str(file.relative_to(SQL)))
def test_each_file_says_why_and_makes_one_object(file: Path) -> None:
    words = file.read_text()
    assert words.startswith("-- ")
    made = {
        "functions": f"CREATE OR REPLACE FUNCTION {file.stem}(",
        "policies": f"CREATE POLICY {POLICY} ON {file.stem} ",
    }
    kind = file.relative_to(SQL).parts[0]
    assert [words.count("\nCREATE "), words.count("\n" + made[kind])] == [1, 1]


def test_a_removed_function_is_dropped_before_what_replaces_it(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = "href_escape(id text, root text)"
    monkeypatch.setattr("roster_service.db.sql_objects.REMOVED", (*REMOVED, former, "never_made()"))
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE FUNCTION {former} RETURNS text LANGUAGE sql AS 'SELECT id'"))
        apply_objects(connection)
        left = connection.scalars(sa.text("SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'href_escape'"))
        assert left.all() == ["href_escape(text)"]
