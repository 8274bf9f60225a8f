"""`python -m tests.console.screenshots FOLDER [NAME ...]`: pictures of the console's pages, as Chromium shows them.

It serves a roster, logs in, and takes each page (or those named) at two widths in light and dark colours, with the
rules of axe that a page breaks. Every template that is a page must have a picture in some state. STATE is one of
`STATES`: by default a made-up district with a vendor. OPENAPI_TOOLS is the virtual environment with the driver of the
browser, which `make check-long` makes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from roster_service.auth.scopes import TOKEN_PATH
from roster_service.console import blueprint
from roster_service.console.screens import SCREENS
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.schemas.versions import V1P1
from sync_scripts.engine.exit_codes import ExitCode
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import FIRST, environment_of, serving
from tests.console.histories import add_deliveries, add_feeds
from tests.console.states import make_broken, make_hostile, make_rejected, make_sample, make_shrunk

TOOLS = Path(os.environ.get("OPENAPI_TOOLS", ".venv/openapi"))
SCRIPT = Path(__file__).with_name("visit_screens.py")
TEMPLATES = Path(blueprint.__file__).with_name("templates")
# The frames of pages, and the page between a login with the directory and the console, which leaves itself at once.
NO_PAGES = ("base", "frame", "vendor_frame", "continue")


@dataclass(frozen=True)
class State:
    """A roster to take pictures of. `options`: of `roster run`; `exports`: loaded, one after the other, into the feed
    `springfield`, each with the exit code of its load; `held_from`: types with fewer records are never held; `lacks`:
    the pages that it has not; `feeds`: with made-up nights."""

    options: Sequence[str]
    exports: Sequence[tuple[Callable[[Path], Path], ExitCode]]
    held_from: int
    lacks: Sequence[str]
    feeds: int = 0


STATES: Mapping[str, State] = {
    "demo": State((), (), 1, ("held", "run_rejected")),
    "empty": State(
        ("--no-demo",),
        (),
        1,
        (
            *("run", "run_rejected", "run_changes", "held", "feed", "feed_removal", "record", "findings"),
            *("vendor", "credentials", "files", "requests", "districts", "grants", "look", "vendor_list", "erasure"),
            *("agreement", "person_answer", "person_letter", "deletion"),
        ),
    ),
    "sample": State((), ((make_sample, ExitCode.LOADED), (make_rejected, ExitCode.HELD)), 1, ()),
    # Without the demo, all that is shown is hostile.
    "hostile": State(
        ("--no-demo",),
        ((make_hostile, ExitCode.PARTIAL),),
        1000,
        (
            *("held", "vendor", "agreement", "credentials", "files", "requests", "districts", "grants", "look"),
            "vendor_list",
        ),
    ),
    "failing": State(
        (),
        ((make_sample, ExitCode.LOADED), (make_shrunk, ExitCode.HELD), (make_broken, ExitCode.REFUSED)),
        1,
        (),
    ),
    # A state with the feeds of all its districts.
    "many": State((), (), 1, ("held", "run_rejected", "run_changes"), feeds=200),
}
PASSWORD = "a long sentence to log in with"


def list_pages() -> list[str]:
    """The templates that are pages, by name: those that extend a frame."""
    texts = {path.stem: path.read_text() for path in TEMPLATES.glob("*.html")}
    return sorted(name for name, text in texts.items() if "{% extends" in text and name not in NO_PAGES)


def call_as_vendor(url: str, demo: Mapping[str, str]) -> None:
    """Sends some requests as the demo vendor, one of which is refused, so that the logs have rows."""
    version = V1P1
    login = base64.b64encode(f"{demo['client_id']}:{demo['client_secret']}".encode()).decode()
    form = urlencode({"grant_type": "client_credentials", "scope": f"{version.prefix}/roster.readonly"}).encode()
    asked = urllib.request.Request(url + TOKEN_PATH, form, {"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(asked) as answer:
        headers = {"Authorization": f"Bearer {json.load(answer)['access_token']}"}
    for path in ("/schools", "/students?limit=2", "/teachers?limit=5", "/users?filter=nothing"):
        with contextlib.suppress(HTTPError):
            urllib.request.urlopen(urllib.request.Request(url + version.root + path, headers=headers)).close()


@contextlib.contextmanager
def serve_state(state: State) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Serves a roster in a data folder of its own: what `roster run --json` printed of it, and the folder, in which the
    last export that was loaded is a folder, too."""
    with tempfile.TemporaryDirectory(prefix="roster-screens-") as home:
        # The sample is small and new, and its loads are made and held all the same.
        settings = {"home": home, "port": str(find_free_port()), "workers": "1"}
        environment = environment_of(**settings, hold_least_records=str(state.held_from), export_age_minutes="0")
        with serving(environment, "--json", *FIRST, *state.options) as (_, printed):
            known = json.loads(printed.splitlines()[-1])
            if known["demo"] is not None:
                call_as_vendor(known["url"], known["demo"])
            make_sample(Path(home) / "export")
            for make, expected in state.exports:
                shutil.rmtree(Path(home) / "export")
                export = make(Path(home) / "export")
                command = (sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "springfield", export)
                loaded = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                assert loaded.returncode == expected, loaded.stderr
            with open_embedded(Path(home)) as database:
                engine = make_engine(database)
                with engine.begin() as connection:
                    add_feeds(connection, state.feeds, seed=7)
                    add_deliveries(connection)
                engine.dispose()
            yield known, Path(home)


def take(folder: Path, names: Sequence[str], state: str) -> int:
    """Takes the pictures of a state; 1 if a page breaks a rule of accessibility, or has no picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with serve_state(STATES[state]) as (known, home):
        # Screens of one subject are reached by the links of others: the script takes the first of each.
        order = {
            "root": known["console"],
            "invitation": known["invitation"],
            "email": FIRST[1],
            "password": PASSWORD,
            "pages": [name for name in list_pages() if not names or name in names],
            "screens": {screen.name: screen.path for screen in SCREENS},
            "lacks": STATES[state].lacks,
            "export": shutil.make_archive(str(home / "zip"), "zip", home / "export"),
            "folder": str(folder.resolve()),
        }
        python = TOOLS.resolve() / "bin" / "python"
        done = subprocess.run((python, SCRIPT), input=json.dumps(order), text=True, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(take(Path(sys.argv[1]), sys.argv[2:], os.environ.get("STATE", "demo")))
