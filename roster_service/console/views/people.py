"""The people whom the roster must not have: the list, the second step of an erasure, and the forms that hide, show and
erase one. The page of a person leads to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import from_segment, to_segment, to_sentence
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import format_instant
from roster_service.deliveries.recipients import WITH_PERSON, list_recipients
from roster_service.errors import CommandError, UnknownPersonError
from roster_service.explore.known_people import KnownPerson, find_people, list_alike, require_person
from roster_service.feeds.exclusions import ExclusionKind, list_exclusions
from roster_service.people import describe_removal, end_exclusion, exclude_person, finish, keep_person, list_held_with

# In seconds, for requests that began before a removal.
LONGEST_WAIT = 5


@dataclass(frozen=True)
class ExcludedPerson:
    """A person whom the roster must not have. `reference`: the beginning of the keyed hash of the id; `sourcedId`: None
    for an erased one."""

    reference: str
    kind: str
    sourcedId: str | None  # noqa: N815  (the name in OneRoster)
    at: str


@dataclass(frozen=True)
class ExclusionsPage:
    """The excluded people, the oldest first, a page of them. `found`: the people whom the typed text names; `problem`:
    why it names nobody, else None."""

    rows: Paged
    found: Sequence[KnownPerson]
    problem: str | None


@dataclass(frozen=True)
class Erasure:
    """What an erasure would delete. `alike`: the others who may be meant; `held`: (number, feed) of the held runs that
    it would end."""

    person: KnownPerson
    alike: Sequence[KnownPerson]
    held: Sequence[tuple[int, str]]


def read_people(visit: Visit) -> ExclusionsPage:
    """Reads the erased and the hidden people."""
    rows = [
        ExcludedPerson(exclusion.reference, exclusion.kind, exclusion.sourced_id, format_instant(exclusion.at))
        for exclusion in list_exclusions(visit.connection)
    ]
    found, problem, typed = [], None, visit.get("person")
    try:
        key = visit.settings.read_secret_key()
        found = [] if typed is None else find_people(visit.connection, typed, key)
    except UnknownPersonError as error:
        problem = str(error)
    return ExclusionsPage(cut_page(visit, rows), found, problem)


def read_erasure(visit: Visit) -> Erasure:
    """Reads what the erasure of the person of the path would delete. Raises UnknownPersonError if nobody has
    the id."""
    person = require_person(visit.connection, from_segment(visit.place["person"]), visit.settings.read_secret_key())
    alike = list_alike(visit.connection, person.sourcedId)
    return Erasure(person, alike, list_held_with(visit.connection, person.sourcedId, visit.settings.home))


def _exclude(kind: ExclusionKind) -> Callable[[Submission], Outcome]:
    def run(sent: Submission) -> Outcome:
        with sent.change() as connection:
            removal = exclude_person(connection, sent.actor, kind, _read_id(sent), sent.settings)
            recipients = list_recipients(connection, _read_id(sent), sent.settings.read_secret_key())
        has_ended = finish(sent.tools.owner, sent.settings.home, removal, LONGEST_WAIT)
        words = describe_removal(removal, has_ended=has_ended, dry_run=False)
        return Moved(
            "/people",
            ". ".join([to_sentence(words), *(recipient.describe(WITH_PERSON) for recipient in recipients)]) + ".",
        )

    return run


def _keep(*, shown: bool) -> Callable[[Submission], Outcome]:
    def run(sent: Submission) -> Outcome:
        person, email = _read_id(sent), sent.get("vendor") or ""
        with sent.change() as connection:
            kept = keep_person(connection, sent.actor, email, person, sent.settings, shown=shown)
            recipients = [] if shown else list_recipients(connection, person, sent.settings.read_secret_key())
        words = (
            f"{kept.vendor} sees this person again, as far as its grants go" if shown else f"kept from {kept.vendor}"
        )
        descriptions = [recipient.describe(WITH_PERSON) for recipient in recipients if recipient.vendor == kept.vendor]
        return Moved(f"/records/{to_segment(person)}", ". ".join([to_sentence(words), *descriptions]) + ".")

    return run


def _end(kind: ExclusionKind) -> Callable[[Submission], Outcome]:
    def run(sent: Submission) -> Outcome:
        with sent.change() as connection:
            ended = end_exclusion(connection, sent.actor, kind, sent.get("person") or "", sent.settings)
        name = ended.sourced_id or ended.reference
        words = "The next load of the feed brings the person back, if the export still has the person."
        return Moved("/people", f"{name} is no longer {kind}. {words}")

    return run


def _read_id(sent: Submission) -> str:
    sourced_id = from_segment(sent.place["person"]) if "person" in sent.place else sent.get("person")
    if sourced_id is None:
        raise CommandError("type the sourcedId of the person")
    return sourced_id


_OWNER = OperatorRole.OWNER
SCREENS = (
    Screen("people", "/people", "Hidden and erased people", _OWNER, read_people, lambda it: it.rows.rows, "Hidden"),
    Screen("erasure", "/records/<id:person>/erasure", "Erase a person", _OWNER, read_erasure, None, None),
)
FORMS = (
    Form("people", "hide", Verb.PERSON_HIDE, _exclude(ExclusionKind.HIDDEN), None),
    Form("erasure", "erase", Verb.PERSON_ERASE, _exclude(ExclusionKind.ERASED), _read_id),
    Form("people", "show", Verb.PERSON_SHOW, _end(ExclusionKind.HIDDEN), None),
    Form("people", "keep", Verb.PERSON_HIDE, _keep(shown=False), None),
    Form("people", "return", Verb.PERSON_SHOW, _keep(shown=True), None),
    Form("people", "lift", Verb.PERSON_LIFT, _end(ExclusionKind.ERASED), None),
)
