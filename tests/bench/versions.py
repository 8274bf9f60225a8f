"""This version of the service beside another one: what the processors spend on a request.

    python -m tests.bench.versions CHECKOUT

CHECKOUT: a folder with the source of the other version, in which `make` has installed it. Both load the same district,
by their own commands, into databases of their own, and answer the same requests over HTTP, in turns. What counts is the
time of the processors in the service and in its PostgreSQL together; of whole pulls and lists of students, the time by
the clock. STUDENTS (20,000), ROUNDS (5, of which the medians count) and SECONDS (1, of each turn) come from the
environment.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import dataclasses
import http.client
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.processor_time import find_postmaster, read_processor_seconds
from tests.cli.alone_check import find_free_port
from tools.generate_district import main as generate

PROJECT = Path(__file__).parents[2]
HOST = "127.0.0.1"
STUDENTS = int(os.environ.get("STUDENTS", "20000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "1"))
EMAIL = "{}@bench.example"
SCOPES = ("roster.readonly", "roster-core.readonly", "roster-demographics.readonly", "guardians.readonly")
FLAGS = ("demographics", "contacts", "enrollments")
ROOT = "/ims/oneroster/v1p1"
# New filters of a vendor may take a bounded time a minute.
MOST_FRESH = 15
# The two vendors of both versions: of the whole district, and of one school.
DISTRICT, SCHOOL = "district", "school"


@dataclasses.dataclass(frozen=True)
class Login:
    """What a vendor has: the client of the rostering interface, and the account of the vendor interface."""

    client_id: str
    client_secret: str
    api_key: str
    password: str


class Version:
    """A version of the service that runs."""

    def __init__(self, source: Path, home: Path) -> None:
        """`source`: its folder; `home`: its data folder."""
        self.source, self.home, self.port = source, home, find_free_port()
        self.home.mkdir(mode=0o755)
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
        self.python = str(source / ".venv/bin/python")
        own = {"ROSTER_HOME": str(home), "ROSTER_PORT": str(self.port)}
        self.environment = foreign | own
        self.tokens: dict[str, Mapping[str, str]] = {}
        self.students: dict[str, Mapping[str, str]] = {}
        self.etag = ""

    def command(self, *arguments: str) -> str:
        """What `roster ARGUMENTS` prints."""
        code = "from roster_service.cli import main; main()"
        return self._run("-c", code, *arguments)

    def load(self, export: Path) -> None:
        """Loads an export."""
        self._run("-m", "sync_scripts.load_oneroster", "--feed", "bench", str(export))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.source,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return done.stdout

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """Serves, with an empty database, until the block ends."""
        with (self.home / "log").open("w") as log:
            code = "from roster_service.cli import main; main()"
            command = [self.python, "-c", code, "run", "--no-demo"]
            child = subprocess.Popen(command, cwd=self.source, env=self.environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    connection = http.client.HTTPConnection(HOST, self.port)
                    connection.request("GET", "/")
                    connection.getresponse()
                    break
                if child.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.home / "log").read_text()[-2000:])
                time.sleep(0.2)
            (file,) = self.home.rglob("postmaster.pid")
            self.roots = [child.pid, find_postmaster(file.parent)]
            self.connection = http.client.HTTPConnection(HOST, self.port, timeout=600)
            yield
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(60)

    def spend(self) -> float:
        """Milliseconds that the processors have spent in the service and in its PostgreSQL."""
        return 1000 * read_processor_seconds(*self.roots)

    def ask(self, target: str, headers: Mapping[str, str], body: object = None) -> tuple[int, Mapping[str, str], bytes]:
        """One request over the connection that is kept open: status, headers, body."""
        content = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        self.connection.request("GET" if body is None else "POST", target, content, {**headers, **kind})
        response = self.connection.getresponse()
        answer = response.status, dict(response.getheaders()), response.read()
        if response.status >= 400:
            raise RuntimeError(f"{target}: {response.status} {answer[2][:500]!r}")
        return answer

    def add_vendor(self, name: str, grant: Sequence[str]) -> None:
        """Adds a vendor, and logs in on both interfaces."""
        email = EMAIL.format(name)
        added = json.loads(self.command("vendor", "add", email, "--name", name, "--json"))
        self.command("vendor", "grant", email, *grant, *itertools.chain(*(("--flag", flag) for flag in FLAGS)))
        self.command("vendor", "limits", email, "--per-second", "10000", "--burst", "100000", "--per-day", "1000000")
        scopes = [f"v1p1/{scope}" for scope in SCOPES]
        named = itertools.chain(*(("--scope", scope) for scope in scopes))
        client = json.loads(self.command("client", "add", "--vendor", email, "--name", name, *named, "--json"))
        pair = base64.b64encode(f"{client['client_id']}:{client['client_secret']}".encode()).decode()
        form = f"grant_type=client_credentials&scope={'%20'.join(scopes)}"
        connection = http.client.HTTPConnection(HOST, self.port)
        kind = "application/x-www-form-urlencoded"
        connection.request("POST", "/oauth/token", form, {"Authorization": f"Basic {pair}", "Content-Type": kind})
        token = json.loads(connection.getresponse().read())
        self.tokens[name] = {"Authorization": f"Bearer {token['access_token']}"}
        key = {"X-API-Key": added["api_key"]}
        login = self.ask("/v1/login", key, {"email": email, "password": added["password"]})
        self.students[name] = {**key, "Authorization": f"Bearer {json.loads(login[2])['token']}"}


# Asks once: the version, the vendor, and a number that no other request has.
Ask = Callable[[Version, str, int], object]


def get(path: str) -> Ask:
    """Asks for a path; `{}` in it is a number."""
    return lambda version, vendor, number: version.ask(ROOT + path.format(number), version.tokens[vendor])


def get_again(path: str) -> Ask:
    """Asks for a record that has not changed."""

    def ask(version: Version, vendor: str, _number: int) -> None:
        if not version.etag:
            version.etag = version.ask(ROOT + path, version.tokens[vendor])[1]["ETag"]
        status, _, _ = version.ask(ROOT + path, {**version.tokens[vendor], "If-None-Match": version.etag})
        if status != 304:
            raise RuntimeError(f"{path}: {status}")

    return ask


def pull_enrollments(version: Version, vendor: str, _number: int) -> None:
    """Pulls all enrollments, 1,000 a page."""
    offset, total = 0, 1
    while offset < total:
        _, headers, _ = version.ask(f"{ROOT}/enrollments?limit=1000&offset={offset}", version.tokens[vendor])
        offset, total = offset + 1000, int(headers["X-Total-Count"])


def post_students(lea: str, limit: int) -> Ask:
    """Asks for students of a district on the vendor interface, with all that it gives of them."""
    body = {"districtlea": lea, "limit": limit, "include": FLAGS}
    return lambda version, vendor, _number: version.ask("/v1/students", version.students[vendor], body)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table. `most`: the ratio to the other version that is wanted, at most; `by_clock`: whether the time
    by the clock counts; `requests`: of a turn, at most."""

    what: str
    ask: Ask
    most: float | None
    vendor: str = DISTRICT
    by_clock: bool = False
    requests: int = sys.maxsize


