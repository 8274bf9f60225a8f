"""`python -m tests.docs.pictures`: the pictures of the console in `docs/pictures`, taken anew with Chromium.

They show eight districts, six of which have loaded: one is the made-up district of the demo, whose last export has lost
three of ten people, and is held. OPENAPI_TOOLS is the virtual environment with the driver of the browser.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import PRESETS
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving
from tests.console.histories import LAST, LastRun, add_feed
from tests.console.screenshots import PASSWORD, TOOLS

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "pictures"
DEMO = ROOT / "roster_service" / "cli" / "roster-demo.zip"
OWNER = ("--operator", "dana@northfield.example", "--operator-name", "Dana Reyes")
# The made-up nights of the other feeds: the last one, and about how many people each has.
OTHERS: Mapping[str, tuple[LastRun, int]] = {
    "brokenbow": (LastRun("missing", "there is no export at /exports/brokenbow"), 1240),
    "cedar-falls": (LAST["unchanged"], 2250),
    "elmwood": (LAST["done"], 830),
    "lakeside": (LAST["done"], 3400),
    "prairie-view": (LAST["done"], 1540),
    "st-marys": (LastRun("partial", "3 rows were rejected: users.csv, column email: 3 rows", rejected=3), 660),
    "westbrook": (LAST["done"], 1010),
}
# What the driver of the browser does; it has an environment of its own.
VISIT = """
import json, sys
from playwright.sync_api import sync_playwright
order = json.load(sys.stdin)
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(order["invitation"])
    page.fill("#password", order["password"])
    page.fill("#again", order["password"])
    page.click("main button")
    page.wait_for_url(order["root"])
    for name, path in order["pages"].items():
        page.goto(order["root"] + path)
        page.screenshot(path=f"{order['folder']}/console-{name}.png")
    browser.close()
"""


def lose_people(export: Path, part: float) -> str:
    """Takes a part of the people out of an export, with their enrollments and demographics, as where a file is cut off.
    Returns the id of a student who stays."""
    rows = {name: read_rows(export / f"{name}.csv") for name in ("users", "enrollments", "demographics")}
    users = rows["users"]
    kept = users[: int(len(users) * (1 - part))]
    ids = {row["sourcedId"] for row in kept}
    keys = {"users": "sourcedId", "enrollments": "userSourcedId", "demographics": "sourcedId"}
    for name, key in keys.items():
        with (export / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[name][0])
            writer.writeheader()
            writer.writerows(row for row in rows[name] if row[key] in ids)
    taught = {row["userSourcedId"] for row in rows["enrollments"] if row["role"] == "student"}
    return next(row["sourcedId"] for row in kept if row["sourcedId"] in taught)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def load(environment: Mapping[str, str], export: Path) -> int:
    """Loads an export of the demo's district; returns the number of the run."""
    command = (sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "northfield", str(export), "--json")
    done = subprocess.run(command, env=dict(environment), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return int(json.loads(done.stdout.splitlines()[-1])["run"])


def add_vendors(connection: Any, district: str) -> None:
    """Adds two vendors that see the district, one of them with demographics."""
    for name, email, preset in (
        ("Library Desk", "hello@library.example", "students-teachers"),
        ("Reading Tutor", "reading@tutor.example", "demographics"),
    ):
        vendors.add_vendor(connection, TESTER, email, name)
        clients.add_client(connection, TESTER, email, name.lower(), PRESETS[preset].list_scopes("v1p2"))
        vendor_rights.grant(connection, TESTER, email, district, (), [PermissionFlag.ENROLLMENTS])


def take(folder: Path) -> int:
    """Takes the pictures."""
    with tempfile.TemporaryDirectory(prefix="roster-pictures-") as home:
        settings = {"home": home, "port": str(find_free_port()), "workers": "1", "time_zone": "America/Chicago"}
        environment = environment_of(**settings, export_age_minutes="0")
        with serving(environment, "--json", "--no-demo", *OWNER) as (_, printed):
            known = json.loads(printed.splitlines()[-1])
            export = Path(home) / "export"
            zipfile.ZipFile(DEMO).extractall(export)
            first = load(environment, export)
            pupil = lose_people(export, 0.3)
            held = load(environment, export)
            with open_embedded(Path(home)) as database:
                engine = make_engine(database)
                with engine.begin() as connection:
                    district = read_rows(export / "orgs.csv")[0]["sourcedId"]
                    add_vendors(connection, district)
                    for number, (name, (last, users)) in enumerate(OTHERS.items()):
                        chance = random.Random(number)
                        before = ["done" if chance.random() < 0.9 else "refused" for _ in range(14)]
                        add_feed(connection, name, last, before, users, chance)
                engine.dispose()
            order = {
                "root": known["console"],
                "invitation": known["invitation"],
                "password": PASSWORD,
                "folder": str(folder),
                "pages": {
                    "first-page": "",
                    "held": f"/runs/{held}/held",
                    "run": f"/runs/{first}",
                    "record": f"/records/{pupil}",
                    "search": "/find?q=li",
                },
            }
            python = TOOLS.resolve() / "bin" / "python"
            return subprocess.run((python, "-c", VISIT), input=json.dumps(order), text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(take(Path(os.environ.get("PICTURES", FOLDER))))
