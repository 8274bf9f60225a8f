"""Rejected rows: whom and what each is about, the search for a person among them, and the record that explains them."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.console.filters import to_segment
from roster_service.db.tables import sync_rejections, sync_runs
from roster_service.feeds.held_runs import HELD
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.console.conftest import Browser, Console
from tests.console.hostile import SCRIPT
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import Bend, both, cell_of, with_row, without_rows

RTL = "\u202e\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}"
LOST = "spr-student-1"
# A new pupil whose row is rejected, and two new enrollments: of the pupil, and in a class that no file has.
BENT: Bend = both(
    with_row("users", sourcedId="new-1", enabledUser=SCRIPT, orgSourcedIds="spr-high", role="student", username="new",
             givenName=RTL + "n" * 300, familyName=SCRIPT),
    with_row("users", sourcedId="new-2", enabledUser="maybe", orgSourcedIds="spr-high", role="student", username="two",
             givenName="Maria", familyName="Lopez"),
    with_row("enrollments", sourcedId="new-enr", classSourcedId="spr-class-math3-a", schoolSourcedId="spr-elementary",
             userSourcedId="new-2", role="student"),
    with_row("enrollments", sourcedId="lost-enr", classSourcedId="nowhere", schoolSourcedId="spr-high",
             userSourcedId=LOST, role="student"),
)  # fmt: skip


def load_rejected(console: Console, export: Path) -> int:
    """The number of a run with the rejected rows."""
    BENT(export)
    report = load(console.engine, "springfield", export, options=Options(Settings(home=console.home)))
    assert (report.rejected, report.run is not None) == (4, True)
    return report.run or 0


@pytest.fixture(scope="module")
def rejected(console: Console, export: Path) -> int:
    """Such a run, which stays the last one."""
    return load_rejected(console, export)


def read(browser: Browser, path: str) -> Any:
    """The JSON of a screen, whose page must be shown too."""
    address, _, query = path.partition("?")
    page = browser.get(path)
    assert page.status_code == 200
    assert SCRIPT not in page.text
    return browser.get(f"{address}.json?{query}").get_json()


def list_ids(browser: Browser, run: int, query: str) -> list[str]:
    return [row["sourcedId"] for row in read(browser, f"/runs/{run}/rejected?{query}")["rows"]["rows"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("search=maria+lopez", ["new-2", "new-enr"], id="a person whom the roster does not have"),
        pytest.param("search=o%27brien", ["lost-enr"], id="a person of the roster"),
        pytest.param("search=ZO%C3%8B+O", ["lost-enr"], id="two words, in capitals"),
        pytest.param("search=new-2", ["new-2", "new-enr"], id="the sourcedId of a person"),
        pytest.param("search=lost-e", ["lost-enr"], id="a part of the sourcedId of a row"),
        pytest.param("search=nowher", ["lost-enr"], id="a part of a value"),
        pytest.param("search=USERS.csv", ["new-1", "new-2"], id="a file"),
        pytest.param("search=%3Cscript%3E", ["new-1"], id="markup"),
        pytest.param("search=springfield+high", ["new-1", "new-2", "lost-enr"], id="a school"),
        pytest.param("search=nobody+is+it", [], id="nothing"),
        pytest.param("search=100%25_", [], id="signs of LIKE"),
        pytest.param(f"type=users&record={LOST}", ["lost-enr"], id="a record"),
        pytest.param("type=users&record=new-2&search=enroll", ["new-enr"], id="a record, and a file"),
        pytest.param(f"type=classes&record={LOST}", [], id="a record of another type"),
        pytest.param("search=x", [], id="a text that is too short"),
        pytest.param(f"search={'%E2%80%AE' * 300}", [], id="a long text from right to left"),
    ],
)
def test_rows_are_found_by_the_people_and_records_that_they_name(
    browser: Browser, rejected: int, query: str, found: list[str]
) -> None:
    assert sorted(list_ids(browser, rejected, query)) == sorted(found)


def test_a_record_of_no_type_is_refused_with_the_reason(browser: Browser, rejected: int) -> None:
    answer = browser.get(f"/runs/{rejected}/rejected?type=people&record=x")
    assert (answer.status_code, "There is no type people" in answer.text) == (404, True)


def test_a_row_names_its_records_with_links_to_those_of_the_roster(browser: Browser, rejected: int) -> None:
    shown = {row["sourcedId"]: row for row in read(browser, f"/runs/{rejected}/rejected")["rows"]["rows"]}
    named = {(it["type"], it["sourcedId"]): it for it in shown["new-enr"]["records"]}
    assert (named["users", "new-2"]["label"], named["users", "new-2"]["in_roster"]) == ("Maria Lopez", False)
    group = named["classes", "spr-class-math3-a"]
    assert (bool(group["label"]), group["in_roster"]) == (True, True)
    page = browser.get(f"/runs/{rejected}/rejected").text
    assert f'href="/console/records/{to_segment("spr-class-math3-a")}"' in page
    assert f'href="/console/records/{LOST}"' in page
    assert 'href="/console/records/new-2"' not in page
    lines = csv.DictReader(browser.get(f"/runs/{rejected}/rejected.csv").text.splitlines())
    records = {line["sourcedId"]: line["records"] for line in lines}
    assert "users new-2 (Maria Lopez)" in records["new-enr"]
    assert "classes nowhere;" in records["lost-enr"]


def read_explanation(browser: Browser, sourced_id: str) -> Any:
    (record,) = (it for it in read(browser, f"/records/{sourced_id}")["records"] if it["kind"] != "demographics")
    return record["explanation"]


def test_a_record_says_which_rejected_rows_name_it(browser: Browser, rejected: int) -> None:
    found = read_explanation(browser, LOST)
    assert (found["run"], found["count"], found["missing"]) == (rejected, 1, 0)
    assert [(row["sourcedId"], row["line"] > 1) for row in found["rows"]] == [("lost-enr", True)]
    page = browser.get(f"/records/{LOST}").text
    assert "1 row that names this person" in page
    assert found["rows"][0]["reason"] in page
    assert f"/console/runs/{rejected}/rejected?type=users&amp;record={LOST}" in page
    assert read_explanation(browser, "spr-class-math3-a")["rows"][0]["sourcedId"] == "new-enr"
    assert read_explanation(browser, "spr-student-4") is None


@pytest.mark.parametrize("path", ["/runs/{}/rejected", "/records/spr-class-math3-a"])
def test_a_row_that_refers_to_a_rejected_row_leads_to_its_root_cause(
    browser: Browser, rejected: int, path: str
) -> None:
    shown = {row["sourcedId"]: row for row in read(browser, f"/runs/{rejected}/rejected")["rows"]["rows"]}
    cause = shown["new-enr"]["cause"]
    assert (shown["new-enr"]["kind"], shown["new-2"]["cause"]) == ("consequence", cause)
    assert f'/console/runs/{rejected}/rejected?cause={cause}"' in browser.get(path.format(rejected)).text


def test_runs_and_findings_lead_to_the_rejected_rows(browser: Browser, rejected: int) -> None:
    link = f'href="/console/runs/{rejected}/rejected"'
    assert link in browser.get("").text
    assert link in browser.get(f"/runs/{rejected}").text
    assert 'href="/console/quality?feed=springfield"' in browser.get(f"/runs/{rejected}").text


def test_a_search_that_finds_no_record_leads_to_the_rejected_rows(browser: Browser, rejected: int) -> None:
    assert read(browser, "/roster?search=maria+lopez")["rejecting"] == [["springfield", rejected]]
    link = f'href="/console/runs/{rejected}/rejected?search=maria+lopez"'
    assert link in browser.get("/roster?search=maria+lopez").text
    assert read(browser, "/roster?search=o%27brien")["rejecting"] == []


@pytest.fixture(scope="module")
def taught(make_console: Callable[..., Console], tmp_path_factory: pytest.TempPathFactory) -> tuple[Browser, int]:
    """A browser, and a run of an export that also rejects the only enrollment of a teacher in a new class."""
    console = make_console()
    export = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path_factory.mktemp("exports") / "springfield"))
    both(
        BENT,
        with_row("classes", sourcedId="empty-class", title="Algebra I", courseSourcedId="spr-course-math3",
                 classType="scheduled", schoolSourcedId="spr-high", termSourcedIds="spr-2027-fall"),
        with_row("enrollments", sourcedId="bad-enr", classSourcedId="empty-class", schoolSourcedId="spr-high",
                 userSourcedId="spr-teacher-1", role=SCRIPT[:20]),
    )(export)  # fmt: skip
    run = load(console.engine, "springfield", export, options=Options(Settings(home=console.home))).run
    assert run is not None
    return console.log_in(), run


def test_a_finding_leads_to_the_rejected_rows_that_name_its_record(taught: tuple[Browser, int]) -> None:
    browser, run = taught
    found = read(browser, "/quality/classes-without-teacher?feed=springfield")
    counts = {row["sourcedId"]: row["rejected"] for row in found["rows"]["rows"]}
    assert counts["empty-class"] == 1
    page = browser.get("/quality/classes-without-teacher?feed=springfield").text
    assert f"/console/runs/{run}/rejected?type=classes&amp;record=empty-class" in page


def test_a_class_without_people_says_so(taught: tuple[Browser, int]) -> None:
    browser, _ = taught
    (record,) = read(browser, "/records/empty-class")["records"]
    groups = {group["title"]: [one["sourcedId"] for one in group["shown"]] for group in record["references"]}
    assert (groups["Teachers"], groups["Students"], groups["Terms"]) == ([], [], ["spr-2027-fall"])
    assert browser.get("/records/empty-class").text.count('<span class="state warn">none</span>') == 2


def test_a_class_lists_its_people_by_name_with_their_roles(browser: Browser, rejected: int) -> None:
    (record,) = read(browser, f"/records/{to_segment('spr-class/stats@1')}")["records"]
    groups = {group["title"]: group["shown"] for group in record["references"]}
    assert {one["detail"] for one in groups["Students"]} == {"student"}
    for title in ("Students", "Teachers"):
        families = [one["label"].split(" ", 1)[1] for one in groups[title]]
        assert len(families) > 1
        assert families == sorted(families)


def test_a_held_run_explains_before_the_run_that_loaded(own_console: Console, own_export: Path) -> None:
    browser = own_console.log_in()
    load_rejected(own_console, own_export)
    cell_of("enrollments", "spr-enr-10", "role", "x")(own_export)
    tight = Options(Settings(home=own_console.home, hold_least_records=1))
    report = load(own_console.engine, "springfield", own_export, options=tight)
    assert report.outcome == HELD
    found = read_explanation(browser, "spr-student-5")
    assert (found["run"], found["outcome"], found["count"]) == (report.run, HELD, 1)
    # The held run rejects this row too.
    assert read_explanation(browser, LOST)["run"] == report.run


def test_a_later_good_run_ends_the_explanation(own_console: Console, own_export: Path) -> None:
    browser, rejected = own_console.log_in(), load_rejected(own_console, own_export)
    both(without_rows("enrollments", "lost-enr", "new-enr"), without_rows("users", "new-1", "new-2"))(own_export)
    options = Options(Settings(home=own_console.home))
    assert load(own_console.engine, "springfield", own_export, options=options).rejected == 0
    assert read_explanation(browser, LOST) is None
    # The rows of the earlier run stay with it.
    assert list_ids(browser, rejected, f"type=users&record={LOST}") == ["lost-enr"]


def test_rows_of_an_earlier_version_name_no_record(own_console: Console, own_export: Path) -> None:
    browser, rejected = own_console.log_in(), load_rejected(own_console, own_export)
    with own_console.engine.begin() as connection:
        connection.execute(sa.update(sync_rejections).where(sync_rejections.c.run_id == rejected).values(records=[]))
    assert len(list_ids(browser, rejected, "")) == 4
    assert list_ids(browser, rejected, "search=lost-enr") == ["lost-enr"]


def test_the_first_page_does_not_call_rejected_rows_in_order(own_console: Console, own_export: Path) -> None:
    console, browser = own_console, own_console.log_in()
    run = load_rejected(console, own_export)
    text = browser.get("").text
    assert "Nothing needs you" not in text
    assert "1 of them with rejected rows. 1 feed needs you: springfield, because 4 rows were rejected: users" in text
    with console.engine.begin() as connection:
        files = connection.execute(sa.select(sync_runs.c.files).where(sync_runs.c.id == run)).scalar_one()
    assert '<p class="lead needs">' in browser.get(f"/runs/{run}").text
    # As of a large export.
    with console.engine.begin() as connection:
        few = sa.update(sync_runs).where(sync_runs.c.id == run).values(files=[file | {"rows": 1000} for file in files])
        connection.execute(few)
    assert "1 of them with rejected rows. No decision waits for you." in browser.get("").text
    assert '<p class="lead fine">' in browser.get(f"/runs/{run}").text
