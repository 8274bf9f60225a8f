"""The console over HTTP, with operators of each role, on a copy of the roster of both districts."""

from __future__ import annotations

import functools
import importlib
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient
from jinja2.bccache import Bucket, BytecodeCache
from werkzeug.test import TestResponse

from roster_service.accounts import operators
from roster_service.app import create_console
from roster_service.change_log.actors import OperatorRole
from roster_service.feeds import scripts
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.contract.client import RosterClient
from tests.contract.conftest import SECRET_KEY, SETTINGS, Roster, Served, make_served, open_interfaces, roster, served
from tests.postgres.loaded import EXPORTS, FEEDS

__all__ = ["make_served", "roster", "served"]

PASSWORD = "a long sentence to log in with"
ROOT = "/console"
SECRET = SECRET_KEY


class CompiledTemplates(BytecodeCache):
    """What the consoles of this process have compiled: each would compile all templates, which takes longer than to
    show them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Takes the code of a template with the same text."""
        if (kept := self._kept.get((bucket.key, bucket.checksum))) is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps it."""
        self._kept[bucket.key, bucket.checksum] = bucket.bytecode_to_string()


TEMPLATES = CompiledTemplates()


def name_operator(role: OperatorRole) -> str:
    """The e-mail of the operator with a role."""
    return f"{role}@operators.example"


@dataclass(frozen=True)
class Browser:
    """A browser with cookies of its own. `root`: the scheme and host of the console."""

    client: FlaskClient
    root: str = "http://localhost"

    def get(self, path: str, **options: Any) -> TestResponse:
        """Asks for a path below the root of the console."""
        return self.client.get(ROOT + path, **{"base_url": self.root, **options})

    def read_csrf(self, path: str = "/login") -> str:
        """The token against forged forms, of the page at a path."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert found is not None, path
        return found[1]

    def send(self, path: str, /, csrf_of: str = "/account", **form: Any) -> TestResponse:
        """Sends a form, with the token of the page `csrf_of`; as browsers do, with line breaks of two characters."""
        sent = {name: _break_lines(value) for name, value in form.items()}
        return self.client.post(ROOT + path, data={"csrf": self.read_csrf(csrf_of), **sent}, base_url=self.root)

    def send_shown(self, screen: str, form: str, /, **values: Any) -> TestResponse:
        """Sends a form of a vendor's rights as somebody does who has just looked at what it changes."""
        page = self.send(f"{screen}/effect", **values) if form == "set" else self.get(screen)
        hidden = dict(re.findall(r'<input type="hidden" name="(version|shown)" value="([^"]*)"', page.text))
        return self.send(f"{screen}/{form}", **hidden, **values)

    def log_in(self, email: str, password: str = PASSWORD) -> TestResponse:
        """Sends the form of the login."""
        return self.send("/login", csrf_of="/login", email=email, password=password)


def _break_lines(value: Any) -> Any:
    if isinstance(value, list):
        return [_break_lines(each) for each in value]
    return value.replace("\r\n", "\n").replace("\n", "\r\n") if isinstance(value, str) else value


@dataclass(frozen=True)
class Console:
    """A service with a console that an operator of each role can log in to."""

    app: Flask
    # That of the vendors, which knows nothing of the console.
    vendors: Flask
    engine: sa.Engine
    # Of the vendors.
    client: RosterClient
    # Its data folder.
    home: Path

    def open(self, address: str | None = None) -> Browser:
        """A new browser, of another machine if it has a network address: then by https."""
        client = self.app.test_client()
        if address is None:
            return Browser(client)
        client.environ_base["REMOTE_ADDR"] = address
        return Browser(client, "https://localhost")

    def log_in(self, role: OperatorRole = OperatorRole.OWNER) -> Browser:
        """A browser in which an operator with this role has logged in."""
        browser = self.open()
        assert browser.log_in(name_operator(role)).status_code == 303
        return browser


def add_operator(engine: sa.Engine, email: str, role: OperatorRole, secret_key: str) -> None:
    """An operator with the password of the tests."""
    with engine.begin() as connection:
        token = operators.add_operator(connection, TESTER, email, role.title(), role, secret_key)
        operators.use_link(connection, token, PASSWORD, secret_key)


@contextmanager
def open_consoles(
    make_served: Callable[..., Served], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Console]]:
    """What serves a console with these settings and an operator of each role, with a roster of its own, until the block
    ends."""
    made: list[Flask] = []

    def make(**settings: Any) -> Console:
        home = tmp_path_factory.mktemp("home")
        own = make_served(home=home, **settings)
        for role in OperatorRole:
            add_operator(own.engine, name_operator(role), role, SECRET)
        made.append(create_console(Settings(**{**SETTINGS, "home": home, **settings}), own.url))
        made[-1].jinja_env.bytecode_cache = TEMPLATES
        return Console(made[-1], own.app, own.engine, own.client, home)

    try:
        yield make
    finally:
        for app in made:
            for extension in app.extensions.values():
                if isinstance(extension, sa.Engine):
                    extension.dispose()


@pytest.fixture(scope="module")
def make_console(
    make_served: Callable[..., Served], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Console]]:
    """Serves consoles until the module ends."""
    with open_consoles(make_served, tmp_path_factory) as make:
        yield make


@pytest.fixture(scope="module")
def console(make_console: Callable[..., Console]) -> Console:
    """A console of this module's own. A test changes there what no other test of the module asks for."""
    return make_console()


@pytest.fixture
def own_console(
    server_url: str, roster: Roster, served: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """A console of this test's own, which may change everything; it takes a quarter of a second."""
    with open_interfaces(server_url, roster) as make_served:
        make = functools.partial(make_served, documents=served.client.documents)
        with open_consoles(make, tmp_path_factory) as make_console:
            yield make_console()


class InProcess:
    """Stands for `subprocess.Popen`: runs the script at once, in this process, in a tenth of the time."""

    # No process has it.
    pid = 2**30

    def __init__(self, command: list[str], env: dict[str, str], stdout: IO[bytes], **_: Any) -> None:
        module, *arguments = map(str, command[command.index("-m") + 1 :])

        def run() -> None:
            done = CliRunner().invoke(importlib.import_module(module).main, arguments, env=env)
            stdout.write(done.stdout.encode() + done.stderr.encode())
            self._code = done.exit_code

        # A thread has no deadline of the request around it.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    def wait(self) -> int:
        """The exit code."""
        return self._code


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts run in this process."""
    monkeypatch.setattr(scripts.subprocess, "Popen", InProcess)


@pytest.fixture(scope="module")
def browser(console: Console) -> Browser:
    """An owner."""
    return console.log_in()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of the loads of a module."""
    return Settings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of the loaded feed springfield, for tests to change."""
    return Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path_factory.mktemp("exports") / "springfield"))


@pytest.fixture
def own_export(tmp_path: Path) -> Path:
    """The same of this test's own."""
    return Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "springfield"))
