"""Deliveries, as operators add, list, change, stop, approve and remove them. Each change needs an actor, and is one row
of the change log."""

from __future__ import annotations

import contextlib
import itertools
import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.fernet import InvalidToken
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from roster_service.accounts.secret_links import describe_ended_links
from roster_service.accounts.vendors import Vendor, find_vendor
from roster_service.accounts.ways import list_ways
from roster_service.auth.credentials.signing_keys import make_seal
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import format_instant
from roster_service.db.tables import WHOLE, deliveries, delivery_runs, oauth_clients, vendors, visible_feeds
from roster_service.deliveries.addresses import require_public
from roster_service.deliveries.choices import choose_client, require_preset
from roster_service.errors import CommandError
from roster_service.settings import Settings

MADE, WAITING, SENT, FAILED = "made", "waiting", "sent", "failed"
# What is known of a run whose process was killed, before the next try has looked.
INTERRUPTED = "its process was interrupted, and whether the receiver has the file is found out by the next try"
# The first number of the locks of deliveries, "Delv". The second one is the hash of the name.
LOCK_CLASS = 0x44656C76
# A process holds the lock of its delivery until it has recorded the end of the run.
_INTERRUPTED = sa.text(
    "SELECT run.id FROM delivery_runs run JOIN deliveries own ON own.id = run.delivery_id WHERE run.state = :made "
    "AND NOT EXISTS (SELECT FROM pg_locks held WHERE held.locktype = 'advisory' AND held.objsubid = 2 "
    "AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND held.classid = :class AND held.objid::bigint = hashtext(own.name)::bigint & 4294967295)"
)
# The word of a delivery whose vendor or client is disabled or gone.
CLOSED = "closed"
# The reason for which the first file waits.
FIRST = "it is the first file of this delivery"
# Why the file of now is another one than that of before.
CHANGED = "the roster, or what the vendor may see, has changed"
# The first digits of a SHA-256, by which people tell files apart.
SHOWN_DIGEST = 12
# The types of host keys that the client of SFTP knows.
HOST_KEY_TYPES = (
    *("ssh-ed25519", "ssh-rsa"),
    *("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
)


@dataclass(frozen=True)
class Delivery:
    """A delivery, without its secret. `host_key`: the type and the base64 of the only key that the server may have;
    `hour`: in the time zone of the settings, None: after the nightly sync; `contact`: to whom to write at the receiver;
    `since`: when what it sends, or where to, was last set; `state`, `message`, `digest`, `file_name`, `at`: of the
    latest run, None before the first, FAILED if its process ended without a word; `may_differ`: whether the roster, or
    what the vendor may see, has changed since the file that waits was made, so the file of now may be another one;
    `sent_at`: of the last file that was sent; `has_changed`: whether the roster, or what the vendor may see, has
    changed since that file was made; `enabled`: whether its client is there and neither this nor the vendor is
    disabled. Instants are ISO 8601, UTC."""

    name: str
    vendor: str
    vendor_name: str
    vendor_id: int
    client_id: str
    preset: str
    host: str
    port: int
    username: str
    folder: str
    host_key: str
    has_private_key: bool
    hour: int | None
    in_place: bool
    contact: str
    stopped: bool
    since: str
    approved_digest: str | None
    state: str | None
    message: str | None
    digest: str | None
    file_name: str | None
    at: str | None
    may_differ: bool
    sent_at: str | None
    has_changed: bool
    enabled: bool
    id: int

    @property
    def is_first(self) -> bool:
        """Whether the receiver has no file of this content yet."""
        return self.sent_at is None or self.sent_at < self.since

    @property
    def needs(self) -> bool:
        """Whether a person must act."""
        return self.state in (WAITING, FAILED) and not self.stopped and not self.is_approved

    @property
    def is_approved(self) -> bool:
        """Whether the file waits no more: it is approved, can be sent, and no attempt has begun since."""
        return self.enabled and self.state == WAITING and self.approved_digest == self.digest

    @property
    def word(self) -> str:
        """The state in a word or two."""
        if self.stopped:
            return "stopped"
        if self.is_approved:
            return "approved"
        if not self.enabled:
            return CLOSED
        return {None: "no file yet", MADE: "under way"}.get(self.state, str(self.state))

    @property
    def remedy(self) -> str:
        """What is to be done about a file that needs a person, without its first capital and full stop."""
        if not self.enabled:
            return "stop the delivery, or enable the client and the vendor"
        if self.state == WAITING:
            return "look at the file, and approve it"
        when = "after the next nightly sync" if self.hour is None else f"each hour from {self.hour}:00 on"
        return f"it is tried again {when}"

    @property
    def sentence(self) -> str:
        """The state as a sentence."""
        if self.stopped:
            return "No file is sent until somebody starts it again"
        if not self.enabled:
            return "No file can be sent, because the client or the vendor is disabled or gone"
        if self.is_approved:
            return "The file is approved: it is being sent, or goes with the next attempt if the roster is the same"
        if self.state == WAITING and self.approved_digest is not None:
            # An approval counts for one file, and none of another one is left when that is sent.
            why = "" if self.message == FIRST else f". When it was made: {self.message}"
            return (
                f"The approved file, SHA-256 {self.approved_digest[:SHOWN_DIGEST]}…, was not sent, because {CHANGED} "
                f"since. Another file, {str(self.digest)[:SHOWN_DIGEST]}…, waits for an operator to look at it and "
                f"approve it{why}"
            )
        if self.state == WAITING and self.message == FIRST:
            return "The first file waits for an operator to look at it and approve it"
        if self.message == INTERRUPTED:
            return f"The last try failed: {self.message}"
        return {
            None: "No file was made yet",
            MADE: "A file is being made or sent",
            WAITING: f"The file waits for an operator to approve it. When it was made: {self.message}",
            SENT: f"{self.file_name} was sent",
            FAILED: f"The file was not sent. When it was tried: {self.message}",
        }[self.state]


# With another one of these, the file is another one or goes elsewhere, where the next one is the first.
_FILE_NAMES = ("preset", "host", "port", "username", "folder")
PLACE = ("client_id", *_FILE_NAMES)


def add_delivery(
    connection: sa.Connection, actor: Actor, name: str, email: str, given: Mapping[str, Any], settings: Settings
) -> Delivery:
    """Adds a delivery to the vendor with an e-mail. Nothing is sent before an operator has approved its first file.
    `given`: its columns, and `secret`, the password or the private key; `client_id` may be None.

    Raises CommandError for an unknown vendor, preset or client, a bad host key, a server with a private address that no
    setting allows, a name that is taken, and a folder where another delivery has files of the same names.
    """
    vendor = find_vendor(connection, email)
    if list_deliveries(connection, name=name):
        raise CommandError(f"there is a delivery {name} already")
    row = _make_row(connection, name, vendor.email, given, settings)
    change = sa.insert(deliveries).values(name=name, vendor_id=vendor.id, **row)
    _record(connection, actor, Verb.DELIVERY_ADD, name, vendor.email, change)
    return find_delivery(connection, name)


def change_delivery(
    connection: sa.Connection, actor: Actor, name: str, given: Mapping[str, Any], settings: Settings
) -> Delivery:
    """Changes a delivery. `given`: as for `add_delivery`; what is not given stays. The next file to another receiver,
    or of another content, waits as the first one does. Raises CommandError as there."""
    found = find_delivery(connection, name)
    given = {**{column: getattr(found, column) for column in ("host_key", *PLACE)}, **given}
    row = _make_row(connection, name, found.vendor, given, settings)
    if any(row[column] != getattr(found, column) for column in PLACE):
        row |= {"since": sa.func.now(), "approved_digest": None}
    return _update(connection, actor, Verb.DELIVERY_SET, found, row)


def stop_delivery(connection: sa.Connection, actor: Actor, name: str, *, stopped: bool) -> Delivery:
    """Stops a delivery, even while its file has no name yet at the receiver, or starts it again. Raises CommandError if
    there is none."""
    verb = Verb.DELIVERY_STOP if stopped else Verb.DELIVERY_START
    return _update(connection, actor, verb, find_delivery(connection, name), {"stopped": stopped})


def approve_file(connection: sa.Connection, actor: Actor, name: str, digest: str) -> Delivery:
    """Lets the file with this digest leave, whatever it loses. Raises CommandError for another digest than that of the
    latest file of the delivery, and for a file that was sent."""
    found = find_delivery(connection, name)
    if found.digest != digest:
        latest = "none was made yet" if found.digest is None else f"the latest one is {found.digest}"
        raise CommandError(f"no file of {name} with this digest waits; {latest}")
    if found.state == SENT:
        raise CommandError(f"this file of {name} was sent already; `roster delivery send {name}` sends it once more")
    return _update(connection, actor, Verb.DELIVERY_APPROVE, found, {"approved_digest": digest})


def remove_delivery(connection: sa.Connection, actor: Actor, name: str) -> None:
    """Removes a delivery and its runs; the access log stays. Raises CommandError if there is none."""
    found = find_delivery(connection, name)
    change = sa.delete(deliveries).where(deliveries.c.id == found.id)
    _record(connection, actor, Verb.DELIVERY_REMOVE, name, found.vendor, change)


def find_delivery(connection: sa.Connection, name: str) -> Delivery:
    """Returns a delivery. Raises CommandError if there is none."""
    found = list_deliveries(connection, name=name)
    if not found:
        raise CommandError(f"there is no delivery {name}; `roster delivery list` shows all")
    return found[0]


def list_deliveries(
    connection: sa.Connection, *, name: str | None = None, vendor: str | None = None
) -> Sequence[Delivery]:
    """Lists the deliveries by name: that with a name, those of the vendor with an e-mail, or all."""
    # Before the rows: a run may end meanwhile.
    dead = frozenset(connection.scalars(_INTERRUPTED, {"made": MADE, "class": LOCK_CLASS}))
    run, sent = delivery_runs.alias(), delivery_runs.alias()
    latest = sa.select(run).where(run.c.delivery_id == deliveries.c.id).order_by(run.c.id.desc()).limit(1).lateral()
    sent_at = sa.select(sa.func.max(sent.c.finished_at)).where(
        sent.c.delivery_id == deliveries.c.id, sent.c.state == SENT
    )
    seen = sa.select(visible_feeds.c.revision).where(
        visible_feeds.c.vendor_id == deliveries.c.vendor_id, visible_feeds.c.feed_id == WHOLE
    )
    is_former = latest.c.revision.is_distinct_from(seen.scalar_subquery())
    at_receiver = sent_at.with_only_columns(sent.c.revision).order_by(sent.c.id.desc()).limit(1).scalar_subquery()
    rows = sa.select(
        deliveries,
        vendors.c.email.label("vendor"),
        vendors.c.name.label("vendor_name"),
        latest.c.id.label("run"),
        *(latest.c.state, latest.c.message, latest.c.digest, latest.c.file_name, latest.c.started_at.label("at")),
        sa.func.coalesce((latest.c.state == WAITING) & is_former, False).label("may_differ"),
        sent_at.scalar_subquery().label("sent_at"),
        at_receiver.is_distinct_from(seen.scalar_subquery()).label("has_changed"),
        sa.func.coalesce(vendors.c.enabled & oauth_clients.c.enabled, False).label("enabled"),
    ).select_from(
        deliveries.join(vendors, vendors.c.id == deliveries.c.vendor_id)
        .outerjoin(oauth_clients, oauth_clients.c.client_id == deliveries.c.client_id)
        .outerjoin(latest, sa.true())
    )
    if name is not None:
        rows = rows.where(deliveries.c.name == name)
    if vendor is not None:
        rows = rows.where(vendors.c.email == vendor)
    return [_read_delivery(row, dead) for row in connection.execute(rows.order_by(deliveries.c.name)).mappings()]


def end_files(connection: sa.Connection, actor: Actor, client_id: str, *, stops: bool) -> Sequence[Delivery]:
    """Returns the deliveries of a client whose access was changed that are not stopped; with `stops`, stops them. They
    need no secret, so they go on after its end."""
    found = [one for one in list_deliveries(connection) if one.client_id == client_id and not one.stopped]
    return [stop_delivery(connection, actor, one.name, stopped=True) for one in found] if stops else found


def describe_ended_files(connection: sa.Connection, found: Sequence[Delivery]) -> str:
    """Returns what becomes of deliveries as sentences, blank for none."""
    sending = list_sending(connection)
    said = {
        "Stopped:": [one for one in found if one.stopped],
        "Its files still go, because they need no secret:": [one for one in found if one.name in sending],
        "Files that cannot be sent any more, which each night says until their delivery is stopped:": [
            one for one in found if not one.stopped and one.name not in sending
        ],
    }
    return " ".join(f"{words} {_name_receivers(of_words)}." for words, of_words in said.items() if of_words)


def describe_switched_ways(connection: sa.Connection, vendor: Vendor) -> Sequence[str]:
    """Returns what becomes of the unused links and the deliveries of a vendor that was just enabled or disabled, as
    sentences, none if it has none."""
    links = describe_ended_links(connection, oauth_clients.c.vendor_id == vendor.id)
    found = [one for one in list_deliveries(connection, vendor=vendor.email) if not one.stopped]
    if not vendor.enabled:
        files = describe_ended_files(connection, found)
    else:
        sending = list_sending(connection)
        going = [one for one in found if one.name in sending]
        files = f"Its deliveries go on as they were: {_name_receivers(going)}." if going else ""
    return list(filter(None, [links, files]))


def _name_receivers(found: Sequence[Delivery]) -> str:
    return ", ".join(f"{one.name} to {one.host}" for one in found)


def list_sending(connection: sa.Connection) -> frozenset[str]:
    """Returns the names of the deliveries that are open ways."""
    return frozenset(
        way.delivery for ways in list_ways(connection).values() for way in ways if way.delivery is not None
    )


def _read_delivery(row: sa.RowMapping, dead: Collection[int]) -> Delivery:
    values = {name: row[name] for name in Delivery.__dataclass_fields__}
    if row["state"] == MADE and row["run"] in dead:
        values |= {"state": FAILED, "message": INTERRUPTED}
    texts = {name: values[name] and format_instant(values[name]) for name in ("since", "at", "sent_at")}
    return Delivery(**{**values, **texts, "contact": row["contact"] or row["vendor"]})


def list_runs(connection: sa.Connection, name: str, number: int) -> Sequence[Mapping[str, Any]]:
    """Lists the latest runs of a delivery, without what a later file is compared with."""
    left_out = {"schools", "sample", "delivery_id"}
    shown = [column for column in delivery_runs.c if column.name not in left_out]
    rows = sa.select(*shown).join(deliveries).where(deliveries.c.name == name).order_by(delivery_runs.c.id.desc())
    return [
        {name: format_instant(value) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in connection.execute(rows.limit(number)).mappings()
    ]


def read_secret(connection: sa.Connection, name: str, settings: Settings) -> str:
    """Returns the password or the private key of a delivery. Raises CommandError if another secret key of the service
    has sealed it."""
    sealed = connection.scalars(sa.select(deliveries.c.secret_sealed).where(deliveries.c.name == name)).one()
    try:
        return make_seal(settings.read_secret_key()).decrypt(bytes(sealed)).decode()
    except InvalidToken:
        raise CommandError(
            f"another ROSTER_SECRET_KEY has sealed the secret of {name}; give it again: `roster delivery set {name}` "
            "with --password or --key-file"
        ) from None


def _read_host_key(text: str) -> str:
    """Returns the type and the base64 of the first key of a line of `ssh-keyscan` or of a file of known hosts. Raises
    CommandError without a whole key of a type that the client of SFTP knows."""
    for kind, key in itertools.pairwise(text.split()):
        if kind in HOST_KEY_TYPES:
            with contextlib.suppress(ValueError, UnsupportedAlgorithm):
                load_ssh_public_key(f"{kind} {key}".encode())
                return f"{kind} {key}"
    if not text.strip():
        raise CommandError("the host key is empty: `ssh-keyscan` got no answer; are the name and the port right?")
    known = ", ".join(HOST_KEY_TYPES)
    raise CommandError(f"the host key is a type ({known}) and its base64, as `ssh-keyscan HOST` prints them")


def _make_row(
    connection: sa.Connection, name: str, email: str, given: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """Returns the columns that an operator gives of a delivery, checked, with the secret sealed."""
    client = choose_client(connection, email, require_preset(given["preset"]).version, given["client_id"])
    require_public(given["host"], given["port"], settings)
    _require_own_names(connection, name, given)
    row = {**given, "client_id": client.client_id, "host_key": _read_host_key(given["host_key"])}
    if "secret" in row:
        row["secret_sealed"] = make_seal(settings.read_secret_key()).encrypt(row.pop("secret").encode())
    return row


def _require_own_names(connection: sa.Connection, name: str, given: Mapping[str, Any]) -> None:
    """Raises CommandError if the files of another delivery have the same names in the same folder: each would overwrite
    those of the other, and both would be called sent."""
    others = (one for one in list_deliveries(connection) if one.name != name)
    own = _name_files(**{column: given[column] for column in _FILE_NAMES})
    for other in others:
        if _name_files(**{column: getattr(other, column) for column in _FILE_NAMES}) == own:
            raise CommandError(
                f"the files of the delivery {other.name} have the same names in this folder of {other.host}; name "
                "another folder, or remove the other delivery"
            )


def _name_files(preset: str, host: str, port: int, username: str, folder: str) -> tuple[object, ...]:
    """Returns what is the same for two deliveries whose files overwrite each other."""
    return require_preset(preset).zip_name, host.lower(), port, username, posixpath.normpath(folder)


def _update(connection: sa.Connection, actor: Actor, verb: Verb, found: Delivery, row: Mapping[str, Any]) -> Delivery:
    change = sa.update(deliveries).where(deliveries.c.id == found.id).values(**row)
    _record(connection, actor, verb, found.name, found.vendor, change)
    return find_delivery(connection, found.name)


def _record(connection: sa.Connection, actor: Actor, verb: Verb, name: str, vendor: str, change: sa.Executable) -> None:
    def read_state() -> State:
        left_out = {"id", "vendor_id", "secret_sealed", "since"}
        row = connection.execute(sa.select(deliveries).where(deliveries.c.name == name)).mappings().one_or_none()
        return None if row is None else {key: value for key, value in row.items() if key not in left_out}

    with recorded(connection, actor, verb, Subject("delivery", name, vendor=vendor), read_state):
        connection.execute(change)
