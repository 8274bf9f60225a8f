"""The role that serves requests: made by `roster db upgrade`, named after the database, refused where it is exempt."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import make_url, text

from roster_service.app import create_app
from roster_service.cli import main
from roster_service.db.engine import make_engine
from roster_service.db.serving_role import find_serving_role, name_role
from roster_service.errors import DatabaseUnavailableError
from roster_service.settings import Settings
from tests.cli.conftest import make_environment
from tests.conftest import administer, url_of

SETTINGS = Settings(secret_key="a secret key of the tests, long enough")


@pytest.mark.parametrize("database", ["roster", "Élèves du Nord", "x" * 55])
def test_the_role_is_named_after_the_database(database: str) -> None:
    assert name_role(database) == f"{database}_serving"


def test_databases_with_long_names_have_roles_of_their_own() -> None:
    names = {name_role("x" * length) for length in (56, 57, 58)} | {name_role("é" * length) for length in (29, 30, 31)}
    assert len(names) == 6
    assert all(len(name.encode()) <= 63 for name in names)


@pytest.fixture
def empty(server_url: str) -> Iterator[str]:
    """The name of a database without tables; its role is dropped with it."""
    name = f"roster_test_roles_{os.getpid()}"
    administer(server_url, f"CREATE DATABASE {name}")
    yield name
    administer(server_url, f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE IF EXISTS {name_role(name)}")


def run_upgrade(url: str, home: Path) -> tuple[int, str]:
    """Exit code and what `roster db upgrade` said against it."""
    done = CliRunner().invoke(main, ["db", "upgrade"], env=make_environment(database_url=url, home=str(home)))
    return done.exit_code, done.stderr


def test_each_database_of_a_server_has_its_own_role(
    server_url: str, empty: str, make_database: Callable[[], str], tmp_path: Path
) -> None:
    url = url_of(server_url, empty)
    assert run_upgrade(url, tmp_path) == (0, "")
    roles = []
    for each in (url, make_database()):
        engine = make_engine(each)
        with engine.connect() as connection:
            roles.append(find_serving_role(connection))
        engine.dispose()
    assert roles[0] == f"{empty}_serving"
    assert roles[1] not in (None, roles[0])


def test_a_user_who_may_not_make_roles_is_told_what_an_administrator_runs(
    server_url: str, empty: str, tmp_path: Path
) -> None:
    """And then upgrades, and serves."""
    owner = f"{empty}_owner"
    administer(server_url, f"CREATE ROLE {owner} LOGIN PASSWORD 'an owner'", f"ALTER DATABASE {empty} OWNER TO {owner}")
    try:
        url = make_url(url_of(server_url, empty)).set(username=owner, password="an owner")
        shown = url.render_as_string(hide_password=False)
        code, said = run_upgrade(shown, tmp_path)
        statements = f'CREATE ROLE "{empty}_serving" NOLOGIN; GRANT "{empty}_serving" TO "{owner}"'
        assert code == 1
        assert f"`{statements}`" in said
        administer(server_url, *statements.split("; "))
        assert run_upgrade(shown, tmp_path) == (0, "")
        assert create_app(SETTINGS, shown).test_client().get("/docs").status_code == 200
        administer(server_url, f'REVOKE "{empty}_serving" FROM "{owner}"')
        with pytest.raises(DatabaseUnavailableError, match="cannot become the role"):
            create_app(SETTINGS, shown)
    finally:
        administer(server_url, f"DROP DATABASE {empty} WITH (FORCE)", f"CREATE DATABASE {empty}", f"DROP ROLE {owner}")


def test_a_role_that_policies_do_not_hold_is_refused(server_url: str, empty: str, tmp_path: Path) -> None:
    """At the upgrade, and when it was made so later: at the start."""
    url, role = url_of(server_url, empty), name_role(empty)
    administer(server_url, f"CREATE ROLE {role} BYPASSRLS")
    code, said = run_upgrade(url, tmp_path)
    assert (code, f"the role {role} is exempt from row-level security" in said) == (1, True)
    administer(server_url, f"ALTER ROLE {role} NOBYPASSRLS")
    assert run_upgrade(url, tmp_path) == (0, "")
    administer(server_url, f"ALTER ROLE {role} BYPASSRLS")
    with pytest.raises(DatabaseUnavailableError, match="does not hold"):
        create_app(SETTINGS, url)


def test_a_database_without_a_role_is_not_served(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE roster_state SET serving_role = NULL"))
    engine.dispose()
    with pytest.raises(DatabaseUnavailableError, match="run `roster db upgrade`"):
        create_app(SETTINGS, database_url)
