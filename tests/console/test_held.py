"""A held run in the console: what it shows, and the decision, which a process in the background carries out."""

from __future__ import annotations

import csv
import fcntl
import html
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.console.views.held import list_emptied
from roster_service.db.tables import changes, feeds, sync_runs
from roster_service.feeds.feed_states import REMOVAL
from roster_service.feeds.run_history import FinishedRun, ReadFile, explain_shrunk
from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.feeds.runs import read_approval
from roster_service.feeds.scripts import OUTPUT, name_folder
from roster_service.feeds.sync_lock import hold_lock, name_session
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import Approval, begin_run
from tests.console.conftest import Browser, Console
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import cell_of, with_row, without_rows

LOST = ("spr-enr-13", "spr-enr-14", "spr-enr-01")
HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 200


@pytest.fixture(scope="module")
def made() -> list[int]:
    """The held runs that the tests of this module have made."""
    return []


@pytest.fixture
def held(console: Console, tmp_path: Path, made: list[int]) -> int:
    """A held run of springfield, with the export in the data folder of the console: that of the test before, if it has
    left it as it was."""
    if not made or not is_untouched(console, made[-1]):
        made.append(hold_run(console, tmp_path))
    return made[-1]


def hold_run(console: Console, tmp_path: Path) -> int:
    folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "springfield"))
    home = console.home
    shutil.rmtree(home / "held", ignore_errors=True)
    options = Options(Settings(home=home, hold_least_records=3))
    load(console.engine, "springfield", folder, options=Options(Settings(home=home), allow_mass_delete=True))
    without_rows("enrollments", *LOST)(folder)
    without_rows("users", "spr-aide-1")(folder)
    cell_of("users", "spr-student-1", "givenName", "Zoe")(folder)
    with_row("orgs", sourcedId=f"new<b>{tmp_path.name[-3:]}", name=HOSTILE, type="school")(folder)
    report = load(console.engine, "springfield", folder, options=options)
    assert (report.outcome, report.run is not None) == ("held", True)
    return int(report.run or 0)


def is_untouched(console: Console, run: int) -> bool:
    """Whether a run still waits, nobody has tried to approve it, and no run came after it."""
    with console.engine.connect() as connection:
        rows = connection.execute(sa.select(sync_runs.c.id, sync_runs.c.outcome).order_by(sync_runs.c.id.desc()))
        newest = rows.first()
    tried = name_folder(console.home, "approval", str(run)).exists()
    return newest is not None and tuple(newest) == (run, "held") and not tried


def read(browser: Browser, path: str) -> Any:
    """The JSON of a screen, whose page must be shown too."""
    address, _, query = path.partition("?")
    assert browser.get(path).status_code == 200
    return json.loads(browser.get(f"{address}.json?{query}").text)


def read_outcome(console: Console, run: int) -> str:
    with console.engine.connect() as connection:
        return str(connection.scalar(sa.select(sync_runs.c.outcome).where(sync_runs.c.id == run)))


def is_approving(console: Console, run: int) -> bool:
    found = read_approval(console.home, run)
    return found is not None and found.is_running


@pytest.fixture
def approving(console: Console, held: int) -> Iterator[int]:
    """The held run while its approval is under way: its process holds the lock of its output."""
    folder = name_folder(console.home, "approval", str(held))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / OUTPUT).open("wb") as output:
        fcntl.flock(output, fcntl.LOCK_EX)
        yield held
    shutil.rmtree(folder)


