"""The values of a request to the console: who asks, and for what. The views take them, and know nothing of Flask."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import IO, Any

import sqlalchemy as sa

from roster_service.accounts.operator_sessions import Lifetime, SignedIn
from roster_service.accounts.transparency import publish
from roster_service.auth.throttling.counters import Counters
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.change_log.changes import Verb, require_new_form
from roster_service.db.instants import begin_day
from roster_service.feeds.export_previews import Upload
from roster_service.settings import Settings

# The random text of a form that counts once, as `make_once` makes one.
_ONCE = re.compile(r"[\w-]{16,64}", re.ASCII)


def make_once() -> str:
    """Returns the random text of a new form."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True)
class Tools:
    """The parts of the process that views need. `owner`: as the owner of the tables, as the `roster` command has it;
    `serving`: as the serving role, for what vendors get; `origin`: the address that operators use, without a path;
    `counters`: of wrong passwords and codes."""

    settings: Settings
    owner: sa.Engine
    serving: sa.Engine
    lifetime: Lifetime
    origin: str
    counters: Counters

    @property
    def service_url(self) -> str:
        """The address of the service for vendors, without a path."""
        return self.settings.find_root_url()


def read_number(given: str, default: int, most: int) -> int:
    """Returns the whole number of a text, from 1 to `most`; `default` for anything else."""
    number = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else default
    return min(max(number, 1), most)


@dataclass(frozen=True)
class Visit:
    """A request for a screen. `connection`: as the owner of the tables, and can change nothing; `place`: the values of
    the path; `query`: those of the query string, or of a form that was refused; `lists`: those of names that come more
    than once, such as checkboxes; `whole`: whether lists are read as a whole, for CSV, and not a page of them."""

    tools: Tools
    connection: sa.Connection
    signed_in: SignedIn
    place: Mapping[str, Any]
    query: Mapping[str, str]
    lists: Callable[[str], list[str]]
    whole: bool

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.tools.settings

    def get(self, name: str) -> str | None:
        """Returns a value of the query string; None if it is absent or blank."""
        return self.query.get(name, "").strip() or None

    def get_number(self, name: str, default: int, most: int) -> int:
        """Returns a whole number of the query string, from 1 to `most`; `default` for anything else."""
        return read_number(self.query.get(name, ""), default, most)

    def get_day(self, name: str) -> datetime | None:
        """Returns the beginning of a day of the query string; None if it is absent or no day."""
        try:
            return begin_day(date.fromisoformat(self.query.get(name, "")), self.settings.time_zone)
        except (ValueError, OverflowError):
            return None

    def may(self, verb: Verb) -> bool:
        """Returns whether the role of the operator suffices for a verb."""
        return self.signed_in.role.includes(verb.least_role)


def name_doer(role: OperatorRole, verb: Verb) -> str:
    """Returns whom a page names for a verb: the reader, if the role suffices for it."""
    least = verb.least_role
    return "you" if role.includes(least) else f"{'an' if least[0] in 'eo' else 'a'} {least}"


def address(role: OperatorRole, verb: Verb, remedy: str) -> str:
    """Returns what to do about something as a sentence, which names who may do it unless that is the reader; blank for
    nothing."""
    doer = name_doer(role, verb)
    text = remedy if doer == "you" or not remedy else f"for {doer}: {remedy}"
    return f"{text[0].upper()}{text[1:]}." if text else ""


@dataclass(frozen=True)
class Submission:
    """A form that an operator sent. `form`: its values; `lists`: those of names that come more than once, such as
    checkboxes; `uploads`: the files of a name."""

    tools: Tools
    signed_in: SignedIn
    place: Mapping[str, Any]
    form: Mapping[str, str]
    lists: Callable[[str], list[str]]
    uploads: Callable[[str], Sequence[Upload]]

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.tools.settings

    @property
    def actor(self) -> Actor:
        """The operator as the actor of a change, with the reason and the random text that the form gives."""
        given = _ONCE.fullmatch(self.form.get("once", ""))
        reason = self.form.get("reason", "").strip() or None
        return Actor(ActorKind.OPERATOR, self.signed_in.email, reason, None if given is None else given[0])

    def get(self, name: str) -> str | None:
        """Returns a value of the form without the blanks around it; None if it is absent or blank."""
        return self.form.get(name, "").strip() or None

    @contextmanager
    def change(self) -> Iterator[sa.Connection]:
        """Yields a connection as the owner of the tables. It commits if the block ends without an error. Raises
        SentBeforeError for a form that counts once and was sent before."""
        with self.tools.owner.begin() as connection:
            require_new_form(connection, self.actor)
            yield connection
            publish(connection)


@contextmanager
def open_reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yields a connection that can change nothing, with one snapshot for all that it reads."""
    with engine.connect() as connection:
        connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        yield connection


@dataclass(frozen=True)
class Moved:
    """The outcome of a form after which the browser shows another page. `path`: below `/console`; `message`: shown
    there, once; None if nothing was done."""

    path: str
    message: str | None


@dataclass(frozen=True)
class Shown:
    """The outcome of a form that is shown at once and never again, such as a secret. `template`: that shows
    `content`."""

    template: str
    title: str
    content: Any
    status: int = 200


@dataclass(frozen=True)
class Download:
    """The outcome of a form that is a file for the operator. `name`: for the browser; `file`: at its beginning, which
    the answer closes."""

    name: str
    file: IO[bytes]


@dataclass(frozen=True)
class Again:
    """The outcome of a form whose screen is shown again with its values, and what follows from them. Nothing is
    saved."""


Outcome = Moved | Shown | Download | Again
