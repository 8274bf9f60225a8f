"""What holds under load, measured on a served demo: exact throttling over workers, and rotation of a key.

    python tests/bench/load_vendor.py throttle [--clients 64] [--seconds 10]
    python tests/bench/load_vendor.py rotation [--clients 8] [--seconds 10]

It starts the service by itself, on an embedded PostgreSQL of its own and two workers, and prints figures.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.processes import end

ROSTER = [sys.executable, "-c", "from roster_service.cli import main; main()"]


@dataclass(frozen=True)
class Running:
    """A service that serves the demo."""

    port: int
    environment: dict[str, str]
    demo: dict[str, str]

    def run(self, *arguments: str) -> Any:
        """A `roster` command on its database."""
        done = subprocess.run([*ROSTER, *arguments, "--json"], env=self.environment, capture_output=True, check=True)
        return json.loads(done.stdout)

    def login(self) -> str:
        """A permission token."""
        body = {"email": self.demo["email"], "password": self.demo["password"]}
        status, answer = post(self.connect(), "/v1/login", body, {"x-api-key": self.demo["api_key"]})
        if status != 200:
            raise SystemExit(f"no login: {answer!r}")
        return str(json.loads(answer)["token"])

    def connect(self) -> http.client.HTTPConnection:
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)


def post(connection: http.client.HTTPConnection, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
    """One request."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read()


@contextlib.contextmanager
def serving(workers: int) -> Iterator[Running]:
    """The demo, served."""
    with tempfile.TemporaryDirectory(prefix="roster-load-", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o755)  # noqa: PTH101
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        others = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
        settings = {"ROSTER_HOME": home, "ROSTER_PORT": str(port), "ROSTER_WORKERS": str(workers)}
        environment = others | settings | {"PYTHONWARNINGS": "ignore"}
        command = [*ROSTER, "run", "--json"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                known = json.loads(process.stdout.readline())
                yield Running(port, environment, known["demo"])
            finally:
                end(process)


def ask_until(end: float, running: Running, headers: Callable[[], dict[str, str]], note: Callable[..., None]) -> None:
    """One client: students, one after the other."""
    body = {"districtlea": running.demo["districtlea"], "limit": 1}
    while time.monotonic() < end:
        sent = headers()
        connection = running.connect()
        started = time.monotonic()
        try:
            status, _ = post(connection, "/v1/students", body, sent)
        except OSError:
            status = 0
        finally:
            connection.close()
        note(sent["x-api-key"], status, started, time.monotonic())


def run_clients(count: int, work: Callable[[], None]) -> None:
    """`count` clients at once."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure_throttle(clients: int, seconds: int) -> None:
    """How many requests of many clients on one key are let through in ten seconds."""
    with serving(2) as running:
        token = running.login()
        time.sleep(3)
        headers = {"x-api-key": running.demo["api_key"], "Authorization": f"Bearer {token}"}
        seen: list[tuple[float, int]] = []
        end = time.monotonic() + seconds
        note = lambda _key, status, _started, done: seen.append((done, status))  # noqa: E731
        run_clients(clients, lambda: ask_until(end, running, lambda: headers, note))
    passed = [done for done, status in seen if status == 200]
    rate, expected = 10, 10 * seconds
    within = sum(1 for done in passed if done < passed[0] + seconds)
    print(f"{clients} clients, 2 workers, {seconds} s, {rate} a second: {Counter(status for _, status in seen)}")
    print(f"let through {within}, limit {expected}: {100 * (within - expected) / expected:+.1f} %")


def measure_rotation(clients: int, seconds: int) -> None:
    """Whether an old key works after its rotation, or a new one fails."""
    with serving(2) as running:
        token = running.login()
        running.run("vendor", "limits", running.demo["email"], "--per-second", "10000", "--per-day", "1000000")
        current = {"key": running.demo["api_key"]}
        rotated_at: dict[str, float] = {}
        seen: list[tuple[str, int, float]] = []
        end = time.monotonic() + seconds

        def rotate() -> None:
            while time.monotonic() < end - 2:
                made = running.run("vendor", "rotate-key", running.demo["email"])["api_key"]
                old, current["key"] = current["key"], made
                rotated_at[old] = time.monotonic()
                # Half of the clients go on with the old key for a while.
                time.sleep(1)

        def ask_with_last() -> None:
            key = current["key"]
            until = time.monotonic() + 1.5
            chosen = lambda: {"x-api-key": key, "Authorization": f"Bearer {token}"}  # noqa: E731
            ask_until(min(until, end), running, chosen, note)
            if time.monotonic() < end:
                ask_with_last()

        def note(key: str, status: int, started: float, _done: float) -> None:
            seen.append((key, status, started))

        fresh = lambda: {"x-api-key": current["key"], "Authorization": f"Bearer {token}"}  # noqa: E731
        work = iter([rotate] + [ask_with_last, lambda: ask_until(end, running, fresh, note)] * (clients // 2))
        run_clients(clients // 2 * 2 + 1, lambda: next(work)())
    late = [status for key, status, started in seen if key in rotated_at and started > rotated_at[key]]
    much_later = [status for key, status, started in seen if started > rotated_at.get(key, end) + 1]
    good = [status for key, status, started in seen if key not in rotated_at]
    in_time = [status for key, status, started in seen if key in rotated_at and started < rotated_at[key] - 1.5]
    print(f"{len(rotated_at)} rotations, {len(seen)} requests of {clients} clients, 2 workers, {seconds} s")
    print(f"old key, asked after the command returned: {Counter(late)}")
    print(f"old key, asked more than a second after: {Counter(much_later)}")
    print(f"newest key: {Counter(good)}; keys long before their rotation: {Counter(in_time)}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("throttle", "rotation"))
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    {"throttle": measure_throttle, "rotation": measure_rotation}[given.what](given.clients, given.seconds)


if __name__ == "__main__":
    main()
