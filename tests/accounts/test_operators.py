"""Operators: what each role may change, that an owner is left, and the link with which a password is set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roster_service.accounts import operator_sessions, operators, vendors
from roster_service.accounts.operator_sessions import LINK_SECONDS, Lifetime, OperatorLink, sign_link
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.db import tables
from roster_service.db.roles import VENDOR_ROLES, DatabaseRole, find_role, quote_name
from roster_service.errors import CommandError
from roster_service.feeds import feeds
from tests.actors import TESTER

SECRET_KEY = "a secret key of the tests, long enough"
PASSWORD = "correct horse battery"
ANN, BOB = "ann@district.example", "bob@district.example"

Act = Callable[[sa.Connection, Actor], object]


def act_as(email: str) -> Actor:
    """The operator with this e-mail as the actor."""
    return Actor(ActorKind.OPERATOR, email, None)


def add(connection: sa.Connection, email: str, role: OperatorRole) -> str:
    """Adds an operator, and returns the token of the link."""
    return operators.add_operator(connection, TESTER, email, "A name", role, SECRET_KEY)


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection with an owner and no one else."""
    with engine.begin() as opened:
        add(opened, BOB, OperatorRole.OWNER)
        yield opened


OF_VENDORS: list[Act] = [
    lambda on, actor: vendors.add_vendor(on, actor, "one@vendor.example", "One"),
    lambda on, actor: feeds.add_feed(on, actor, "north", "oneroster", None),
]
OF_OPERATORS: list[Act] = [
    lambda on, actor: operators.set_role(on, actor, actor.name, OperatorRole.OWNER),
    lambda on, actor: operators.set_role(on, actor, BOB, OperatorRole.VIEWER),
    lambda on, actor: operators.add_operator(on, actor, "new@x.example", "New", OperatorRole.OWNER, SECRET_KEY),
    lambda on, actor: operators.set_operator_enabled(on, actor, BOB, enabled=False),
    lambda on, actor: operators.remove_operator(on, actor, BOB),
    lambda on, actor: operators.reset_password(on, actor, BOB, SECRET_KEY),
]


@pytest.mark.shows(
    "Operators",
    "The role is read in the transaction of each change; only an owner changes operators; a link carries no role.",
)
@pytest.mark.parametrize(
    ("role", "refused", "done"),
    [
        pytest.param(OperatorRole.VIEWER, [*OF_VENDORS, *OF_OPERATORS], [], id="viewer"),
        pytest.param(OperatorRole.EDITOR, OF_OPERATORS, OF_VENDORS, id="editor"),
        # The last owner could not be removed: Ann is one too.
        pytest.param(OperatorRole.OWNER, [], [*OF_VENDORS, *OF_OPERATORS[1:3]], id="owner"),
    ],
)
def test_a_role_changes_what_it_may_and_nobody_gets_more(
    connection: sa.Connection, role: OperatorRole, refused: list[Act], done: list[Act]
) -> None:
    add(connection, ANN, role)
    for act in refused:
        with pytest.raises(CommandError, match="needs the role"), connection.begin_nested():
            act(connection, act_as(ANN))
    for act in done:
        act(connection, act_as(ANN))
    assert operators.find_operator(connection, ANN).role is role
    by_ann = connection.scalars(sa.select(tables.changes.c.verb).where(tables.changes.c.actor == ANN)).all()
    assert len(by_ann) == len(done)


@pytest.mark.shows(
    "Operators",
    "The role is read in the transaction of each change; only an owner changes operators; a link carries no role.",
)
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda on: operators.set_operator_enabled(on, TESTER, ANN, enabled=False), id="disabled"),
        pytest.param(lambda on: operators.remove_operator(on, TESTER, ANN), id="removed"),
        pytest.param(lambda on: operators.set_role(on, TESTER, ANN, OperatorRole.VIEWER), id="demoted"),
    ],
)
def test_a_right_that_was_taken_away_counts_at_once(
    connection: sa.Connection, end: Callable[[sa.Connection], object]
) -> None:
    add(connection, ANN, OperatorRole.EDITOR)
    actor = act_as(ANN)
    end(connection)
    with pytest.raises(CommandError, match="needs the role editor"):
        feeds.add_feed(connection, actor, "north", "oneroster", None)


def test_every_verb_of_operators_needs_an_owner_but_those_of_the_own_account() -> None:
    needed = {verb: verb.least_role for verb in Verb if verb.startswith("operator ")}
    assert {needed.pop(verb) for verb in (Verb.OPERATOR_SET_PASSWORD, Verb.OPERATOR_SET_CODES)} == {
        OperatorRole.OBSERVER
    }
    assert set(needed.values()) == {OperatorRole.OWNER}
    others = [verb for verb in Verb if verb.least_role in (OperatorRole.OBSERVER, OperatorRole.VIEWER)]
    assert others == [Verb.PERSON_ANSWER, Verb.SHOW, Verb.OPERATOR_SET_PASSWORD, Verb.OPERATOR_SET_CODES]