def test_the_evidence_comes_before_the_decision(own_console: Console, tmp_path: Path) -> None:
    held = hold_run(own_console, tmp_path)
    page = own_console.log_in(OperatorRole.EDITOR).get(f"/runs/{held}/held").text
    order = (
        "The sync held this run, because <bdi>4 of 17 enrollments would vanish, more than 10%</bdi>, and for ",
        "<li><bdi>1 of 14 ",
        "<bdi>All of these would vanish: 1 aide</bdi>.",
        "<h2>By type</h2>",
        "<h2>By school</h2>",
        "the rows can add up to more than the numbers by type",
        "<h2>By grade</h2>",
        "the rows need not add up to the number of users",
        "<h2>Samples</h2>",
        '<details class="card"',
        "<summary>Limits of the feed</summary>",
        "for a type of at least 50 records, or a file of as many rows",
        'id="decide"',
    )
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    buttons = re.findall(r"<button([^>]*)>((?:Approve|Discard|Set)[^<]*)<", page)
    assert buttons == [
        (' class="plain"', "Set the limits"),
        (f' class="primary" formaction="/console/runs/{held}/held/discard"', "Discard: change nothing"),
        (' class="plain danger"', "Approve: delete 5 records, change 2, add 1"),
    ]
    # Its feed was removed and taken back before: nothing is as it was.
    assert "vendors go on reading the roster as it was" in page
    copied = {column.name: column for column in sync_runs.c if column.name != "id"} | {"source": sa.literal(REMOVAL)}
    own = sa.select(feeds.c.id).where(feeds.c.name == "springfield").scalar_subquery()
    done = sa.select(*copied.values()).where(sync_runs.c.outcome == "done", sync_runs.c.feed_id == own)
    with own_console.engine.begin() as connection:
        connection.execute(sa.insert(sync_runs).from_select([*copied], done))
    page = own_console.log_in(OperatorRole.EDITOR).get(f"/runs/{held}/held").text
    assert "Nothing was loaded: vendors see none of its records as active." in page


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param(
            {"role": "teacher", "counts": {"users": (44, 44)}}, ["all of these would vanish: 44 teachers"], id="a role"
        ),
        pytest.param(
            {"role": "siteAdministrator", "counts": {"users": (3, 3)}},
            ["all of these would vanish: 3 site administrators"],
            id="words",
        ),
        pytest.param(
            {"role": "aide", "counts": {"users": (1, 1)}}, ["all of these would vanish: 1 aide"], id="one person"
        ),
        pytest.param({"role": "teacher", "counts": {"users": (43, 44)}}, [], id="one stays"),
        pytest.param(
            {"sourcedId": "s", "name": "High", "counts": {"users": (1200, 1200), "classes": (1, 2)}},
            ["High would lose all its people: 1,200"],
            id="a school",
        ),
        pytest.param({"sourcedId": "s", "name": None, "counts": {"classes": (2, 2)}}, [], id="classes alone"),
    ],
)
def test_what_would_be_gone_as_a_whole_is_said(place: dict[str, Any], words: list[str]) -> None:
    counts = {name: {"vanishing": gone, "active": every} for name, (gone, every) in place["counts"].items()}
    shown = {"roles": [], "schools": [], "roles" if "role" in place else "schools": [{**place, "counts": counts}]}
    assert list(list_emptied(shown, {"tombstoned": 44, "added": 21})) == words
    # With other ids, everybody goes and comes.
    assert list(list_emptied(shown, {"tombstoned": 44, "added": 22})) == []


