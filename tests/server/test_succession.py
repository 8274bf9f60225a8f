"""The handover from workers to their successors, as SIGHUP begins it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from http.client import HTTPConnection
from pathlib import Path

import pytest

from roster_service.server.gunicorn_app import make_options, start, stop
from roster_service.server.gunicorn_worker import SLOTS, Succession
from roster_service.settings import Settings
from tests.conditions import wait_for

# An application that cannot be loaded while a file exists, and answers with the number of its process. A worker without
# successors ends at once.
APPLICATION = """
import os, time
from roster_service.server import gunicorn_worker
gunicorn_worker.ALONE_SECONDS = 0
while os.path.exists("closed"):
    time.sleep(0.01)
def app(environ, start_response):
    text = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]
"""


def test_the_old_workers_answer_until_the_new_ones_can(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(APPLICATION)
    closed = tmp_path / "closed"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        options = make_options(Settings(workers=2)) | {"bind": f"fd://{listening.fileno()}"}
        environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
        process = start("slow:app", options, cwd=tmp_path, env=environment, pass_fds=[listening.fileno()])
        try:
            before = set[int]()
            # One of two workers may answer many times before the other one does.
            wait_for(lambda: before.add(ask(port)) or len(before) == 2)
            closed.touch()
            process.send_signal(signal.SIGHUP)
            for _ in range(30):
                assert ask(port) in before
            closed.unlink()
            wait_for(lambda: ask(port) not in before)
        finally:
            closed.unlink(missing_ok=True)
            stop(process)


def ask(port: int) -> int:
    """The number of the process that answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/")
    with contextlib.closing(connection), connection.getresponse() as response:
        return int(response.read())


# The numbers of workers in the order of their birth, those that are ready, and what they see: whether there are
# successors, and whether these are ready, with two workers in a generation.
STATES = {
    "alone": ([1, 2], [1, 2], {1: (False, False), 2: (False, False)}),
    "none of the new ones is ready": ([1, 2, 3, 4], [1, 2], {1: (True, False), 2: (True, False)}),
    "one of them is": ([1, 2, 3, 4], [1, 2, 3], {1: (True, True), 2: (True, False)}),
    "both are": ([1, 2, 3, 4], [1, 2, 3, 4], {1: (True, True), 2: (True, True), 3: (False, False)}),
    "after many": ([SLOTS + 1, SLOTS + 2, SLOTS + 3], [SLOTS + 3], {SLOTS + 1: (True, False)}),
}


@pytest.mark.parametrize(("born", "ready", "seen"), STATES.values(), ids=STATES)
def test_a_worker_knows_its_successors(born: list[int], ready: list[int], seen: dict[int, tuple[bool, bool]]) -> None:
    succession = Succession()
    for number in (1, 2, 3):
        succession.set_ready(number)
    for number in born:
        succession.add(number)
    for number in ready:
        succession.set_ready(number)
    found = {it: (succession.has_successors(it, 2), succession.has_ready_successors(it, 2)) for it in seen}
    assert found == seen