LAST: list[Act] = [
    lambda on, actor: operators.set_role(on, actor, BOB, OperatorRole.EDITOR),
    lambda on, actor: operators.set_operator_enabled(on, actor, BOB, enabled=False),
    lambda on, actor: operators.remove_operator(on, actor, BOB),
]


@pytest.mark.shows("Operators", "The last enabled owner stays, whatever two owners do at once.")
@pytest.mark.parametrize("actor", [TESTER, act_as(BOB)], ids=["command line", "the owner"])
@pytest.mark.parametrize("act", LAST, ids=["demoted", "disabled", "removed"])
def test_the_last_owner_stays(connection: sa.Connection, act: Act, actor: Actor) -> None:
    add(connection, ANN, OperatorRole.OWNER)
    operators.set_operator_enabled(connection, TESTER, ANN, enabled=False)
    with pytest.raises(CommandError, match="last owner"), connection.begin_nested():
        act(connection, actor)
    operators.set_operator_enabled(connection, TESTER, ANN, enabled=True)
    act(connection, actor)


@pytest.mark.shows("Operators", "The last enabled owner stays, whatever two owners do at once.")
def test_two_owners_who_remove_each_other_leave_one(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add(connection, ANN, OperatorRole.OWNER)
        add(connection, BOB, OperatorRole.OWNER)
    refused: list[CommandError] = []

    def remove_bob() -> None:
        try:
            with engine.begin() as other:
                operators.remove_operator(other, act_as(ANN), BOB)
        except CommandError as error:
            refused.append(error)

    with engine.begin() as connection:
        operators.remove_operator(connection, act_as(BOB), ANN)
        thread = threading.Thread(target=remove_bob)
        thread.start()
        while not connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar():
            time.sleep(0.01)
    thread.join()
    assert len(refused) == 1
    with engine.connect() as connection:
        assert [it.email for it in operators.list_operators(connection)] == [BOB]


@pytest.mark.shows(
    "Operators",
    "The link that sets a password counts once, for 48 hours, until a new link or the end of the operator.",
)
def test_a_link_sets_a_password_once(connection: sa.Connection) -> None:
    token = add(connection, ANN, OperatorRole.VIEWER)
    assert operators.verify_password(connection, ANN, PASSWORD) is None
    used = operators.use_link(connection, token, PASSWORD, SECRET_KEY)
    assert (used.email, used.role, used.has_password, used.has_link) == (ANN, OperatorRole.VIEWER, True, False)
    assert operators.verify_password(connection, f" {ANN.upper()}", PASSWORD) == used
    assert operators.verify_password(connection, ANN, PASSWORD + "!") is None
    assert operators.verify_password(connection, "nobody@x.example", PASSWORD) is None
    with pytest.raises(CommandError, match="was used already"):
        operators.use_link(connection, token, "another password", SECRET_KEY)
    assert operators.verify_password(connection, ANN, PASSWORD) == used
    row = connection.execute(sa.select(tables.changes).order_by(tables.changes.c.id.desc()).limit(1)).one()
    assert (row.actor, row.verb, row.subject) == (ANN, "operator set-password", ANN)
    assert PASSWORD not in str(row)


@pytest.mark.shows(
    "Operators",
    "The link that sets a password counts once, for 48 hours, until a new link or the end of the operator.",
)
def test_a_link_of_two_at_once_is_used_by_one(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        token = add(connection, ANN, OperatorRole.OWNER)
    outcomes: list[str] = []

    def use(password: str) -> None:
        try:
            with engine.begin() as other:
                operators.use_link(other, token, password, SECRET_KEY)
                outcomes.append("used")
        except CommandError:
            outcomes.append("refused")

    threads = [threading.Thread(target=use, args=(PASSWORD + str(number),)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "used"]


@pytest.mark.shows(
    "Operators",
    "The link that sets a password counts once, for 48 hours, until a new link or the end of the operator.",
)
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda on: operators.reset_password(on, TESTER, ANN, SECRET_KEY), id="a new link"),
        pytest.param(lambda on: operators.set_operator_enabled(on, TESTER, ANN, enabled=False), id="disabled"),
        pytest.param(lambda on: operators.remove_operator(on, TESTER, ANN), id="removed"),
    ],
)
def test_a_link_ends_with(connection: sa.Connection, end: Callable[[sa.Connection], object]) -> None:
    token = add(connection, ANN, OperatorRole.EDITOR)
    end(connection)
    with pytest.raises(CommandError, match="was used already"):
        operators.use_link(connection, token, PASSWORD, SECRET_KEY)


def test_a_link_that_a_disabled_operator_gets_counts_once_they_are_enabled(connection: sa.Connection) -> None:
    add(connection, ANN, OperatorRole.EDITOR)
    operators.set_operator_enabled(connection, TESTER, ANN, enabled=False)
    token = operators.reset_password(connection, TESTER, ANN, SECRET_KEY)
    with pytest.raises(CommandError, match="or you are disabled"):
        operators.use_link(connection, token, PASSWORD, SECRET_KEY)
    operators.set_operator_enabled(connection, TESTER, ANN, enabled=True)
    assert operators.use_link(connection, token, PASSWORD, SECRET_KEY).has_password