def test_an_approval_that_deletes_many_records_takes_a_second_step(
    console: Console, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roster_service.console.views.held.MOST_DELETED", 4)
    browser = console.log_in(OperatorRole.EDITOR)
    assert "Type <strong>delete 5</strong> to go on" in browser.get(f"/runs/{held}/held").text
    for typed in ({}, {"typed": "delete 4"}):
        refused = browser.send(f"/runs/{held}/held/approve", csrf_of=f"/runs/{held}/held", **typed)
        assert (refused.status_code, read_outcome(console, held)) == (422, "held")
        assert "This is not delete 5; nothing was changed" in refused.text
        assert not is_approving(console, held)
    assert browser.send(f"/runs/{held}/held/discard", csrf_of=f"/runs/{held}/held").status_code == 303


# The rows of enrollments that are gone, whether all other files lost half of their rows, and what is said.
SHRUNK = {
    "a fifth": (4, False, r"enrollments.csv has 13 rows, and had 17 in run \d+\."),
    "more than a half": (9, False, r"enrollments.csv has 8 rows, and had 17 in run \d+: the export looks cut off\."),
    "as much as all": (9, True, r"enrollments.csv has 8 rows, and had 17 in run \d+\."),
}


@pytest.mark.parametrize(("gone", "is_of_all", "words"), SHRUNK.values(), ids=SHRUNK)
def test_a_file_that_lost_a_fifth_of_its_rows_is_named(gone: int, is_of_all: bool, words: str) -> None:
    rows = {"orgs.csv": 4, "users.csv": 20, "enrollments.csv": 17}
    before = FinishedRun(7, "done", "", {}, 0, True, rows)
    now = {
        **({name: number // 2 for name, number in rows.items()} if is_of_all else rows),
        "enrollments.csv": 17 - gone,
    }
    files = [ReadFile(name, "bulk", number, 0) for name, number in now.items()]
    said = [f"{sentence}." for sentence in explain_shrunk(files, [before])]
    assert [sentence for sentence in said if re.fullmatch(words, sentence)]
    assert len(said) == (2 if is_of_all else 1)


def test_the_pages_of_a_run_name_the_file_that_lost_rows(own_console: Console, own_export: Path) -> None:
    console, browser, folder = own_console, own_console.log_in(), own_export
    options = Options(Settings(home=console.home, hold_least_records=3))
    load(console.engine, "springfield", folder, options=Options(Settings(home=console.home), allow_mass_delete=True))
    without_rows("enrollments", *(f"spr-enr-{number:02}" for number in range(1, 10)))(folder)
    run = load(console.engine, "springfield", folder, options=options).run
    for path in (f"/runs/{run}", f"/runs/{run}/held"):
        page = browser.get(path).text
        assert re.search(r"enrollments.csv has 8 rows, and had 17 in run \d+: the export looks cut off", page)
        assert "users.csv has" not in page
    # The checks of data quality have looked at what the run would leave.
    assert re.search(r"Classes without a teacher</th><td class=\"number\">[1-9]", page)
    shutil.rmtree(console.home / "held", ignore_errors=True)


def test_an_approval_under_way_is_seen_everywhere_and_cannot_be_repeated(console: Console, approving: int) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    for path in ("", "/runs", f"/runs/{approving}", f"/runs/{approving}/held"):
        page = browser.get(path).text
        assert re.search("approval is under way|being applied", page), path
        assert "every 2s" in page or "every 5s" in page, path
        assert [it for it in FALSE_MEANWHILE if it in page] == [], path


@pytest.fixture
def applying(console: Console, held: int, made: list[int]) -> Iterator[tuple[int, int]]:
    """(the held run, the run that applies it), in its sixth step, as a command or another machine has started it."""
    with console.engine.connect() as connection, hold_lock(connection, "springfield"):
        with connection.begin():
            feed_id = connection.scalar(sa.select(sync_runs.c.feed_id).where(sync_runs.c.id == held))
            number = begin_run(connection, int(feed_id or 0), "oneroster", "/exports", approves=held)
            name_session(connection, "springfield", "write")
        yield held, number
        with connection.begin():
            connection.execute(sa.delete(sync_runs).where(sync_runs.c.id == number))
    # The number of the next run would not be that after the held one.
    made.clear()


def test_a_held_run_that_is_being_applied_says_so_with_the_step(console: Console, applying: tuple[int, int]) -> None:
    held, number = applying
    browser = console.log_in(OperatorRole.EDITOR)
    rows = sum(file["rows"] or 0 for file in read(browser, f"/runs/{held}")["run"]["files"])
    for path in (f"/runs/{held}", f"/runs/{held}/held"):
        page = browser.get(path).text
        assert f"the export that was held, with {rows} rows, is being loaded. Step 6 of 9: write the changes." in page
        assert f'<a href="/console/runs/{number}">Run {number}</a> does it.' in page
        assert '<li aria-current="step">write the changes' in page
    for path in ("", "/runs", "/feeds", f"/runs/{held}", f"/runs/{held}/held"):
        page = browser.get(path).text
        assert re.search("approval is under way|being applied", page), path
        assert "every 2s" in page or "every 5s" in page or path == "/feeds", path
        assert [it for it in FALSE_MEANWHILE if it in page] == [], path
    page = browser.get("").text
    assert (page.count("needs you"), page.count("need you"), ", 1 is being applied" in page) == (0, 0, True)


# What is not so, and what cannot be done, while an approval is under way.
FALSE_MEANWHILE = ("Nothing was changed", "then decide", "pprove or discard it", "/held/approve", "/held/discard")


def approve_by_command(console: Console, run: int) -> None:
    """As the loader does it for the command, after an attempt that failed."""
    with console.engine.begin() as connection:
        row = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == run)).one()
        failed = {"outcome": "failed", "format": "x", "source": "x", "started_at": "2026-01-01", "counts": {}}
        connection.execute(sync_runs.insert().values(feed_id=row.feed_id, seconds={}, **failed))
    approval = Approval(run, Actor(ActorKind.SYSTEM_USER, "root@roster", HOSTILE))
    options = Options(Settings(home=console.home), approval=approval)
    assert load(console.engine, "springfield", Path(row.kept_export), options=options).outcome == "done"


def discard_in_console(console: Console, run: int) -> None:
    sent = console.log_in(OperatorRole.EDITOR).send(f"/runs/{run}/held/discard", reason=HOSTILE)
    assert sent.status_code == 303


DECISIONS: dict[str, tuple[Callable[[Console, int], None], tuple[str, ...]]] = {
    "approved": (
        approve_by_command,
        ("Approved by <bdi>root@roster</bdi> with the roster command, <time", ">Run {after}</a> applied it"),
    ),
    "discarded": (discard_in_console, ("Discarded by <bdi>editor@operators.example</bdi>, <time",)),
}


@pytest.mark.parametrize(("decide", "words"), DECISIONS.values(), ids=DECISIONS)
def test_the_decision_is_shown_with_its_operator_and_reason(
    console: Console, held: int, decide: Callable[[Console, int], None], words: Sequence[str]
) -> None:
    decide(console, held)
    browser = console.log_in(OperatorRole.EDITOR)
    for path in (f"/runs/{held}", f"/runs/{held}/held"):
        page = browser.get(path).text
        shown = [*(it.format(after=held + 2) for it in words), "with the reason “<bdi>&lt;script&gt;alert(1)"]
        assert [it for it in shown if it not in page] == [], path
        assert "/held/approve" not in page


def test_a_run_that_the_next_one_replaces_was_not_discarded(console: Console, held: int) -> None:
    with console.engine.connect() as connection:
        kept = connection.scalar(sa.select(sync_runs.c.kept_export).where(sync_runs.c.id == held))
    options = Options(Settings(home=console.home), allow_mass_delete=True)
    by = load(console.engine, "springfield", Path(str(kept)), options=options).run
    browser = console.log_in(OperatorRole.EDITOR)
    for path in (f"/runs/{held}", f"/runs/{held}/held"):
        page = browser.get(path).text
        assert f"Replaced by run {by}</bdi>: nobody decided on this one, and the roster stayed as it was." in page
        assert "iscarded" not in page
        assert "/held/approve" not in page
    assert f'href="/console/runs/{held}"' in browser.get("/runs?outcome=replaced").text


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("discarded", "discarded by an operator"),
        ("discarded", "discarded, because its export has a person who was erased since"),
        ("discarded", "discarded, because run 7 removed the feed"),
        ("discarded", None),
        ("replaced", "replaced by run 7"),
    ],
)
def test_a_decided_run_says_its_outcome_once(console: Console, held: int, outcome: str, message: str | None) -> None:
    run = sa.select(sync_runs.c.outcome, sync_runs.c.message).where(sync_runs.c.id == held)
    change = sa.update(sync_runs).where(sync_runs.c.id == held)
    with console.engine.begin() as connection:
        before = connection.execute(run).one()
        connection.execute(change.values(outcome=outcome, message=message))
    browser = console.log_in(OperatorRole.EDITOR)
    pages = {
        path: re.sub(r"<[^>]+>", "", browser.get(path).text)
        for path in (f"/runs/{held}", f"/runs/{held}/held", "", "/feeds/springfield")
    }
    # For the tests after it.
    with console.engine.begin() as connection:
        connection.execute(change.values(before._asdict()))
    for path, text in pages.items():
        assert not re.search(rf"{outcome}: {outcome}", text, re.IGNORECASE), path
        assert "None" not in text, path
    said = OUTCOMES[outcome].describe(message)
    assert f"{said[0].upper()}{said[1:]}" in pages[f"/runs/{held}/held"]


