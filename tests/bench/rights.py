"""What rights cost, on a district of `$STUDENTS` (40,000): a load of all with clients of three different rights beside
one without any; the commands that change rights; rules of grants; what is stored to serve; a night of 1 %; the load of
a small export.

    python -m tests.bench.rights
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import sqlalchemy as sa
from oneroster_filter import F, to_text
from werkzeug.test import TestResponse

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.vendors import Grant
from roster_service.app import create_app
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.roster.upgrades import upgrade
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.bench.bench_sync import NEXT_DAY
from tools.generate_district import main as generate

STUDENTS = int(os.environ.get("STUDENTS", "40000"))
ROSTER = str(Path(sys.executable).with_name("roster"))
ROUNDS = 3
RULES, PAGES = 40, 300
PAGE = "/ims/oneroster/rostering/v1p2/users?limit=100"
SMALL = Path(__file__).parents[1] / "exports" / "springfield-1.1"
SERVING = (
    *(tables.orderings, tables.ordering_chunks, tables.pulls, tables.visible_orgs, tables.visible_feeds),
    *(tables.visible_labels, tables.visibility_labels, tables.departures),
)
WITHOUT_GUARDIANS = tuple(name for name in ScopeName if "guardians" not in name.value)
# The vendor, whether it sees a single school, its scopes.
RIGHTS = (("all", False, tuple(ScopeName)), ("school", True, tuple(ScopeName)), ("few", False, WITHOUT_GUARDIANS))


def run(url: str, home: Path, *command: str) -> tuple[float, float, str]:
    """Runs a command; returns (seconds, seconds of CPU of its process, standard error)."""
    own = {
        "ROSTER_DATABASE_URL": url,
        "ROSTER_HOME": str(home),
        "ROSTER_SECRET_KEY": "of this benchmark, and long enough",
    }
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=os.environ | own, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - began, cpu, done.stderr


def load(url: str, home: Path, feed: str, export: Path) -> tuple[float, float, str]:
    """Loads an export by its command."""
    return run(url, home, sys.executable, "-m", "sync_scripts.load_oneroster", "--now", "--feed", feed, str(export))


def add_clients(engine: sa.Engine) -> str:
    """Adds a client of each of the rights. Returns the id of the district."""
    with engine.begin() as connection:
        orgs = tables.orgs.c
        district = connection.scalars(sa.select(orgs.sourced_id).where(orgs.type == "district")).one()
        school = connection.scalar(sa.select(sa.func.min(orgs.sourced_id)).where(orgs.type == "school"))
        for name, sees_one, scopes in RIGHTS:
            email = f"{name}@example.org"
            vendors.add_vendor(connection, TESTER, email, name)
            vendor_rights.grant(connection, TESTER, email, district, (school,) if sees_one else ())
            clients.add_client(connection, TESTER, email, name, [Scope("v1p2", scope) for scope in scopes])
    return str(district)


def empty(engine: sa.Engine) -> None:
    """Takes all records and feeds away, and leaves the vendors and their grants."""
    names = [table.name for table in (*tables.ROSTER_TABLES, *tables.PART_TABLES, *SERVING, tables.feeds)]
    with engine.begin() as connection:
        connection.execute(sa.text(f"TRUNCATE {', '.join(names)} CASCADE"))


def measure_size(engine: sa.Engine, measured: Sequence[sa.Table]) -> int:
    """The bytes of tables with their indexes."""
    with engine.connect() as connection:
        return sum(int(connection.scalar(sa.select(sa.func.pg_total_relation_size(table.name)))) for table in measured)


def say(what: str, figure: str, target: str = "") -> None:
    """Prints a line."""
    print(f"{what:62}{figure:>22}   {target}", flush=True)


def main() -> None:
    """Measures all, in one place."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        home.chmod(0o755)
        first, second = home / "first", home / "second"
        size = ["--seed", "1", "--students", str(STUDENTS)]
        generate(["--out", str(first), *size], standalone_mode=False)
        generate(["--out", str(second), *size, *NEXT_DAY], standalone_mode=False)
        with open_embedded(home) as url:
            measure(url, home, first, second)


def measure(url: str, home: Path, first: Path, second: Path) -> None:
    """Measures all, on an empty database."""
    engine = make_engine(url)
    upgrade(engine)
    load(url, home, "bench", first)
    without = min(load_anew(engine, url, home, first) for _ in range(ROUNDS))
    district = add_clients(engine)
    with_clients = min(load_anew(engine, url, home, first) for _ in range(ROUNDS))
    say("load with three clients, of one without", f"{with_clients / without:.2f} ({with_clients:.1f} s)", "1.05")
    vendor = ("vendor", "grant", "few@example.org", "--district", district)
    for label, command in {
        "client add": ("client", "add", "--vendor", "all@example.org", "--name", "more", "--scope", "roster.readonly"),
        "vendor grant": vendor,
        "vendor set-withheld": ("vendor", "set-withheld", "all@example.org", "email", "--yes"),
    }.items():
        say(f"{label}, whole command", f"{run(url, home, ROSTER, *command)[0]:.2f} s", "1.5 s")
    said = load(url, home, "bench", second)
    steps = [json.loads(line) for line in said[2].splitlines() if line.startswith("{")]
    reported = [float(step["seconds"]) for step in steps if "seconds" in step]
    say("night of 1 %, whole command, of its reported steps", f"{said[0] / sum(reported):.2f} ({said[0]:.2f} s)", "1.2")
    run(url, home, sys.executable, "-m", "sync_scripts.nightly")
    roster = measure_size(engine, (*tables.ROSTER_TABLES, *tables.PART_TABLES))
    say("stored to serve, of the roster's tables", f"{measure_size(engine, SERVING) / roster:.2f}", "0.3")
    measure_rules(engine, url, home, district, [first, second])
    small = load(url, home, "small", SMALL)
    say("load of a small export", f"{small[0]:.2f} s, CPU {small[1]:.2f} s", "2 s of CPU")
    engine.dispose()


