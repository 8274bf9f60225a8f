"""Where the service is measured: a district on a PostgreSQL of its own, and one gunicorn for each contestant."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.auth.credentials.tokens import AccessToken, read_access_token
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.cli.demo import DemoAccount, add_demo_account
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine, make_reading_engine
from roster_service.db.roles import DatabaseRole, find_role, make_role_url
from roster_service.roster.upgrades import upgrade
from roster_service.schemas.versions import V1P1
from roster_service.server.gunicorn_app import make_options, start, stop
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.bench.limits import URL_VARIABLE
from tests.bench.load import HOST
from tests.cli.alone_check import find_free_port
from tools.generate_district import main as generate

PROJECT = Path(__file__).parents[2]
START_SECONDS = 60
# Ours takes more first pages in a minute than a vendor may ask for.
OURS = "tests.unbounded_service:app"
APPLICATIONS = {"ours": OURS, "raw": "tests.bench.limits:raw", "hello": "tests.bench.limits:hello"}
# 1 % of the users changed after the load, for the delta.
CHANGE_SOME = """
UPDATE users SET date_last_modified = (SELECT as_of + interval '1 hour' FROM roster_state)
WHERE hashtext(sourced_id) % 100 = 0
"""
MOVE_ON = "UPDATE roster_state SET revision = revision + 1, as_of = as_of + interval '1 hour'"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass(frozen=True)
class Server:
    """A gunicorn that serves one application."""

    port: int
    pid: int

    def fetch(self, target: str, headers: Mapping[str, str], body: str | None = None) -> Answer:
        """One request over a connection of its own. RuntimeError for an answer of 400 or more."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=600)
        try:
            connection.request("GET" if body is None else "POST", target, body, dict(headers))
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()
        if answer.status >= 400:
            raise RuntimeError(f"{target[:200]}: {answer.status} {answer.body[:300]!r}")
        return answer

    def read_worker_memory(self) -> list[int]:
        """The resident bytes of each worker, at their largest (Linux alone)."""
        found = []
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")]
        return found


@dataclasses.dataclass(frozen=True)
class Place:
    """Everything that runs, and what opens it."""

    url: str
    engine: sa.Engine
    settings: Settings
    account: DemoAccount
    servers: Mapping[str, Server]

    def authorize(self, account: DemoAccount | None = None) -> dict[str, str]:
        """The header with a fresh access token of OneRoster 1.1, with every scope. `account`: None for the vendor that
        sees the whole district."""
        account = account or self.account
        pair = f"{account.client_id}:{account.client_secret}".encode()
        scopes = " ".join(scope for scope in account.scopes if f"/{V1P1.prefix}/" in f"/{scope}/")
        form = f"grant_type=client_credentials&scope={scopes.replace(' ', '%20')}"
        headers = {
            "Authorization": f"Basic {base64.b64encode(pair).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        answer = self.servers["ours"].fetch("/oauth/token", headers, form)
        return {"Authorization": f"Bearer {json.loads(answer.body)['access_token']}"}

    def read_token(self, headers: Mapping[str, str]) -> AccessToken:
        """The token of what `authorize` gave."""
        issuer = f"http://{HOST}:{self.servers['ours'].port}"
        keys = KeyRing(self.engine, self.settings.read_secret_key())
        return read_access_token(headers["Authorization"].removeprefix("Bearer "), keys, issuer=issuer)

    def make_role_url(self) -> str:
        """The URL of the role that the roster is read as."""
        with self.engine.connect() as connection:
            name = find_role(connection, DatabaseRole.SERVING)
        assert name is not None
        return make_role_url(self.url, name, None)

    def open_serving(self) -> sa.Engine:
        """Connections of the role that the roster is read as, which plan each statement with its values."""
        url = self.make_role_url()
        return make_reading_engine(url, statement_seconds=600, pool_size=1, own_sessions=False)

    def count(self, statement: str) -> int:
        """The one number of a statement."""
        with self.engine.connect() as connection:
            return int(connection.execute(sa.text(statement)).scalar_one())


@contextlib.contextmanager
def open_place(students: int, home: Path | None) -> Iterator[Place]:
    """A district of so many students, served. With a `home`, the data are kept there for the next run."""
    with contextlib.ExitStack() as stack:
        if home is None:
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True))
            home = Path(made)
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o755)
        url = stack.enter_context(open_embedded(home))
        engine = make_engine(url)
        stack.callback(engine.dispose)
        upgrade(engine)
        kept = home / f"account-{students}.json"
        if not kept.exists():
            kept.write_text(json.dumps(dataclasses.asdict(fill(engine, home / "export", students))))
        account = DemoAccount(**json.loads(kept.read_text()))
        settings = Settings(secret_key="a secret key of the benchmark, long enough", home=home)
        servers = {
            name: stack.enter_context(serve(dataclasses.replace(settings, port=find_port()), application, url))
            for name, application in APPLICATIONS.items()
        }
        yield Place(url, engine, settings, account, servers)