def test_a_reset_ends_the_password_at_once(connection: sa.Connection) -> None:
    operators.use_link(connection, add(connection, ANN, OperatorRole.EDITOR), PASSWORD, SECRET_KEY)
    token = operators.reset_password(connection, TESTER, ANN, SECRET_KEY)
    assert operators.verify_password(connection, ANN, PASSWORD) is None
    assert operators.use_link(connection, token, PASSWORD, SECRET_KEY).has_password


@pytest.mark.shows(
    "Operators",
    "The link that sets a password counts once, for 48 hours, until a new link or the end of the operator.",
)
def test_a_link_ends_after_48_hours(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    token = add(connection, ANN, OperatorRole.EDITOR)
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + LINK_SECONDS + 2)
    with pytest.raises(CommandError, match="has ended"):
        operators.use_link(connection, token, PASSWORD, SECRET_KEY)
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + LINK_SECONDS - 60)
    assert operators.use_link(connection, token, PASSWORD, SECRET_KEY).has_password


@pytest.mark.parametrize(
    ("idle", "age", "is_written"), [(60, 59, False), (60, 61, True), (1, 2, True), (1440, 61, True)]
)
def test_a_request_begins_the_idle_time_anew(connection: sa.Connection, idle: int, age: int, is_written: bool) -> None:
    """To a sixtieth of it, and to a minute."""
    lifetime = Lifetime(timedelta(minutes=idle), timedelta(hours=12))
    token = operator_sessions.begin_session(connection, BOB, None, None, lifetime)
    used = tables.operator_sessions.c.used_at
    connection.execute(sa.update(tables.operator_sessions).values(used_at=sa.func.now() - timedelta(seconds=age)))
    assert operator_sessions.find_session(connection, token, lifetime) is not None
    assert connection.scalar(sa.select(used > sa.func.now() - timedelta(seconds=1))) is is_written


def bend(token: str) -> str:
    """The token with another letter in its payload."""
    return ("A" if token[3] != "A" else "B").join((token[:3], token[4:]))


@pytest.mark.shows(
    "Operators",
    "The role is read in the transaction of each change; only an owner changes operators; a link carries no role.",
)
@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(bend, id="bent"),
        pytest.param(lambda token: token.rsplit(".", 1)[0], id="without its signature"),
        pytest.param(lambda token: "", id="empty"),
        pytest.param(lambda token: sign_link(OperatorLink(1, uuid4()), SECRET_KEY + "!"), id="of another key"),
        pytest.param(
            lambda token: str(operator_sessions._make_serializer(SECRET_KEY).dumps(["1", "owner", "x"])),
            id="of a fault",
        ),
    ],
)
def test_a_forged_link_is_refused(connection: sa.Connection, forge: Callable[[str], str]) -> None:
    token = add(connection, ANN, OperatorRole.EDITOR)
    with pytest.raises(CommandError, match="no link of this service"):
        operators.use_link(connection, forge(token), PASSWORD, SECRET_KEY)


def test_a_link_of_the_service_for_something_else_is_refused(connection: sa.Connection) -> None:
    """A signed link with a random part that the database does not have."""
    add(connection, ANN, OperatorRole.EDITOR)
    number = connection.scalar(sa.select(tables.operators.c.id).where(tables.operators.c.email == ANN))
    with pytest.raises(CommandError, match="was used already"):
        operators.use_link(
            connection, sign_link(OperatorLink(int(number or 0), uuid4()), SECRET_KEY), PASSWORD, SECRET_KEY
        )


@pytest.mark.parametrize("email", ["", "ann", "@district.example"])
def test_what_is_no_e_mail_is_refused(connection: sa.Connection, email: str) -> None:
    with pytest.raises(CommandError, match="no e-mail"):
        add(connection, email, OperatorRole.VIEWER)


# tests/cli/test_console_role.py has the role of the console.
@pytest.mark.shows("Operators", "No role of workers reads or changes the change log or an operator.")
@pytest.mark.parametrize("role", VENDOR_ROLES, ids=lambda role: role.value)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE changes SET actor = 'nobody'",
        "DELETE FROM changes",
        "TRUNCATE changes",
        "ALTER TABLE changes RENAME TO c",
        "DROP TABLE changes",
        "SELECT * FROM changes",
        "SELECT * FROM operators",
        "UPDATE operators SET role = 'owner'",
    ],
)
def test_no_role_of_the_service_changes_the_log_or_an_operator(
    connection: sa.Connection, role: DatabaseRole, statement: str
) -> None:
    connection.exec_driver_sql(f"SET LOCAL ROLE {quote_name(str(find_role(connection, role)))}")
    with pytest.raises(DBAPIError, match=r"permission denied|must be owner"):
        connection.exec_driver_sql(statement)
