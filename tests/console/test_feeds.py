"""Feeds in the console: added by upload or path after a preview, loaded, changed, paused and removed."""

from __future__ import annotations

import fcntl
import html
import io
import json
import re
import shutil
import signal
import stat
import subprocess
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights, vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import from_segment, to_segment
from roster_service.db.tables import changes, feeds, sync_runs
from roster_service.feeds import export_previews, scripts
from roster_service.feeds.feed_states import FEED_NAME_LENGTH
from roster_service.feeds.feeds import add_feed
from roster_service.feeds.scripts import Bounds
from sync_scripts.engine.exit_codes import ExitCode
from tests.actors import TESTER
from tests.console.conftest import Browser, Console
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import header, without_rows

HOSTILE = "<script>alert(1)</script>\u202e"
# Names that the command line takes, each of which would break an address that is made without care.
NAMES = [
    "a b",
    "north.json",
    "x?y=1#z",
    "50% off",
    "Škola č. 1",
    "<b>",
    "removal",
    "~2F",
    "+",
    "x-",
    "a" * 63,
]


@pytest.fixture
def browser(console: Console) -> Iterator[Browser]:
    """A browser of an editor. No file of an upload stays."""
    yield console.log_in(OperatorRole.EDITOR)
    shutil.rmtree(console.home / export_previews.FOLDER, ignore_errors=True)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """The export of springfield, with ids of its own."""
    folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "export"))
    for path in folder.glob("*.csv"):
        path.write_bytes(path.read_bytes().replace(b"spr-", b"up-").replace(b"17-0042", b"17-0043"))
    return folder