def fill(engine: sa.Engine, folder: Path, students: int) -> DemoAccount:
    """Generates and loads the district, with the guardians of every family, and lets one vendor see all of it."""
    sizes = ["--students", str(students), "--guardians-percent", "100"]
    generate(["--out", str(folder), "--seed", "1", *sizes], standalone_mode=False)
    load(engine, "bench", folder)
    with engine.begin() as connection:
        connection.execute(sa.text(CHANGE_SOME))
        connection.execute(sa.text(MOVE_ON))
        account = add_demo_account(connection, TESTER)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("VACUUM ANALYZE"))
    return account


def add_school_account(connection: sa.Connection) -> DemoAccount:
    """Adds a vendor that sees a single school, and tables of what it sees: `users_of_one_school` and
    `enrollments_of_one_school`, with the indexes of the roster's own."""
    largest = sa.text(
        "SELECT org.district_id, e.school_id FROM enrollments e JOIN orgs org ON org.sourced_id = e.school_id "
        "GROUP BY 1, 2 ORDER BY count(*) DESC, 2 LIMIT 1"
    )
    district, school = connection.execute(largest).one()
    seen = {
        "users": "sourced_id IN (SELECT user_id FROM user_roles WHERE org_id = :school)",
        "enrollments": "school_id = :school",
    }
    for name, condition in seen.items():
        connection.execute(sa.text(f"DROP TABLE IF EXISTS {name}_of_one_school"))
        connection.execute(sa.text(f"CREATE TABLE {name}_of_one_school (LIKE {name} INCLUDING INDEXES)"))
        rows = sa.text(f"INSERT INTO {name}_of_one_school SELECT * FROM {name} WHERE {condition}")
        connection.execute(rows, {"school": school})
        connection.execute(sa.text(f"ANALYZE {name}_of_one_school"))
    email = f"school-{time.time_ns()}@example.org"
    vendors.add_vendor(connection, TESTER, email, "one school")
    vendor_rights.grant(connection, TESTER, email, district, (school,))
    scopes = [Scope(V1P1.prefix, name) for name in ScopeName]
    added = clients.add_client(connection, TESTER, email, "bench", scopes)
    return DemoAccount(**dataclasses.asdict(added), email=email, password=None, api_key="", districtlea="")


def find_port() -> int:
    """A port that is free now."""
    return find_free_port()


@contextlib.contextmanager
def serve(settings: Settings, application: str, url: str) -> Iterator[Server]:
    """gunicorn with the application, with the very options that `roster run` gives it."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
    own = {
        "ROSTER_DATABASE_URL": url,
        "ROSTER_HOME": str(settings.home),
        "ROSTER_SECRET_KEY": str(settings.secret_key),
        "ROSTER_PORT": str(settings.port),
        URL_VARIABLE: url,
    }
    own |= {"ROSTER_PUBLIC_URL": settings.public_url} if settings.public_url else {}
    own |= {"ROSTER_READ_DATABASE_URL": settings.read_database_url} if settings.read_database_url else {}
    child = start(application, make_options(settings), cwd=PROJECT, env=foreign | own)
    try:
        wait(settings.port, child)
        yield Server(settings.port, child.pid)
    finally:
        stop(child)


def wait(port: int, child: subprocess.Popen[bytes]) -> None:
    """Until it listens on the port."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port)):
            return
        time.sleep(0.1)
    raise RuntimeError("a server did not start")
