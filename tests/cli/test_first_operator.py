"""The first operator of the console: named by the options of `roster run`, or typed at a terminal."""

from __future__ import annotations

import io
import sys

import pytest
import sqlalchemy as sa

from roster_service.accounts import operators
from roster_service.accounts.operator_sessions import LINK_PATH
from roster_service.change_log.actors import OperatorRole
from roster_service.cli.demo import invite_first
from roster_service.errors import CommandError
from roster_service.settings import Settings
from tests.actors import TESTER

SETTINGS = Settings(secret_key="a secret key of the tests, long enough to be one")
ADA, NAME = "ada@district.example", "Ada Lovelace"


class Terminal(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def list_owners(engine: sa.Engine) -> list[tuple[str, str, OperatorRole]]:
    """The e-mail, name and role of each operator."""
    with engine.connect() as connection:
        return [(it.email, it.name, it.role) for it in operators.list_operators(connection)]


CASES = {
    "by both options": ((ADA, NAME), None, (ADA, NAME)),
    "by the e-mail alone, in another spelling": ((" Ada@District.Example", None), None, (ADA, ADA)),
    "typed": ((None, None), f"{ADA}\n{NAME}\n", (ADA, NAME)),
    "typed without a name": ((None, None), f"{ADA}\n\n", (ADA, ADA)),
    "typed after what is no address": ((None, None), f"ada\n\n{ADA}\n{NAME}\n", (ADA, NAME)),
    "typed, the name by its option": ((None, NAME), f"{ADA}\n", (ADA, NAME)),
    "by nobody": ((None, None), None, None),
}


@pytest.mark.parametrize(("options", "typed", "expected"), CASES.values(), ids=CASES)
def test_the_first_operator_is_who_was_named(
    engine: sa.Engine,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str | None, str | None],
    typed: str | None,
    expected: tuple[str, str] | None,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
    invited = invite_first(engine, SETTINGS, *options, may_ask=True)
    if expected is None:
        assert (invited, list_owners(engine)) == (None, [])
        return
    assert invited is not None
    assert (invited.email, invited.link.partition("?")[0][-len(LINK_PATH) :]) == (ADA, LINK_PATH)
    assert list_owners(engine) == [(expected[0], expected[1], OperatorRole.OWNER)]


def test_nobody_is_asked_for_json(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{ADA}\n{NAME}\n"))
    assert invite_first(engine, SETTINGS, None, None, may_ask=False) is None


def test_an_address_that_is_none_adds_nobody(engine: sa.Engine) -> None:
    with pytest.raises(CommandError, match="no e-mail address"):
        invite_first(engine, SETTINGS, "ada", None, may_ask=True)
    assert list_owners(engine) == []


def test_the_next_start_renews_the_link_until_it_is_used(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks nobody for another one, whatever the options name."""
    monkeypatch.setattr(sys, "stdin", Terminal())
    first = invite_first(engine, SETTINGS, ADA, NAME, may_ask=True)
    again = invite_first(engine, SETTINGS, "other@district.example", None, may_ask=True)
    assert first is not None
    assert again is not None
    assert (again.email, again.link != first.link) == (ADA, True)
    with engine.begin() as connection:
        token = again.link.partition("link=")[2]
        operators.use_link(connection, token, "a long sentence to log in with", SETTINGS.read_secret_key())
    assert invite_first(engine, SETTINGS, "other@district.example", None, may_ask=True) is None
    assert [email for email, *_ in list_owners(engine)] == [ADA]


def test_where_others_are_nobody_is_invited(engine: sa.Engine) -> None:
    key = SETTINGS.read_secret_key()
    with engine.begin() as connection:
        operators.add_operator(connection, TESTER, "viewer@district.example", "V", OperatorRole.VIEWER, key)
    assert invite_first(engine, SETTINGS, ADA, NAME, may_ask=True) is None
