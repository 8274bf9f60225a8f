"""`roster vendor`, the part of the vendor interface: keys, passwords, flags, limits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.auth.credentials.api_keys import find_key_holder
from roster_service.auth.credentials.secrets import verify_password
from roster_service.cli import main
from roster_service.db.tables import api_keys, orgs
from tests.cli.conftest import Roster, make_environment

Answer = Callable[..., Any]

EMAIL = "reading@example.com"


@pytest.fixture
def added(answer: Answer) -> Any:
    """A vendor, with its key and its password."""
    return answer("vendor", "add", EMAIL, "--name", "Reading App")


def works(engine: sa.Engine, key: str) -> bool:
    """Whether the key is a vendor's."""
    with engine.connect() as connection:
        return find_key_holder(connection, key) is not None


@pytest.mark.shows("Credentials", "Client secrets and API keys are stored as SHA-256, passwords as argon2id.")
def test_a_new_vendor_has_a_key_and_a_password_that_are_shown_once(
    answer: Answer, engine: sa.Engine, added: Any
) -> None:
    assert works(engine, added["api_key"])
    with engine.connect() as connection:
        assert verify_password(connection, added["id"], EMAIL, added["password"])
        stored = str(connection.execute(sa.select(api_keys)).all())
    assert added["api_key"] not in stored
    shown = str(answer("vendor", "show", EMAIL))
    assert added["api_key"] not in shown
    assert added["password"] not in shown


@pytest.mark.parametrize(
    ("password", "code"), [("correct horse battery", 0), ("elevenchars", 1), ("", 1), ("x" * 257, 1)]
)
def test_an_operator_s_own_password_is_read_from_standard_input(
    database_url: str, engine: sa.Engine, tmp_path: Path, password: str, code: int
) -> None:
    environment = make_environment(database_url=database_url, home=str(tmp_path))
    arguments = ["vendor", "add", EMAIL, "--name", "x", "--password-stdin"]
    done = CliRunner().invoke(main, arguments, env=environment, input=f"{password}\n")
    assert done.exit_code == code
    assert password == "" or password not in done.output
    with engine.connect() as connection:
        assert verify_password(connection, 1, EMAIL, password) is (code == 0)


@pytest.mark.shows(
    "Credentials",
    "A new API key ends the old one at once or after its grace; permission tokens go on with the new key.",
)
def test_a_rotated_key_ends_the_old_one_at_once(answer: Answer, engine: sa.Engine, added: Any) -> None:
    made = answer("vendor", "rotate-key", EMAIL)
    assert (works(engine, added["api_key"]), works(engine, made["api_key"])) == (False, True)
    assert made["api_key"].startswith(made["prefix"])


@pytest.mark.shows(
    "Credentials",
    "A new API key ends the old one at once or after its grace; permission tokens go on with the new key.",
)
def test_a_grace_keeps_the_old_key_for_that_long_and_no_longer(answer: Answer, engine: sa.Engine, added: Any) -> None:
    second = answer("vendor", "rotate-key", EMAIL, "--grace", "24h")
    assert works(engine, added["api_key"])
    assert works(engine, second["api_key"])
    with engine.connect() as connection:
        rows = connection.execute(sa.select(api_keys).where(api_keys.c.expires_at.is_not(None))).all()
    assert [abs(row.expires_at - row.created_at - timedelta(hours=24)) < timedelta(minutes=1) for row in rows] == [True]
    # A later rotation without grace ends them all.
    third = answer("vendor", "rotate-key", EMAIL)
    keys = [item["api_key"] for item in (added, second, third)]
    assert [works(engine, key) for key in keys] == [False, False, True]


@pytest.mark.parametrize("span", ["24", "h", "1w", "-1h", "99999d"])
def test_a_grace_that_is_no_span_of_time_is_wrong_usage(roster: Roster, added: Any, span: str) -> None:
    assert roster("vendor", "rotate-key", EMAIL, f"--grace={span}").exit_code == 2


