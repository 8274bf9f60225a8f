"""Documents alone are asked for first, and the records where one is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from roster_service.query import recalling
from tests.shelves import fill_all

from .conftest import Served
from .messages import messages
from .test_direct import ask, only, shown, tell, warm

SINGLE, PAGE = "/users/spr-student-1", "/users?limit=3&offset=3"
DOCUMENTS, RECORDS = "documents", "records too"


@pytest.fixture
def own(make_served: Callable[..., Served]) -> Served:
    """Every text of a message stands in it."""
    served = make_served(document_megabytes=1000, prepared_statements=False)
    fill_all(served.engine)
    return served


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
