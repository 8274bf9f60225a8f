"""The roles that serve requests: made by `roster db upgrade`, named after the database, refused where they may do too
much."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.app import create_app, create_console
from roster_service.cli import main
from roster_service.db.engine import make_engine
from roster_service.db.roles import DatabaseRole, find_password, find_role, make_role_base, name_role
from roster_service.errors import DatabaseUnavailableError
from roster_service.settings import Settings
from tests.cli.conftest import make_environment
from tests.conftest import close_app
from tests.postgres.databases import administer, url_of

SETTINGS = Settings(secret_key="a secret key of the tests, long enough")


@pytest.mark.parametrize("database", ["roster", "Élèves du Nord", "x" * 54])
def test_the_roles_are_named_after_the_database(database: str) -> None:
    names = [name_role(make_role_base(database), role) for role in DatabaseRole]
    assert names == [f"{database}_serving", f"{database}_accounts", f"{database}_counters", f"{database}_console"]


def test_databases_with_long_names_have_roles_of_their_own() -> None:
    databases = ["x" * length for length in (54, 55, 56)] + ["é" * length for length in (27, 28, 29)]
    names = {name_role(make_role_base(database), role) for database in databases for role in DatabaseRole}
    assert len(names) == 6 * len(DatabaseRole)
    assert all(len(name.encode()) <= 63 for name in names)


@pytest.fixture
def empty(server_url: str) -> Iterator[str]:
    """The name of a database without tables; its roles are dropped with it."""
    name = f"roster_test_roles_{os.getpid()}"
    administer(server_url, f"CREATE DATABASE {name}")
    yield name
    roles = [f"DROP ROLE IF EXISTS {name_role(name, role)}" for role in DatabaseRole]
    administer(server_url, f"DROP DATABASE {name} WITH (FORCE)", *roles)


def run_upgrade(url: str, home: Path, **environment: str) -> tuple[int, str]:
    """ExitCode code and what `roster db upgrade` said against it."""
    env = make_environment(database_url=url, home=str(home), **environment)
    done = CliRunner().invoke(main, ["db", "upgrade"], env=env)
    return done.exit_code, done.stderr


def test_each_database_of_a_server_has_its_own_roles(
    server_url: str, empty: str, make_database: Callable[[], str], tmp_path: Path
) -> None:
    url = url_of(server_url, empty)
    assert run_upgrade(url, tmp_path) == (0, "")
    roles = []
    for each in (url, make_database()):
        engine = make_engine(each)
        with engine.connect() as connection:
            roles.append(find_role(connection, DatabaseRole.SERVING))
        engine.dispose()
    assert roles[0] == f"{empty}_serving"
    assert roles[1] not in (None, roles[0])


@pytest.mark.parametrize("can_log_in", [True, False], ids=["the same password", "another password"])
def test_a_copy_beside_its_database_takes_no_password_of_it(
    server_url: str, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_log_in: bool
) -> None:
    """As a rehearsed restore on the server of production; a database that was renamed keeps its roles. (A login on this
    server asks for no password, so the copy shares them where `can_log_in` does not say otherwise.)"""
    monkeypatch.setattr("roster_service.db.roles._can_log_in", lambda _url: can_log_in)
    assert run_upgrade(url_of(server_url, empty), tmp_path, role_password="a secret") == (0, "")
    copy = f"{empty}_copy"
    stored = f"SELECT rolpassword FROM pg_authid WHERE rolname = '{empty}_serving'"
    engine = make_engine(server_url)
    with engine.connect() as connection:
        before = connection.scalar(sa.text(stored))
    administer(server_url, f"CREATE DATABASE {copy} TEMPLATE {empty}")
    try:
        assert run_upgrade(url_of(server_url, copy), tmp_path, role_password="another") == (0, "")
        own = empty if can_log_in else copy
        assert read_serving_role(url_of(server_url, copy)) == f"{own}_serving"
        with engine.connect() as connection:
            assert connection.scalar(sa.text(stored)) == before
        copied = make_engine(url_of(server_url, copy))
        rights = "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee = :name"
        with copied.connect() as connection:
            assert bool(connection.scalar(sa.text(rights), {"name": f"{empty}_serving"})) == can_log_in
        copied.dispose()
    finally:
        roles = [f"DROP ROLE IF EXISTS {name_role(copy, role)}" for role in DatabaseRole]
        administer(server_url, f"DROP DATABASE {copy} WITH (FORCE)", *roles)
        engine.dispose()
    renamed = f"{empty}_renamed"
    administer(server_url, f"ALTER DATABASE {empty} RENAME TO {renamed}")
    try:
        assert run_upgrade(url_of(server_url, renamed), tmp_path, role_password="a secret") == (0, "")
        assert read_serving_role(url_of(server_url, renamed)) == f"{empty}_serving"
    finally:
        administer(server_url, f"ALTER DATABASE {renamed} RENAME TO {empty}")


def read_serving_role(url: str) -> str | None:
    """The name of the role as which requests to a database are served."""
    engine = make_engine(url)
    with engine.connect() as connection:
        found = find_role(connection, DatabaseRole.SERVING)
    engine.dispose()
    return found


def test_a_user_who_may_make_no_tables_gets_a_sentence(server_url: str, empty: str, tmp_path: Path) -> None:
    stranger = f"{empty}_stranger"
    schema = sa.make_url(url_of(server_url, empty))
    administer(server_url, f"CREATE ROLE {stranger} LOGIN PASSWORD 'a stranger'")
    administer(str(schema.render_as_string(False)), "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        url = schema.set(username=stranger, password="a stranger").render_as_string(False)
        code, said = run_upgrade(url, tmp_path)
        assert (code, f"`ALTER DATABASE {empty} OWNER TO {stranger}`" in said) == (1, True)
    finally:
        administer(server_url, f"DROP ROLE {stranger}")


@pytest.fixture
def owned(server_url: str, empty: str) -> Iterator[str]:
    """The URL of that database, of an owner with a password who may make no roles."""
    owner = f"{empty}_owner"
    administer(server_url, f"CREATE ROLE {owner} LOGIN PASSWORD 'an owner'", f"ALTER DATABASE {empty} OWNER TO {owner}")
    yield sa.make_url(url_of(server_url, empty)).set(username=owner, password="an owner").render_as_string(False)
    roles = [f"DROP ROLE IF EXISTS {name_role(empty, role)}" for role in DatabaseRole]
    again = (f"DROP DATABASE {empty} WITH (FORCE)", f"CREATE DATABASE {empty}", *roles, f"DROP ROLE {owner}")
    administer(server_url, *again)


def test_a_user_who_may_not_make_roles_gets_the_commands_of_an_administrator(
    server_url: str, empty: str, owned: str, tmp_path: Path
) -> None:
    """And then upgrades, and serves."""
    limit = f"ALTER ROLE {name_role(empty, DatabaseRole.ACCOUNTS)} CONNECTION LIMIT"
    for verb in ("CREATE", "ALTER"):
        code, said = run_upgrade(owned, tmp_path, role_password="a secret")
        assert (code, "a secret" in said) == (1, False)
        found = re.search(rf"`({verb} ROLE .*?)`", said)
        assert found is not None
        statements = found[1].split("; ")
        beginnings = [
            f'{verb} ROLE "{name_role(empty, role)}" LOGIN PASSWORD \'SCRAM-SHA-256$' for role in DatabaseRole
        ]
        assert [text[: len(beginning)] for text, beginning in zip(statements, beginnings, strict=True)] == beginnings
        administer(server_url, *(text.replace(":", "\\:") for text in statements), f"{limit} -1")
        assert run_upgrade(owned, tmp_path, role_password="a secret") == (0, "")
        # As after a change of the secret, the role refuses a login.
        administer(server_url, f"{limit} 0")
    administer(server_url, f"{limit} -1")
    app = create_app(dataclasses.replace(SETTINGS, role_password="a secret"), owned)
    assert app.test_client().get("/docs").status_code == 200
    close_app(app)


@pytest.mark.shows(
    "Machine and database",
    "Each role of the database has a password of its own, which tells nothing of another's.",
)
@pytest.mark.parametrize("secret", [None, "an operator's"])
def test_each_role_gets_a_password_that_follows_from_the_secret_and_is_in_no_statement(
    server_url: str, empty: str, owned: str, tmp_path: Path, secret: str | None
) -> None:
    administer(server_url, f"ALTER ROLE {empty}_owner CREATEROLE")
    assert run_upgrade(owned, tmp_path, **({} if secret is None else {"role_password": secret})) == (0, "")
    engine = make_engine(url_of(server_url, empty))
    with engine.connect() as connection:
        kept = sa.text("SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE :names AND rolname <> :owner")
        passwords = connection.execute(kept, {"names": f"{empty}\\_%", "owner": f"{empty}_owner"}).all()
    engine.dispose()
    found = {name: find_password(sa.make_url(owned), name, secret) for name, _ in passwords}
    assert len(passwords) == len(DatabaseRole)
    assert not [one for one in found.values() if one is None or (secret or "an owner") in one]
    # A worker of vendors cannot log in as the console with what it knows.
    fitting = {name: [one for one in found if opens(str(found[one]), stored)] for name, stored in passwords}
    assert fitting == {name: [name] for name in found}


def opens(password: str, stored: str) -> bool:
    """Whether a password is the one that PostgreSQL has stored, by RFC 5802."""
    _, iterations, salt, key = re.fullmatch(r"(SCRAM-SHA-256)\$(\d+):(.+)\$(.+):.+", stored).groups()  # type: ignore[union-attr]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    return hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest() == base64.b64decode(key)


@pytest.mark.shows(
    "Machine and database",
    "The service does not serve with a database role that may do too much or become another.",
)
@pytest.mark.parametrize("excess", ["BYPASSRLS", "SUPERUSER", "CREATEROLE"])
def test_a_role_that_may_do_too_much_is_refused(server_url: str, empty: str, tmp_path: Path, excess: str) -> None:
    """At the upgrade, and when it was made so later: at the start."""
    url, role = url_of(server_url, empty), name_role(empty, DatabaseRole.SERVING)
    administer(server_url, f"CREATE ROLE {role} LOGIN {excess}")
    code, said = run_upgrade(url, tmp_path)
    assert (code, f"the role {role} " in said, "take that back" in said) == (1, True, True)
    administer(server_url, f"ALTER ROLE {role} NO{excess}")
    assert run_upgrade(url, tmp_path) == (0, "")
    administer(server_url, f"ALTER ROLE {role} {excess}")
    with pytest.raises(DatabaseUnavailableError, match="take that back"):
        create_app(SETTINGS, url)


@pytest.mark.shows(
    "Machine and database",
    "The service does not serve with a database role that may do too much or become another.",
)
@pytest.mark.parametrize("role", DatabaseRole, ids=lambda role: role.value)
def test_a_role_that_can_become_another_is_not_served_with(
    server_url: str, empty: str, tmp_path: Path, role: DatabaseRole
) -> None:
    url, name = url_of(server_url, empty), name_role(empty, role)
    assert run_upgrade(url, tmp_path) == (0, "")
    administer(server_url, f"GRANT pg_read_all_data TO {name}")
    with pytest.raises(DatabaseUnavailableError, match="is a member of pg_read_all_data"):
        (create_console if role is DatabaseRole.CONSOLE else create_app)(SETTINGS, url)


def test_a_role_that_cannot_log_in_is_said_in_a_sentence(server_url: str, empty: str, tmp_path: Path) -> None:
    url = url_of(server_url, empty)
    assert run_upgrade(url, tmp_path) == (0, "")
    administer(server_url, f"ALTER ROLE {name_role(empty, DatabaseRole.ACCOUNTS)} NOLOGIN")
    with pytest.raises(DatabaseUnavailableError, match="cannot log in to the database as"):
        create_app(SETTINGS, url)


def test_a_database_without_roles_is_not_served(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE roster_state SET role_base = NULL"))
    engine.dispose()
    with pytest.raises(DatabaseUnavailableError, match="run `roster db upgrade`"):
        create_app(SETTINGS, database_url)
