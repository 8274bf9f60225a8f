"""Taking a run back, on its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.db.tables import sync_runs
from roster_service.feeds.sync_lock import hold_lock, name_session
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import begin_run
from tests.console.conftest import Browser, Console
from tests.sync.export_changes import cell_of


@pytest.mark.usefixtures("in_process")
def test_a_run_is_taken_back_on_its_page(console: Console, browser: Browser, export: Path) -> None:
    options = Options(Settings(home=console.home), allow_mass_delete=True, keeps_copy=True)
    runs = []
    for name in ("First", "Second"):
        cell_of("users", "spr-student-1", "givenName", name)(export)
        runs.append(load(console.engine, "springfield", export, options=options).run)
    console.client.call("v1p2", "/users/spr-student-1", vendor="springfield")
    console.vendors.extensions["roster_access_log"].flush()
    page = browser.get(f"/runs/{runs[1]}").text
    assert (f"Undo: load the export of run {runs[0]} again" in page, "<bdi>springfield</bdi>" in page) == (True, True)
    assert f"No undo: run {runs[1]} has changed the roster of the feed since." in browser.get(f"/runs/{runs[0]}").text
    viewer = console.log_in(OperatorRole.VIEWER)
    assert "Load the export" not in viewer.get(f"/runs/{runs[1]}").text
    assert viewer.send(f"/runs/{runs[1]}/undo").status_code == 403
    with console.engine.connect() as connection, hold_lock(connection, "springfield"):
        with connection.begin():
            feed_id = connection.scalar(sa.select(sync_runs.c.feed_id).where(sync_runs.c.id == runs[1]))
            undoing = begin_run(connection, int(feed_id or 0), "oneroster", "/exports", undoes=runs[1])
            name_session(connection, "springfield", "stage")
        page = browser.get(f"/runs/{runs[1]}").text
        assert f"the export of run {runs[0]} is being loaded. Step 2 of 9: read the files." in page
        assert (f"Run {undoing}</a> does it" in page, "every 2s" in page, "/undo" in page) == (True, True, False)
        assert "This run was taken back" not in page
    # Its process has ended, and changed nothing.
    assert f"Undo: load the export of run {runs[0]} again" in browser.get(f"/runs/{runs[1]}").text
    assert browser.send(f"/runs/{runs[1]}/undo", reason="wrong names").status_code == 303
    assert "This run was taken back by" in browser.get(f"/runs/{runs[1]}").text
    assert "If its export comes again, it is held." in browser.get(f"/runs/{runs[1]}").text
    latest: Any = browser.get("/runs.json").json
    assert latest["runs"]["rows"][0]["message"] == f"it takes run {runs[1]} back"
    answer = console.client.call("v1p2", "/users/spr-student-1", vendor="springfield")
    assert json.loads(answer.body)["user"]["givenName"] == "First"
    assert browser.send(f"/runs/{latest['runs']['rows'][0]['run']}/undo").status_code == 303
    assert "has loaded its export again since." in browser.get(f"/runs/{runs[1]}").text