def zip_folder(folder: Path, top: str = "") -> io.BytesIO:
    """A zip of the files of a folder. `top`: what stands in front of each name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*.csv")):
            archive.writestr(top + path.name, path.read_bytes())
    return io.BytesIO(out.getvalue())


def read(browser: Browser, path: str) -> Any:
    """The JSON of a screen, whose page must be shown too."""
    assert browser.get(path).status_code == 200
    return json.loads(browser.get(f"{path}.json").text)


def upload(browser: Browser, files: Sequence[tuple[io.BytesIO, str]], path: str = "/feeds/upload", **form: str) -> Any:
    """Sends files, with the form of a new feed unless told otherwise."""
    given = {"name": "uploaded", "format": "oneroster", **form, "export": list(files)}
    return browser.send(path, **given)


def read_outcomes(console: Console, feed: str) -> list[str]:
    own = sa.select(sync_runs.c.outcome).join(feeds).where(feeds.c.name == feed).order_by(sync_runs.c.id)
    with console.engine.connect() as connection:
        return list(connection.scalars(own))


@pytest.mark.parametrize("is_zip", [True, False])
def test_an_export_of_another_format_is_taken_as_what_it_is(
    console: Console, browser: Browser, in_process: None, is_zip: bool
) -> None:
    name = f"another-{is_zip}".lower()
    folder = EXPORTS / "shelbyville-clever"
    files = (
        [(zip_folder(folder), "export.zip")]
        if is_zip
        else [(io.BytesIO(it.read_bytes()), it.name) for it in sorted(folder.glob("*.csv"))]
    )
    first = upload(browser, files, name=name).headers["Location"].removeprefix("/console")
    page = browser.get(first).text
    assert "has the files of a Clever CSV export" in page
    assert "python -m" not in page
    sent = browser.send(f"{first}/format", feed=name, csrf_of=first)
    second = sent.headers["Location"].removeprefix("/console")
    assert browser.get(first).status_code == 404
    shown = read(browser, second)
    assert (shown["preview"]["format"], shown["preview"]["feed"], shown["other_format"]) == ("clever", name, None)
    assert shown["report"]["counts"]["users"]["added"] > 0
    # A preview whose format is right has no other one.
    assert browser.send(f"{second}/format", feed=name, csrf_of=second).status_code == 422


def test_an_export_of_another_format_needs_another_feed(console: Console, browser: Browser, in_process: None) -> None:
    files = [(zip_folder(EXPORTS / "shelbyville-clever"), "export.zip")]
    first = upload(browser, files, name="springfield").headers["Location"].removeprefix("/console")
    assert "The feed <bdi>springfield</bdi> takes oneroster alone" in browser.get(first).text
    refused = browser.send(f"{first}/format", feed="springfield", csrf_of=first)
    assert (refused.status_code, "takes oneroster, not clever" in refused.text) == (422, True)
    # The preview is there still.
    sent = browser.send(f"{first}/format", feed="other-one", csrf_of=first)
    shown = read(browser, sent.headers["Location"].removeprefix("/console"))
    assert (shown["preview"]["is_new"], shown["report"]["feed"]) == (True, "other-one")


def test_the_whole_way_of_an_export(
    console: Console, browser: Browser, export: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = upload(browser, [(zip_folder(export), "export.zip")])
    assert sent.status_code == 303
    preview = sent.headers["Location"].removeprefix("/console")
    shown = read(browser, preview)
    assert (shown["report"]["counts"]["users"]["added"], shown["preview"]["is_new"]) == (15, True)
    assert read_outcomes(console, "uploaded") == []
    folder = console.home / export_previews.FOLDER / shown["preview"]["id"]
    assert [oct(it.stat().st_mode & 0o77) for it in (folder, folder / "export.zip")] == ["0o0", "0o0"]

    sent = browser.send(f"{preview}/load", reason="a new district")
    assert sent.headers["Location"] == "/console/feeds/uploaded"
    assert read_outcomes(console, "uploaded") == ["done"]
    run = read(browser, f"/runs/{read(browser, '/feeds/uploaded')['runs'][0]['run']}")["run"]
    assert (run["source"], run["actor"]) == ("export.zip, uploaded", "editor@operators.example")
    assert browser.get(preview).status_code == 404
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()
    with console.engine.connect() as connection:
        rows = sa.select(changes.c.verb, changes.c.actor).where(changes.c.subject == "uploaded").order_by(changes.c.id)
        assert [tuple(row) for row in connection.execute(rows)] == [
            ("feed add", "editor@operators.example"),
            ("sync run", "editor@operators.example"),
        ]

    # The next export loses most enrollments: the run is held, and approved.
    without_rows("enrollments", *(f"up-enr-{number:02}" for number in range(1, 15)))(export)
    monkeypatch.setenv("ROSTER_HOLD_LEAST_RECORDS", "3")
    browser.send("/feeds/uploaded/settings", hold_tombstones_percent="10", path=str(export))
    sent = browser.send("/feeds/uploaded/sync", now="yes")
    assert sent.headers["Location"] == "/console/feeds/uploaded"
    assert read_outcomes(console, "uploaded") == ["done", "held"]
    page = browser.get("/feeds/uploaded").text
    held = re.search(r"/console(/runs/\d+/held)", page)
    assert held is not None
    assert read(browser, held[1])["shown"]["schools"]
    assert browser.send(f"{held[1]}/approve").status_code == 303
    assert read_outcomes(console, "uploaded") == ["done", "approved", "done"]
    page = browser.get("/feeds/uploaded").text
    assert [
        words for words in ("enrollments would vanish", "that was started here", "previews/") if words in page
    ] == []


def test_several_files_are_an_export_too(browser: Browser, export: Path, in_process: None) -> None:
    files = [(io.BytesIO(path.read_bytes()), path.name) for path in export.glob("*.csv")]
    preview = upload(browser, files, name="uploaded").headers["Location"].removeprefix("/console")
    shown = read(browser, preview)
    assert sum(shown["report"]["counts"]["orgs"].values()) == 4
    assert browser.send(f"{preview}/drop").status_code == 303
    assert browser.get(preview).status_code == 404


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param(["export.zip"], "neither a zip nor a CSV file", id="no zip"),
        pytest.param(["../../orgs.csv", "users.csv"], "no name of a CSV file", id="a path"),
        pytest.param(["orgs.csv", "/etc/cron.d/x.csv"], "no name of a CSV file", id="an absolute path"),
        pytest.param([".orgs.csv", "users.csv"], "no name of a CSV file", id="a hidden file"),
        pytest.param(["orgs.csv", "run.sh"], "no name of a CSV file", id="another kind"),
        pytest.param(["orgs.csv", "ORGS.csv"], "the same name", id="twice"),
        pytest.param(["orgs.csv", f"{HOSTILE}.csv"], "no name of a CSV file", id="markup"),
        pytest.param([], "Choose a zip", id="nothing"),
    ],
)
def test_hostile_uploads_are_refused_and_leave_nothing(
    console: Console, browser: Browser, names: list[str], words: str
) -> None:
    sent = upload(browser, [(io.BytesIO(b"sourcedId\n"), name) for name in names])
    assert (sent.status_code, words in sent.text) == (422, True)
    assert "<script>alert" not in sent.text
    assert list((console.home / export_previews.FOLDER).glob("*")) == []


def test_a_zip_that_leads_out_of_itself_is_refused_by_the_preview(
    console: Console, browser: Browser, export: Path, in_process: None
) -> None:
    sent = upload(browser, [(zip_folder(export, "../../"), "export.zip")], name="hostile zip")
    preview = sent.headers["Location"].removeprefix("/console")
    shown = read(browser, preview)
    assert (shown["report"], len(shown["rejections"]) > 0) == (None, True)
    assert "leads out of the zip" in browser.get(preview).text
    assert not (console.home / "orgs.csv").exists()


def test_an_export_that_would_be_refused_says_why(browser: Browser, export: Path, in_process: None) -> None:
    header("orgs", "name", HOSTILE)(export)
    preview = upload(browser, [(zip_folder(export), "x.zip")]).headers["Location"].removeprefix("/console")
    page = browser.get(preview).text
    assert "The export would not be loaded: <bdi>orgs.csv, line 1" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({"name": "springfield", "format": "clever"}, "takes oneroster, not clever", id="another format"),
        pytest.param({"format": "xml"}, "choose a format", id="no format"),
        pytest.param({"name": "x" * (FEED_NAME_LENGTH + 1)}, "a feed&#39;s name", id="a long name"),
        pytest.param({"name": "../springfield"}, "no / and no ..", id="a name that is a path"),
        pytest.param({"name": "a\u202eb"}, "feed&#39;s name", id="a name that is not printable"),
        pytest.param({"path": "exports/springfield"}, "no absolute path", id="a relative path"),
        pytest.param({"path": ""}, "needs the path", id="no path"),
    ],
)
def test_a_feed_that_cannot_be_added_is_refused(browser: Browser, form: dict[str, str], words: str) -> None:
    sent = browser.send("/feeds/path", **{"name": "new", "format": "oneroster", "path": "/exports", **form})
    assert (sent.status_code, words.lower() in sent.text.lower()) == (422, True)


def test_a_feed_is_added_by_its_path_and_left_to_the_nightly_sync(
    console: Console, browser: Browser, export: Path, in_process: None
) -> None:
    """A link may lead to another export each day."""
    link = export.with_name("latest")
    link.symlink_to(export)
    sent = browser.send("/feeds/path", name="by path", format="oneroster", path=str(link))
    preview = sent.headers["Location"].removeprefix("/console")
    sent = browser.send(f"{preview}/add")
    assert sent.headers["Location"] == "/console/feeds/by~20path"
    assert read(browser, "/feeds/by~20path")["feed"]["path"] == str(link)
    assert (read_outcomes(console, "by path"), export.exists()) == ([], True)


def test_a_preview_is_listed_until_it_is_discarded(
    console: Console, browser: Browser, export: Path, in_process: None
) -> None:
    viewer = console.log_in(OperatorRole.VIEWER)
    # That of a new feed in the list of feeds, any other one on the page of its feed.
    for page in ("/feeds", "/feeds/springfield"):
        sent = browser.send(f"{page}/path", name="<b>listed", format="oneroster", path=str(export))
        preview = sent.headers["Location"].removeprefix("/console")
        [listed] = read(browser, page)["previews"]
        assert (f"/previews/{listed['preview']['id']}", listed["preview"]["source"]) == (preview, str(export))
        text = browser.get(page).text
        assert f'href="/console{preview}"' in text
        assert f'action="/console{preview}/drop"' in text
        assert "<b>listed" not in text
        assert read(viewer, page)["previews"] == []
        # Its load reads the export that was uploaded.
        mark = console.home / export_previews.FOLDER / listed["preview"]["id"] / export_previews.LOADED
        mark.touch()
        load = scripts.name_folder(console.home, "load", listed["preview"]["feed"])
        load.mkdir(parents=True)
        with (load / scripts.OUTPUT).open("w") as output:
            fcntl.flock(output, fcntl.LOCK_EX)
            assert (read(browser, page)["previews"], browser.send(f"{preview}/drop").status_code) == ([], 422)
        # It has ended, and changed nothing.
        assert read(browser, page)["previews"] == [listed]
        mark.unlink()
        # Its feed has another name by now.
        facts = mark.with_name(export_previews.FACTS)
        facts.write_text(facts.read_text().replace(f'"feed": "{listed["preview"]["feed"]}"', '"feed": "former"'))
        assert [it["preview"]["feed"] for it in read(browser, "/feeds")["previews"]] == ["former"]
        assert browser.send(f"{preview}/drop").status_code == 303
        assert read(browser, page)["previews"] == []


def test_a_preview_whose_load_has_changed_nothing_is_loaded_again(
    own_console: Console, export: Path, in_process: None
) -> None:
    """As beside another command: its new feed is there, and has no record."""
    browser = own_console.log_in()
    sent = browser.send("/feeds/path", name="loaded again", format="oneroster", path=str(export))
    preview = sent.headers["Location"].removeprefix("/console")
    with own_console.engine.begin() as connection:
        add_feed(connection, TESTER, "loaded again", "oneroster", export)
    assert browser.send(f"{preview}/load").status_code == 422
    (own_console.home / export_previews.FOLDER / preview.rpartition("/")[2] / export_previews.LOADED).touch()
    assert browser.send(f"{preview}/load").status_code == 303
    assert read_outcomes(own_console, "loaded again") == ["done"]


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_with_any_name_has_a_page(console: Console, browser: Browser, name: str) -> None:
    with console.engine.begin() as connection:
        add_feed(connection, TESTER, name, "oneroster", None)
    assert f'href="/console/feeds/{to_segment(name)}"' in browser.get("/feeds").text
    assert re.fullmatch(r"[A-Za-z0-9_~-]+", to_segment(name))
    assert from_segment(to_segment(name)) == name
    assert read(browser, f"/feeds/{to_segment(name)}")["feed"]["name"] == name
    assert browser.send(f"/feeds/{to_segment(name)}/enable", enabled="no").status_code == 303
    assert browser.get(f"/feeds/{to_segment(name)}/removal").status_code == 200
    with console.engine.begin() as connection:
        assert not connection.scalar(sa.select(feeds.c.enabled).where(feeds.c.name == name))


def test_the_first_page_leads_to_the_page_of_a_feed(console: Console, browser: Browser) -> None:
    with console.engine.begin() as connection:
        add_feed(connection, TESTER, "new?one", "oneroster", None)
    page = browser.get("").text
    assert "new?one, because no export of it has been loaded yet" in page
    task = re.search(r'href="/console(/feeds/new[^"]+)">See what to do', page)
    assert task is not None
    assert read(browser, task[1])["feed"]["name"] == "new?one"


def test_settings_are_set_and_only_what_differs_is_recorded(own_console: Console, tmp_path: Path) -> None:
    browser = own_console.log_in(OperatorRole.EDITOR)
    link = tmp_path / "latest"
    link.symlink_to(tmp_path)
    form = {"path": str(link), "marker": "done.txt", "hold_changes_percent": "0", "strict": "yes"}
    assert browser.send("/feeds/springfield/settings", **form).status_code == 303
    assert browser.send("/feeds/springfield/settings", **form).status_code == 303
    feed = read(browser, "/feeds/springfield")["feed"]
    assert {name: feed[name] for name in form} == {**form, "hold_changes_percent": 0, "strict": True}
    with own_console.engine.connect() as connection:
        rows = sa.select(changes.c.after).where(changes.c.subject == "springfield", changes.c.verb == "feed set")
        assert [sorted(it) for it in connection.scalars(rows)] == [sorted(form)]
    refused = browser.send("/feeds/springfield/settings", path="relative")
    assert (refused.status_code, "no absolute path" in refused.text) == (422, True)
    # What was typed is still there, and only in the form that was sent.
    wrong = {"path": "/exports/other", "marker": "<b>end.txt", "hold_changes_percent": "abc", "reason": "a & b"}
    refused = browser.send("/feeds/springfield/settings", **wrong)
    settings, _, others = refused.text.partition('<details class="card" open><summary>Export and limits')[2].partition(
        "</details>"
    )
    for name, value in wrong.items():
        assert f'name="{name}" value="{html.escape(value)}"' in settings.replace('autocomplete="off" ', ""), name
    assert 'name="strict" value="yes">' in settings
    assert "a &amp; b" not in others
    # A link types nothing.
    assert 'value="/exports/of-a-link"' not in browser.get("/feeds/springfield?path=/exports/of-a-link").text


WORDS = "file,column,word,means\nusers,role,pupil,student\n"
# What is refused in place of these words, and why.
BAD_WORDS = {
    b"\xff\xfe": "The mapping is not UTF-8",
    b"\0": "The file is no mapping of words",
    b"garbage": "The mapping of words, line 1: the header must be file,column,word,means",
    WORDS.replace("role", "shoe").encode(): "The mapping of words, line 2, column column: is no column of users.csv",
    f"{WORDS}users,role,tutor,mentor".encode(): "The mapping of words, line 3, column means: must be one of ",
}


def test_a_mapping_of_words_is_set_stays_for_a_bad_one_and_is_removed(
    browser: Browser, scripts_in_process: None
) -> None:
    def send(data: bytes) -> Any:
        return browser.send("/feeds/springfield/words", words=(io.BytesIO(data), "words.csv"))

    assert send(WORDS.encode()).status_code == 303
    for bad, why in BAD_WORDS.items():
        refused = send(bad)
        assert (refused.status_code, why in refused.text) == (422, True), bad
        assert read(browser, "/feeds/springfield")["words"] == WORDS
    browser.send("/feeds/springfield/words", none="yes")
    assert read(browser, "/feeds/springfield")["words"] is None


def test_a_feed_is_paused_and_resumed(browser: Browser) -> None:
    refused = browser.send("/feeds/springfield/pause", last="2020-01-01", reason="x")
    assert (refused.status_code, "The last day of a pause" in refused.text) == (422, True)
    given = {"first": "2099-01-02", "last": "2099-01-01", "reason": HOSTILE}
    refused = browser.send("/feeds/springfield/pause", **given)
    pause = refused.text.partition('<details class="card" open><summary>Pause: none')[2].partition("</details>")[0]
    values = {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', pause)}
    assert (refused.status_code, {name: values[name] for name in given}) == (422, given)
    assert browser.send("/feeds/springfield/pause", last="soon", reason="x").status_code == 422
    assert browser.send("/feeds/springfield/pause", last="2099-12-31", reason=HOSTILE).status_code == 303
    page = browser.get("/feeds/springfield").text
    assert "to 31 Dec 2099: " in page
    assert "<script>alert" not in page + browser.get("/feeds").text
    browser.send("/feeds/springfield/resume")
    assert read(browser, "/feeds/springfield")["feed"]["pause"] is None


def test_an_export_that_may_be_incomplete_waits(
    console: Console, browser: Browser, export: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROSTER_EXPORT_AGE_MINUTES", "5")
    before = read_outcomes(console, "springfield")
    browser.send("/feeds/springfield/settings", path=str(export))
    browser.send("/feeds/springfield/sync")
    shown = read(browser, "/feeds/springfield")
    assert shown["load"]["report"]["outcome"] == "incomplete"
    assert read_outcomes(console, "springfield") == before


def test_a_feed_is_removed_after_its_name_is_typed_and_taken_back(
    console: Console, browser: Browser, in_process: None
) -> None:
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "reading@vendor.example", "Reading")
        vendor_rights.grant(connection, TESTER, "reading@vendor.example", "shv-district", ())
    shown = read(browser, "/feeds/shelbyville/removal")
    assert shown["last"]["records"]["users"] > 0
    words = (
        r"reading@vendor.example may no longer see .* \(shv-district\) once the purge deletes it, "
        r"on \d+ \w+ \d{4} or in the night after it"
    )
    assert any(re.match(words, it) for it in shown["grants"])
    assert shown["grants"][0] in browser.get("/feeds/shelbyville/removal").text
    refused = browser.send("/feeds/shelbyville/removal/remove", typed="shelby")
    assert (refused.status_code, read(browser, "/feeds/shelbyville")["feed"]["state"]) == (422, "added")
    assert browser.send("/feeds/shelbyville/removal/remove", typed="shelbyville").status_code == 303
    assert read(browser, "/feeds/shelbyville")["feed"]["state"] == "removed"
    assert read(browser, "/feeds/shelbyville/removal")["grants"] == shown["grants"]
    assert "Take the feed back" in browser.get("/feeds/shelbyville").text
    assert browser.send("/feeds/shelbyville/take-back").status_code == 303
    shown = read(browser, "/feeds/shelbyville")
    assert (shown["feed"]["state"], shown["runs"][0]["message"]) == ("added", "the feed was removed")
    # The roster has nothing of it until its export is loaded.
    assert (shown["conditions"][0]["word"], shown["conditions"][0]["needs"]) == ("not loaded", True)
    assert "It was removed and taken back, and its export must be loaded" in browser.get("/feeds/shelbyville").text
    removal = browser.get(f"/runs/{shown['runs'][0]['run']}").text
    assert "The feed was removed</bdi>: " in removal
    assert "that of the export" not in removal
    assert "shelbyville, because it was removed and taken back" in browser.get("/").text
    [light] = [it for it in read(console.log_in(), "/system")["lights"] if it["name"] == "Feeds"]
    assert "shelbyville" in light["meaning"]


def test_a_message_quotes_a_path_as_it_was_typed(browser: Browser) -> None:
    sent = browser.send("/feeds/path", name="hill", format="oneroster", path="exports/hill.zip")
    assert "exports/hill.zip is no absolute path" in sent.text


def test_a_viewer_sees_no_form(console: Console) -> None:
    browser = console.log_in(OperatorRole.VIEWER)
    for path in ("/feeds", "/feeds/springfield", "/feeds/springfield/removal"):
        page = browser.get(path).text
        assert page.count('method="post"') == 1, path  # That of the logout.


@pytest.mark.parametrize("path", ["/feeds/none", "/feeds/none/removal", "/previews/..", "/previews/" + "0" * 32])
def test_an_unknown_feed_or_preview_is_not_found(console: Console, path: str) -> None:
    assert console.log_in(OperatorRole.EDITOR).get(path).status_code == 404


def test_old_previews_are_deleted_by_the_next(
    console: Console, browser: Browser, export: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = upload(browser, [(zip_folder(export), "x.zip")]).headers["Location"].removeprefix("/console")
    monkeypatch.setattr(export_previews, "KEPT_SECONDS", -1)
    upload(browser, [(zip_folder(export), "x.zip")])
    assert browser.get(old).status_code == 404


@pytest.mark.shows(
    "Console",
    "A dry run reads only files and folders, and has a bound of time, memory, number and kept previews.",
)
def test_only_so_many_previews_are_kept(
    console: Console, browser: Browser, export: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_previews, "MOST_KEPT", 2)
    paths = [upload(browser, [(zip_folder(export), "x.zip")]).headers["Location"] for _ in range(3)]
    shown = [browser.get(path.removeprefix("/console")).status_code for path in paths]
    assert shown == [404, 200, 200]


@pytest.mark.shows(
    "Console",
    "A dry run reads only files and folders, and has a bound of time, memory, number and kept previews.",
)
def test_previews_have_a_number_and_a_time(
    console: Console, browser: Browser, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One under way for each operator. Their dry runs wait for a table that somebody else has locked."""
    form = {"format": "oneroster", "path": str(export)}
    owner = console.log_in(OperatorRole.OWNER)
    with console.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE exclusions IN ACCESS EXCLUSIVE MODE"))
        begun = [
            sender.send("/feeds/path", csrf_of="/login", name=f"new {number}", **form)
            for number, sender in enumerate((browser, owner, browser))
        ]
        assert [it.status_code for it in begun] == [303, 303, 303]
        places = [it.headers["Location"] for it in begun]
        assert places[2] == places[0] != places[1]
        shown = browser.get(places[2].removeprefix("/console")).text
        assert "the other one has not begun. Wait for its end, or discard it." in shown
        assert "Discard the preview, and end it" in shown
        for place in places[:2]:
            assert browser.send(f"{place.removeprefix('/console')}/drop").status_code == 303
        monkeypatch.setattr(export_previews, "BOUNDS", Bounds(seconds=1, memory_bytes=2**31))
        last = browser.send("/feeds/path", csrf_of="/login", name="last", **form).headers["Location"]
        assert "ended after 0 minutes and with 2 GB" in read_until_ended(browser, last)["dry_run"]["text"]


