"""Pulls of students, with a sync between every two pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roster_service.accounts import vendor_rights
from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from tests.actors import TESTER
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import both, without_rows

from .conftest import Served, open_served

GONE = "spr-student-4"
BODY = {"districtlea": "17-0042", "limit": 2}


@pytest.fixture
def own(make_database: Callable[[], str]) -> Iterator[Served]:
    """An application whose roster changes."""
    with open_served(make_database()) as made:
        yield made


@pytest.fixture
def lose_a_student(own: Served, tmp_path: Path) -> Callable[[], None]:
    """Loads an export without a student and all that is theirs."""
    folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "fewer"))
    both(without_rows("users", GONE), without_rows("demographics", GONE), without_rows("enrollments", "spr-enr-04"))(
        folder
    )

    def load_fewer() -> None:
        load(own.engine, "springfield", folder, options=Options(allow_mass_delete=True))

    return load_fewer


def test_a_pull_has_every_student_once(own: Served, lose_a_student: Callable[[], None]) -> None:
    account = own.add(grants={"spr-district": ()})
    token = own.client.token(account)
    expected = own.client.students(account, token, BODY | {"limit": 100}).ids
    page = own.client.students(account, token, BODY)
    found, revision = page.ids, page.headers["X-Roster-Revision"]
    lose_a_student()
    while "nextOffset" in page.json:
        page = own.client.students(account, token, BODY | {"offset": page.json["nextOffset"]})
        assert (page.json["total"], page.headers["X-Roster-Revision"]) == (len(expected), revision)
        found += page.ids
    assert GONE in found
    assert found == expected


def test_a_pull_that_cannot_go_on_is_refused(own: Served, lose_a_student: Callable[[], None]) -> None:
    account = own.add(grants={"spr-district": ()})
    token = own.client.token(account)
    page = own.client.students(account, token, BODY)
    lose_a_student()
    with own.engine.begin() as connection:
        connection.execute(tables.orderings.delete())
    refused = own.client.students(account, token, BODY | {"offset": page.json["nextOffset"]})
    assert refused.outcome == (410, "pull-ended")


def test_two_pulls_of_the_same_students_do_not_mix(own: Served, lose_a_student: Callable[[], None]) -> None:
    """Each names its revision; a revision of no pull is refused, and a first page begins a new one."""
    account = own.add(grants={"spr-district": ()})
    token = own.client.token(account)
    expected, found, revisions = [], [], []
    for lose in (lose_a_student, None):
        expected.append(own.client.students(account, token, BODY | {"limit": 100}).ids)
        page = own.client.students(account, token, BODY | {"revision": 7})
        found.append(page.ids)
        revisions.append(int(page.headers["X-Roster-Revision"]))
        if lose is not None:
            lose()
    for pull, revision in enumerate(revisions):
        while len(found[pull]) < len(expected[pull]):
            body = BODY | {"offset": len(found[pull]), "revision": revision}
            found[pull] += own.client.students(account, token, body).ids
    assert found == expected
    assert revisions[0] != revisions[1]
    invented = own.client.students(account, token, BODY | {"offset": 2, "revision": 7})
    assert invented.outcome == (410, "pull-ended")


@pytest.mark.parametrize("names_revision", [False, True])
def test_a_pull_of_before_a_grant_is_refused(own: Served, names_revision: bool) -> None:
    """No sync comes between; begun again, it is whole."""
    account = own.add(grants={"spr-district": ("spr-elementary",)})
    page = own.client.students(account, own.client.token(account), BODY | {"limit": 1})
    named = {"revision": int(page.headers["X-Roster-Revision"])} if names_revision else {}
    following = BODY | {"limit": 1, "offset": 1} | named
    with own.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, account.email, "spr-district", None)
    token = own.client.token(account)
    assert own.client.students(account, token, following).outcome == (410, "pull-ended")
    begun = own.client.students(account, token, BODY | {"limit": 1})
    assert begun.json["total"] > page.json["total"]
    assert int(begun.headers["X-Roster-Revision"]) > int(page.headers["X-Roster-Revision"])
    again = own.client.students(account, token, following)
    assert again.outcome == ((410, "pull-ended") if names_revision else (200, None))