def test_a_held_run_shows_where_records_would_vanish_and_change(console: Console, held: int) -> None:
    browser = console.log_in(OperatorRole.VIEWER)
    shown = read(browser, f"/runs/{held}/held")["shown"]
    assert {it["sourcedId"] for it in shown["schools"]} == {"spr-high", "spr-elementary"}
    assert {"grade": "03", "counts": {"users": {"vanishing": 0, "changing": 1, "active": 3}}} in shown["grades"]
    assert [it["role"] for it in shown["roles"]] == ["aide", "student"]
    page = browser.get(f"/runs/{held}/held").text
    assert "/console/records/spr-high" in page
    assert "<script>alert" not in page
    assert "<b>" not in page.split("<h2>Samples")[1]
    rows = browser.get(f"/runs/{held}/held.csv").text.splitlines()
    assert rows[0] == "sourcedId,name,type,vanishing,changing,active"
    # A viewer looks only.
    assert "/held/approve" not in page
    assert "An editor or an owner decides" in page


def test_a_list_of_records_that_is_not_stored_is_said_also_under_another_setting(console: Console, held: int) -> None:
    own = sa.update(sync_runs).where(sync_runs.c.id == held)
    with console.engine.begin() as connection:
        connection.execute(own.values(has_changes=False))
    page = console.log_in(OperatorRole.VIEWER).get(f"/runs/{held}/held").text
    with console.engine.begin() as connection:
        connection.execute(own.values(has_changes=True))
    assert "The records are not listed one by one: ROSTER_CHANGE_DAYS was 0 when the sync held this run." in page