def list_rows(user: str, lea: str) -> Iterator[Row]:
    """The rows. `user`: the id of one; `lea`: the identifier of the district."""
    for collection, small, large in (("users", 2.0, 3.3), ("enrollments", 2.2, 3.4), ("classes", 2.0, 3.0)):
        yield Row(f"page of 100 {collection}", get(f"/{collection}?limit=100"), small)
        yield Row(f"page of 1,000 {collection}", get(f"/{collection}?limit=1000"), large)
    yield Row("single user", get(f"/users/{user}"), 1.7)
    yield Row("304", get_again(f"/users/{user}"), 2.0)
    fresh = {
        "fresh =": "/users?limit=100&filter=familyName%3D'Smith'%20OR%20familyName%3D'x{}'",
        "fresh ~": "/users?limit=100&filter=familyName~'smi'%20OR%20familyName%3D'x{}'",
        "fresh sort": "/users?limit=100&sort=familyName&filter=familyName!%3D'x{}'",
    }
    for vendor in (DISTRICT, SCHOOL):
        for words, path in fresh.items():
            yield Row(f"{words}, vendor of a {vendor}", get(path), None, vendor, requests=MOST_FRESH)
    yield Row("/v1/students of 100, ms by the clock", post_students(lea, 100), 0.5, by_clock=True)
    yield Row("/v1/students of 1,000, ms by the clock", post_students(lea, 1000), None, by_clock=True)
    yield Row("pull of enrollments, ms by the clock", pull_enrollments, 2.5, by_clock=True)


_numbers = itertools.count(int(time.time()))


def measure(version: Version, row: Row) -> float:
    """Milliseconds a request, in one turn."""
    count, begin, spent = 0, time.monotonic(), version.spend()
    while count == 0 or (count < row.requests and time.monotonic() < begin + SECONDS):
        row.ask(version, row.vendor, next(_numbers))
        count += 1
    took = (time.monotonic() - begin) * 1000
    return (took if row.by_clock else version.spend() - spent) / count


def run(other_source: Path, folder: Path) -> None:
    """Measures, and prints a line for each row."""
    export = folder / "export"
    sizes = ["--students", str(STUDENTS), "--guardians-percent", "60"]
    generate(["--out", str(export), "--seed", "1", *sizes], standalone_mode=False)
    for file in export.iterdir():
        os.utime(file, (0, 0))
    with (export / "orgs.csv").open(newline="") as file:
        orgs = list(csv.DictReader(file))
    with (export / "users.csv").open(newline="") as file:
        user = next(row["sourcedId"] for row in csv.DictReader(file) if row["role"] == "student")
    district = next(org for org in orgs if org["type"] == "district")
    school = next(org for org in orgs if org["type"] == "school" and org["parentSourcedId"] == district["sourcedId"])
    with contextlib.ExitStack() as stack:
        other, own = Version(other_source, folder / "other"), Version(PROJECT, folder / "own")
        for version in (other, own):
            stack.enter_context(version.serve())
            began = time.monotonic()
            version.load(export)
            print(f"{version.home.name}: loaded in {time.monotonic() - began:.1f} s", flush=True)
            version.add_vendor(DISTRICT, ("--district", district["sourcedId"]))
            version.add_vendor(SCHOOL, ("--district", district["sourcedId"], "--school", school["sourcedId"]))
        print(f"{STUDENTS:,} students, milliseconds of the processors a request")
        print(f"{'what':<46} {'other':>9} {'this':>9} {'ratio':>7} {'target':>8}")
        for row in list_rows(user, district["identifier"]):
            for version in (other, own):
                measure(version, row)
            pairs = [(measure(other, row), measure(own, row)) for _ in range(ROUNDS)]
            before, now = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
            wanted = "" if row.most is None else f"<= {row.most:g}"
            print(f"{row.what:<46} {before:9.2f} {now:9.2f} {now / before:7.2f} {wanted:>8}", flush=True)


def main() -> None:
    """Measures in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        run(Path(sys.argv[1]).resolve(), Path(folder))


if __name__ == "__main__":
    main()
