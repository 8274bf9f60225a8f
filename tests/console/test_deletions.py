"""Requests to delete in the console: asked on the page of a person, printed, on Tonight, answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_segment
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.people import end_exclusion, exclude_person
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.console.conftest import SECRET, Console
from tests.console.hostile import SCRIPT, add_people
from tests.console.test_statements import read

EMAIL, PUPIL = "asked@console.example", "spr-student-3"
PAGE = f"/records/{PUPIL}/deletion"
DUE = str(datetime.now(UTC).date() + timedelta(days=10))


@pytest.fixture(autouse=True)
def vendor(console: Console) -> Iterator[None]:
    """A vendor with a hostile name."""
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, SCRIPT)
    yield
    with console.engine.begin() as connection:
        vendors.remove_vendor(connection, TESTER, EMAIL)


def test_whoever_may_not_know_of_a_hidden_person_asks_nothing(console: Console) -> None:
    settings = Settings(secret_key=SECRET, home=console.home)
    with console.engine.begin() as connection:
        exclude_person(connection, TESTER, ExclusionKind.HIDDEN, "hidden-one", settings, must_be_known=False)
    asked = {
        role: console.log_in(role).send("/records/hidden-one/deletion/ask", vendor=EMAIL, due=DUE).status_code
        for role in (OperatorRole.EDITOR, OperatorRole.OWNER)
    }
    with console.engine.begin() as connection:
        end_exclusion(connection, TESTER, ExclusionKind.HIDDEN, "hidden-one", settings)
    assert asked == {OperatorRole.EDITOR: 404, OperatorRole.OWNER: 303}


def test_a_request_is_asked_printed_and_answered(console: Console) -> None:
    editor = console.log_in(OperatorRole.EDITOR)
    assert "No vendor is asked to delete anything" in editor.get("/deletions").text
    assert f'href="/console{PAGE}"' in editor.get(f"/records/{PUPIL}").text
    moved = editor.send(f"{PAGE}/ask", vendor=EMAIL, due=DUE)
    assert moved.status_code == 303
    letter = editor.get(moved.location.removeprefix("http://localhost").removeprefix("/console")).text
    assert SCRIPT not in letter
    assert f"the person with the id {PUPIL}" in read(letter)
    assert "the service sends nothing" in read(letter)
    with console.engine.connect() as connection:
        number = connection.scalar(sa.text("SELECT max(id) FROM deletion_requests"))
    for path in ("", "/deletions"):
        text = editor.get(path).text
        assert (SCRIPT in text, str(number) in text, PUPIL in text) == (False, True, False), path
    assert f"Request {number} to delete the data of a person" in read(editor.get("").text)
    [vendor_id] = [row["vendor_id"] for row in editor.get("/deletions.json").json["rows"]["rows"]]
    assert "has not answered" in read(editor.get(f"/vendors/{vendor_id}").text)
    # Nobody else's page has it.
    assert f"Request {number}" not in editor.get("/records/spr-student-2/deletion").text
    for form, said in (({"due": "soon"}, "until which day"), ({"vendor": "b@c.example"}, "there is no vendor")):
        refused = editor.send(f"{PAGE}/ask", **{"vendor": EMAIL, "due": DUE, **form})
        assert (refused.status_code, said in read(refused.text).casefold()) == (422, True)
        assert f'action="/console{PAGE}/ask"' in refused.text
    viewer = console.log_in(OperatorRole.VIEWER)
    assert viewer.get(PAGE).status_code == 403
    assert viewer.send("/deletions/answer", number=str(number)).status_code == 403
    assert "The vendor has answered" not in viewer.get("/deletions").text
    assert editor.send("/deletions/answer", number="x").status_code == 422
    assert editor.send("/deletions/answer", number=str(number), words=SCRIPT).status_code == 303
    # The letter of a request that is answered is not to be sent any more.
    assert "The request is noted" not in editor.get(f"{PAGE}?number={number}").text
    answered = editor.get("/deletions").text
    assert (SCRIPT in answered, "answered" in answered) == (False, True)
    assert "What vendors are asked to delete" not in editor.get("").text
    assert console.log_in(OperatorRole.OBSERVER).get("/deletions").status_code == 403


def test_of_an_erased_person_nothing_is_asked(console: Console) -> None:
    [erased] = add_people(console.engine, [("Eve", "Gone")], "gone")
    owner = console.log_in(OperatorRole.OWNER)
    assert "Ask a vendor to delete" in owner.get(f"/records/{to_segment(erased)}").text
    owner.send(f"/records/{to_segment(erased)}/erasure/erase", typed=erased)
    for page in ("", "/deletion"):
        text = owner.get(f"/records/{to_segment(erased)}{page}").text
        assert ("deletion/ask" in text, "Ask a vendor to delete" in text.partition("<main")[2]) == (False, page != "")
    asked = owner.send(f"/records/{to_segment(erased)}/deletion/ask", vendor=EMAIL, due=DUE)
    assert (asked.status_code, "is erased, and nothing may tell" in asked.text) == (422, True)


def test_where_several_people_fit_the_form_says_for_whom(console: Console) -> None:
    """As for the letter to a parent: a vendor would delete what it has of the wrong one of twins."""
    names = [("Mia", "Deleted"), ("Lea", "Deleted"), ("Mia", "Other")]
    mia, lea, other = add_people(console.engine, names, "asked")
    editor = console.log_in(OperatorRole.EDITOR)
    own = f"/records/{to_segment(mia)}/deletion"
    page = editor.get(own).text
    assert ("Several people fit" in page, page.count('name="whose"'), " checked" in page) == (True, 2, False)
    assert "Several people fit" not in editor.get(f"/records/{to_segment(other)}/deletion").text

    def count() -> int:
        with console.engine.connect() as connection:
            return connection.scalar(sa.text("SELECT count(*) FROM deletion_requests")) or 0

    before = count()
    for form in ({}, {"whose": other}):
        refused = editor.send(f"{own}/ask", vendor=EMAIL, due=DUE, **form)
        assert (refused.status_code, "choose for whom the letter is" in refused.text) == (422, True)
    moved = editor.send(f"{own}/ask", vendor=EMAIL, due=DUE, whose=lea)
    assert (moved.status_code, f"/records/{to_segment(lea)}/deletion?" in moved.location) == (303, True)
    # What the form said is there: of several vendors, the same is chosen.
    chosen = editor.get(moved.location.removeprefix("http://localhost").removeprefix("/console")).text
    assert (f'value="{DUE}"' in chosen, f'value="{EMAIL}" selected' in chosen) == (True, True)
    assert count() == before
    asked = editor.send(f"{own}/ask", vendor=EMAIL, due=DUE, whose=mia)
    assert (asked.status_code, "number=" in asked.location, count()) == (303, True, before + 1)