def measure_rules(engine: sa.Engine, url: str, home: Path, district: str, exports: Sequence[Path]) -> None:
    """Measures what rules of grants cost. `exports`: of two nights; the last one is loaded."""
    without = min(load(url, home, "bench", export)[0] for export in exports)
    with engine.connect() as connection:
        grades = connection.scalars(sa.select(sa.func.unnest(tables.users.c.grades).label("name")).distinct()).all()
        subjects = connection.scalars(sa.select(sa.func.unnest(tables.classes.c.subjects)).distinct()).all()
        school = connection.scalar(
            sa.select(sa.func.min(tables.orgs.c.sourced_id)).where(tables.orgs.c.type == "school")
        )
    pairs = list(itertools.product(sorted(grades), sorted(subject for subject in subjects if "," not in subject)))
    made = []
    for number, (grade, subject) in enumerate(pairs[:: max(1, len(pairs) // RULES)][:RULES]):
        of_students = to_text(F("grades").contains(grade))
        rules = Rules(of_students, to_text(F("subjects").contains(subject)), Staff.CLASSES, guardians=True)
        made.append((f"ruled-{number}@example.org", rules))
        with engine.begin() as connection:
            vendors.add_vendor(connection, TESTER, made[-1][0], made[-1][0])
            vendor_rights.grant(connection, TESTER, made[-1][0], district, (), rules=rules, even_nothing=True)
    wide = Rules("grades~'06,07,08'", None, Staff.CLASSES, guardians=True)
    with engine.connect() as connection:
        now = vendors.find_vendor(connection, made[0][0]).grants
        took = measure_seconds(
            lambda: vendor_rights.preview_grants(connection, None, now, [Grant(district, rules=wide)], guardians=True)
        )
    say("preview of a rule of three grades beside another rule", f"{took:.2f} s", "1 s")

    def change_rules() -> None:
        with engine.begin() as connection:
            vendor_rights.set_district_grant(connection, TESTER, made[0][0], district, None, wide)

    say(f"a changed rule of three grades, {RULES} in use", f"{measure_seconds(change_rules):.2f} s", "5 s")
    with_rules = min(load(url, home, "bench", export)[0] for export in exports)
    say(f"night of 1 % with {RULES} rules, of one without", f"{with_rules / without:.2f} ({with_rules:.1f} s)", "1.1")
    # The rule opens all of the school, so both vendors get the same page.
    every = Rules(None, None, Staff.ALL, guardians=False)
    pages = compare_pages(engine, url, home, (None, every), district, str(school))
    say("page of 100 users by a rule, of one by a school", f"{pages[1] / pages[0]:.2f} ({pages[1]:.1f} ms)", "1.05")


def measure_seconds(step: Callable[[], object]) -> float:
    """The seconds that a step takes."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def compare_pages(
    engine: sa.Engine, url: str, home: Path, rights: Sequence[Rules | None], district: str, school: str
) -> list[float]:
    """The milliseconds of a page, the fastest of many in turns, for vendors with these rules of a school."""
    settings = Settings(secret_key="of this benchmark, and long enough", home=home)
    caller = create_app(settings, url).test_client()
    headers = []
    for number, rules in enumerate(rights):
        email = f"page-{number}@example.org"
        with engine.begin() as connection:
            vendors.add_vendor(connection, TESTER, email, email)
            vendor_rights.grant(connection, TESTER, email, district, [school], rules=rules)
            added = clients.add_client(connection, TESTER, email, email, [Scope("v1p2", ScopeName.CORE)])
        form = {"grant_type": "client_credentials", "client_id": added.client_id, "client_secret": added.client_secret}
        token = caller.post("/oauth/token", data=form).get_json()["access_token"]
        headers.append({"Authorization": f"Bearer {token}"})

    def ask(header: dict[str, str]) -> float:
        return measure_seconds(lambda: require_page(caller.get(PAGE, headers=header)))

    rounds = [[ask(header) for header in headers] for _ in range(PAGES)]
    return [1000 * min(times) for times in zip(*rounds, strict=True)]


def require_page(answer: TestResponse) -> None:
    """Holds an answer to be a page with people."""
    assert answer.status_code == 200, answer.text
    assert answer.get_json()["users"]


def load_anew(engine: sa.Engine, url: str, home: Path, export: Path) -> float:
    """The seconds of a load of all records into a roster whose vendors have their grants already."""
    empty(engine)
    return load(url, home, "bench", export)[0]


if __name__ == "__main__":
    main()
