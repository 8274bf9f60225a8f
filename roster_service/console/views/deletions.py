"""Requests to delete: those of a person, with the letter to the vendor, and all of them, with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from roster_service.accounts.deletion_requests import (
    ANSWERED,
    DeletionRequest,
    answer_request,
    list_requests,
    write_letter,
)
from roster_service.accounts.known_agreements import find_agreement
from roster_service.accounts.vendors import find_vendor, read_vendor_names
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import from_segment, to_segment
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.views.roster import find_shown_person, read_whose
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import find_today
from roster_service.db.tables import deletion_requests
from roster_service.errors import CommandError
from roster_service.explore.known_people import KnownPerson, list_alike
from roster_service.explore.person_answer import list_districts
from roster_service.feeds.exclusions import IdHasher
from roster_service.people import ask_deletion

# How long a vendor has, unless the operator says another day.
DUE_DAYS = 30


@dataclass(frozen=True)
class PersonDeletions:
    """The requests about a person. `alike`: the others for whom a request may be meant; `vendors`: the names, by
    e-mail; `due`: the day that the form proposes; `letter`: the paragraphs of the open one that the query string
    names, None for none."""

    person: KnownPerson
    alike: Sequence[KnownPerson]
    requests: Sequence[DeletionRequest]
    vendors: Mapping[str, str]
    due: str
    letter: Sequence[str] | None


@dataclass(frozen=True)
class Deletions:
    """All requests, a page of them. `counts`: by state."""

    rows: Paged
    counts: Mapping[str, int]


def read_person(visit: Visit) -> PersonDeletions:
    """Reads the requests about the person of the path. Raises CommandError if there is no such person, or the operator
    may not know of the person."""
    connection, sourced_id = visit.connection, from_segment(visit.place["sourced_id"])
    person = _find_person(visit, sourced_id)
    today, own = find_today(visit.settings.time_zone), IdHasher(visit.settings.read_secret_key()).hash_id(sourced_id)
    found, letter = list_requests(connection, today, deletion_requests.c.person == own), None
    for one in found:
        if one.state != ANSWERED and str(one.number) == visit.get("number"):
            known = find_agreement(connection, find_vendor(connection, one.vendor))
            letter = list(write_letter(one, sourced_id, known, list_districts(connection, sourced_id)))
    due = (today + timedelta(days=DUE_DAYS)).isoformat()
    return PersonDeletions(
        person, list_alike(connection, sourced_id), found, read_vendor_names(connection), due, letter
    )


def _find_person(visit: Visit, sourced_id: str) -> KnownPerson:
    person = find_shown_person(visit, sourced_id)
    if person is None:
        raise CommandError(f"the roster has no person {sourced_id[:256]}")
    return person


def read_deletions(visit: Visit) -> Deletions:
    """Reads all requests."""
    found = list_requests(visit.connection, find_today(visit.settings.time_zone))
    states = [one.state for one in found]
    return Deletions(cut_page(visit, found), {state: states.count(state) for state in states})


def ask(sent: Submission) -> Outcome:
    """Asks a vendor, and shows the letter. Where it may be meant for somebody else, the form must say for whom."""
    person = from_segment(sent.place["sourced_id"])
    try:
        due = date.fromisoformat(sent.get("due") or "")
    except ValueError:
        raise CommandError("say until which day the vendor has to answer, as 2027-06-30") from None
    with sent.change() as connection:
        visit = Visit(sent.tools, connection, sent.signed_in, sent.place, sent.form, sent.lists, whole=False)
        _find_person(visit, person)
        whose = read_whose(sent, person, list_alike(connection, person))
        if whose != person:
            given = urlencode({"vendor": sent.get("vendor") or "", "due": due.isoformat()})
            return Moved(f"/records/{to_segment(whose)}/deletion?{given}", "This is the person of your choice.")
        made = ask_deletion(connection, sent.actor, sent.get("vendor") or "", person, due, sent.settings)
    # A message would be printed, too.
    return Moved(f"/records/{to_segment(person)}/deletion?number={made.number}", None)


def answer(sent: Submission) -> Outcome:
    """Notes the answer of a vendor."""
    given, today = sent.get("number") or "", find_today(sent.settings.time_zone)
    number = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0
    with sent.change() as connection:
        made = answer_request(connection, sent.actor, number, sent.get("words") or "", today)
    return Moved("/deletions", f"Request {made.number}: {made.name} has answered.")


SCREENS = (
    Screen(
        "deletions",
        "/deletions",
        "Requests to delete",
        OperatorRole.VIEWER,
        read_deletions,
        lambda it: it.rows.rows,
        "Requests to delete",
    ),
    Screen(
        "deletion",
        "/records/<id:sourced_id>/deletion",
        "Ask a vendor to delete",
        OperatorRole.EDITOR,
        read_person,
        None,
        None,
    ),
)
FORMS = (
    Form("deletion", "ask", Verb.DELETION_ASK, ask, None),
    Form("deletions", "answer", Verb.DELETION_ANSWER, answer, None),
)