def test_a_new_password_replaces_the_old_and_ends_tokens(answer: Answer, engine: sa.Engine, added: Any) -> None:
    made = answer("vendor", "set-password", EMAIL)
    with engine.connect() as connection:
        assert verify_password(connection, added["id"], EMAIL, made["password"])
        assert not verify_password(connection, added["id"], EMAIL, added["password"])
    assert answer("vendor", "show", EMAIL)["grant_version"] > added["grant_version"]


def test_flags_are_given_and_taken_back_and_end_tokens(answer: Answer, added: Any) -> None:
    versions = [added["grant_version"]]
    steps = [
        (["grant", "--flag", "contacts", "--flag", "demographics"], ["contacts", "demographics"]),
        (["grant", "--flag", "contacts"], ["contacts", "demographics"]),
        (["revoke", "--flag", "contacts"], ["demographics"]),
    ]
    for (verb, *options), flags in steps:
        changed = answer("vendor", verb, EMAIL, *options)
        assert changed["flags"] == flags
        versions.append(changed["grant_version"])
    assert versions == sorted(set(versions))


def test_a_district_and_flags_go_in_one_command(answer: Answer, engine: sa.Engine, added: Any) -> None:
    base = {"feed_id": 1, "status": "active", "date_last_modified": "2026-01-01"}
    with engine.begin() as connection:
        connection.execute(
            sa.insert(orgs), base | {"sourced_id": "d1", "name": "d1", "type": "district", "district_id": "d1"}
        )
    changed = answer("vendor", "grant", EMAIL, "--district", "d1", "--flag", "enrollments")
    assert ([grant["district_id"] for grant in changed["grants"]], changed["flags"]) == (["d1"], ["enrollments"])


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["grant", EMAIL], id="a grant of nothing"),
        pytest.param(["revoke", EMAIL], id="nothing taken back"),
        pytest.param(["grant", EMAIL, "--flag", "grades"], id="an unknown flag"),
        pytest.param(["grant", EMAIL, "--school", "s1", "--flag", "contacts"], id="a school without its district"),
        pytest.param(["limits", EMAIL, "--burst", "0"], id="a burst of nothing"),
    ],
)
def test_wrong_usage(roster: Roster, added: Any, arguments: list[str]) -> None:
    assert roster("vendor", *arguments).exit_code == 2


def test_limits_are_set_and_go_back_to_the_default(answer: Answer, roster: Roster, added: Any) -> None:
    changed = answer("vendor", "limits", EMAIL, "--per-second", "50", "--burst", "200")
    assert changed["allowance"] == {"requests_per_second": 50, "burst": 200, "requests_per_day": None}
    assert "50 requests a second, 200 at once, 100,000 a day" in roster("vendor", "show", EMAIL).stdout
    own = ("--rostering-per-second", "40", "--rostering-burst", "80", "--rostering-at-once", "3")
    changed = answer("vendor", "limits", EMAIL, *own)
    assert changed["rostering"] == {"requests_per_second": 40, "burst": 80, "at_once": 3}
    assert "40 requests a second, 80 in a burst, 3 at the same time" in roster("vendor", "show", EMAIL).stdout
    cleared = answer("vendor", "limits", EMAIL)
    assert {*cleared["allowance"].values(), *cleared["rostering"].values()} == {None}
    assert "all workers but one beside other vendors" in roster("vendor", "show", EMAIL).stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(["limits", EMAIL, "--burst", "25"], "the burst must be a multiple", id="a broken burst"),
        pytest.param(
            ["limits", EMAIL, "--rostering-per-second", "7", "--rostering-burst", "8"],
            "the burst must be a multiple",
            id="a broken burst of the other interface",
        ),
        pytest.param(["show", "no@example.com"], "no vendor", id="an unknown vendor"),
        pytest.param(["rotate-key", "no@example.com"], "no vendor", id="a key for nobody"),
        pytest.param(["set-password", "no@example.com"], "no vendor", id="a password for nobody"),
    ],
)
def test_a_refusal_is_one_sentence(roster: Roster, added: Any, arguments: list[str], reason: str) -> None:
    done = roster("vendor", *arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert reason in done.stderr
