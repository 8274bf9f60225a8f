"""`roster credential` and `--expires`: when API keys and client secrets end, and when they were used last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import Entry
from roster_service.access_log.writer import write_entries
from roster_service.accounts.credentials import CredentialKind, ListedCredential
from roster_service.auth.credentials.api_keys import find_key_holder
from roster_service.auth.registered_client import find_client
from roster_service.db.tables import api_keys, oauth_clients
from tests.cli.conftest import Roster

Answer = Callable[..., Any]
EMAIL, OTHER = "reading@example.com", "other@example.com"
NOW = datetime.now(UTC)
ADD_CLIENT = ("client", "add", "--vendor", EMAIL, "--name", "x", "--scope", "v1p2/roster.readonly")


def day(days: int) -> str:
    """The day so many days from now."""
    return str((datetime.now(UTC) + timedelta(days=days)).date())


@pytest.fixture
def vendor(answer: Answer) -> Any:
    """A vendor with an API key."""
    return answer("vendor", "add", EMAIL, "--name", "x")


def list_names(answer: Answer, *options: str) -> list[tuple[str, str | None]]:
    """The kind and the last day of each listed credential."""
    return [
        (item["kind"], item["expires_at"] and item["expires_at"][:10])
        for item in answer("credential", "list", *options)
    ]


def test_a_key_or_secret_has_the_end_that_it_is_made_with(answer: Answer) -> None:
    """At the end of that day. A new one without an end has none."""
    answer("vendor", "add", EMAIL, "--name", "x", "--expires", day(9))
    made = answer(*ADD_CLIENT, "--expires", day(19))
    assert list_names(answer) == [("api key", day(10)), ("client secret", day(20))]
    answer("vendor", "rotate-key", EMAIL, "--expires", day(29))
    answer("client", "rotate-secret", made["client_id"], "--expires", day(39))
    assert list_names(answer) == [("api key", day(30)), ("client secret", day(40))]
    answer("vendor", "rotate-key", EMAIL)
    answer("client", "rotate-secret", made["client_id"])
    assert list_names(answer) == [("api key", None), ("client secret", None)]


@pytest.mark.parametrize("arguments", [("vendor", "rotate-key", EMAIL), ADD_CLIENT], ids=["key", "secret"])
@pytest.mark.parametrize(("end", "reason"), [(day(-2), "is over"), ("tomorrow", "does not match")])
def test_an_end_that_is_over_or_no_day_is_wrong_usage(
    roster: Roster, vendor: Any, arguments: tuple[str, ...], end: str, reason: str
) -> None:
    done = roster(*arguments, "--expires", end)
    assert done.exit_code == 2
    assert reason in done.stderr


@pytest.mark.shows("Credentials", "A credential that has ended is unknown, and a grace does not outlast it.")
def test_a_credential_that_has_ended_is_unknown(answer: Answer, engine: sa.Engine, vendor: Any) -> None:
    """One whose replacement has ended is known as long as its own grace."""
    made = answer(*ADD_CLIENT)
    over = datetime.now(UTC) - timedelta(seconds=1)
    with engine.begin() as connection:
        assert find_key_holder(connection, vendor["api_key"]) is not None
        connection.execute(sa.update(api_keys).values(expires_at=over))
        assert find_key_holder(connection, vendor["api_key"]) is None
        connection.execute(sa.update(oauth_clients).values(secret_expires_at=over))
        assert find_client(connection, made["client_id"]) is None
        lasting = {"previous_secret_hash": b"before", "previous_secret_ends_at": NOW + timedelta(days=1)}
        connection.execute(sa.update(oauth_clients).values(lasting))
        found = find_client(connection, made["client_id"])
        assert found is not None
        assert found.secret_hashes == (b"before",)
    assert [it["name"] for it in answer("credential", "list")] == [made["client_id"]]
    with engine.begin() as connection:
        connection.execute(sa.update(oauth_clients).values(previous_secret_ends_at=over))
    assert answer("credential", "list") == []
    assert answer("vendor", "show", EMAIL)["keys"] == []
    assert [client["client_id"] for client in answer("client", "list")] == [made["client_id"]]


@pytest.mark.shows("Credentials", "A credential that has ended is unknown, and a grace does not outlast it.")
def test_the_grace_of_a_secret_ends_with_the_secret(answer: Answer, engine: sa.Engine, vendor: Any) -> None:
    made = answer(*ADD_CLIENT, "--expires", day(1))
    answer("client", "rotate-secret", made["client_id"], "--grace-hours", "8760")
    with engine.connect() as connection:
        [end] = connection.scalars(oauth_clients.select().with_only_columns(oauth_clients.c.previous_secret_ends_at))
    assert end.date() == date.fromisoformat(day(2))


def use(engine: sa.Engine, vendor: Any, caller: str, days: int, address: str) -> None:
    """Stores a request, as workers do."""
    at = NOW - timedelta(days=days)
    with engine.begin() as connection:
        write_entries(connection, [Entry(at, vendor["id"], caller, address, "GET", "/x", 200, 10, 0)])


@pytest.mark.shows(
    "Credentials",
    "`roster credential list` has the last use of each credential, and those that nobody uses.",
)
def test_the_last_use_is_shown_everywhere_and_is_the_latest(answer: Answer, engine: sa.Engine, vendor: Any) -> None:
    made = answer(*ADD_CLIENT)
    [key] = answer("vendor", "show", EMAIL)["keys"]
    assert (key["used_at"], key["used_from"]) == (None, None)
    for caller in (key["prefix"], made["client_id"]):
        for days, address in ((5, "192.0.2.1"), (3, "192.0.2.2"), (4, "192.0.2.3")):
            use(engine, vendor, caller, days, address)
    lists = (answer("vendor", "show", EMAIL)["keys"], answer("client", "list"), answer("credential", "list"))
    shown = [item for listed in lists for item in listed]
    assert len(shown) == 4
    expected = (NOW - timedelta(days=3)).isoformat(timespec="seconds"), "192.0.2.2"
    assert {(item["used_at"], item["used_from"]) for item in shown} == {expected}


@pytest.mark.shows(
    "Credentials",
    "`roster credential list` has the last use of each credential, and those that nobody uses.",
)
def test_unused_and_ending_credentials_are_found(
    answer: Answer, engine: sa.Engine, vendor: Any, roster: Roster
) -> None:
    """One that was never used counts from its making."""
    answer("vendor", "add", OTHER, "--name", "x", "--expires", day(9))
    made = answer(*ADD_CLIENT, "--expires", day(99))
    old = NOW - timedelta(days=60)
    with engine.begin() as connection:
        connection.execute(sa.update(api_keys).values(created_at=old))
        connection.execute(sa.update(oauth_clients).values(created_at=old))
    use(engine, vendor, made["client_id"], 31, "192.0.2.1")

    def count(*options: str) -> int:
        return len(answer("credential", "list", *options))

    assert [count("--unused", days) for days in ("30", "32", "61")] == [3, 2, 0]
    assert [count("--ending", days) for days in ("9", "10", "100")] == [0, 1, 2]
    assert [count("--vendor", email) for email in (EMAIL, OTHER)] == [2, 1]
    assert count("--unused", "30", "--ending", "10", "--vendor", EMAIL) == 0
    assert "there are no such credentials" in roster("credential", "list", "--unused", "61").stdout
    assert made["client_id"] in roster("credential", "list").stdout


def test_a_credential_of_a_disabled_client_or_vendor_is_disabled(answer: Answer, vendor: Any) -> None:
    made = answer(*ADD_CLIENT)
    commands = (
        ("client", "disable", made["client_id"]),
        ("vendor", "disable", EMAIL),
        ("vendor", "enable", EMAIL, "--yes"),
    )
    found = []
    for command in commands:
        answer(*command)
        found.append({item["kind"]: item["enabled"] for item in answer("credential", "list")})
    assert [(it["api key"], it["client secret"]) for it in found] == [(True, False), (False, False), (True, False)]


def test_removed_vendors_and_clients_leave_no_use(answer: Answer, engine: sa.Engine, vendor: Any) -> None:
    made = answer(*ADD_CLIENT)
    [key] = answer("vendor", "show", EMAIL)["keys"]
    for caller in (key["prefix"], made["client_id"]):
        use(engine, vendor, caller, 1, "192.0.2.1")
    counts = []
    for command in (("client", "remove", made["client_id"]), ("vendor", "remove", EMAIL)):
        answer(*command, "--yes")
        with engine.connect() as connection:
            counts.append(connection.exec_driver_sql("SELECT count(*) FROM last_uses").scalar())
    assert counts == [1, 0]


@pytest.mark.parametrize(("days", "announced"), [(15, False), (14, True), (13, False), (1, True), (0, False)])
def test_an_end_is_announced_some_days_before_and_on_the_day_before(days: int, announced: bool) -> None:
    """`days`: from the day of the announcement to the last day of the credential."""
    listed = ListedCredential(
        CredentialKind.API_KEY,
        "key-0",
        EMAIL,
        enabled=True,
        created_at="2026-01-01T00:00:00+00:00",
        expires_at="2026-12-02T00:00:00+00:00",
        used_at=None,
        used_from=None,
    )
    day = date(2026, 12, 1) - timedelta(days=days)
    words = listed.announce(day, 14, day - timedelta(days=1))
    assert words == ("the api key key-0 of reading@example.com is valid until 2026-12-01, UTC" if announced else None)
