"""Makes rows of days of the access log from the rows of responses, once their day is over.

The rows of one vendor on one day are one transaction, so a run that is killed leaves either form of them, and the next
run goes on. The numbers of people are given here alone: no worker knows one, so none is out of date after a restore.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from roster_service.db.packed_bytes import split_bytes
from roster_service.db.tables import DAY_KEY, HASH_BYTES, audit, audit_days, disclosures

# Yesterday's rows stay as they are, too.
PAGE_DAYS = 1
# No vendor's day is begun later than so many seconds after the start: the other steps of the night wait. Only an
# upgrade leaves as much.
SECONDS = 100
# The rows that are read at once: up to 10,000 people each.
BATCH_ROWS = 25
_DAY = timedelta(days=1)
_read_key = attrgetter(*DAY_KEY)
_KEPT = ("vendor_id", *DAY_KEY, "at", "last_at", "request_id", "last_request_id", "answers", "records", "parts")


def fold_days(engine: sa.Engine, today: date | None = None, seconds: float = SECONDS) -> int:
    """Makes the rows of days, the oldest first. `today`: in UTC, None for the day that it is; `seconds`: as `SECONDS`.
    Returns the number of rows of responses that became a part of one."""
    end = time.monotonic() + seconds
    before = _begin(today or datetime.now(UTC).date()) - PAGE_DAYS * _DAY
    day = sa.cast(sa.func.timezone("UTC", audit.c.at), sa.Date)
    waiting = sa.select(day, audit.c.vendor_id).where(audit.c.at < before).distinct().order_by(day, audit.c.vendor_id)
    with engine.connect() as connection:
        units = connection.execute(waiting).all()
    folded = 0
    for unit in units:
        if time.monotonic() > end:
            break
        # In one snapshot: a row that a worker adds meanwhile is neither read nor deleted.
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
            # Before the snapshot: another run waits for this one.
            connection.exec_driver_sql(f"LOCK TABLE {audit_days.name} IN SHARE UPDATE EXCLUSIVE MODE")
            folded += _fold_day(connection, *unit)
    return folded


def _begin(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _fold_day(connection: sa.Connection, day: date, vendor_id: int) -> int:
    """Makes the rows of a vendor's day anew from its rows of both kinds. Returns the number of those of responses."""

    def is_of_day(log: Any) -> sa.ColumnElement[bool]:
        return sa.and_(log.c.vendor_id == vendor_id, log.c.at >= _begin(day), log.c.at < _begin(day) + _DAY)

    # Of one key, the row of the day comes first.
    order = (*DAY_KEY, "by", "at", "id")
    found = sa.select(disclosures).where(is_of_day(disclosures)).order_by(*(disclosures.c[name] for name in order))
    with connection.execute(found, execution_options={"yield_per": BATCH_ROWS}) as rows:
        # Its rows come as they were before this.
        _, folded = (connection.execute(sa.delete(log).where(is_of_day(log))).rowcount for log in (audit_days, audit))
        everybody: set[int] = set()
        for _, of_key in itertools.groupby(rows, _read_key):
            row, numbers, hashes = _join(of_key)
            joined = b"".join(hashes)
            hashes.clear()
            numbering = sa.func.number_people(joined, day, type_=audit_days.c.people.type)
            numbers.update(connection.execute(sa.select(numbering)).scalar_one())
            connection.execute(sa.insert(audit_days).values(**row, **_choose_form(row, numbers), people_of_day=0))
            everybody |= numbers
    connection.execute(sa.update(audit_days).where(is_of_day(audit_days)).values(people_of_day=len(everybody)))
    return folded


def _join(rows: Iterable[sa.Row[Any]]) -> tuple[dict[str, Any], set[int], set[bytes]]:
    """Returns the row of a day without its people, the numbers that they have, and the hashes of the others. `rows`:
    those of one key."""
    joined: dict[str, Any] = {}
    numbers: set[int] = set()
    hashes: set[bytes] = set()
    entries: set[bytes] = set()
    for row in rows:
        own = split_bytes(row.entries or b"", 16)
        if row.by == "page" and own and entries.issuperset(own):
            # A worker had moved it before, and ended before it deleted its file.
            continue
        entries.update(own)
        numbers.update(row.people or _list_bits(row.people_bits or b""))
        hashes.update(split_bytes((row.hashes or b"")[HASH_BYTES:], HASH_BYTES))
        if not joined:
            joined = {name: getattr(row, name) for name in _KEPT}
            continue
        joined["answers"] += row.answers
        joined["records"] += row.records
        joined["parts"] |= row.parts
        if row.at < joined["at"]:
            joined.update(at=row.at, request_id=row.request_id)
        if row.last_at >= joined["last_at"]:
            joined.update(last_at=row.last_at, last_request_id=row.last_request_id)
    return {**joined, "entries": b"".join(sorted(entries))}, numbers, hashes


def _choose_form(row: Mapping[str, Any], numbers: Collection[int]) -> Mapping[str, Any]:
    """Returns the columns of the people, of which the shorter form has a value."""
    if not numbers or len(numbers) * 4 <= max(numbers) // 8:
        return {"people": sorted(numbers)}
    digits = bytearray(b"0") * (max(numbers) + 1)
    for number in numbers:
        digits[-1 - number] = 0x31
    return {"people_bits": int(digits, 2).to_bytes(len(digits) // 8 + 1, "little")}


def _list_bits(packed: bytes) -> list[int]:
    """Returns the numbers of the bits that are set."""
    digits = f"{int.from_bytes(packed, 'little'):b}"
    return [number for number, digit in enumerate(reversed(digits)) if digit == "1"]
