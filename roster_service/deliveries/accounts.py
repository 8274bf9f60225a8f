"""Deliveries, as operators add, list, approve and remove them. Each change needs an actor, and is one row of the change
log."""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.vendors import find_vendor
from roster_service.auth.credentials.signing_keys import make_seal
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import deliveries, delivery_runs, vendors
from roster_service.deliveries.sources import choose_client, require_preset
from roster_service.errors import CommandError
from roster_service.settings import Settings

MADE, WAITING, SENT, FAILED = "made", "waiting", "sent", "failed"
# The method of a file in the access log.
METHOD = "SFTP"


@dataclass(frozen=True)
class Delivery:
    """A delivery, without its secret. `host_key`: the type and the base64 of the only key that the server may have;
    `hour`: in the time zone of the settings, None: after the nightly sync; `contact`: to whom to write at the receiver;
    `state`, `message`, `digest`, `file_name`, `at`: of the latest run, None before the first; `sent_at`: of the last
    file that was sent."""

    name: str
    vendor: str
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
    approved_digest: str | None
    state: str | None
    message: str | None
    digest: str | None
    file_name: str | None
    at: datetime | None
    sent_at: datetime | None
    id: int

    @property
    def needs(self) -> bool:
        """Whether a person must act."""
        return self.state in (WAITING, FAILED)


@dataclass(frozen=True)
class Wanted:
    """What an operator gives for a new delivery; as in `Delivery`. `secret`: the password, or a private key."""

    name: str
    email: str
    client_id: str | None
    preset: str
    host: str
    port: int
    username: str
    folder: str
    host_key: str
    secret: str
    has_private_key: bool
    hour: int | None
    in_place: bool
    contact: str | None


def add_delivery(connection: sa.Connection, actor: Actor, wanted: Wanted, settings: Settings) -> Delivery:
    """Adds a delivery. Nothing is sent before an operator has approved its first file.

    Raises CommandError for an unknown vendor, preset or client, a bad host key, and a name that is taken.
    """
    preset = require_preset(wanted.preset)
    client = choose_client(connection, wanted.email, preset.version, wanted.client_id)
    if list_deliveries(connection, name=wanted.name):
        raise CommandError(f"there is a delivery {wanted.name} already")
    values: dict[str, Any] = {
        "name": wanted.name,
        "vendor_id": find_vendor(connection, wanted.email).id,
        "client_id": client.client_id,
        "secret_sealed": make_seal(settings.read_secret_key()).encrypt(wanted.secret.encode()),
        "host_key": _read_host_key(wanted.host_key),
    }
    same = ("preset", "host", "port", "username", "folder", "has_private_key", "hour", "in_place", "contact")
    with _recorded(connection, actor, Verb.DELIVERY_ADD, wanted.name, client.vendor):
        connection.execute(sa.insert(deliveries).values(**values, **{name: getattr(wanted, name) for name in same}))
    return find_delivery(connection, wanted.name)


def approve_file(connection: sa.Connection, actor: Actor, name: str, digest: str) -> Delivery:
    """Lets the file with this digest leave, whatever it loses. Raises CommandError for another digest than that of the
    latest file of the delivery."""
    found = find_delivery(connection, name)
    if found.digest != digest:
        latest = "none was made yet" if found.digest is None else f"the latest one is {found.digest}"
        raise CommandError(f"no file of {name} with this digest waits; {latest}")
    with _recorded(connection, actor, Verb.DELIVERY_APPROVE, name, found.vendor):
        connection.execute(sa.update(deliveries).where(deliveries.c.name == name).values(approved_digest=digest))
    return found


def remove_delivery(connection: sa.Connection, actor: Actor, name: str) -> None:
    """Removes a delivery and its runs; the access log stays. Raises CommandError if there is none."""
    found = find_delivery(connection, name)
    with _recorded(connection, actor, Verb.DELIVERY_REMOVE, name, found.vendor):
        connection.execute(sa.delete(deliveries).where(deliveries.c.name == name))


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
    run, sent = delivery_runs.alias(), delivery_runs.alias()
    latest = sa.select(run).where(run.c.delivery_id == deliveries.c.id).order_by(run.c.id.desc()).limit(1).lateral()
    sent_at = sa.select(sa.func.max(sent.c.finished_at)).where(
        sent.c.delivery_id == deliveries.c.id, sent.c.state == SENT
    )
    rows = sa.select(
        deliveries,
        vendors.c.email.label("vendor"),
        *(latest.c.state, latest.c.message, latest.c.digest, latest.c.file_name, latest.c.started_at.label("at")),
        sent_at.scalar_subquery().label("sent_at"),
    ).select_from(deliveries.join(vendors).outerjoin(latest, sa.true()))
    if name is not None:
        rows = rows.where(deliveries.c.name == name)
    if vendor is not None:
        rows = rows.where(vendors.c.email == vendor)
    names = Delivery.__dataclass_fields__
    found = connection.execute(rows.order_by(deliveries.c.name)).mappings()
    return [
        Delivery(**{name: row[name] for name in names} | {"contact": row["contact"] or row["vendor"]}) for row in found
    ]


def list_runs(connection: sa.Connection, name: str, number: int) -> Sequence[Mapping[str, Any]]:
    """Lists the latest runs of a delivery, without what a later file is compared with."""
    left_out = {"schools", "sample", "delivery_id"}
    shown = [column for column in delivery_runs.c if column.name not in left_out]
    rows = sa.select(*shown).join(deliveries).where(deliveries.c.name == name).order_by(delivery_runs.c.id.desc())
    return [dict(row) for row in connection.execute(rows.limit(number)).mappings()]


def read_secret(connection: sa.Connection, name: str, settings: Settings) -> str:
    """Returns the password or the private key of a delivery."""
    sealed = connection.scalars(sa.select(deliveries.c.secret_sealed).where(deliveries.c.name == name)).one()
    return make_seal(settings.read_secret_key()).decrypt(bytes(sealed)).decode()


def _read_host_key(text: str) -> str:
    """Returns the type and the base64 of a line of `ssh-keyscan` or of a file of known hosts. Raises CommandError."""
    words = text.split()
    for kind, key in itertools.pairwise(words):
        with contextlib.suppress(ValueError):
            if base64.b64decode(key, validate=True)[4:].startswith(kind.encode()):
                return f"{kind} {key}"
    raise CommandError("the host key is a type and its base64, as `ssh-keyscan HOST` prints them")


def _recorded(
    connection: sa.Connection, actor: Actor, verb: Verb, name: str, vendor: str
) -> AbstractContextManager[None]:
    def read_state() -> State:
        secret = {"id", "vendor_id", "secret_sealed", "created_at"}
        row = connection.execute(sa.select(deliveries).where(deliveries.c.name == name)).mappings().one_or_none()
        return None if row is None else {key: value for key, value in row.items() if key not in secret}

    return recorded(connection, actor, verb, Subject("delivery", name, vendor=vendor), read_state)
