"""`roster deletion`: what it notes, prints, refuses and forgets."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.accounts.agreements import set_agreement
from roster_service.accounts.deletion_requests import add_request, answer_request
from roster_service.db.instants import find_today
from roster_service.errors import CommandError
from tests.accounts.agreed import WHOLE
from tests.actors import TESTER
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD

Answer = Callable[..., Any]
EMAIL, PUPIL = "app@vendor.example", "spr-student-1"
COLLECTED = find_today(UTC)
DUE = str(COLLECTED + timedelta(days=30))
QUESTIONED = ("deletion", "ask", PUPIL, "--vendor", EMAIL, "--due", DUE)
ASK = ("deletion", "ask", PUPIL, "--yes", "--vendor", EMAIL, "--due", DUE)


@pytest.fixture(autouse=True)
def vendor(engine: sa.Engine) -> None:
    """A roster, and a vendor with an agreement."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "App")
        set_agreement(connection, TESTER, EMAIL, replace(WHOLE, districts=("spr-district",)))


def test_a_request_is_asked_listed_and_answered(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    assert "no vendor is asked" in roster("deletion", "list").stdout
    made = answer(*ASK, "--reason", "asked on paper")
    assert (made["number"], made["state"], made["due"], made["answered"]) == (1, "open", DUE, None)
    letter = " ".join(made["letter"])
    for words in ("Springfield", f"id {PUPIL}", WHOLE.contact, WHOLE.deletion, WHOLE.title, "request 1 "):
        assert words in letter
    with engine.connect() as connection:
        [stored] = connection.execute(sa.text("SELECT CAST(deletion_requests AS text) FROM deletion_requests")).all()
    # The letter alone has the id; the change log has no hash either.
    assert PUPIL not in stored[0]
    log = json.dumps(answer("changes"))
    assert (PUPIL in log, made["person"] in log) == (False, False)
    assert answer("changes")[-1]["after"] == {"1": f"due {DUE}, answered not yet"}
    assert [one["number"] for one in answer("deletion", "list", "--open")] == [1]
    [company] = answer("person", "answer", PUPIL)["companies"]
    assert "asked it to delete what it has of this person; it has to answer by" in company["asked"][0]
    today = find_today(UTC)
    done = answer("deletion", "answer", "1", "--words", "deleted, but for bills")
    assert (done["state"], done["answered"]) == ("answered", str(today))
    assert answer("deletion", "list", "--open") == []
    assert answer("changes")[-1]["after"] == {"1": f"due {DUE}, answered {today}"}
    [company] = answer("person", "answer", PUPIL)["companies"]
    assert company["asked"][0].endswith("deleted, but for bills")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE deletion_requests SET answered = NULL, due = due - 31"))
    assert answer("deletion", "list")[0]["state"] == "overdue"
    removed = answer("vendor", "remove", EMAIL, "--yes")
    assert removed["deletion_requests"] == [1]
    assert answer("deletion", "list") == []


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "a day that is past": ((*ASK[:-1], str(COLLECTED - timedelta(days=1))), "that day is past"),
    "an unknown person": (("deletion", "ask", "nobody", *QUESTIONED[3:]), "nobody in the roster has the id"),
    "an unknown vendor": ((*ASK[:5], "b@vendor.example", *ASK[6:]), "there is no vendor"),
    "a reason that names the person": ((*ASK, "--reason", f"for {PUPIL}"), "the reason names the person"),
    "an answer to nothing": (("deletion", "answer", "1"), "there is no open request 1"),
    "a number beyond all": (("deletion", "answer", "99999999999"), "there is no open request 99999999999"),
    "a number below all": (("deletion", "answer", "--", "-99999999999"), "there is no open request -99999999999"),
}


def test_what_is_not_clear_is_refused(roster: Roster, answer: Answer) -> None:
    for name, (arguments, said) in REFUSED.items():
        refused = roster(*arguments)
        assert (refused.exit_code != 0, said in refused.stderr) == (True, True), (name, refused.stderr)
    erased = "spr-student-5"
    answer("person", "erase", erased, "--yes")
    refused = roster("deletion", "ask", erased, *ASK[3:])
    assert (refused.exit_code, "is erased, and nothing may tell of the person" in refused.stderr) == (1, True)
    answer(*ASK)
    twice = roster(*ASK)
    assert (twice.exit_code, "is asked already" in twice.stderr) == (1, True)
    long = roster("deletion", "answer", "1", "--words", "x" * 501)
    assert (long.exit_code, "at most 500 characters" in long.stderr) == (1, True)


def test_it_names_the_person_and_who_else_may_be_meant_and_asks_first(roster: Roster, answer: Answer) -> None:
    for typed in ("", "spr-student-2\n"):
        refused = roster(*QUESTIONED, typed=typed)
        assert refused.exit_code == 1
        assert "somebody else may be meant: Conor O'Brien (spr-student-2)" in refused.stderr
        assert f"Zoë O'Brien ({PUPIL}), grade 03" in refused.stderr
        assert f"this asks {EMAIL} to delete what it has of the person" in refused.stderr
    alone = roster("deletion", "ask", "spr-student-3", *QUESTIONED[3:])
    assert (alone.exit_code, "(spr-student-3), grade" in alone.stderr, "meant" in alone.stderr) == (1, True, False)
    assert answer("deletion", "list") == []
    assert roster(*QUESTIONED, typed=f"{PUPIL}\n").exit_code == 0
    assert len(answer("deletion", "list")) == 1


def test_a_name_that_turns_the_line_is_escaped(roster: Roster, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        turned = "UPDATE users SET given_name = given_name || chr(8238) WHERE sourced_id LIKE 'spr-student-_'"
        connection.execute(sa.text(turned))
    asked = roster(*QUESTIONED)
    assert (asked.stderr.count("O'Brien"), "\u202e" in asked.stderr) == (2, False)


def test_of_two_at_once_the_second_one_sees_the_first(engine: sa.Engine) -> None:
    """Two requests about a person, and two answers."""
    today = find_today(UTC)
    with engine.connect() as connection:
        vendor = vendors.find_vendor(connection, EMAIL)
    steps: dict[str, Callable[[sa.Connection], object]] = {
        "is asked already": lambda connection: add_request(connection, TESTER, vendor, b"x", today, today),
        "there is no open request 1": lambda connection: answer_request(connection, TESTER, 1, "", today),
    }
    for said, step in steps.items():

        def do_second(step: Callable[[sa.Connection], object] = step) -> None:
            with engine.begin() as connection:
                step(connection)

        with ThreadPoolExecutor(1) as pool:
            with engine.begin() as first:
                step(first)
                second = pool.submit(do_second)
                # It waits for the first one, unless it does not see it.
                wait([second], timeout=0.5)
            with pytest.raises(CommandError, match=said):
                second.result()
