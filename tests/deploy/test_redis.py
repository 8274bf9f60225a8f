"""The counters in a real Redis: shared by all workers, exact, and quickly out of the way while it is frozen."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import RateLimitItemPerMinute

from roster_service.auth.throttling import counters as module
from roster_service.auth.throttling.counters import Counters, make_storage
from roster_service.db.engine import make_counting_engine
from tests.conditions import wait_for
from tests.deploy.proxy import find_free_ports

pytestmark = pytest.mark.long_with("redis-server")
ITEM = RateLimitItemPerMinute(3, namespace="vendor")


class Redis:
    """A server of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.port = find_free_ports(1)[0]
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        counters = self.open()
        wait_for(lambda: counters.read_window(ITEM, "start") is not None)

    def open(self) -> Counters:
        """The counters of a worker."""
        engine = make_counting_engine("postgresql://nobody@127.0.0.1/none")
        return Counters(make_storage(engine, f"redis://127.0.0.1:{self.port}"))


@pytest.fixture
def redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """The server, and a breaker that tries again with each request."""
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    server = Redis(tmp_path)
    yield server
    server.process.kill()
    server.process.wait()


def test_workers_count_together_and_exactly(redis: Redis) -> None:
    workers = [redis.open(), redis.open()]
    assert [workers[number % 2].hit(ITEM, "one") for number in range(5)] == [True] * 3 + [False] * 2
    window = workers[1].read_window(ITEM, "one")
    assert window is not None
    assert window.remaining == 0


def test_a_frozen_redis_stops_nobody_and_counts_on_when_it_is_back(redis: Redis) -> None:
    worker = redis.open()
    assert [worker.hit(ITEM, "one") for _ in range(4)] == [True] * 3 + [False]
    redis.process.send_signal(signal.SIGSTOP)
    try:
        assert [worker.hit(ITEM, "one") for _ in range(3)] == [True] * 3
        assert worker.read_window(ITEM, "one") is None
    finally:
        redis.process.send_signal(signal.SIGCONT)
    wait_for(lambda: worker.read_window(ITEM, "one") is not None)
    assert not worker.hit(ITEM, "one")


def test_a_killed_redis_stops_nobody(redis: Redis) -> None:
    worker = redis.open()
    redis.process.kill()
    redis.process.wait()
    assert [worker.hit(ITEM, "one") for _ in range(5)] == [True] * 5
