"""The list of runs, the page of a run, its rejected rows and its changes."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import feeds, sync_runs
from roster_service.feeds.change_history import find_changes
from roster_service.feeds.run_history import STEPS
from roster_service.feeds.sync_lock import hold_lock, name_session
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import begin_run
from sync_scripts.reading.rejections import RefusedExportError
from tests.console.conftest import Browser, Console
from tests.sync.export_changes import cell_of, header, with_row, without_rows

HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 200


@pytest.fixture(scope="module")
def changed(console: Console, export: Path, settings: Settings) -> int:
    """The number of a run with a record of each kind of change, hostile values, and rejected rows."""
    without_rows("enrollments", "spr-enr-13")(export)
    load(console.engine, "springfield", export, options=Options(settings))
    with_row("orgs", sourcedId="spr-new", name=HOSTILE, type="school", parentSourcedId="spr-district")(export)
    cell_of("users", "spr-student-1", "givenName", HOSTILE)(export)
    cell_of("users", "spr-student-5", "enabledUser", HOSTILE[:60])(export)
    without_rows("enrollments", "spr-enr-14")(export)
    report = load(console.engine, "springfield", export, options=Options(settings))
    assert report.run is not None
    return report.run


def read(browser: Browser, path: str) -> Any:
    """The JSON of a screen, whose page must be shown too."""
    address, _, query = path.partition("?")
    assert browser.get(path).status_code == 200
    return json.loads(browser.get(f"{address}.json?{query}").text)


def test_the_list_has_the_latest_run_first(browser: Browser, changed: int) -> None:
    shown = read(browser, "/runs")
    assert [run["run"] for run in shown["runs"]["rows"]] == [4, 3, 2, 1]
    assert shown["totals"][str(changed)] == {"added": 1, "changed": 2, "tombstoned": 1, "revived": 0}
    listed = list(csv.DictReader(browser.get("/runs.csv").text.splitlines()))
    assert [row["run"] for row in listed] == ["4", "3", "2", "1"]


def test_the_list_has_pages(own_console: Console) -> None:
    browser = own_console.log_in()
    with own_console.engine.begin() as connection:
        made = connection.scalar(sa.insert(feeds).values(name="many", format="oneroster").returning(feeds.c.id))
        for _ in range(51):
            connection.execute(
                sa.insert(sync_runs).values(
                    feed_id=made, format="x", source="x", started_at="2026-01-01", outcome="done", counts={}, seconds={}
                )
            )
    first = browser.get("/runs?feed=many").text
    following = re.search(r'href="/console(/runs\?feed=many&amp;page=2)">Next', first)
    assert following is not None
    assert len(read(browser, "/runs?feed=many&page=2")["runs"]["rows"]) == 1


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        pytest.param("feed=springfield", [4, 3, 2], id="of a feed"),
        pytest.param("feed=springfield&outcome=done", [3, 2], id="with an outcome"),
        pytest.param("feed=springfield&outcome=refused", [], id="none"),
        pytest.param("feed=springfield&page=7", [], id="past the end"),
        pytest.param("feed=springfield&page=-1", [4, 3, 2], id="a page that is none"),
    ],
)
def test_runs_are_found_by_feed_and_outcome(browser: Browser, changed: int, query: str, runs: list[int]) -> None:
    assert [run["run"] for run in read(browser, f"/runs?{query}")["runs"]["rows"]] == runs


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/runs?feed=none", "no feed none"),
        ("/runs?outcome=%3Cscript%3E", "There is no outcome &lt;script&gt;"),
        ("/runs/999", "no run 999"),
        ("/runs/999/changes", "no run 999"),
        ("/runs/2/rejected?cause=9", "no root cause 9"),
        ("/runs/2/changes?type=people", "no such list"),
        ("/runs/99999999999999999999", "no run"),
    ],
)
def test_wrong_values_are_answered_with_the_reason(browser: Browser, path: str, words: str) -> None:
    answered = browser.get(path)
    assert (answered.status_code, words in answered.text) == (404, True)


def test_a_run_is_shown_with_its_steps_and_compared(browser: Browser, changed: int) -> None:
    shown = read(browser, f"/runs/{changed}")
    assert [step["name"] for step in shown["steps"]] == list(STEPS)
    assert all(step["seconds"] is not None for step in shown["steps"])
    compared = {it["type"]: (it["before"], it["records"]) for it in shown["compared"]}
    assert (shown["before"], compared["orgs"][1] - compared["orgs"][0]) == (changed - 1, 1)
    assert not shown["is_live"]
    assert "hx-get" not in browser.get(f"/runs/{changed}").text.split('<div id="run"')[1].split(">")[0]


def test_rejected_rows_are_shown_by_cause_with_their_values(browser: Browser, changed: int) -> None:
    [cause] = read(browser, f"/runs/{changed}")["run"]["causes"]
    shown = read(browser, f"/runs/{changed}/rejected?cause={cause['number']}")
    first = shown["rows"]["rows"][0]
    assert (first["file"], first["column"], first["sourcedId"]) == ("users.csv", "enabledUser", "spr-student-5")
    assert first["value"] == HOSTILE[:60]
    assert len(shown["rows"]["rows"]) == cause["rows"] + cause["consequences"]
    page = browser.get(f"/runs/{changed}/rejected").text
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("change", "kind", "identifier"),
    [
        ("added", "orgs", "spr-new"),
        ("changed", "users", "spr-student-1"),
        ("tombstoned", "enrollments", "spr-enr-14"),
    ],
)
def test_changes_are_shown_by_type_and_kind(
    browser: Browser, changed: int, change: str, kind: str, identifier: str
) -> None:
    shown = read(browser, f"/runs/{changed}/changes?type={kind}&change={change}")
    [only] = shown["changes"]
    assert only["sourcedId"] == identifier
    if change == "changed":
        assert only["fields"] == {"givenName": {"before": "Zoë", "after": HOSTILE}}
    page = browser.get(f"/runs/{changed}/changes?type={kind}&change={change}").text
    assert f"/console/records/{identifier}" in page
    assert "<script>alert" not in page


def test_added_records_are_paged_and_later_changes_hide_none(
    console: Console, browser: Browser, changed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roster_service.console.views.runs.PAGE", 4)
    seen: list[str] = []
    after = ""
    while True:
        shown = read(browser, f"/runs/2/changes?type=enrollments&change=added{after}")
        seen += [it["sourcedId"] for it in shown["changes"]]
        if shown["next"] is None:
            break
        after = f"&after={shown['next']}"
    with console.engine.connect() as connection:
        history = find_changes(connection, 2)
        assert history is not None
        added = [it.sourcedId for it in history.read(connection, "enrollments") if it.change == "added"]
    assert seen == sorted(added)
    assert {"spr-enr-13", "spr-enr-14"} <= set(seen)


def test_a_run_says_what_the_feed_waits_for(own_console: Console) -> None:
    """A later run, a pause of the feed, or another run of it that is held."""
    console, browser = own_console, own_console.log_in()

    def add(connection: sa.Connection, feed_id: int, outcome: str) -> int:
        row = {"feed_id": feed_id, "format": "x", "source": "x", "outcome": outcome, "counts": {}, "seconds": {}}
        times = {"started_at": sa.func.now(), "finished_at": sa.func.now()}
        return int(
            connection.execute(sa.insert(sync_runs).values(**row, **times).returning(sync_runs.c.id)).scalar_one()
        )

    def read_lead(run: int) -> str:
        lead = browser.get(f"/runs/{run}").text.partition('<p class="lead ')[2].partition("</p>")[0]
        return " ".join(re.sub("<[^>]*>", "", lead.replace('">', " ", 1)).split())

    with console.engine.begin() as connection:
        new = sa.insert(feeds).values(name="waiting", format="oneroster").returning(feeds.c.id)
        feed_id = connection.execute(new).scalar_one()
        first, held, last = (add(connection, feed_id, outcome) for outcome in ("refused", "held", "missing"))
    assert read_lead(first).startswith("over ")
    assert read_lead(first).endswith(f"Run {last} is the latest of this feed.")
    assert (read_lead(held).split()[0], read_lead(last).split()[0]) == ("needs", "needs")
    with console.engine.begin() as connection:
        connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(enabled=False))
    assert read_lead(held).startswith("needs ")
    assert read_lead(last).endswith("The feed is held: a person must decide.")
    assert "Nobody must act" not in read_lead(last)
    with console.engine.begin() as connection:
        connection.execute(sa.update(sync_runs).where(sync_runs.c.id == held).values(outcome="discarded"))
    assert read_lead(last).endswith("Nobody must act now. The feed is disabled: the nightly sync leaves it out.")


def test_a_refused_export_says_why(own_console: Console, own_export: Path) -> None:
    browser = own_console.log_in()
    header("orgs", "name", HOSTILE[:30])(own_export)
    with pytest.raises(RefusedExportError):
        load(own_console.engine, "springfield", own_export, options=Options(Settings(home=own_console.home)))
    [run] = read(browser, "/runs?outcome=refused")["runs"]["rows"]
    page = browser.get(f"/runs/{run['run']}").text
    assert "Reasons of the refusal" in page
    section = page.partition("Reasons of the refusal")[2].partition("</section>")[0]
    reasons = html.unescape(re.sub("<[^>]*>", "", section))
    assert "orgs.csv, line 1: column name is missing in the header" in reasons
    assert HOSTILE[:30] in reasons
    assert "Show each reason, with its file, line and value" in page
    assert 'href="/console/feeds/springfield">Load another export' in page
    assert "the person and the class" not in page
    assert "<script>alert" not in page + browser.get(f"/runs/{run['run']}/rejected").text
    assert read(browser, f"/runs/{run['run']}/changes")["changes"] == []


@pytest.fixture
def under_way(own_console: Console) -> Iterator[int]:
    """A run that is in its third step."""
    with own_console.engine.connect() as connection, hold_lock(connection, "springfield"):
        with connection.begin():
            feed_id = connection.scalar(sa.select(feeds.c.id).where(feeds.c.name == "springfield"))
            number = begin_run(connection, int(feed_id or 0), "oneroster", "/exports")
            name_session(connection, "springfield", "check")
        yield number


def test_a_run_that_is_under_way_shows_its_step_and_asks_again(own_console: Console, under_way: int) -> None:
    browser, number = own_console.log_in(), under_way
    shown = read(browser, f"/runs/{number}")
    assert [(step["name"], step["state"]) for step in shown["steps"]][:4] == [
        ("digest", "done"),
        ("stage", "done"),
        ("check", "now"),
        ("prepare", "later"),
    ]
    assert 'hx-trigger="every 2s"' in browser.get(f"/runs/{number}").text
    assert [run["run"] for run in read(browser, "/runs?outcome=running")["runs"]["rows"]] == [number]


def test_an_interrupted_run_says_so(own_console: Console, under_way: int) -> None:
    console, browser, number = own_console, own_console.log_in(), under_way
    with console.engine.begin() as connection:
        feed_id = connection.scalar(sa.select(feeds.c.id).where(feeds.c.name == "shelbyville"))
        dead = begin_run(connection, int(feed_id or 0), "oneroster", "/exports")
    assert read(browser, "/runs?outcome=interrupted")["runs"]["rows"][0]["run"] == dead
    assert [run["run"] for run in read(browser, "/runs?outcome=running")["runs"]["rows"]] == [number]
    shown = read(browser, f"/runs/{dead}")
    assert (shown["run"]["outcome"], shown["is_live"]) == ("interrupted", False)
    words = "<bdi>Its process ended before the run; nothing was changed</bdi>. Load the export again."
    page = browser.get(f"/runs/{dead}").text
    assert words in page
    assert 'class="lead needs"' in page
    with console.engine.begin() as connection:
        ended = {"started_at": sa.func.now(), "outcome": "done", "counts": {"users": {"added": 1}}, "seconds": {}}
        good = sa.insert(sync_runs).values(feed_id=feed_id, format="x", source="x", **ended)
        later = connection.scalar(good.returning(sync_runs.c.id))
    page = " ".join(re.sub("<[^>]*>", "", browser.get(f"/runs/{dead}").text).split())
    assert f"nothing was changed. Run {later} is the latest of this feed." in page
    assert "Load the export again" not in page
