"""The people whom the roster must not have: erased ones, and hidden ones.

The sync leaves them out of every export. The database has a keyed hash of each id: the key follows from the service's
secret key, so a copy of the database does not tell whether an id is among them.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.db.engine import make_engine
from roster_service.db.roles import find_owner_url
from roster_service.db.tables import exclusions, feeds, kept_people
from roster_service.errors import CommandError, SettingError

# Characters of the hash of an id, in hexadecimal, by which people name an exclusion.
REFERENCE_LENGTH = 16
_PURPOSE = b"roster exclusions"


class ExclusionKind(StrEnum):
    """Why the roster must not have a person."""

    # For good, with every trace.
    ERASED = "erased"
    # Until the person is shown again; the history of runs stays.
    HIDDEN = "hidden"


class IdHasher:
    """Hashes ids with the key of a service. `secret_key`: of the service."""

    def __init__(self, secret_key: str) -> None:
        self._key = hmac.digest(secret_key.encode(), _PURPOSE, "sha256")
        # An id has at least one character, so no id has this hash.
        self.check = self.hash_id("")

    def hash_id(self, sourced_id: str) -> bytes:
        """Returns the keyed hash of an id."""
        return hmac.digest(self._key, sourced_id.encode(), "sha256")

    def name_id(self, sourced_id: str) -> str:
        """Returns the reference by which the change log and people name the person with an id."""
        return make_reference(self.hash_id(sourced_id))


def make_reference(id_hash: bytes) -> str:
    """Returns the reference of an exclusion with this hash."""
    return id_hash.hex()[:REFERENCE_LENGTH]


@dataclass(frozen=True)
class Exclusion:
    """A person whom the roster must not have. `reference`: the beginning of the hash; `sourced_id`: None for an erased
    person."""

    reference: str
    kind: ExclusionKind
    sourced_id: str | None
    at: datetime


def renew_statistics(engine: sa.Engine) -> None:
    """Makes PostgreSQL take new samples of all tables, as their owner: the old ones have values of people who were
    erased or purged since. It leaves those of a table without any row."""
    with engine.connect() as connection:
        owner = make_engine(find_owner_url(connection).render_as_string(hide_password=False))
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    owner.dispose()


def find_renewal(connection: sa.Connection) -> datetime | None:
    """Returns when `renew_statistics` last ended; None if the database does not know it, as after a crash of its
    server. Loads take samples of other tables than the one that it asks about."""
    found: datetime | None = connection.scalar(
        sa.text("SELECT last_analyze FROM pg_stat_user_tables WHERE relid = 'roster_state'::regclass")
    )
    return found


def list_exclusions(connection: sa.Connection) -> list[Exclusion]:
    """Lists the exclusions, the oldest first."""
    rows = connection.execute(sa.select(exclusions).order_by(exclusions.c.at, exclusions.c.id_hash))
    return [
        Exclusion(make_reference(bytes(row.id_hash)), ExclusionKind(row.kind), row.sourced_id, row.at) for row in rows
    ]


def count_named(connection: sa.Connection) -> int:
    """Returns how many people somebody has taken out, or kept from a vendor, by their ids."""
    kept = sa.select(sa.func.count(sa.distinct(kept_people.c.user_id))).where(kept_people.c.until.is_(None))
    return len(list_exclusions(connection)) + connection.execute(kept).scalar_one()


def require_none_named(connection: sa.Connection, command: str) -> None:
    """Raises CommandError if there are such people, for a run whose ids are other ones. `command`: that begins the run,
    and takes the other ids of these people."""
    if count := count_named(connection):
        people = "1 person is" if count == 1 else f"{count:,} people are"
        raise CommandError(
            f"{people} erased, hidden or kept from a vendor by the earlier id, and would come back under another one; "
            f"name the new ids with `{command} --excluded REFERENCE=NEWID`, or say `--others-gone`"
        )


def list_under_other_keys(connection: sa.Connection, hasher: IdHasher) -> set[str]:
    """Returns the references of the exclusions that were made with another secret key: no run is loaded while there
    are any."""
    found = sa.select(exclusions.c.id_hash).where(exclusions.c.key_check != hasher.check)
    return {make_reference(bytes(id_hash)) for id_hash in connection.scalars(found)}


def find_exclusion(connection: sa.Connection, *references: str) -> Exclusion | None:
    """Returns the exclusion with one of these references; None if there is none."""
    return next((found for found in list_exclusions(connection) if found.reference in references), None)


def store_exclusion(connection: sa.Connection, hasher: IdHasher, kind: ExclusionKind, sourced_id: str) -> None:
    """Excludes the person with an id. An erased person stays erased if hidden later; the clear id of somebody who is
    hidden under another key goes."""
    values = {"kind": kind, "sourced_id": sourced_id if kind is ExclusionKind.HIDDEN else None}
    row = upsert(exclusions).values(id_hash=hasher.hash_id(sourced_id), key_check=hasher.check, **values)
    connection.execute(
        row.on_conflict_do_update(
            index_elements=[exclusions.c.id_hash], set_=values, where=exclusions.c.kind == ExclusionKind.HIDDEN
        )
    )
    if kind is ExclusionKind.ERASED:
        is_other = exclusions.c.key_check != hasher.check
        connection.execute(sa.delete(exclusions).where(exclusions.c.sourced_id == sourced_id, is_other))


def delete_exclusion(connection: sa.Connection, reference: str) -> None:
    """Ends an exclusion. The next run of each feed reads its whole export, so that the person comes back."""
    wanted = [
        id_hash
        for id_hash in connection.scalars(sa.select(exclusions.c.id_hash))
        if make_reference(id_hash) == reference
    ]
    connection.execute(sa.delete(exclusions).where(exclusions.c.id_hash.in_(wanted)))
    connection.execute(sa.update(feeds).values(last_digest=None, fingerprinted=False))


@dataclass(frozen=True)
class ExcludedPeople:
    """The people whom a run leaves out."""

    hashes: frozenset[bytes]
    hasher: IdHasher

    def includes(self, sourced_id: str) -> bool:
        """Returns whether the person with an id is one of them."""
        return self.hasher.hash_id(sourced_id) in self.hashes


def read_excluded(connection: sa.Connection, secret_key: str | None) -> ExcludedPeople | None:
    """Reads the people whom a run leaves out; None if there are none. `secret_key`: None if the run has none.

    Raises SettingError if an exclusion was made with another secret key: the run would bring the person back.
    """
    rows = connection.execute(sa.select(exclusions.c.id_hash, exclusions.c.key_check)).all()
    if not rows:
        return None
    if secret_key is None:
        raise SettingError(
            "people are erased or hidden, and this run has no ROSTER_SECRET_KEY to know them by; give it the settings "
            "of the service"
        )
    hasher = IdHasher(secret_key)
    if any(bytes(row.key_check) != hasher.check for row in rows):
        raise SettingError(
            "people were erased or hidden under another ROSTER_SECRET_KEY, and this run would bring them back; set "
            "that key, or, if it is lost, erase or hide these people again with `--even-unknown`, and then end what "
            "`roster person list` shows under another key"
        )
    return ExcludedPeople(frozenset(bytes(row.id_hash) for row in rows), hasher)
