"""The check of labels before a run commits, and each night. Its statements are compared with the labels of random
rosters by `tests/deltas/test_labels.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.accounts import vendor_rights, vendors
from roster_service.roster.label_check import WrongLabelsError, find_wrong_labels
from roster_service.schemas.sharing_rules import Rules, Staff
from sync_scripts.applying.labels import RunLabels
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from sync_scripts.nightly import main
from tests.actors import TESTER
from tests.postgres.loaded import load_first
from tests.sync.conftest import lend_engine, state
from tests.sync.export_changes import Bend, cell_of

# The step of a run that is left out, a change that needs it, and the labels that stay as they were.
LEFT_OUT: dict[str, tuple[str, Bend, str]] = {
    "of a user who moves": ("renew", cell_of("users", "spr-student-1", "orgSourcedIds", "spr-high"), "1 users"),
    "of what hangs on a user who moves": (
        "renew_others",
        cell_of("users", "spr-student-3", "orgSourcedIds", "spr-elementary"),
        "1 demographics",
    ),
    "of the enrollments of a class that moves": (
        "renew_others",
        cell_of("classes", "spr-class-math3-a", "schoolSourcedId", "spr-high"),
        "4 enrollments",
    ),
}


@pytest.mark.shows(
    "Visibility",
    "A wrong label of a record fails its run; an enrollment that its school opens by mistake is found each night.",
)
@pytest.mark.parametrize(("step", "bend", "wrong"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_run_that_leaves_a_label_as_it_was_fails_and_changes_nothing(
    engine: sa.Engine, springfield: Path, monkeypatch: pytest.MonkeyPatch, step: str, bend: Bend, wrong: str
) -> None:
    load_first(engine, "springfield", springfield)
    before = state(engine)
    bend(springfield)
    with monkeypatch.context() as patch:
        patch.setattr(RunLabels, step, lambda *_: None)
        with pytest.raises(WrongLabelsError, match=wrong) as failed:
            load(engine, "springfield", springfield)
    assert "spr-" not in str(failed.value)
    assert state(engine) == before
    assert load(engine, "springfield", springfield).outcome == "done"
    with engine.connect() as connection:
        assert find_wrong_labels(connection) == {}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            "UPDATE users SET label_id = label_id + 1 WHERE sourced_id = 'spr-student-1'",
            "the visibility labels of 1 users, 1 demographics are not what follows from the roster",
        ),
        (
            "DELETE FROM group_members WHERE type = 'classes'",
            "rules open, or hide, records by mistake: 5 by the grant 1; to revoke and grant again mends it",
        ),
    ],
    ids=["a label", "a group"],
)
def test_the_nightly_sync_finds_what_opens_a_record_by_mistake(
    engine: sa.Engine, springfield: Path, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    lend_engine(monkeypatch, engine)
    load(engine, "springfield", springfield)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "ruled@vendor.example", "ruled")
        rules = Rules("status='active'", None, Staff.ALL, guardians=True)
        vendor_rights.grant(connection, TESTER, "ruled@vendor.example", "spr-district", (), rules=rules)
    assert CliRunner().invoke(main).exit_code == ExitCode.LOADED
    with engine.begin() as connection:
        connection.execute(sa.text(fault))
    done = CliRunner().invoke(main)
    assert done.exit_code == ExitCode.FAILED
    said = next(line for line in map(json.loads, done.stdout.splitlines()) if line.get("step") == "labels")
    assert said["message"] == words
