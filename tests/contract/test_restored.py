"""A database that was restored from a backup: tags of the roster that was lost answer for no other one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from roster_service.accounts import clients
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.cli import main
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.cli.conftest import make_environment
from tests.postgres.loaded import EXPORTS, FEEDS

from .client import DEMOGRAPHICS, FULL, VERSIONS
from .conftest import SECRET_KEY, Roster, Served

PATH = "/users/spr-student-1"


def rename(served: Served, folder: Path, name: str) -> None:
    """Loads an export in which a student is called so."""
    export = folder / name
    shutil.copytree(EXPORTS / FEEDS["springfield"], export)
    users = export / "users.csv"
    lines = users.read_text().splitlines()
    number = next(number for number, line in enumerate(lines) if line.startswith("spr-student-1,"))
    given = served.client.call("v1p1", PATH).records[0]["givenName"]
    assert lines[number].count(f",{given},") == 1
    lines[number] = lines[number].replace(f",{given},", f",{name},")
    users.write_text("\n".join(lines) + "\n")
    assert load(served.engine, "springfield", export).revision is not None


def leave_revisions(served: Served) -> None:
    """`roster db restored`."""
    environment = make_environment(database_url=served.url, secret_key=SECRET_KEY)
    done = CliRunner().invoke(main, ("db", "restored"), env=environment)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tag_of_a_lost_roster_is_answered_with_the_records_of_this_one(
    make_served: Callable[..., Served], tmp_path: Path, version: str
) -> None:
    # Both are copies of one database, as a backup of it is.
    lost, restored = make_served(), make_served()
    rename(lost, tmp_path, "Lost")
    rename(restored, tmp_path, "Kept")
    kept = lost.client.call(version, PATH)
    answer = restored.client.call(version, PATH, headers={"If-None-Match": kept.headers["ETag"]})
    # The sync after the restoring did not give the number of the revision that was lost.
    assert answer.headers["X-Roster-Revision"] != kept.headers["X-Roster-Revision"]
    assert (answer.status, answer.records[0]["givenName"]) == (200, "Kept")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_restored_roster_leaves_every_revision_and_tag_that_it_had(
    make_served: Callable[..., Served], version: str
) -> None:
    served = make_served()
    first = served.client.call(version, PATH)
    for _ in range(2):
        before = served.client.call(version, PATH)
        leave_revisions(served)
        served.client.forget_tokens()
        # Of a worker that knew the caller, without a restart.
        after = served.client.call(version, PATH, headers={"If-None-Match": before.headers["ETag"]})
        assert (after.status, after.records) == (200, before.records)
        assert int(after.headers["X-Roster-Revision"]) > int(before.headers["X-Roster-Revision"])
    # Further than syncs after a backup can have come.
    assert int(after.headers["X-Roster-Revision"]) > int(first.headers["X-Roster-Revision"]) + 2 * 10**6
    # Whoever keeps a copy by deltas pulls in full.
    assert after.headers["X-Roster-Deletions-Since"] > first.headers["X-Roster-As-Of"]
    again = served.client.call(version, PATH, headers={"If-None-Match": after.headers["ETag"]})
    assert again.status == 304


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_of_before_opens_nothing_after_as_many_changes_as_were_lost(
    make_served: Callable[..., Served], roster: Roster, version: str
) -> None:
    lost, restored = make_served(), make_served()

    def change(served: Served, *names: ScopeName) -> None:
        with served.engine.begin() as connection:
            scopes = [Scope(version, name) for name in names]
            clients.change_scopes(connection, TESTER, roster.credentials["both"][0], scopes)

    change(lost, ScopeName.FULL, ScopeName.DEMOGRAPHICS)
    token = lost.client.token(version, (FULL, DEMOGRAPHICS))
    assert lost.client.call(version, "/demographics", bearer=token).status == 200
    leave_revisions(restored)
    change(restored, ScopeName.FULL)
    assert restored.client.call(version, "/demographics", bearer=token).status == 401
