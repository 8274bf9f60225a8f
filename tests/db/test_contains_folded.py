"""What `~` asks of a text: the same in the database as in Python, before row-level security or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from oneroster_filter import fold

from roster_service.db.engine import make_engine
from roster_service.db.roles import DatabaseRole, find_role, make_role_base, make_role_url, name_role
from roster_service.db.sql_objects import FUNCTIONS, SQL, read_function
from roster_service.roster.upgrades import upgrade
from tests.grammar.test_folding import CHARACTERS
from tests.postgres.databases import administer, url_of

ASK = sa.text("SELECT contains_folded(:value, :wanted)")
# Letters that fold in other ways than most, and what LIKE would take for its own.
LETTERS = st.text("iIİıσςΣsSßẞkK\u0307%_/\\\\'é ", max_size=6)


@pytest.fixture(scope="module")
def database(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


@pytest.fixture(scope="module", params=["as it is", "with ICU", "without a superuser"])
def connection(database: sa.Engine, request: pytest.FixtureRequest) -> Iterator[sa.Connection]:
    """Where the function is made in each of the ways in which it may be."""
    with database.connect() as connection:
        known = connection.scalars(sa.text("SELECT quote_ident(collname) FROM pg_collation")).all()
    # Not every server has ICU; its way is right with any collation.
    icu = next((name for name in known if name == '"und-x-icu"'), "roster_nocase")
    made = [name for name in FUNCTIONS if "fold" in name]
    ways = {
        "as it is": [],
        "with ICU": [read_function("contains_folded", SQL / "functions" / "icu").replace("roster_nocase", icu)],
        "without a superuser": [read_function(name) for name in made],
    }
    with database.connect() as connection:
        for statement in ways[request.param]:
            connection.exec_driver_sql(statement)
        yield connection
        connection.rollback()


@given(value=LETTERS, wanted=LETTERS)
def test_it_is_what_python_says(connection: sa.Connection, value: str, wanted: str) -> None:
    found = connection.scalar(ASK, {"value": value, "wanted": wanted})
    assert found is (fold(wanted) in fold(value))


def test_every_letter_is_found_in_any_case(connection: sa.Connection) -> None:
    lost = sa.text(
        "SELECT array_agg(letter) FROM unnest(:letters, :folded) AS pairs (letter, folded) "
        "WHERE NOT (contains_folded('x' || letter || 'x', folded) AND contains_folded(folded, letter))"
    )
    folded = [fold(letter) for letter in CHARACTERS]
    assert connection.scalar(lost, {"letters": CHARACTERS, "folded": folded}) is None


def test_an_absent_text_contains_nothing(connection: sa.Connection) -> None:
    assert connection.scalar(ASK, {"value": None, "wanted": ""}) is None


SEARCH = "EXPLAIN SELECT FROM users WHERE contains_folded(family_name, 'smi')"


def explain(engine: sa.Engine) -> str:
    """How the serving role searches."""
    with engine.connect() as connection:
        role = find_role(connection, DatabaseRole.SERVING)
    assert role is not None
    serving = make_engine(make_role_url(engine.url, role, None))
    try:
        with serving.connect() as connection:
            return "\n".join(connection.scalars(sa.text(SEARCH)))
    finally:
        serving.dispose()


@pytest.mark.shows(
    "Visibility",
    "Where a superuser made the functions behind `~`, they run before the policies, as `=` does.",
)
def test_a_search_is_asked_before_row_level_security(database: sa.Engine) -> None:
    """So that only what is found is looked up among what is visible."""
    (condition,) = (line for line in explain(database).splitlines() if "Filter" in line and "folding_" in line)
    assert condition.index("folding_position") < condition.index("CASE")


def test_without_a_superuser_it_is_asked_after_it(server_url: str) -> None:
    role, name = "plain_owner", "roster_test_plain_owner"
    administer(
        server_url, f"CREATE ROLE {role} LOGIN CREATEROLE PASSWORD 'plain'", f"CREATE DATABASE {name} OWNER {role}"
    )
    url = sa.make_url(url_of(server_url, name)).set(username=role, password="plain")
    engine = make_engine(url.render_as_string(hide_password=False))
    made = [role]
    try:
        upgrade(engine)
        made = [*(name_role(make_role_base(name), each) for each in DatabaseRole), role]
        plan = explain(engine)
        (condition,) = (line for line in plan.splitlines() if "Filter" in line and "strpos" in line)
        assert condition.index("CASE") < condition.index("strpos")
        with engine.connect() as connection:
            assert connection.scalar(ASK, {"value": "Smith", "wanted": "SMI"}) is True
    finally:
        engine.dispose()
        administer(server_url, f"DROP DATABASE {name} WITH (FORCE)", *(f"DROP ROLE {one}" for one in made))
