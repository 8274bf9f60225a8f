"""Makes the file of a delivery and sends it. The database knows each step before it is taken, so that a process that is
killed at any point leaves neither a part of a file under its name, nor sends one twice.

The file has no name and ends with the process: what waits for an operator is made anew, and is the same if the same
roster gives the same digest.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any

import sqlalchemy as sa
from cryptography.fernet import InvalidToken
from sqlalchemy.exc import SQLAlchemyError

from roster_service.accounts.parts import DELIVERIES_PATH
from roster_service.auth.access_log.entries import Disclosure, GrantedDistricts, PersonHasher
from roster_service.auth.access_log.writer import write_rows
from roster_service.db.instants import find_now
from roster_service.db.tables import deliveries, delivery_runs, exclusions
from roster_service.deliveries.accounts import FAILED, MADE, METHOD, SENT, WAITING, Delivery, find_delivery, read_secret
from roster_service.deliveries.guard import Content, find_feed_problems, find_losses, make_sample
from roster_service.deliveries.package import Package, Source, write_package
from roster_service.deliveries.sftp import Connect, Receiver, ReceiverError, open_sftp
from roster_service.deliveries.sources import make_source, open_snapshot, require_preset
from roster_service.errors import CommandError, RosterServiceError, name_fault
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.serving.record_stream import admit
from roster_service.settings import Settings

# Behind the name of a file that is under way.
TEMPORARY = ".part"
# The first number of the locks of deliveries, "Delv".
_LOCK_CLASS = 0x44656C76
# Files that were sent within these days are compared, too: small losses of many nights are a large one.
COMPARED = timedelta(days=7)
_runs = delivery_runs.c


@dataclass(frozen=True)
class Ended:
    """The end of a run. `delivery`, `vendor`: their name and e-mail; `retries`: whether another try may succeed."""

    delivery: str
    vendor: str
    state: str
    message: str | None
    digest: str | None
    file_name: str | None
    retries: bool = False


@dataclass(frozen=True)
class Sender:
    """Sends deliveries. `owner`: as the owner of the tables."""

    owner: sa.Engine
    settings: Settings
    connect: Connect = open_sftp

    def now(self) -> datetime:
        """Returns the present instant, in the time zone by which deliveries have their hours."""
        return find_now(self.settings.time_zone)

    def deliver(self, name: str) -> Ended:
        """Makes the file of a delivery, and sends it unless it must wait for an operator. A run that was interrupted
        comes to its end first. Raises CommandError if there is no such delivery, or it is under way."""
        with self.owner.connect() as connection:
            found = find_delivery(connection, name)
        with _hold(self.owner, name):
            run_id: int | None = None
            try:
                self._end_interrupted(name)
                run_id = self._add_run(name)
                with TemporaryFile() as file:
                    return self._make_and_send(name, run_id, file)
            except (RosterServiceError, SQLAlchemyError, InvalidToken, OSError) as error:
                message = str(error) if isinstance(error, RosterServiceError) else name_fault(error)
                if run_id is None:
                    run_id = self._add_run(name)
                self._set(run_id, state=FAILED, message=message, finished_at=sa.func.now())
                retries = isinstance(error, ReceiverError | SQLAlchemyError)
                return Ended(name, found.vendor, FAILED, message, None, None, retries)

    def _make_and_send(self, name: str, run_id: int, file: IO[bytes]) -> Ended:
        began = time.monotonic()
        with self.owner.connect() as connection:
            found = find_delivery(connection, name)
            source = make_source(connection, found.client_id, require_preset(found.preset), self.settings)
        with open_snapshot(self.owner, self.settings) as snapshot:
            package = write_package(snapshot, source, file)
        content = _make_content(package, self.settings.read_secret_key())
        kept = {"rows": content.rows, "schools": content.schools, "sample": content.sample}
        with self.owner.begin() as connection:
            file_name = self._name_file(connection, name, source)
            reasons = self._find_reasons(connection, name, content, package.digest, source)
            values = {"revision": package.revision, "digest": package.digest, "bytes": package.bytes, **kept}
            change = sa.update(delivery_runs).where(_runs.id == run_id)
            connection.execute(change.values(**values, seconds=time.monotonic() - began, file_name=file_name))
        if reasons:
            message = "; ".join(reasons)
            self._set(run_id, state=WAITING, message=message, finished_at=sa.func.now())
            return Ended(name, found.vendor, WAITING, message, package.digest, None)
        file.seek(0)
        with self._reach(found) as receiver:
            self._require_unchanged(source, package.revision)
            self._record(run_id, source, package, found.host)
            self._upload(receiver, file, file_name, package.bytes, in_place=found.in_place)
            self._set(run_id, uploaded_at=sa.func.now())
            self._place(receiver, file_name, source, package.revision, in_place=found.in_place)
        self._set(run_id, state=SENT, finished_at=sa.func.now())
        return Ended(name, found.vendor, SENT, None, package.digest, file_name)

    @contextmanager
    def _reach(self, found: Delivery) -> Iterator[Receiver]:
        with self.owner.connect() as connection:
            secret = read_secret(connection, found.name, self.settings)
        try:
            with self.connect(found, secret, self.settings) as receiver:
                yield receiver
        except OSError as error:
            raise ReceiverError(f"the delivery to {found.host} failed: {name_fault(error)}") from None

    def _find_reasons(
        self, connection: sa.Connection, name: str, content: Content, digest: str, source: Source
    ) -> list[str]:
        """Why the file must wait; nothing if an operator has approved this very file."""
        row = connection.execute(sa.select(deliveries).where(deliveries.c.name == name)).one()
        if row.approved_digest == digest:
            return []
        sent = list(_list_sent(connection, row.id, self.now()))
        limits = (self.settings.delivery_loss_percent, self.settings.hold_least_records)
        losses = find_losses(content, sent, *limits)
        return [*losses, *find_feed_problems(connection, source.token.vendor_id, self.settings)]

    def _name_file(self, connection: sa.Connection, name: str, source: Source) -> str:
        """The name at the receiver: with the day, and a number if a file of the day was sent already."""
        wanted = PurePosixPath(source.preset.zip_name.format(date=self.now().date()))
        if "{date}" not in source.preset.zip_name:
            return str(wanted)
        of_day = _runs.file_name.like(f"{wanted.stem}%")
        own = sa.select(sa.func.count()).join(deliveries).where(deliveries.c.name == name, _runs.state == SENT, of_day)
        number = connection.scalar(own.select_from(delivery_runs)) or 0
        return str(wanted.with_stem(f"{wanted.stem}-{number + 1}")) if number else str(wanted)

    def _require_unchanged(self, source: Source, revision: int) -> None:
        """Raises if the rights of the client or the roster have changed: somebody may have been erased."""
        with open_snapshot(self.owner, self.settings) as snapshot:
            state = admit(snapshot, source.token.admission, source.token.vendor_id)
        if state.revision != revision:
            raise ReceiverError("the roster, or what the vendor may see, has changed since the file was made")

    def _record(self, run_id: int, source: Source, package: Package, host: str) -> None:
        """Adds the row of the access log, before the first byte leaves."""
        token, hasher = source.token, PersonHasher(self.settings.read_secret_key())
        hashes = sorted(set(map(hasher.hash_id, package.people)))
        preset = next(iter(self._read_run(run_id, deliveries.c.preset)))
        disclosure = Disclosure(
            at=datetime.now(UTC),
            vendor_id=token.vendor_id,
            caller=token.client_id,
            address=host,
            method=METHOD,
            path=f"{DELIVERIES_PATH}{preset}",
            scope=token.short_scopes,
            districts=GrantedDistricts(self.owner).find(token.vendor_id, token.grant_version),
            filter=None,
            records=sum(package.rows.values()),
            people=b"".join([hasher.check, *hashes]) if hashes else b"",
            request_id=f"delivery-{run_id}",
        )
        with self.owner.begin() as connection:
            write_rows(connection, [disclosure.make_line()])

    def _upload(self, receiver: Receiver, file: IO[bytes], name: str, size: int, *, in_place: bool) -> None:
        name += "" if in_place else TEMPORARY
        receiver.putfo(file, name, confirm=False)
        # A drop box may not say what it has.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            there = receiver.stat(name).st_size
            if there != size:
                raise ReceiverError(f"the server has {there:,} bytes of {size:,}")

    def _place(self, receiver: Receiver, name: str, source: Source, revision: int, *, in_place: bool) -> None:
        """Gives the file its name, if the vendor may still have it."""
        if in_place:
            return
        try:
            self._require_unchanged(source, revision)
        except CommandError:
            receiver.remove(name + TEMPORARY)
            raise
        try:
            receiver.posix_rename(name + TEMPORARY, name)
            return
        except OSError:
            # No `posix-rename`: the name must be free.
            with contextlib.suppress(OSError):
                receiver.remove(name)
        try:
            receiver.rename(name + TEMPORARY, name)
        except OSError:
            with contextlib.suppress(OSError):
                receiver.remove(name + TEMPORARY)
            raise CommandError(
                "the server lets nobody rename a file; if the receiver can bear to see a part of one, add the delivery "
                "anew with --in-place"
            ) from None

    def _end_interrupted(self, name: str) -> None:
        """Ends runs whose process was killed: the file has its name already, or is removed."""
        with self.owner.connect() as connection:
            delivery = find_delivery(connection, name)
            own = (
                sa.select(delivery_runs).join(deliveries).where(deliveries.c.name == name, _runs.finished_at.is_(None))
            )
            found = connection.execute(own.order_by(_runs.id)).all()
        for run in found:
            state: str = FAILED
            message: str | None = "its process ended before the file was sent"
            if run.file_name is not None:
                with self._reach(delivery) as receiver:
                    state, message = self._end_run(receiver, run, in_place=delivery.in_place)
            self._set(run.id, state=state, message=message, finished_at=sa.func.now())

    def _end_run(self, receiver: Receiver, run: sa.Row[Any], *, in_place: bool) -> tuple[str, str | None]:
        """Ends a run, of which a file may be at the receiver. Returns its state and message."""
        lost = "its process ended before the file was whole"
        if in_place:
            return (SENT, None) if run.uploaded_at else (FAILED, f"{lost}: a part of it may be at the receiver")
        with contextlib.suppress(FileNotFoundError):
            # Its rights may have ended since. The next file has those of now.
            receiver.remove(run.file_name + TEMPORARY)
            return FAILED, "its process ended before the file had its name"
        # It has got its name, and the receiver may have taken it since.
        return (SENT, None) if run.uploaded_at else (FAILED, lost)

    def _add_run(self, name: str) -> int:
        own = sa.select(deliveries.c.id, sa.literal(MADE)).where(deliveries.c.name == name)
        add = sa.insert(delivery_runs).from_select(["delivery_id", "state"], own).returning(_runs.id)
        with self.owner.begin() as connection:
            return int(connection.scalars(add).one())

    def _read_run(self, run_id: int, *columns: sa.ColumnElement[Any]) -> sa.Row[Any]:
        with self.owner.connect() as connection:
            own = sa.select(*columns).select_from(delivery_runs.join(deliveries)).where(_runs.id == run_id)
            return connection.execute(own).one()

    def _set(self, run_id: int, **values: Any) -> None:
        change = sa.update(delivery_runs).where(_runs.id == run_id).values(**values).returning(_runs.delivery_id)
        with self.owner.begin() as connection:
            own = connection.scalars(change).one()
            if values.get("state") == SENT:
                # An approval counts once.
                used = sa.update(deliveries).where(deliveries.c.id == own)
                connection.execute(used.values(approved_digest=None))


def _make_content(package: Package, secret_key: str) -> Content:
    return Content(datetime.now(UTC), package.rows, package.schools, make_sample(secret_key, package.ids))


def _list_sent(connection: sa.Connection, delivery_id: int, now: datetime) -> Iterator[Content]:
    """Yields what the files had that were sent last: the last one first, and those of `COMPARED`."""
    own = sa.select(delivery_runs).where(_runs.delivery_id == delivery_id, _runs.state == SENT)
    for number, run in enumerate(connection.execute(own.order_by(_runs.id.desc()).limit(100)).all()):
        if number and run.started_at < now - COMPARED:
            return
        erased = (exclusions.c.at > run.started_at) & (exclusions.c.kind.in_(list(ExclusionKind)))
        count = connection.scalar(sa.select(sa.func.count()).select_from(exclusions).where(erased)) or 0
        yield Content(run.started_at, run.rows, run.schools, run.sample, count)


@contextmanager
def _hold(owner: sa.Engine, name: str) -> Iterator[None]:
    """Holds the lock of a delivery, so that nobody else sends it meanwhile. It ends with the process."""
    lock = {"class": _LOCK_CLASS, "name": name}
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.scalar(sa.text("SELECT pg_try_advisory_lock(:class, hashtext(:name))"), lock):
            raise CommandError(f"the delivery {name} is under way")
        try:
            yield
        finally:
            connection.execute(sa.text("SELECT pg_advisory_unlock(:class, hashtext(:name))"), lock)