def test_samples_have_names_and_both_values(console: Console, held: int) -> None:
    page = console.log_in(OperatorRole.VIEWER).get(f"/runs/{held}/held").text
    samples = page.split("<h2>Samples</h2>")[1].split("</table>")[0]
    shown = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", samples)).split())
    for words in (
        "student: Мария Иванова in Chemistry: Acid' AND 'Base would vanish enrollments spr-enr-13",
        "Zoë O'Brien would change users givenName: Zoë → Zoe spr-student-1",
        "xxx would be added orgs new<b>",
    ):
        assert words in shown
    assert "<script>alert(1)" in shown


def test_every_record_that_would_vanish_or_change_is_listed(
    console: Console, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = console.log_in(OperatorRole.VIEWER)
    counts = read(browser, f"/runs/{held}")["run"]["counts"]
    page = browser.get(f"/runs/{held}/held").text
    for change in ("tombstoned", "changed"):
        expected = {(kind, it[change]) for kind, it in counts.items() if it[change]}
        listed = csv.DictReader(browser.get(f"/runs/{held}/changes.csv?type=all&change={change}").text.splitlines())
        found = [(row["type"], row["sourcedId"], row["name"]) for row in listed]
        assert {(kind, sum(it[0] == kind for it in found)) for kind, _, _ in found} == expected
        assert all(name for _, _, name in found)
        for kind, number in expected:
            assert f'changes?type={kind}&amp;change={change}">{number}</a>' in page
            shown = read(browser, f"/runs/{held}/changes?type={kind}&change={change}")
            assert [(it["type"], it["sourcedId"], it["name"]) for it in shown["changes"]] == [
                it for it in found if it[0] == kind
            ]
    monkeypatch.setattr("roster_service.console.views.runs.PAGE", 2)
    first = read(browser, f"/runs/{held}/changes?type=enrollments&change=tombstoned")
    second = read(browser, f"/runs/{held}/changes?type=enrollments&change=tombstoned&after={first['next']}")
    assert len({it["sourcedId"] for it in (*first["changes"], *second["changes"])}) == 4
    # Nothing of it has happened to the record.
    assert str(held) not in {str(it["run"]) for it in read(browser, "/records/spr-enr-13")["records"][0]["history"]}


def test_an_approval_loads_the_held_export_and_names_the_operator(
    console: Console, held: int, in_process: None
) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    sent = browser.send(f"/runs/{held}/held/approve", reason="a new year")
    assert (sent.status_code, sent.headers["Location"]) == (303, f"/console/runs/{held}")
    shown = read(browser, f"/runs/{held}")
    assert (shown["run"]["outcome"], shown["decision"]["applied_by"]) == ("approved", held + 1)
    applied = read(browser, f"/runs/{held + 1}")
    assert applied["run"]["outcome"] == "partial"
    assert applied["run"]["source"] == shown["run"]["source"]
    assert applied["run"]["actor"] == "editor@operators.example"
    assert applied["before"] == held - 1
    lost = {it["type"]: it["records"] - it["before"] for it in applied["compared"]}
    assert (lost["enrollments"], lost["users"]) == (-4, -1)
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(changes).where(changes.c.subject == str(held))).one()
    assert (row.actor, row.reason, row.verb) == ("editor@operators.example", "a new year", "sync approve")
    again = browser.send(f"/runs/{held}/held/approve")
    assert (again.status_code, f"The run {held} is not held; it is approved" in again.text) == (422, True)


