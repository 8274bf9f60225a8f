"""No page shows a command line where a screen does the same."""

from __future__ import annotations

import html
import io
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.console.filters import to_screens
from roster_service.console.screens import SCREENS
from roster_service.db.tables import sync_runs
from roster_service.feeds import export_previews
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.report import list_left_out
from tests.console.conftest import Browser, Console
from tests.console.links import find_addresses
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import cell_of

# Of a shell, and in backticks as texts have them.
COMMAND = re.compile(r"(?:`|<code>)(?:roster|python -m|make) [^`<]*|--format ")


@pytest.fixture(scope="module")
def browser(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """An owner, for runs that left people out, one of which rejected rows."""
    folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path_factory.mktemp("export") / "springfield"))
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(folder)
    options = Options(Settings(home=console.home), allow_mass_delete=True)
    load(console.engine, "springfield", folder, options=options)
    with console.engine.begin() as connection:
        connection.execute(sa.update(sync_runs).values(notices=list(list_left_out(2))))
    return console.log_in()


def test_pages_show_no_command(browser: Browser) -> None:
    pages: dict[str, str] = {}

    def get(address: str) -> str:
        pages[address] = browser.get(address.removeprefix("/console")).text
        return pages[address]

    find_addresses(get, SCREENS, most=150, of_each=3)
    for path in ("/runs/99999", "/feeds/none", "/vendors/99999", "/records/none", "/quality/orphans?feed=none"):
        get(f"/console{path}")
    assert any("people who were erased or hidden" in page for page in pages.values())
    # JSON is for programs, as the output of the commands.
    found = {
        (path, shown)
        for path, page in pages.items()
        if ".json" not in path
        for shown in COMMAND.findall(html.unescape(page))
    }
    assert found == set()


@pytest.mark.usefixtures("in_process")
def test_an_upload_of_another_format_shows_no_command(console: Console, browser: Browser) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in (EXPORTS / "shelbyville-clever").glob("*.csv"):
            archive.write(path, path.name)
    given = {"name": "wrong", "format": "oneroster", "export": [(io.BytesIO(out.getvalue()), "export.zip")]}
    address = browser.send("/feeds/upload", **given).headers["Location"].removeprefix("/console")
    page = browser.get(address).text
    assert COMMAND.findall(html.unescape(page)) == []
    shutil.rmtree(console.home / export_previews.FOLDER, ignore_errors=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("there is no run 7; `roster sync list` shows the runs", "there is no run 7; the page Runs shows the runs"),
        ("`roster db upgrade` makes it", "`roster db upgrade` makes it"),
        # No screen takes the new ids of people.
        ("`roster sync approve 7 --excluded A=B`", "`roster sync approve 7 --excluded A=B`"),
    ],
)
def test_a_screen_stands_in_place_of_a_command_that_does_the_same(text: str, shown: str) -> None:
    assert to_screens(text) == shown
