"""Load from a process of its own: wrk where it is installed, else the small generator of this module.

    python -m tests.bench.load '{"port": 8000, "target": "/users", "headers": {}, "connections": 8, "seconds": 2}'

prints what it counted as one JSON object.
"""

from __future__ import annotations

import dataclasses
import json
import re
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 20
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Job:
    """One request, asked again and again over so many connections for so many seconds. `status`: what must come."""

    port: int
    target: str
    headers: Mapping[str, str]
    connections: int
    seconds: float
    status: int = 200


def measure_rate(job: Job) -> float:
    """Requests a second. Raises RuntimeError where an answer has another status than the job's."""
    return _run_wrk(job) if shutil.which("wrk") else _run_own(job)


def name_generator() -> str:
    """What makes the load here."""
    return "wrk" if shutil.which("wrk") else "tests.bench.load"


def _run_own(job: Job) -> float:
    command = [sys.executable, "-m", "tests.bench.load", json.dumps(dataclasses.asdict(job))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return float(json.loads(done.stdout)["rate"])


def _run_wrk(job: Job) -> float:
    # It takes whole seconds alone.
    command = ["wrk", "-t", "1", "-c", str(job.connections), "-d", f"{max(1, round(job.seconds))}s", "--timeout", "60s"]
    for name, value in job.headers.items():
        command += ["-H", f"{name}: {value}"]
    command.append(f"http://{HOST}:{job.port}{job.target}")
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in shown and job.status < 300:
        raise RuntimeError(f"{job.target[:200]}: {shown}")
    found = re.search(r"Requests/sec: *([0-9.]+)", shown)
    if found is None or not float(found.group(1)):
        # Not one answer in that time.
        return _run_own(job)
    return float(found.group(1))


class Connection:
    """A connection that asks its next request as soon as it has the last answer."""

    def __init__(self, job: Job, buffer: bytearray) -> None:
        lines = [
            f"GET {job.target} HTTP/1.1",
            f"Host: {HOST}:{job.port}",
            *(f"{k}: {v}" for k, v in job.headers.items()),
        ]
        self._request = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self._job = job
        self._buffer = buffer
        self.answered = 0
        self.ask()

    def ask(self, *, fresh: bool = True) -> None:
        """Sends the request, over a fresh connection or the one that is there."""
        if fresh:
            self.socket = socket.create_connection((HOST, self._job.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = b""
        self._left: int | None = None
        self.socket.sendall(self._request)

    def read(self) -> bool:
        """Takes what has come; whether the answer is complete."""
        count = self.socket.recv_into(self._buffer)
        if count == 0:
            raise RuntimeError("the server closed the connection inside an answer")
        if self._left is None:
            self._head += self._buffer[:count]
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return False
            self._left = self._read_head(self._head[: end + 2]) - (len(self._head) - end - 4)
        else:
            self._left -= count
        return self._left <= 0

    def _read_head(self, head: bytes) -> int:
        status = int(head[9:12])
        if status != self._job.status:
            raise RuntimeError(f"{self._job.target[:200]}: status {status}, not {self._job.status}")
        self.closes = CLOSES.search(head) is not None
        length = LENGTH.search(head)
        if length is None and status != 304:
            raise RuntimeError(f"{self._job.target[:200]}: an answer without Content-Length")
        return 0 if length is None or status == 304 else int(length.group(1))


def run(job: Job) -> dict[str, float]:
    """Asks until the time is over; at least one answer is waited for."""
    buffer = bytearray(CHUNK_BYTES)
    begin = last = time.perf_counter()
    answered = 0
    with selectors.DefaultSelector() as selector:
        for _ in range(job.connections):
            connection = Connection(job, buffer)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        while answered == 0 or last - begin < job.seconds:
            for key, _ in selector.select():
                connection = key.data
                if not connection.read():
                    continue
                answered += 1
                last = time.perf_counter()
                if connection.closes:
                    selector.unregister(connection.socket)
                    connection.socket.close()
                connection.ask(fresh=connection.closes)
                if connection.closes:
                    selector.register(connection.socket, selectors.EVENT_READ, connection)
    return {"answers": answered, "seconds": last - begin, "rate": answered / (last - begin)}


if __name__ == "__main__":
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))))
