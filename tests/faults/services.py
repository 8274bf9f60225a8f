"""A gunicorn of a test's own, as `roster run` starts it, and one call of each interface."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import sqlalchemy as sa

from roster_service.accounts import clients, vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from roster_service.server import gunicorn_app
from roster_service.settings import PREFIX, Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.cli.alone_check import find_free_port
from tests.conditions import PATIENCE_SECONDS, wait_for
from tests.contract.client import ROOTS
from tests.contract.conftest import SECRET_KEY
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.vendor.client import Account, add_account

PROJECT = Path(__file__).parents[2]
DISTRICT, LEA, STUDENTS = "spr-district", "17-0042", 6
# Of records that are kept as texts, an answer would take no look at the tables.
SETTINGS = {"secret_key": SECRET_KEY, "workers": 2}
# As `wsgi.py` makes it, but that it takes any number of requests for tokens.
APPLICATION = "tests.unbounded_service:app"
# What each interface says when the database is not to be had.
BUSY: Mapping[str, Callable[[Any], bool]] = {
    "token": lambda body: bool(body["error"] == "temporarily_unavailable"),
    "v1p1": lambda body: bool(body["statusInfoSet"]["imsx_codeMinor"] == "server_busy"),
    "v1p2": lambda body: bool(body["statusInfoSet"]["imsx_codeMinor"] == "server_busy"),
    "login": lambda body: bool(body["code"] == "unavailable"),
    "students": lambda body: bool(body["code"] == "unavailable"),
}
INTERFACES = tuple(BUSY)
ALL_SCOPES = tuple(Scope(version.prefix, name) for version in VERSIONS for name in ScopeName)


@dataclass(frozen=True)
class Credentials:
    """What opens both interfaces."""

    client: tuple[str, str]
    account: Account


@dataclass(frozen=True)
class Filled:
    """A database with a district, and a vendor who sees it."""

    url: str
    engine: sa.Engine
    credentials: Credentials


def fill(engine: sa.Engine) -> Credentials:
    """Loads a district, and adds a vendor who sees it."""
    load(engine, "springfield", EXPORTS / FEEDS["springfield"])
    return add_credentials(engine, "reading", [DISTRICT])


def add_credentials(
    engine: sa.Engine, name: str, districts: Iterable[str], scopes: Sequence[Scope] = ALL_SCOPES
) -> Credentials:
    """Adds a vendor who sees these districts, with phone numbers, and a client that may ask for these scopes."""
    account = add_account(engine, name, dict.fromkeys(districts, ()), (PermissionFlag.CONTACTS,))
    with engine.begin() as connection:
        # The tests ask as fast as they can: no throttle may answer in the place of an outage.
        vendors.change_allowance(
            connection, TESTER, account.email, Allowance(10_000, 20_000, 1_000_000), ROSTERING_DEFAULTS
        )
        added = clients.add_client(connection, TESTER, account.email, "tests", scopes)
    return Credentials((added.client_id, added.client_secret), account)


@dataclass(frozen=True)
class Reply:
    """What came back over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Service:
    """A running gunicorn, and calls of a vendor."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, credentials: Credentials, log: Path) -> None:
        self.process = process
        self.credentials = credentials
        self.port = port
        self._log = log
        self._tokens: dict[str, str] = {}

    def call_as(self, credentials: Credentials) -> Service:
        """The same gunicorn, called by another vendor."""
        return Service(self.process, self.port, credentials, self._log)

    @property
    def workers(self) -> set[int]:
        """The ids of the worker processes."""
        return {child.pid for child in psutil.Process(self.process.pid).children()}

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text()

    def ask(self, interface: str, path: str = "/users?limit=2", more: Mapping[str, str] | None = None) -> Reply:
        """A call of an interface, with the tokens that it has given before; `path` and `more` headers: of a call of the
        rostering interface."""
        account = self.credentials.account
        key = {"x-api-key": account.api_key, "Content-Type": "application/json"}
        match interface:
            case "token":
                return self._ask_token("v1p1")
            case "login":
                return self._call(
                    "POST", "/v1/login", json.dumps({"email": account.email, "password": account.password}), key
                )
            case "students":
                bearer = {"Authorization": f"Bearer {self._tokens.get('login', '')}"}
                return self._call("POST", "/v1/students", json.dumps({"districtlea": LEA}), key | bearer)
            case version:
                bearer = {"Authorization": f"Bearer {self._tokens.get(version, '')}"}
                return self._call("GET", ROOTS[version] + path, headers={**bearer, **(more or {})})

    def get_tokens(self) -> None:
        """Gets a token of each kind; they must be given."""
        for version in ROOTS:
            self._tokens[version] = self._ask_token(version).json["access_token"]
        self._tokens["login"] = self.ask("login").json["token"]

    def _ask_token(self, version: str) -> Reply:
        basic = b64encode(":".join(self.credentials.client).encode()).decode()
        form = {"grant_type": "client_credentials", "scope": f"{version}/roster.readonly"}
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
        return self._call("POST", "/oauth/token", urlencode(form), headers)

    def _call(self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


class Asking:
    """Asks every interface, again and again, in a thread of its own, until the block ends. `replies`: when each request
    began (`time.monotonic`), its interface, and what came back."""

    def __init__(self, service: Service) -> None:
        self.replies: list[tuple[float, str, Reply]] = []
        self._service = service
        self._is_over = threading.Event()
        self._has_asked_all = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asking:
        self._thread.start()
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait(self) -> None:
        """Returns once every interface has been asked again."""
        while self._has_asked_all.acquire(blocking=False):
            pass
        # The round that is under way, and a whole one.
        for _ in range(2):
            assert self._has_asked_all.acquire(timeout=PATIENCE_SECONDS)

    def _ask(self) -> None:
        for interface in itertools.cycle(INTERFACES):
            self.replies.append((time.monotonic(), interface, self._service.ask(interface)))
            if interface == INTERFACES[-1]:
                self._has_asked_all.release()
            # Two of these together stay below the limits of a vendor.
            if self._is_over.wait(0.05):
                return


def assert_busy(interface: str, reply: Reply) -> None:
    """503 in the interface's own words, and when to try again."""
    assert reply.status == 503, (interface, reply)
    assert BUSY[interface](reply.json), (interface, reply)
    assert int(reply.headers["Retry-After"]) > 0, (interface, reply)