def test_the_reason_of_a_refused_approval_is_shown(console: Console, held: int, in_process: None) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    with console.engine.connect() as connection, hold_lock(connection, "springfield"):
        browser.send(f"/runs/{held}/held/approve")
    page = browser.get(f"/runs/{held}").text
    assert "The approval did not apply the run: <bdi>another sync (roster sync: springfield" in page
    assert read_outcome(console, held) == "held"
    assert "; its approval failed</bdi>" in browser.get("").text


def test_an_approval_of_more_than_was_shown_is_held_again(console: Console, held: int, in_process: None) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    with console.engine.begin() as connection:
        row = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == held)).one()
        less = row.counts | {"users": row.counts["users"] | {"tombstoned": 0}}
        connection.execute(sync_runs.update().where(sync_runs.c.id == held).values(counts=less))
    browser.send(f"/runs/{held}/held/approve")
    page = browser.get(f"/runs/{held}").text
    assert f'/console/runs/{held + 1}/held">Run {held + 1} is held now' in page
    assert f"not 0 as the run {held} showed" in page


def test_two_approvals_at_once_load_once(console: Console, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With processes of their own, as operators start them."""
    monkeypatch.setenv("ROSTER_SECRET_KEY", "x" * 32)
    one, other = console.log_in(OperatorRole.EDITOR), console.log_in(OperatorRole.OWNER)
    answers = [it.send(f"/runs/{held}/held/approve") for it in (one, other)]
    assert [it.status_code for it in answers] == [303, 422]
    assert "This has been started already, and is under way" in answers[1].text
    assert "The approval is under way" in one.get(f"/runs/{held}").text
    deadline = time.monotonic() + 120
    # Not by pages: they would take the processor from the process.
    while is_approving(console, held) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not read(one, f"/runs/{held}")["is_live"]
    with console.engine.connect() as connection:
        later = connection.scalars(sa.select(sync_runs.c.outcome).where(sync_runs.c.id > held)).all()
    assert (read_outcome(console, held), list(later)) == ("approved", ["partial"])
    output = name_folder(console.home, "approval", str(held)) / OUTPUT
    assert [oct(it.stat().st_mode & 0o777) for it in (output, output.parent)] == ["0o600", "0o700"]


def test_an_approval_whose_process_was_killed_has_ended(console: Console, held: int, tmp_path: Path) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    folder = name_folder(console.home, "approval", str(held))
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(["sleep", "60"])
    (folder / OUTPUT).write_bytes(b"")
    process.kill()
    process.wait()
    assert "the process ended without a word" in browser.get(f"/runs/{held}").text
    assert read_outcome(console, held) == "held"
    shutil.rmtree(folder)


def test_a_discarded_run_changes_nothing_and_leaves_no_export(console: Console, held: int) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    assert (console.home / "held" / str(held)).exists()
    assert browser.send(f"/runs/{held}/held/discard", reason="damaged").status_code == 303
    assert read_outcome(console, held) == "discarded"
    assert not (console.home / "held" / str(held)).exists()
    assert read(browser, f"/runs/{held}/changes?type=enrollments&change=tombstoned")["changes"] == []
    assert "what the run showed while it was held" in browser.get(f"/runs/{held}/held").text


@pytest.mark.parametrize(
    ("given", "status", "stored"),
    [("0", 303, 0), ("100", 303, 100), ("", 303, None), ("101", 422, 10), ("-1", 422, 10), ("ten", 422, 10)],
)
def test_limits_are_set_beside_the_run(
    console: Console, held: int, given: str, status: int, stored: int | None
) -> None:
    browser = console.log_in(OperatorRole.EDITOR)
    browser.send(f"/runs/{held}/held/limits", hold_tombstones_percent="10")
    assert browser.send(f"/runs/{held}/held/limits", hold_tombstones_percent=given).status_code == status
    with console.engine.connect() as connection:
        limit = sa.select(feeds.c.hold_tombstones_percent).where(feeds.c.name == "springfield")
        assert connection.scalar(limit) == stored
    assert any(it["own"] == stored for it in read(browser, f"/runs/{held}/held")["limits"])


@pytest.mark.parametrize(("path", "words"), [("/runs/1/held", "was not held"), ("/runs/999/held", "no run 999")])
def test_a_run_that_was_not_held_has_no_such_page(console: Console, path: str, words: str) -> None:
    answered = console.log_in(OperatorRole.VIEWER).get(path)
    assert (answered.status_code, words in answered.text) == (404, True)
