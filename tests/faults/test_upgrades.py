"""A filled database is upgraded by one revision while its requests go on."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster import revisions
from roster_service.roster.revisions import read_revisions
from roster_service.roster.upgrades import upgrade
from tests.db.next_revision import add_revision

from .services import Asking, Filled, assert_busy, assert_served, serving


def test_requests_are_answered_while_the_database_is_upgraded(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rightly, or with the 503 of a lock; the service, which does not know the revision, goes on without a restart."""
    rows = sa.select(tables.users).order_by(tables.users.c.sourced_id)
    with filled.engine.connect() as connection:
        newest, before = read_revisions(connection)[1], connection.execute(rows).all()
    with serving(filled.url, filled.credentials, tmp_path) as service:
        assert_served(service)
        with Asking(service) as asking:
            monkeypatch.setattr(revisions, "FOLDERS", add_revision(tmp_path, newest))
            assert upgrade(filled.engine) == (newest, "of_the_tests")
            asking.wait()
        for _, interface, reply in asking.replies:
            if reply.status != 200:
                assert_busy(interface, reply)
        assert_served(service)
    with filled.engine.connect() as connection:
        assert connection.execute(rows).all() == before
        assert connection.scalar(sa.text("SELECT count(of_the_tests) FROM orgs")) == 0