def test_a_preview_that_is_discarded_ends(
    console: Console, browser: Browser, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the operator can begin another one at once."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            started.append(self)

    monkeypatch.setattr(scripts.subprocess, "Popen", Noted)
    form = {"format": "oneroster", "path": str(export)}
    with console.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE exclusions IN ACCESS EXCLUSIVE MODE"))
        place = browser.send("/feeds/path", name="new", **form).headers["Location"].removeprefix("/console")
        folder = console.home / export_previews.FOLDER / place.rpartition("/")[2]
        assert {stat.S_IMODE(it.stat().st_mode) for it in folder.iterdir()} == {0o600}
        assert browser.send(f"{place}/drop").status_code == 303
        assert started[0].wait(60) == -signal.SIGKILL
        assert not folder.exists()
        again = browser.send("/feeds/path", name="new", **form).headers["Location"].removeprefix("/console")
        assert again != place
        assert browser.send(f"{again}/drop").status_code == 303


@pytest.mark.shows(
    "Console",
    "A dry run reads only files and folders, and has a bound of time, memory, number and kept previews.",
)
def test_a_preview_has_a_memory(browser: Browser, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_previews, "BOUNDS", Bounds(seconds=60, memory_bytes=16 * 2**20))
    sent = browser.send("/feeds/path", name="greedy", format="oneroster", path=str(export))
    shown = read_until_ended(browser, sent.headers["Location"])
    assert shown["report"] is None
    # An import without memory may end with either.
    assert re.search("MemoryError|SystemError", shown["dry_run"]["text"])


def read_until_ended(browser: Browser, address: str) -> Any:
    """The preview at an address, when its dry run has ended."""
    deadline = time.monotonic() + 60
    while (shown := read(browser, address.removeprefix("/console")))["dry_run"]["is_running"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return shown


def test_the_exports_that_a_load_has_taken_are_deleted_with_their_upload() -> None:
    assert set(scripts.TAKEN) == {ExitCode.LOADED, ExitCode.PARTIAL, ExitCode.HELD}
