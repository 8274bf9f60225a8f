"""`roster keys`: which key signs, which still verify, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.cli import main
from roster_service.settings import Settings
from tests.cli.conftest import Roster, make_environment

Answer = Callable[..., Any]


def test_rotating_keeps_the_old_key_until_its_tokens_have_ended(answer: Answer) -> None:
    """A permission token lasts a day, longer than an access token; clocks may differ by a minute."""
    assert answer("keys", "list") == []
    first = answer("keys", "rotate")
    second = answer("keys", "rotate")
    listed = answer("keys", "list")
    states = {item["key_id"]: item["state"] for item in listed}
    assert (states[second["key_id"]], states[first["key_id"]]) == ("signs", "verifies")
    assert (second["state"], second["retired_at"]) == ("signs", None)
    old = next(item for item in listed if item["key_id"] == first["key_id"])
    lasts = datetime.fromisoformat(old["retired_at"]) - datetime.fromisoformat(second["created_at"])
    assert lasts == timedelta(hours=24, seconds=60)


def test_a_key_does_not_get_more_time_from_a_second_rotation(answer: Answer) -> None:
    first = answer("keys", "rotate")["key_id"]
    ends = set()
    for _ in range(2):
        answer("keys", "rotate")
        ends |= {item["retired_at"] for item in answer("keys", "list") if item["key_id"] == first}
    assert len(ends) == 1


def test_at_once_no_other_key_verifies(answer: Answer) -> None:
    answer("keys", "rotate")
    made = answer("keys", "rotate", "--at-once")["key_id"]
    states = {item["key_id"]: item["state"] for item in answer("keys", "list")}
    assert states.pop(made) == "signs"
    assert set(states.values()) == {"retired"}


def test_another_secret_key_makes_no_key_that_the_service_could_not_open(
    answer: Answer, roster: Roster, database_url: str
) -> None:
    answer("keys", "rotate")
    before = answer("keys", "list")
    environment = make_environment(database_url=database_url, secret_key="another secret key of thirty-two")
    done = CliRunner().invoke(main, ["keys", "rotate"], env=environment)
    assert done.exit_code == 1
    assert "ROSTER_SECRET_KEY" in done.stderr
    assert "roster keys rotate --lost" in done.stderr
    assert answer("keys", "list") == before


USING_THE_KEY = {
    "operator add": ("operator", "add", "ann@example.org", "--name", "Ann", "--role", "owner", "--reason", "x"),
    "person hide": ("person", "hide", "spr-student-1", "--yes", "--reason", "x"),
    "person erase": ("person", "erase", "spr-student-1", "--yes", "--even-unknown", "--reason", "x"),
    "person keep": ("person", "hide", "spr-student-1", "--from", "v@example.org", "--yes", "--reason", "x"),
    "audit": ("audit", "--person", "spr-student-1"),
    "show": ("show", "spr-student-1", "--as", "v@example.org", "--reason", "x"),
}


@pytest.mark.parametrize("command", USING_THE_KEY.values(), ids=USING_THE_KEY)
def test_a_command_makes_no_key_where_the_service_has_one(
    answer: Answer, database_url: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """What it would hash or seal with a key of its own is of no use to the service."""
    answer("keys", "rotate")
    elsewhere = {"database_url": database_url, "home": str(tmp_path / "elsewhere")}
    for given, words in (({}, "this command has no ROSTER_SECRET_KEY"), ({"secret_key": "k" * 40}, "with another")):
        done = CliRunner().invoke(main, command, env=make_environment(**elsewhere, **given))
        assert (done.exit_code, words in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "elsewhere" / "secret_key").exists()


def test_a_lost_secret_key_is_replaced_and_tokens_stay_valid(
    answer: Answer, roster: Roster, engine: sa.Engine, tmp_path: Path
) -> None:
    first = answer("keys", "rotate")
    (tmp_path / "secret_key").unlink()
    for options in ((), ("--lost",)):
        refused = roster("keys", "rotate", *options)
        assert (refused.exit_code, "set a new one, and run `roster keys rotate --lost`" in refused.stderr) == (1, True)
        assert not (tmp_path / "secret_key").exists()
    (tmp_path / "secret_key").write_text("a new secret key, of thirty-two characters")
    made = answer("keys", "rotate", "--lost")
    states = {item["key_id"]: item["state"] for item in answer("keys", "list")}
    assert (states[first["key_id"]], states[made["key_id"]]) == ("verifies", "signs")
    # The service starts with the new secret key, and could not with the lost one.
    with engine.begin() as connection:
        ensure_signing_key(connection, Settings(home=tmp_path).read_secret_key())
