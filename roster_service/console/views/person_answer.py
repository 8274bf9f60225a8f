"""The answer to a parent: what vendors were sent of a person, and what they may get, to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.writer import move_rows_of_ended_workers
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import from_segment, to_segment
from roster_service.console.screen import Form, Screen
from roster_service.console.views.roster import find_shown_person, read_whose
from roster_service.console.visit import Moved, Outcome, Shown, Submission, Visit
from roster_service.errors import CommandError
from roster_service.explore.known_people import KnownPerson, list_alike
from roster_service.explore.person_answer import PersonAnswer, make_answer
from roster_service.people import note_answer


@dataclass(frozen=True)
class AnswerPage:
    """The answer about a person. `answer`: None for a period that is none, and then `problem` says why; `alike`: the
    others for whom it may be meant."""

    person: KnownPerson
    answer: PersonAnswer | None
    problem: str | None
    alike: Sequence[KnownPerson]


def read_answer(visit: Visit) -> AnswerPage:
    """Reads the answer about the person of the path, for the period of the query string. Raises CommandError if there
    is no such person, or the operator may not know of the person."""
    # Before the first statement of the connection, which has one snapshot.
    missing = move_rows_of_ended_workers(visit.tools.owner, visit.settings.access_log_folder)
    sourced_id = from_segment(visit.place["sourced_id"])
    person = find_shown_person(visit, sourced_id)
    if person is None:
        raise CommandError(f"the roster has no person {sourced_id[:256]}")
    alike = list_alike(visit.connection, sourced_id)
    try:
        answer = make_answer(
            visit.connection,
            person,
            visit.settings,
            PersonHasher(visit.settings.read_secret_key()),
            since=_read_day(visit, "since"),
            until=_read_day(visit, "until"),
            is_whole=missing is None,
        )
    except CommandError as error:
        return AnswerPage(person, None, str(error), alike)
    return AnswerPage(person, answer, None, alike)


def print_answer(sent: Submission) -> Outcome:
    """Shows the answer as a letter, and notes that. Where it may be meant for somebody else, the form must say for
    whom, too."""
    sourced_id = from_segment(sent.place["sourced_id"])
    with sent.change() as connection:
        visit = Visit(sent.tools, connection, sent.signed_in, sent.place, sent.form, sent.lists, whole=False)
        page = read_answer(visit)
        whose = read_whose(sent, sourced_id, page.alike)
        if whose != sourced_id:
            period = urlencode({name: day for name in ("since", "until") if (day := sent.get(name))})
            path = f"/records/{to_segment(whose)}/answer?{period}".removesuffix("?")
            return Moved(path, "This is the answer about the person of your choice.")
        if page.answer is None:
            raise CommandError(page.problem or "")
        note_answer(connection, sent.actor, sourced_id, sent.settings)
    return Shown("person_letter", f"The letter about {page.person.name or sourced_id}", page)


def _read_day(visit: Visit, name: str) -> date | None:
    given = visit.get(name)
    if given is None:
        return None
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise CommandError(f"{given[:40]} is no day: give one as 2026-11-28") from None


SCREENS = (
    Screen(
        "person_answer",
        "/records/<id:sourced_id>/answer",
        "A parent’s answer",
        OperatorRole.VIEWER,
        read_answer,
        None,
        None,
    ),
)
FORMS = (Form("person_answer", "letter", Verb.PERSON_ANSWER, print_answer, None),)
