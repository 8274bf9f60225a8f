"""What is deleted because its days are over, and by whom."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from sqlalchemy.exc import DBAPIError

from roster_service.db.roles import VENDOR_ROLES, DatabaseRole, find_role, quote_name
from roster_service.db.tables import (
    audit,
    audit_days,
    changes,
    oauth1_nonces,
    rate_hits,
    rate_windows,
    refused_requests,
    sync_changes,
    sync_rejections,
    sync_runs,
    usage,
)
from roster_service.roster.upgrades import upgrade
from roster_service.settings import Settings
from sync_scripts import nightly, purge
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.retention import KINDS, delete_expired
from tests.sync.conftest import SPRINGFIELD, lend_engine
from tests.sync.export_changes import cell_of, with_row, without_rows

DAYS = {"change_days": 5, "log_days": 7, "change_log_days": 17}
SETTINGS = Settings(**DAYS)  # type: ignore[arg-type]
# Each log: a row without its time, the column of that, and its days.
LOGS: dict[str, tuple[Any, Any, dict[str, Any], int]] = {
    "access log rows": (
        audit,
        audit.c.at,
        {"vendor_id": 1, "caller": "c", "method": "GET", "path": "/x", "records": 1, "request_id": "r"}
        | {"people": b"", "parts": 0},
        7,
    ),
    "usage counters": (
        usage,
        usage.c.day,
        {"vendor_id": 1, "endpoint": "GET /x", "status_class": "2xx", "requests": 1, "records": 1, "bytes": 1},
        7,
    ),
    "counters of refused requests": (
        refused_requests,
        refused_requests.c.hour,
        {
            "vendor_id": 1,
            "caller": "c",
            "status": 401,
            "cause": "x",
            "endpoint": "GET /x",
            "requests": 1,
            "first_at": datetime(2026, 1, 1, tzinfo=UTC),
            "first_request_id": "r",
            "last_at": datetime(2026, 1, 1, tzinfo=UTC),
            "last_request_id": "r",
            "addresses": [],
            "fields": [],
        },
        30,
    ),
    "change log rows": (
        changes,
        changes.c.at,
        {"actor_kind": "operator", "actor": "a", "verb": "vendor add", "kind": "vendor", "subject": "v"},
        17,
    ),
}


def age(engine: sa.Engine, run: int, days: int) -> None:
    """Lets a run have started so many days ago. A second more, because stamps have milliseconds."""
    started = datetime.now(UTC) - timedelta(days=days, seconds=1)
    with engine.begin() as connection:
        connection.execute(sa.update(sync_runs).where(sync_runs.c.id == run).values(started_at=started))


def count(engine: sa.Engine, table: Any) -> int:
    """The number of rows of a table."""
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def expire(engine: sa.Engine) -> dict[str, int]:
    """The numbers of deleted rows, of the kinds that had any."""
    return {name: number for name, number in delete_expired(engine, SETTINGS).items() if number}


@pytest.mark.parametrize(("days", "is_gone"), [(1.9, False), (2.1, True)])
def test_counters_of_throttles_and_nonces_end_where_no_vendor_asks(
    engine: sa.Engine, days: float, is_gone: bool
) -> None:
    """Those of logins to the console have addresses in clear."""
    then = datetime.now(UTC) - timedelta(days=days)
    with engine.begin() as connection:
        for at, key in ((then, "old"), (datetime.now(UTC), "new")):
            connection.execute(sa.insert(rate_windows).values(key=key, hits=1, last_hit=at))
            connection.execute(sa.insert(rate_hits).values(key=key, slot=0, hit_at=at))
            nonce = {"stamp": int(at.timestamp()), "client_id": "c", "nonce": key}
            connection.execute(sa.insert(oauth1_nonces).values(nonce))
    gone = {"nonces of signed requests": 1} | ({"counters of throttles": 1} if is_gone else {})
    assert expire(engine) == gone
    left = 1 if is_gone else 2
    assert [count(engine, table) for table in (rate_windows, rate_hits, oauth1_nonces)] == [left, left, 1]


@pytest.mark.shows(
    "Access log",
    "No role of workers reads, changes or deletes a row; the nightly sync deletes after the days of the settings.",
)
@pytest.mark.shows(
    "Operators",
    "The change log is deleted after its days, never before the access log that it explains.",
)
@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_kept_for_its_days_and_no_longer(engine: sa.Engine, name: str) -> None:
    table, time, row, days = LOGS[name]
    now = datetime.now(UTC)
    with engine.begin() as connection:
        for number, old in enumerate((days + 1, days + 30, days - 1, 0)):
            other = {"vendor_id": number} if table in (usage, refused_requests) else {}
            connection.execute(sa.insert(table).values({**row, **other, time.name: now - timedelta(days=old)}))
    assert expire(engine) == {name: 2}
    assert count(engine, table) == 2
    assert expire(engine) == {}


def test_the_rows_of_a_run_go_before_the_run(
    engine: sa.Engine, copy_export: Callable[[str], Path], tmp_path: Path
) -> None:
    export = copy_export(SPRINGFIELD)
    options = Options(replace(SETTINGS, home=tmp_path), keeps_copy=True)
    load(engine, "feed", export, options=options)
    cell_of("users", "spr-student-1", "givenName", "Zoe")(export)
    cell_of("users", "spr-aide-1", "enabledUser", "x")(export)
    old = load(engine, "feed", export, options=options)
    cell_of("users", "spr-aide-1", "enabledUser", "true")(export)
    load(engine, "feed", export, options=options)
    assert old.run is not None
    with engine.connect() as connection:
        changed = connection.execute(
            sa.select(sa.func.count()).select_from(sync_changes).where(sync_changes.c.run_id == old.run)
        ).scalar_one()
    assert changed > 0
    seen = []
    for days in (4, 6, 8):
        age(engine, old.run, days)
        seen.append(expire(engine))
    of_values = {"rejected rows": old.findings.total, "changes of records": changed, "exports for an undo": 1}
    assert seen == [{}, of_values, {"runs": 1}]
    assert (count(engine, sync_runs), count(engine, sync_rejections)) == (2, 0)


def test_without_days_for_values_rejected_rows_are_kept_for_a_day_to_mend_them(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    export, settings = copy_export(SPRINGFIELD), replace(SETTINGS, change_days=0)
    cell_of("users", "spr-aide-1", "enabledUser", "x")(export)
    report = load(engine, "feed", export, options=Options(settings))
    assert report.run is not None
    assert count(engine, sync_changes) == 0
    assert delete_expired(engine, settings)["rejected rows"] == 0
    age(engine, report.run, 1)
    assert delete_expired(engine, settings)["rejected rows"] == report.findings.total
    assert count(engine, sync_rejections) == 0


def test_the_causes_of_rejected_rows_stay_with_the_run(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    export = copy_export(SPRINGFIELD)
    cell_of("users", "spr-aide-1", "enabledUser", "x")(export)
    old, new = load(engine, "feed", export), load(engine, "feed", export)
    assert old.run is not None
    age(engine, old.run, 6)
    assert expire(engine) == {"rejected rows": old.findings.total}
    with engine.connect() as connection:
        assert set(connection.scalars(sa.select(sync_rejections.c.run_id))) == {new.run}
        assert all(connection.scalars(sa.select(sync_runs.c.causes)))


def test_the_runs_that_show_the_state_of_a_feed_stay(
    engine: sa.Engine, copy_export: Callable[[str], Path], tmp_path: Path
) -> None:
    """However old: the latest one, the latest good one, the latest with a new export, and a held one."""
    export = copy_export(SPRINGFIELD)
    holding = Options(Settings(home=tmp_path / "home", hold_least_records=1, hold_tombstones_percent=0))

    def run(options: Options) -> int:
        with contextlib.suppress(RefusedExportError):
            load(engine, "feed", export, options=options)
        with engine.connect() as connection:
            return connection.execute(sa.select(sa.func.max(sync_runs.c.id))).scalar_one()

    def expire_all() -> list[str]:
        """Deletes what it may of the runs, all of which are old; the outcomes of the others."""
        with engine.begin() as connection:
            connection.execute(sa.update(sync_runs).values(started_at=datetime(2001, 1, 1, tzinfo=UTC)))
        expire(engine)
        with engine.connect() as connection:
            kept = connection.scalars(sa.select(sync_runs.c.id).order_by(sync_runs.c.id)).all()
        return [names[number] for number in kept]

    names = {run(Options()): "first"}
    cell_of("users", "spr-student-1", "givenName", "Zoe")(export)
    names |= {run(Options()): name for name in ("new export", "same export", "same export again")}
    assert list(names.values()) == ["first", "new export", "same export", "same export again"]
    assert expire_all() == ["new export", "same export again"]
    students = (export / "users.csv").read_text()
    without_rows("users", "spr-student-5")(export)
    names[run(holding)] = "held"
    (export / "users.csv").write_text(students)
    with_row("orgs", sourcedId="spr-high")(export)
    names |= {run(Options()): name for name in ("refused", "refused again")}
    assert expire_all() == ["same export again", "held", "refused again"]


@pytest.fixture
def aged(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> sa.Engine:
    """A database with old rows in each log, lent to the scripts."""
    lend_engine(monkeypatch, engine)
    with engine.begin() as connection:
        for table, time, row, _ in LOGS.values():
            connection.execute(sa.insert(table).values({**row, time.name: datetime(2001, 1, 1, tzinfo=UTC)}))
    return engine


@pytest.mark.usefixtures("aged")
def test_the_nightly_sync_deletes_and_says_how_many_rows() -> None:
    done = CliRunner().invoke(nightly.main)
    [event] = [event for event in map(json.loads, done.stdout.splitlines()) if event.get("step") == "retention"]
    assert event == {"step": "retention", "deleted": {name: int(name in LOGS) for name in KINDS}, "exit": 0}


def test_both_make_the_rows_of_days_and_say_of_how_many_responses(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend_engine(monkeypatch, engine)
    table, _, row, _ = LOGS["access log rows"]

    def add(days: int) -> None:
        with engine.begin() as connection:
            connection.execute(sa.insert(table).values({**row, "at": datetime.now(UTC) - timedelta(days=days)}))

    add(3)
    add(0)
    events = map(json.loads, CliRunner().invoke(nightly.main).stdout.splitlines())
    assert {"step": "access log", "folded": {"responses": 1}, "exit": 0} in list(events)
    assert (count(engine, audit), count(engine, audit_days)) == (1, 1)
    add(3)
    assert json.loads(CliRunner().invoke(purge.main, ["--json"]).stdout)["folded"] == {"responses": 1}
    assert (count(engine, audit), count(engine, audit_days)) == (1, 1)


def test_the_purge_deletes_and_says_how_many_rows(aged: sa.Engine) -> None:
    assert CliRunner().invoke(purge.main).stdout.splitlines() == [
        "purged: nothing",
        "deleted: 1 access log rows, 1 usage counters, 1 counters of refused requests, 1 change log rows",
    ]
    assert json.loads(CliRunner().invoke(purge.main, ["--json"]).stdout)["deleted"] == dict.fromkeys(KINDS, 0)
    assert count(aged, changes) == 0


# tests/cli/test_console_role.py has the role of the console.
@pytest.mark.shows(
    "Access log",
    "No role of workers reads, changes or deletes a row; the nightly sync deletes after the days of the settings.",
)
@pytest.mark.parametrize("role", VENDOR_ROLES, ids=lambda role: role.value)
@pytest.mark.parametrize(
    "statement",
    [
        *("DELETE FROM audit", "TRUNCATE audit", "UPDATE audit SET records = 0", "SELECT at FROM audit"),
        *(
            "SELECT at FROM disclosures",
            "SELECT at FROM audit_days",
            "DELETE FROM audit_days",
            "UPDATE audit_days SET at = at",
        ),
        *("SELECT hash FROM audit_people", "DELETE FROM audit_people", "SELECT number_people('123456', '2026-01-01')"),
    ],
)
def test_no_role_of_the_service_reads_or_shortens_the_access_log(
    engine: sa.Engine, role: DatabaseRole, statement: str
) -> None:
    """Nor the change log (`tests/accounts/test_operators.py`)."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SET LOCAL ROLE {quote_name(str(find_role(connection, role)))}")
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.exec_driver_sql(statement)


def test_an_upgrade_takes_back_what_a_role_could_do_before(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        name = quote_name(str(find_role(connection, DatabaseRole.COUNTERS)))
        connection.exec_driver_sql(f"GRANT DELETE, SELECT (at) ON audit TO {name}")
    upgrade(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SET LOCAL ROLE {name}")
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.exec_driver_sql("DELETE FROM audit WHERE at < now()")
