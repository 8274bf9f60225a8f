"""Requests to delete: what a vendor is asked to delete of a person, as for a parent, by when, and what it answers.

The service sends nothing: an operator prints the letter, which alone has the id of the person. The row has a keyed hash
of it, until the person is erased: then the vendor's answer is still awaited, and nothing tells of whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date

import sqlalchemy as sa

from roster_service.accounts.known_agreements import KnownAgreement
from roster_service.accounts.vendors import Vendor, lock_vendor
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import describe_day
from roster_service.db.tables import deletion_requests, vendors
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import make_reference

OPEN, OVERDUE, ANSWERED = "open", "overdue", "answered"
_MOST_CHARACTERS = 500


@dataclass(frozen=True)
class DeletionRequest:
    """A request. `number`: by which letter and answer name it; `vendor`: the e-mail; `name`: of the vendor; `person`:
    the reference of the id, None once the person is erased; `asked`, `due`, `answered`: days, ISO 8601, the last None
    while it is open; `words`: of the answer; `state`: one of the three above."""

    number: int
    vendor: str
    vendor_id: int
    name: str
    person: str | None
    asked: str
    due: str
    answered: str | None
    words: str
    state: str


def list_requests(connection: sa.Connection, today: date, *conditions: sa.ColumnElement[bool]) -> list[DeletionRequest]:
    """Lists the requests for which all conditions hold, the open ones first, by the day until which they are due.
    `today`: in the time zone of the settings."""
    found = sa.select(deletion_requests, vendors.c.email, vendors.c.name).join(vendors).where(*conditions)
    order = (deletion_requests.c.answered.desc().nulls_first(), deletion_requests.c.due, deletion_requests.c.id)
    return [
        DeletionRequest(
            number=row.id,
            vendor=row.email,
            vendor_id=row.vendor_id,
            name=row.name,
            person=None if row.person is None else make_reference(bytes(row.person)),
            asked=row.asked.isoformat(),
            due=row.due.isoformat(),
            answered=None if row.answered is None else row.answered.isoformat(),
            words=row.words,
            state=ANSWERED if row.answered is not None else OVERDUE if row.due < today else OPEN,
        )
        for row in connection.execute(found.order_by(*order))
    ]


def add_request(
    connection: sa.Connection, actor: Actor, vendor: Vendor, id_hash: bytes, due: date, today: date
) -> DeletionRequest:
    """Adds a request. `id_hash`: of `IdHasher`. Raises CommandError for a day that is past, and for a person of whom an
    open request asks the vendor already."""
    own = (deletion_requests.c.vendor_id == vendor.id, deletion_requests.c.person == id_hash)
    if due < today:
        raise CommandError(f"the vendor cannot answer until {describe_day(due)}: that day is past")
    # Of two at once, the second one sees the first.
    lock_vendor(connection, vendor.id)
    if connection.scalar(sa.select(sa.exists().where(*own, deletion_requests.c.answered.is_(None)))):
        raise CommandError(f"{vendor.email} is asked already, and has not answered")
    with _recorded(connection, actor, Verb.DELETION_ASK, vendor.email):
        values = {"vendor_id": vendor.id, "person": id_hash, "asked": today, "due": due, "words": ""}
        made = sa.insert(deletion_requests).values(values).returning(deletion_requests.c.id)
        number = connection.scalar(made)
    return list_requests(connection, today, deletion_requests.c.id == number)[0]


def answer_request(connection: sa.Connection, actor: Actor, number: int, words: str, today: date) -> DeletionRequest:
    """Notes that the vendor has answered. `words`: what it answered, which should not name the person. Raises
    CommandError for a request that is not open, and for words that are too long."""
    own = deletion_requests.c.id == number
    # The second one of two answers at once sees the first.
    connection.execute(sa.select(deletion_requests.c.id).where(own).with_for_update())
    found = list_requests(connection, today, own, deletion_requests.c.answered.is_(None))
    if not found:
        raise CommandError(f"there is no open request {number}")
    if len(words) > _MOST_CHARACTERS or not words.isprintable():
        raise CommandError(f"the words of the answer are one line of at most {_MOST_CHARACTERS} characters")
    with _recorded(connection, actor, Verb.DELETION_ANSWER, found[0].vendor):
        connection.execute(sa.update(deletion_requests).where(own).values(answered=today, words=words))
    return list_requests(connection, today, own)[0]


def forget_person(connection: sa.Connection, id_hash: bytes) -> None:
    """Takes an erased person out of the requests, which stay for the answers of the vendors."""
    own = deletion_requests.c.person == id_hash
    connection.execute(sa.update(deletion_requests).where(own).values(person=None, words=""))


def write_letter(
    request: DeletionRequest, sourced_id: str, known: KnownAgreement | None, districts: Sequence[str]
) -> Iterator[str]:
    """Yields the paragraphs of the letter to the vendor. `known`: its agreement; `districts`: by name."""
    yield f"{', '.join([*districts, ''])}{describe_day(date.fromisoformat(request.asked))}"
    contact = request.vendor if known is None else known.agreement.contact
    yield f"To {request.name} ({contact}): request {request.number} to delete the data of a person"
    yield (
        f"Please delete what you have of the person with the id {sourced_id} in our roster, in every copy, also those "
        "that you have given to others."
    )
    if known is not None:
        yield f"The agreement “{known.agreement.title}” says of deletion: {known.agreement.deletion}"
    yield (
        f"Please answer by {describe_day(date.fromisoformat(request.due))} what you have deleted, and what you keep "
        f"and why. Name the number {request.number}, and not the person: this letter alone has the id."
    )


def _recorded(connection: sa.Connection, actor: Actor, verb: Verb, email: str) -> AbstractContextManager[None]:
    def read_state() -> State:
        found = list_requests(connection, date.min, vendors.c.email == email)
        return {str(one.number): f"due {one.due}, answered {one.answered or 'not yet'}" for one in found}

    return recorded(connection, actor, verb, Subject("deletion request", email, vendor=email), read_state)
