"""The change log: a row for each change by a command or an operator, in the transaction of the change.

Every verb changes what it changes inside `recorded`, which checks the role of the actor and writes the row. The values
before and after are those that one function reads twice, so no verb describes its own change. Operators read the log
here too, in the order of rows that all logs share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import Actor, OperatorRole, normalize_email, require_role
from roster_service.db.instants import format_instant
from roster_service.db.tables import changes
from roster_service.errors import SentBeforeError

# What can be told of a subject: plain JSON without secrets. None: the subject does not exist.
State = Mapping[str, Any] | None


class Verb(StrEnum):
    """What an actor does: the words of the `roster` command that does it."""

    VENDOR_ADD = "vendor add"
    VENDOR_GRANT = "vendor grant"
    VENDOR_REVOKE = "vendor revoke"
    VENDOR_DISABLE = "vendor disable"
    VENDOR_ENABLE = "vendor enable"
    VENDOR_REMOVE = "vendor remove"
    VENDOR_LIMITS = "vendor limits"
    VENDOR_SET_WITHHELD = "vendor set-withheld"
    VENDOR_SET_WITHHELD_DEFAULT = "vendor set-withheld-default"
    AGREEMENT_SET = "agreement set"
    AGREEMENT_REMOVE = "agreement remove"
    AGREEMENT_REQUIRE = "agreement require"
    AGREEMENT_PUBLISH = "agreement publish"
    DELETION_ASK = "deletion ask"
    DELETION_ANSWER = "deletion answer"
    VENDOR_SET_PASSWORD = "vendor set-password"  # noqa: S105  (a verb)
    VENDOR_ROTATE_KEY = "vendor rotate-key"
    CLIENT_ADD = "client add"
    CLIENT_DISABLE = "client disable"
    CLIENT_ENABLE = "client enable"
    CLIENT_SET_SCOPES = "client set-scopes"
    CLIENT_REMOVE = "client remove"
    CLIENT_ROTATE_SECRET = "client rotate-secret"  # noqa: S105
    CLIENT_END_OLD_SECRET = "client end-old-secret"  # noqa: S105
    # By the console and by the vendor, so there is no command.
    CLIENT_SEND_LINK = "client send-link"
    CLIENT_USE_LINK = "client use-link"
    FEED_ADD = "feed add"
    FEED_SET = "feed set"
    FEED_RENAME = "feed rename"
    FEED_PAUSE = "feed pause"
    FEED_RESUME = "feed resume"
    FEED_REMOVE = "feed remove"
    DISTRICT_REMOVE = "district remove"
    PERSON_ERASE = "person erase"
    PERSON_LIFT = "person lift"
    PERSON_HIDE = "person hide"
    PERSON_SHOW = "person show"
    # It changes nothing: the answer to a parent is made.
    PERSON_ANSWER = "person answer"
    # It changes no setting: an operator has started a load in the console, which is a run.
    SYNC_RUN = "sync run"
    SYNC_APPROVE = "sync approve"
    SYNC_DISCARD = "sync discard"
    SYNC_UNDO = "sync undo"
    # By a loader with --allow-mass-delete, so there is no command.
    SYNC_ALLOW_MASS_DELETE = "sync allow-mass-delete"
    # It changes nothing: an operator has looked at a record as a vendor gets it.
    SHOW = "show"
    # These change nothing either: a file of what a vendor gets is made for an operator.
    DELIVERY_PREVIEW = "delivery preview"
    EXPORT = "export"
    DELIVERY_ADD = "delivery add"
    DELIVERY_SET = "delivery set"
    DELIVERY_STOP = "delivery stop"
    DELIVERY_START = "delivery start"
    DELIVERY_APPROVE = "delivery approve"
    DELIVERY_REMOVE = "delivery remove"
    # It changes nothing either: a test announcement has gone to people. By the console, so there is no command.
    ANNOUNCE = "announce"
    KEYS_ROTATE = "keys rotate"
    DB_RESTORED = "db restored"
    OPERATOR_ADD = "operator add"
    OPERATOR_SET_ROLE = "operator set-role"
    OPERATOR_DISABLE = "operator disable"
    OPERATOR_ENABLE = "operator enable"
    OPERATOR_REMOVE = "operator remove"
    OPERATOR_RESET = "operator reset"
    # By a link, so there is no command.
    OPERATOR_SET_PASSWORD = "operator set-password"  # noqa: S105
    # By the own account in the console, so there is no command.
    OPERATOR_SET_CODES = "operator set-codes"

    @property
    def least_role(self) -> OperatorRole:
        """The role that an operator needs for it."""
        return _LEAST_ROLES.get(self, OperatorRole.EDITOR)


_LEAST_ROLES: Mapping[Verb, OperatorRole] = {
    Verb.DISTRICT_REMOVE: OperatorRole.OWNER,
    Verb.PERSON_ERASE: OperatorRole.OWNER,
    Verb.PERSON_LIFT: OperatorRole.OWNER,
    Verb.PERSON_HIDE: OperatorRole.OWNER,
    Verb.PERSON_SHOW: OperatorRole.OWNER,
    # They say what a paper says, which binds all other changes.
    Verb.AGREEMENT_SET: OperatorRole.OWNER,
    Verb.AGREEMENT_REMOVE: OperatorRole.OWNER,
    Verb.AGREEMENT_REQUIRE: OperatorRole.OWNER,
    Verb.AGREEMENT_PUBLISH: OperatorRole.OWNER,
    # They decide to which machine outside the roster goes.
    Verb.DELIVERY_ADD: OperatorRole.OWNER,
    Verb.DELIVERY_SET: OperatorRole.OWNER,
    Verb.DELIVERY_REMOVE: OperatorRole.OWNER,
    Verb.KEYS_ROTATE: OperatorRole.OWNER,
    Verb.DB_RESTORED: OperatorRole.OWNER,
    Verb.OPERATOR_ADD: OperatorRole.OWNER,
    Verb.OPERATOR_SET_ROLE: OperatorRole.OWNER,
    Verb.OPERATOR_DISABLE: OperatorRole.OWNER,
    Verb.OPERATOR_ENABLE: OperatorRole.OWNER,
    Verb.OPERATOR_REMOVE: OperatorRole.OWNER,
    Verb.OPERATOR_RESET: OperatorRole.OWNER,
    Verb.OPERATOR_SET_PASSWORD: OperatorRole.OBSERVER,
    Verb.OPERATOR_SET_CODES: OperatorRole.OBSERVER,
    Verb.SHOW: OperatorRole.VIEWER,
    Verb.PERSON_ANSWER: OperatorRole.VIEWER,
}


@dataclass(frozen=True)
class Subject:
    """What is changed. `name`: what people call it; `vendor`, `feed`: the e-mail and the name of those that it is or
    belongs to."""

    kind: str
    name: str
    vendor: str | None = None
    feed: str | None = None

    @staticmethod
    def of_vendor(email: str) -> Subject:
        """Returns a vendor as the subject."""
        return Subject("vendor", email, vendor=email)

    @staticmethod
    def of_client(client_id: str, vendor: str) -> Subject:
        """Returns an OAuth client of the vendor with the e-mail `vendor` as the subject."""
        return Subject("client", client_id, vendor=vendor)

    @staticmethod
    def of_feed(name: str) -> Subject:
        """Returns a feed as the subject."""
        return Subject("feed", name, feed=name)

    @staticmethod
    def of_run(number: int, feed: str) -> Subject:
        """Returns a run of a feed as the subject."""
        return Subject("run", str(number), feed=feed)

    @staticmethod
    def of_operator(email: str) -> Subject:
        """Returns an operator as the subject."""
        return Subject("operator", email)


@contextmanager
def recorded(
    connection: sa.Connection, actor: Actor, verb: Verb, subject: Subject, read_state: Callable[[], State]
) -> Iterator[None]:
    """Records the change that the block makes, as one row of the change log. `read_state`: reads what can be told of
    the subject, before the block and after it.

    Raises CommandError, before the block, if the role of the actor does not suffice. If the block raises, nothing is
    recorded, and the caller rolls the change back.
    """
    require_role(connection, actor, verb.least_role, verb)
    before = read_state()
    yield
    after = read_state()
    if before is not None and after is not None:
        differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: state.get(name) for name in differing} for state in (before, after))
    row = {
        "actor_kind": actor.kind,
        "actor": actor.name,
        "verb": verb,
        "kind": subject.kind,
        "subject": subject.name,
        "vendor": subject.vendor,
        "feed": subject.feed,
        "before": before,
        "after": after,
        "reason": actor.reason,
        "form": actor.form,
    }
    connection.execute(sa.insert(changes).values(row))


def order_rows(rows: sa.Select[Any], log: sa.FromClause, latest: tuple[int, int] | None) -> sa.Select[Any]:
    """Returns a SELECT of rows of a log, the oldest first. `latest`: only this many rows (the second number), the
    newest first, without the newest ones (the first number)."""
    if latest is None:
        return rows.order_by(log.c.at, log.c.id)
    skipped, count = latest
    return rows.order_by(log.c.at.desc(), log.c.id.desc()).offset(skipped).limit(count)


@dataclass(frozen=True)
class Change:
    """A row of the change log. `at`: ISO 8601, UTC; `actor`: an operator's e-mail, or `user@host` of the command line;
    `verb`: the words of the command; `before`, `after`: the values that differ, None where the subject was or is not
    there."""

    id: int
    at: str
    actor_kind: str
    actor: str
    verb: str
    kind: str
    subject: str
    vendor: str | None
    feed: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str | None


def list_changes(
    connection: sa.Connection,
    *,
    vendor: str | None,
    feed: str | None,
    operator: str | None,
    since: datetime | None,
    latest: tuple[int, int] | None = None,
) -> list[Change]:
    """Lists changes, in the order that `order_rows` gives for `latest`. Each other argument but None leaves only those
    of a vendor (its e-mail), a feed (its name), an actor (as `Change.actor`), and those at or after an instant; removed
    ones have their changes too."""
    conditions = []
    if vendor is not None:
        conditions.append(changes.c.vendor == normalize_email(vendor))
    if feed is not None:
        conditions.append(changes.c.feed == feed)
    if operator is not None:
        conditions.append(changes.c.actor == operator)
    if since is not None:
        conditions.append(changes.c.at >= since)
    rows = connection.execute(order_rows(sa.select(changes).where(*conditions), changes, latest))
    return [_read_change(row) for row in rows]


def find_last_change(connection: sa.Connection, subject: Subject, verbs: Collection[Verb]) -> Change | None:
    """Returns the last change of a subject by one of the verbs; None if there is none."""
    own = (changes.c.kind == subject.kind, changes.c.subject == subject.name)
    last = sa.select(changes).where(*own, changes.c.verb.in_(verbs)).order_by(changes.c.id.desc()).limit(1)
    row = connection.execute(last).one_or_none()
    return None if row is None else _read_change(row)


def require_new_form(connection: sa.Connection, actor: Actor) -> None:
    """Raises SentBeforeError if the form of the actor has made a change already. Until the end of the transaction, the
    same form waits elsewhere."""
    if actor.form is None:
        return
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(actor.form, 0))))
    own = sa.select(changes.c.at).where(changes.c.form == actor.form, changes.c.actor == actor.name)
    made = connection.scalar(own.limit(1))
    if made is not None:
        raise SentBeforeError(format_instant(made))


def _read_change(row: sa.Row[Any]) -> Change:
    shown = {name: value for name, value in row._asdict().items() if name != "form"}
    return Change(**{**shown, "at": format_instant(row.at)})
