"""A role ends with its org: nobody is a pupil of a school that is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import cell, cell_of, without_rows

from .test_deltas import alone, only

ALLOW = Options(allow_mass_delete=True)
# An export -> (a school, a pupil of it, and a user of two schools).
SCHOOLS = {
    "springfield-1.1": ("spr-high", "spr-student-5", "spr-teacher-1"),
    "shelbyville-1.2": ("shv-north", "shv-student-2", "shv-teacher-1"),
}
WAYS = ("in a delta", "in bulk", "in bulk, on a night that compares hashes")


def list_roles(engine: sa.Engine) -> set[tuple[str, str, str]]:
    """(user, org, role) of each role."""
    roles = tables.user_roles.c
    with engine.connect() as connection:
        return {(*row,) for row in connection.execute(sa.select(roles.user_id, roles.org_id, roles.role))}


def list_active(engine: sa.Engine, table: sa.Table) -> set[str]:
    return {key for key, row in snapshot(engine, table).items() if row["status"] == "active"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("export", SCHOOLS)
def test_roles_end_with_their_school_and_return_with_their_rows(
    engine: sa.Engine, copy_export: Callable[[str], Path], export: str, way: str
) -> None:
    school, pupil, teacher = SCHOOLS[export]
    whole = copy_export(export)
    load(engine, "feed", whole)
    if way.endswith("hashes"):
        cell("users", 2, "givenName", "Another")(whole)
        load(engine, "feed", whole)
    before, users = list_roles(engine), list_active(engine, tables.users)
    at_school = {role for role in before if role[1] == school}
    assert {pupil, teacher} <= {user for user, _, _ in at_school}
    without = Path(shutil.copytree(whole, whole.parent / "without"))
    if way == "in a delta":
        alone(only("orgs", school), cell_of("orgs", school, "status", "tobedeleted"))(without)
    else:
        without_rows("orgs", school)(without)
    report = load(engine, "feed", without, options=ALLOW)
    stamped = {key for key, row in snapshot(engine, tables.users).items() if row["date_last_modified"] == report.stamp}
    assert school not in {org for _, org, _ in list_roles(engine)}
    assert {user for user, _, _ in at_school} <= stamped
    assert teacher in {user for user, _, _ in list_roles(engine)}
    assert list_active(engine, tables.users) == users
    again = state(engine)
    assert load(engine, "feed", without, options=ALLOW).outcome == "unchanged"
    assert state(engine) == again
    load(engine, "feed", whole, options=ALLOW)
    assert list_roles(engine) == before


@pytest.mark.parametrize("at_once", [True, False])
def test_a_user_returns_without_the_roles_at_a_school_that_ended_meanwhile(
    engine: sa.Engine, shelbyville: Path, at_once: bool
) -> None:
    school, teacher = "shv-south", "shv-teacher-1"
    whole = {path.name: path.read_bytes() for path in shelbyville.iterdir()}
    load(engine, "feed", shelbyville)
    before = {role for role in list_roles(engine) if role[0] == teacher}
    of_school = (only("orgs", school), cell_of("orgs", school, "status", "tobedeleted"))
    of_teacher = (only("users", teacher), cell_of("users", teacher, "status", "tobedeleted"))
    comes_back = (only("users", teacher), cell_of("users", teacher, "status", "active"))
    runs = ((*of_teacher, *of_school), comes_back) if at_once else (of_teacher, of_school, comes_back)
    for bends in runs:
        for name, data in whole.items():
            (shelbyville / name).write_bytes(data)
        alone(*bends)(shelbyville)
        load(engine, "feed", shelbyville, options=ALLOW)
    left = {role for role in list_roles(engine) if role[0] == teacher}
    assert left == {role for role in before if role[1] != school}
    assert left != before


def test_a_school_without_roles_is_purged(engine: sa.Engine, springfield: Path) -> None:
    load(engine, "feed", springfield)
    with engine.begin() as connection:
        connection.execute(sa.update(tables.users).values(primary_org_id=None))
    alone(only("orgs", "spr-high-science"), cell_of("orgs", "spr-high-science", "status", "tobedeleted"))(springfield)
    load(engine, "feed", springfield, options=ALLOW)
    with engine.begin() as connection:
        gone = tables.orgs.c.status == "tobedeleted"
        old = tables.orgs.c.date_last_modified - timedelta(days=30)
        connection.execute(sa.update(tables.orgs).where(gone).values(date_last_modified=old))
    assert purge(engine, 7)["orgs"] == 1
