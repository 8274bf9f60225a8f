"""Documents alone are asked for first, and the records where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import bindparam, func, select

from roster_service.access.known_callers import bind_facts
from roster_service.access.scopes import ScopeName
from roster_service.db.visibility import Sight
from roster_service.query import recalling
from roster_service.query.documents import key_of
from roster_service.query.plan import View, make_view
from roster_service.schemas import v1p1
from tests.shelves import fill_all

from .conftest import Roster, Served, open_doors
from .messages import messages
from .test_direct import CHANGES, ask, only, shown, tell, warm

SINGLE, PAGE = "/users/spr-student-1", "/users?limit=3&offset=3"
DOCUMENTS, RECORDS = "documents", "records too"


@contextmanager
def serve(server_url: str, roster: Roster, served: Served) -> Iterator[Served]:
    """A copy of the roster with its documents; every text of a message stands in it."""
    with open_doors(server_url, roster) as make:
        made = make(documents=served.client.documents, document_megabytes=1000, prepared_statements=False)
        fill_all(made.engine)
        yield made


@pytest.fixture
def own(server_url: str, roster: Roster, served: Served) -> Iterator[Served]:
    """One that the test may change; its connections end with it."""
    with serve(server_url, roster, served) as made:
        yield made


@pytest.fixture(scope="module")
def standing(server_url: str, roster: Roster, served: Served) -> Iterator[Served]:
    """One that no test changes."""
    with serve(server_url, roster, served) as made:
        yield made


def watch(served: Served, path: str) -> list[str]:
    """What the messages of an answer ask for."""
    with messages() as seen:
        ask(served.client, path)
    return [RECORDS if "FROM user_roles" in one else DOCUMENTS for one in seen]


@pytest.mark.parametrize("path", [SINGLE, PAGE, f"{PAGE}&sort=familyName&orderBy=desc"])
def test_documents_are_all_that_is_read_where_they_are_all_that_is_wanted(own: Served, path: str) -> None:
    with only("application"):
        expected = shown(warm(own.client, path))
    assert shown(warm(own.client, path)) == expected
    assert watch(own, path) == [DOCUMENTS]


@pytest.mark.parametrize("path", [SINGLE, PAGE])
@pytest.mark.parametrize("lost", ["", "WHERE sourced_id LIKE '%-student-1'"], ids=["all", "one"])
def test_a_missing_document_is_made_of_its_record(
    own: Served, path: str, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = path if path == SINGLE else "/users?limit=30&offset=3"
    expected = shown(warm(own.client, page))
    tell(own, f"DELETE FROM documents {lost}")
    assert watch(own, page) == [DOCUMENTS, RECORDS]
    # For a while, nobody asks in vain.
    assert watch(own, page) == [RECORDS]
    monkeypatch.setattr(recalling, "GAP_SECONDS", 0)
    assert watch(own, page) == [DOCUMENTS, RECORDS]
    assert shown(ask(own.client, page)) == expected


def test_what_nobody_may_see_is_no_gap(own: Served) -> None:
    warm(own.client, SINGLE)
    for hidden in ("/users/none", "/users/spr-student-1%00"):
        assert [ask(own.client, hidden).status for _ in range(3)] == [404] * 3
    assert watch(own, SINGLE) == [DOCUMENTS]


def test_gaps_are_bounded(own: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalling, "REMEMBERED", 1)
    warm(own.client, SINGLE)
    warm(own.client, "/enrollments/spr-enr-01")
    tell(own, "DELETE FROM documents")
    assert watch(own, SINGLE) == [DOCUMENTS, RECORDS]
    assert watch(own, "/enrollments/spr-enr-01") == [DOCUMENTS, RECORDS]
    assert watch(own, SINGLE) == [DOCUMENTS, RECORDS]


@pytest.mark.parametrize(("change", "status"), CHANGES)
def test_no_document_is_shown_by_what_was_known(own: Served, change: str, status: int) -> None:
    warm(own.client, SINGLE)
    tell(own, change)
    with messages() as seen:
        answer = ask(own.client, SINGLE)
    assert answer.status == status
    # What was known is asked about once, and of no use.
    assert "recall_document" in seen[0]
    assert len(seen) > 1
    with only("application"):
        assert shown(answer) == shown(ask(own.client, SINGLE))


def test_grants_that_changed_without_a_word_count_at_once(own: Served) -> None:
    warm(own.client, SINGLE)
    tell(own, "DELETE FROM vendor_grants WHERE district_id = 'spr-district'")
    assert ask(own.client, SINGLE).status == 404


ALL_SEEN = Sight(guardians=True, metadata=frozenset())
PLAIN = Sight(guardians=False, metadata=frozenset())
GUARDIAN = "spr-guardian-1"
# Who asks for whose document -> whether the function finds it by itself, whatever the first lock says.
FOUND = {
    "of-its-district": ("springfield", ALL_SEEN, "spr-student-1", {}, True),
    "of-another-district": ("springfield", ALL_SEEN, "shv-student-1", {}, False),
    "of-both-districts": ("both", ALL_SEEN, "shv-student-1", {}, True),
    "of-a-single-school": ("elementary", ALL_SEEN, "spr-student-1", {}, False),
    "of-nobody": ("nobody", ALL_SEEN, "spr-student-1", {}, False),
    "a-guardian": ("springfield", ALL_SEEN, GUARDIAN, {}, True),
    "a-guardian-without-the-right": ("springfield", PLAIN, GUARDIAN, {}, False),
    "a-guardian-on-another-shelf": ("springfield", ALL_SEEN, GUARDIAN, {"guardians": False}, False),
    "with-an-older-roster": ("springfield", ALL_SEEN, "spr-student-1", {"revision": 0}, False),
    "with-older-grants": ("springfield", ALL_SEEN, "spr-student-1", {"grant_version": 1}, False),
    "of-another-vendor": ("springfield", ALL_SEEN, "spr-student-1", {"vendor": 0}, False),
    "with-a-key-that-is-gone": ("springfield", ALL_SEEN, "spr-student-1", {"key_id": "none"}, False),
}


@pytest.mark.parametrize(("vendor", "sight", "record", "changed", "found"), FOUND.values(), ids=FOUND)
def test_the_function_keeps_back_what_the_second_lock_does(
    standing: Served, vendor: str, sight: Sight, record: str, changed: dict[str, object], found: bool
) -> None:
    scopes = (ScopeName.CORE, *((ScopeName.GUARDIANS,) if sight.guardians else ()))
    standing.client.call("v1p1", "/orgs", scopes=scopes, vendor=vendor)
    *_, known = standing.app.extensions["roster_callers"]._known.values()
    view: View = make_view(v1p1.User, sight)
    asked = func.recall_document(*bind_facts(), key_of(view), bindparam("record")).table_valued("body")
    with standing.app.extensions["roster_engine"].connect() as connection:
        rows = connection.scalars(select(asked.c.body), {**known.facts, **changed, "record": record}).all()
    assert [f'"sourcedId":"{record}"' in row for row in rows] == [True] * found
