"""A filled database is upgraded by one revision while its requests go on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, text

from roster_service.db import tables, upgrades
from roster_service.db.engine import make_engine
from roster_service.db.upgrades import read_revisions, upgrade
from tests.db.next_revision import add_revision

from .services import INTERFACES, PATIENCE_SECONDS, Reply, Service, assert_busy, assert_served, fill, serving


class Asking:
    """Asks every interface, again and again, until it is told to end; what came back."""

    def __init__(self, service: Service) -> None:
        self.replies: list[tuple[str, Reply]] = []
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
            self.replies.append((interface, self._service.ask(interface)))
            if interface == INTERFACES[-1]:
                self._has_asked_all.release()
                if self._is_over.is_set():
                    return


def test_requests_are_answered_while_the_database_is_upgraded(
    make_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rightly, or with the 503 of a lock; the service, which does not know the revision, goes on without a restart."""
    url = make_database()
    engine = make_engine(url)
    credentials = fill(engine)
    rows = select(tables.users).order_by(tables.users.c.sourced_id)
    with engine.connect() as connection:
        newest, before = read_revisions(connection)[1], connection.execute(rows).all()
    with serving(url, credentials, tmp_path) as service:
        assert_served(service)
        with Asking(service) as asking:
            monkeypatch.setattr(upgrades, "make_config", add_revision(tmp_path, newest))
            assert upgrade(engine) == (newest, "of_the_tests")
            asking.wait()
        for interface, reply in asking.replies:
            if reply.status != 200:
                assert_busy(interface, reply)
        assert_served(service)
    with engine.connect() as connection:
        assert connection.execute(rows).all() == before
        assert connection.scalar(text("SELECT count(of_the_tests) FROM orgs")) == 0
    engine.dispose()
