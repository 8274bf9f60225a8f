"""`roster run` and the gunicorn below it on signals, and when it is killed."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from roster_service.cli import server as run_signals
from roster_service.cli.server import RunSignals, Terminated
from roster_service.http.request_facts import READY_PATH
from tests.cli.test_serve import COMMAND, PROJECT, environment_of, free_port, serving
from tests.conditions import PATIENCE_SECONDS, wait_for
from tests.extent import long

__all__ = ["free_port"]


class Forwarded:
    """In place of gunicorn: the signals that it gets."""

    def __init__(self) -> None:
        self.got: list[int] = []

    def send_signal(self, number: int) -> None:
        """Takes a signal."""
        self.got.append(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Gives the signals of this process their handlers back. Below nohup, the tests ignore no SIGHUP either."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_hangup_is_forwarded_once_gunicorn_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_signals.os, "isatty", lambda _: True)
    signals, server = RunSignals(), Forwarded()
    signals.register()
    signal.raise_signal(signal.SIGHUP)
    signals.forward_to(server)  # type: ignore[arg-type]
    signal.raise_signal(signal.SIGHUP)
    assert server.got == [signal.SIGHUP]


def test_a_hangup_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    RunSignals().register()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    with pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)


def ask(port: int, path: str) -> tuple[int, str | None]:
    """The status of an answer, and the header `Connection`, to a request that would keep it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.getheader("Connection")


def test_a_hangup_replaces_the_workers_and_a_termination_is_announced(
    database_url: str, tmp_path: Path, free_port: int
) -> None:
    environment = environment_of(database_url=database_url, home=str(tmp_path), port=str(free_port), workers="1")
    with serving(environment, "--json") as (process, _):
        [gunicorn] = psutil.Process(process.pid).children()
        before = set(gunicorn.children())
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: bool(set(gunicorn.children()) - before))
        # The one before serves until the new one has started.
        assert before <= set(gunicorn.children())
        assert ask(free_port, "/docs")[0] == ask(free_port, READY_PATH)[0] == 200
        family = [gunicorn, *gunicorn.children()]
        process.send_signal(signal.SIGTERM)
        # It serves for a while, but says that it is not ready, and keeps no connection.
        wait_for(lambda: ask(free_port, READY_PATH) == (503, "close"))
        assert ask(free_port, "/docs") == (200, "close")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert not any(child.is_running() for child in family)


@long
def test_gunicorn_ends_if_its_parent_is_killed(database_url: str, tmp_path: Path, free_port: int) -> None:
    environment = environment_of(database_url=database_url, home=str(tmp_path), port=str(free_port), workers="1")
    with serving(environment, "--json") as (process, _):
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) == 2
        process.kill()
        _, alive = psutil.wait_procs(family, PATIENCE_SECONDS)
    assert not alive


@long
def test_the_end_of_its_terminal_ends_it(database_url: str, tmp_path: Path, free_port: int) -> None:
    environment = environment_of(database_url=database_url, home=str(tmp_path), port=str(free_port), workers="1")
    ours, its = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [*COMMAND, "--json"],
        env=environment,
        cwd=PROJECT,
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=take_terminal,
    ) as process:
        os.close(its)
        assert process.stdout is not None
        printed = threading.Thread(target=process.stdout.read)
        try:
            assert next(line for line in process.stdout if line.startswith('{"url"'))
            printed.start()
            family = psutil.Process(process.pid).children(recursive=True)
        finally:
            os.close(ours)
            process.wait(PATIENCE_SECONDS)
            printed.join()
    assert process.returncode == 0
    assert len(family) == 2
    assert not any(child.is_running() for child in family)
