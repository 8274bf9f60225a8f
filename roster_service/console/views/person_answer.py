"""The answer to a parent: what vendors were sent of a person, and what they may get, to print."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from roster_service.auth.access_log.entries import PersonHasher
from roster_service.auth.access_log.writer import move_rows_of_ended_workers
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import from_segment
from roster_service.console.screen import Form, Screen
from roster_service.console.views.roster import find_shown_person
from roster_service.console.visit import Visit
from roster_service.errors import CommandError
from roster_service.explore.known_people import KnownPerson
from roster_service.explore.person_answer import PersonAnswer, make_answer


@dataclass(frozen=True)
class AnswerPage:
    """The answer about a person. `answer`: None for a period that is none, and then `problem` says why."""

    person: KnownPerson
    answer: PersonAnswer | None
    problem: str | None


def read_answer(visit: Visit) -> AnswerPage:
    """Reads the answer about the person of the path, for the period of the query string. Raises CommandError if there
    is no such person, or the operator may not know of the person."""
    # Before the first statement of the connection, which has one snapshot.
    missing = move_rows_of_ended_workers(visit.tools.owner, visit.settings.access_log_folder)
    sourced_id = from_segment(visit.place["sourced_id"])
    person = find_shown_person(visit, sourced_id)
    if person is None:
        raise CommandError(f"the roster has no person {sourced_id[:256]}")
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
        return AnswerPage(person, None, str(error))
    return AnswerPage(person, answer, None)


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
FORMS: tuple[Form, ...] = ()