def assert_served(service: Service) -> None:
    """Every interface gives its right answer."""
    service.get_tokens()
    for interface in INTERFACES:
        assert service.ask(interface).status == 200, interface
    assert len(service.ask("students").json["students"]) == STUDENTS
    assert len(service.ask("v1p1").json["users"]) == 2


def start(
    home: Path, more: Mapping[str, Any] | None = None, **settings: Any
) -> tuple[subprocess.Popen[bytes], int, Path]:
    """Starts gunicorn with the options of `roster run` and `more`; (the process, its port, its log). `home`: its data
    folder."""
    port = find_free_port()
    chosen = {**SETTINGS, "home": home, "port": port, **settings}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {PREFIX + name.upper(): str(value) for name, value in chosen.items()}
    options = gunicorn_app.make_options(Settings.from_environ(environment)) | dict(more or {})
    log = home / f"log-{port}"
    with log.open("wb") as out:
        process = gunicorn_app.start(APPLICATION, options, cwd=PROJECT, env=environment, stdout=out, stderr=out)
    return process, port, log


@contextmanager
def serving(
    url: str, credentials: Credentials, home: Path, more: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[Service]:
    """A running gunicorn, once it answers; ended at the end."""
    process, port, log = start(home, more, database_url=url, **settings)
    try:
        wait_for(lambda: process.poll() is not None or answers(port))
        yield Service(process, port, credentials, log)
    finally:
        gunicorn_app.stop(process)


def answers(port: int) -> bool:
    """Whether anything is answered."""
    try:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/docs")
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True
