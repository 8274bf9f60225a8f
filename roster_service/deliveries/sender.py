"""Makes the file of a delivery and sends it. The database knows each step before it is taken, so that a process that is
killed at any point leaves neither a part of a file under its name, nor sends one twice.

The file has no name and ends with the process: what waits for an operator is made anew, and is the same if the same
roster gives the same digest.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedRandom
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access_log.entries import Disclosure, GrantedDistricts, PersonHasher
from roster_service.access_log.writer import write_rows
from roster_service.accounts.parts import DELIVERIES_PATH
from roster_service.accounts.ways import FILE_METHOD
from roster_service.auth.agreed_rights import note_ended
from roster_service.auth.credentials.signing_keys import require_secret_key
from roster_service.db.instants import find_now
from roster_service.db.tables import deliveries, delivery_runs, exclusions
from roster_service.deliveries import accounts
from roster_service.deliveries.accounts import Delivery
from roster_service.deliveries.choices import require_preset
from roster_service.deliveries.guard import Content, find_feed_problems, find_losses, make_sample
from roster_service.deliveries.package import Package, Source, write_package
from roster_service.deliveries.sftp import Connect, Receiver, ReceiverError, open_sftp
from roster_service.deliveries.sources import make_source, open_snapshots
from roster_service.errors import CommandError, NotAgreedError, RosterServiceError, describe_fault, name_fault
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.roster.person_parts import encode_parts
from roster_service.serving.record_stream import admit
from roster_service.settings import Settings

# Behind the name of a file that is under way.
TEMPORARY = ".part"
# What the client raises if a server has not answered; what was asked of it may be done, or not.
NO_ANSWER = (TimeoutError, ConnectionError)
# Files that were sent within these days are compared, too: small losses of many nights are a large one.
COMPARED = timedelta(days=7)
_runs = delivery_runs.c
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sender:
    """Sends deliveries. `owner`: as the owner of the tables."""

    owner: sa.Engine
    settings: Settings
    connect: Connect = open_sftp

    def now(self) -> datetime:
        """Returns the present instant, in the time zone by which deliveries have their hours."""
        return find_now(self.settings.time_zone)

    def deliver(self, name: str) -> Delivery:
        """Makes the file of a delivery, and sends it unless it must wait for an operator. A run that was interrupted
        comes to its end first. Returns the delivery with the state of this run. Raises CommandError if there is no such
        delivery, it is stopped, or it is under way, and SettingError without the secret key of the service."""
        with self.owner.connect() as connection:
            require_secret_key(connection, self.settings)
        with self._hold(name), open_snapshots(self.owner, self.settings) as snapshots:
            found = self._find(name)
            if found.stopped:
                raise CommandError(f"the delivery {name} is stopped; `roster delivery start {name}` lets it go on")
            run_id = self._add_run(found)
            try:
                self._end_interrupted(found, run_id)
                with TemporaryFile() as file:
                    self._make_and_send(found, run_id, file, snapshots)
            except Exception as error:  # noqa: BLE001  (a fault, too, ends the run, and others are sent)
                if isinstance(error, NotAgreedError):
                    note_ended(self.owner)
                message = str(error) if isinstance(error, RosterServiceError) else name_fault(error)
                if not isinstance(error, (RosterServiceError, SQLAlchemyError, OSError)):
                    _log.error("fault: %s", describe_fault(error))
                # The file or a part of it may be at the receiver, although no answer said so: the next try looks.
                known = sa.case((_runs.file_name.is_(None), sa.func.now()))
                self._set(run_id, state=accounts.FAILED, message=message, finished_at=known)
            return self._find(name)

    def _find(self, name: str) -> Delivery:
        with self.owner.connect() as connection:
            return accounts.find_delivery(connection, name)

    def _make_and_send(self, found: Delivery, run_id: int, file: BufferedRandom, snapshots: sa.Engine) -> None:
        began = time.monotonic()
        with self.owner.connect() as connection:
            source = make_source(connection, found.client_id, require_preset(found.preset), self.settings)
        with snapshots.connect() as snapshot:
            package = write_package(snapshot, source, file)
        file.seek(0)
        sample = make_sample(self.settings.read_secret_key(), package.ids)
        content = Content(datetime.now(UTC), package.rows, package.schools, sample)
        limits = (self.settings.delivery_loss_percent, self.settings.hold_least_records)
        with self.owner.begin() as connection:
            file_name = self._name_file(connection, found, source.preset.zip_name)
            values = {name: getattr(package, name) for name in ("revision", "digest", "bytes", "rows", "schools")}
            change = sa.update(delivery_runs).where(_runs.id == run_id)
            seconds = time.monotonic() - began
            connection.execute(change.values(**values, sample=sample, seconds=seconds, file_name=file_name))
            losses = find_losses(content, list(_list_sent(connection, found, self.now())), *limits)
            reasons = [*losses, *find_feed_problems(connection, source.feeds.values(), self.settings)]
            is_approved = accounts.find_delivery(connection, found.name).approved_digest == package.digest
        if reasons and not is_approved:
            self._end(run_id, accounts.WAITING, "; ".join(reasons))
            return

        def require_unchanged() -> None:
            """Raises if the delivery was stopped or changed, or if the rights of the client or the roster have changed:
            somebody may have been erased."""
            now = self._find(found.name)
            if now.stopped:
                raise CommandError("it was stopped meanwhile")
            _require_same_place(found, now)
            with snapshots.connect() as snapshot:
                state = admit(snapshot, source.token.admission, source.token.vendor_id)
            if state.revision != package.revision:
                raise ReceiverError("the roster, or what the vendor may see, has changed since the file was made")

        with self._reach(found) as receiver:
            require_unchanged()
            self._record(run_id, found, source, package)
            self._upload(receiver, file, file_name if found.in_place else file_name + TEMPORARY, package.bytes)
            self._set(run_id, uploaded_at=sa.func.now())
            if not found.in_place:
                self._place(receiver, run_id, file_name, require_unchanged)
        self._end(run_id, accounts.SENT, None)

    @contextmanager
    def _reach(self, found: Delivery) -> Iterator[Receiver]:
        # One snapshot: no server may get the secret of another one.
        with self.owner.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            _require_same_place(found, accounts.find_delivery(connection, found.name))
            secret = accounts.read_secret(connection, found.name, self.settings)
        try:
            with self.connect(found, secret, self.settings) as receiver:
                yield receiver
        except OSError as error:
            raise ReceiverError(f"the delivery to {found.host} failed: {name_fault(error)}") from None

    def _name_file(self, connection: sa.Connection, found: Delivery, zip_name: str) -> str:
        """The name at the receiver: with the day, and a number if a file of the day was sent already."""
        wanted = PurePosixPath(zip_name.format(date=self.now().date()))
        of_day = (_runs.delivery_id == found.id, _runs.state == accounts.SENT, _runs.file_name.like(f"{wanted.stem}%"))
        number = connection.scalar(sa.select(sa.func.count()).where(*of_day))
        return str(wanted.with_stem(f"{wanted.stem}-{number + 1}")) if number and "{date}" in zip_name else str(wanted)

    def _record(self, run_id: int, found: Delivery, source: Source, package: Package) -> None:
        """Adds the row of the access log, before the first byte leaves."""
        token, hasher = source.token, PersonHasher(self.settings.read_secret_key())
        hashes = sorted(set(map(hasher.hash_id, package.ids["users"])))
        disclosure = Disclosure(
            at=datetime.now(UTC),
            vendor_id=token.vendor_id,
            caller=token.client_id,
            address=found.host,
            method=FILE_METHOD,
            path=f"{DELIVERIES_PATH}{found.preset}",
            scope=token.short_scopes,
            districts=GrantedDistricts(self.owner).find(token.vendor_id, token.grant_version),
            filter=None,
            records=sum(package.rows.values()),
            people=b"".join([hasher.check, *hashes]) if hashes else b"",
            parts=encode_parts(package.parts),
            request_id=f"delivery-{run_id}",
        )
        with self.owner.begin() as connection:
            write_rows(connection, [disclosure.make_line()])

    def _upload(self, receiver: Receiver, file: IO[bytes], name: str, size: int) -> None:
        receiver.putfo(file, name, confirm=False)
        # A drop box may not say what it has.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            there = receiver.stat(name).st_size
            if there != size:
                raise ReceiverError(f"the server has {there:,} bytes of {size:,}")

    def _place(self, receiver: Receiver, run_id: int, name: str, require_unchanged: Callable[[], None]) -> None:
        """Gives the file its name, if the vendor may still have it; else removes it."""
        try:
            require_unchanged()
            try:
                receiver.posix_rename(name + TEMPORARY, name)
            except NO_ANSWER:
                raise
            except OSError:
                # No `posix-rename`: the name must be free.
                with contextlib.suppress(OSError):
                    receiver.remove(name)
                receiver.rename(name + TEMPORARY, name)
        except NO_ANSWER:
            # The file may have its name by now: the next try looks.
            raise
        except (RosterServiceError, OSError) as error:
            # First, so that nobody takes the file for sent whose removal has no answer.
            self._set(run_id, uploaded_at=None)
            receiver.remove(name + TEMPORARY)
            if isinstance(error, RosterServiceError):
                raise
            raise CommandError(
                "the server lets nobody rename a file; if the receiver can bear to see a part of one, set --in-place"
            ) from None

    def _end_interrupted(self, found: Delivery, before: int) -> None:
        """Ends earlier runs whose end is not known: the file has its name already, or is removed."""
        own = (_runs.delivery_id == found.id, _runs.finished_at.is_(None), _runs.id < before)
        with self.owner.connect() as connection:
            is_here = (_runs.started_at >= found.since).label("is_here")
            runs = connection.execute(sa.select(delivery_runs, is_here).where(*own).order_by(_runs.id)).all()
        named = {run.file_name for run in runs if run.is_here and run.file_name is not None}
        absent = named if found.in_place else self._remove_parts(found, named)
        for run in runs:
            is_sent = run.is_here and run.uploaded_at is not None and run.file_name in absent
            part = ": a part of it may be at the receiver" if found.in_place and run.file_name is not None else ""
            message = run.message or f"its process ended before the file was sent{part}"
            self._end(run.id, *((accounts.SENT, None) if is_sent else (accounts.FAILED, message)))

    def _remove_parts(self, found: Delivery, names: Collection[str]) -> set[str]:
        """Removes the files that have no name yet, because their rights may have ended since: the next file has those
        of now. Returns the names of those that were not there."""
        absent = set[str]()
        if names:
            with self._reach(found) as receiver:
                for name in names:
                    try:
                        receiver.remove(name + TEMPORARY)
                    except FileNotFoundError:
                        absent.add(name)
                    except NO_ANSWER:
                        raise
                    except OSError:
                        # A server that lets nobody delete must not stop all files after this one.
                        continue
        return absent

    def _add_run(self, found: Delivery) -> int:
        add = sa.insert(delivery_runs).values(delivery_id=found.id, state=accounts.MADE).returning(_runs.id)
        with self.owner.begin() as connection:
            return int(connection.scalars(add).one())

    def _end(self, run_id: int, state: str, message: str | None) -> None:
        self._set(run_id, state=state, message=message, finished_at=sa.func.now())

    def _set(self, run_id: int, **values: Any) -> None:
        change = sa.update(delivery_runs).where(_runs.id == run_id).values(**values).returning(_runs.delivery_id)
        with self.owner.begin() as connection:
            own = connection.scalars(change).one_or_none()
            if values.get("state") == accounts.SENT:
                # An approval counts once.
                used = sa.update(deliveries).where(deliveries.c.id == own)
                connection.execute(used.values(approved_digest=None))

    @contextmanager
    def _hold(self, name: str) -> Iterator[None]:
        """Holds the lock of a delivery, so that nobody else sends it meanwhile. It ends with the process."""
        lock = {"class": accounts.LOCK_CLASS, "name": name}
        with self.owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.scalar(sa.text("SELECT pg_try_advisory_lock(:class, hashtext(:name))"), lock):
                raise CommandError(f"the delivery {name} is under way")
            try:
                yield
            finally:
                # It has ended already with the connection to a database that went away.
                with contextlib.suppress(SQLAlchemyError):
                    connection.execute(sa.text("SELECT pg_advisory_unlock(:class, hashtext(:name))"), lock)


def _require_same_place(found: Delivery, now: Delivery) -> None:
    """Raises CommandError if a delivery was changed such that its files go elsewhere, or its secret is another kind."""
    columns = (*accounts.PLACE, "since", "host_key", "has_private_key")
    if any(getattr(found, column) != getattr(now, column) for column in columns):
        raise CommandError("it was changed meanwhile")


def _list_sent(connection: sa.Connection, found: Delivery, now: datetime) -> Iterator[Content]:
    """Yields what the files had that were sent last: the last one first, and those of `COMPARED`."""
    own = sa.select(delivery_runs).where(
        _runs.delivery_id == found.id, _runs.state == accounts.SENT, _runs.started_at >= found.since
    )
    for number, run in enumerate(connection.execute(own.order_by(_runs.id.desc()).limit(100)).all()):
        if number and run.started_at < now - COMPARED:
            return
        erased = (exclusions.c.at > run.started_at) & (exclusions.c.kind.in_(list(ExclusionKind)))
        count = connection.scalar(sa.select(sa.func.count()).select_from(exclusions).where(erased)) or 0
        yield Content(run.started_at, run.rows, run.schools, run.sample, count)
