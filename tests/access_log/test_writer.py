"""The access log below the web: no row is lost or doubled, whatever ends or fails between an answer and the table."""

from __future__ import annotations

import gc
import json
import resource
import signal
import stat
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from roster_service.access_log import entries, spool, writer
from roster_service.access_log.entries import Disclosure, Entry, PersonHasher
from roster_service.access_log.reports import AccessLogFilter, read_access_log, read_usage
from roster_service.access_log.spool import REFUSED_NAME, Spool
from roster_service.access_log.writer import AccessLog
from roster_service.app import open_spool
from roster_service.db.engine import make_engine
from roster_service.db.tables import HASH_BYTES, audit
from roster_service.errors import RefusedRequestError
from roster_service.feeds.roster_state import read_database_id
from roster_service.settings import Settings
from tests.conditions import wait_for

MakeLog = Callable[..., AccessLog]
EVERYTHING = AccessLogFilter()


def make_entry(at: datetime | None = None) -> Entry:
    """A request of a vendor."""
    return Entry(at or datetime.now(UTC), 1, "key-0", None, "GET", "/x", 200, 10, 1)


def make_disclosure(request_id: str = "r", at: datetime | None = None) -> Disclosure:
    """A response with a record."""
    return Disclosure(
        at=at or datetime.now(UTC),
        vendor_id=1,
        caller="key-0",
        address="192.0.2.1",
        method="GET",
        path="/x",
        scope="v1p2/roster.readonly",
        districts=("a", "b"),
        filter="familyName='*'",
        records=1,
        people=bytes(12),
        parts=3,
        request_id=request_id,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the spool."""
    return tmp_path / "home" / "access-log"


@pytest.fixture
def make_log(engine: sa.Engine, folder: Path) -> Iterator[MakeLog]:
    """Makes the access log of a worker, on a database of this test's own."""
    made: list[AccessLog] = []

    def make(*, is_required: bool = True) -> AccessLog:
        made.append(AccessLog(engine, Spool(folder), is_required=is_required))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_process_keeps_nothing_of_a_log_that_was_closed(engine: sa.Engine, folder: Path) -> None:
    """Neither it nor its engine, until the process ends."""
    log = AccessLog(engine, Spool(folder), is_required=True)
    log.start()
    log.close()
    kept = weakref.ref(log)
    del log
    gc.collect()
    assert kept() is None


@pytest.fixture
def access_log(make_log: MakeLog) -> AccessLog:
    """The access log of a worker."""
    return make_log()


def read_ids(engine: sa.Engine) -> list[str]:
    """The ids of the requests in the table, in its order."""
    with engine.connect() as connection:
        return [row.request_id for row in read_access_log(connection, EVERYTHING)]


@contextmanager
def without_table(engine: sa.Engine) -> Iterator[None]:
    """The database refuses each row."""
    rename = "ALTER TABLE {} RENAME TO {}"
    with engine.begin() as connection:
        connection.execute(sa.text(rename.format("audit", "hidden")))
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text(rename.format("hidden", "audit")))


@contextmanager
def without_folder(folder: Path) -> Iterator[None]:
    """The disk refuses the folder of the spool."""
    folder.parent.write_text("a file where the data folder should be")
    yield
    folder.parent.unlink()


@contextmanager
def with_full_disk(room: int) -> Iterator[None]:
    """No file of this process may have more bytes than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- to the table -------------------------------------------------------------------------------------------------


def test_what_is_left_is_written_at_the_end(engine: sa.Engine, access_log: AccessLog, folder: Path) -> None:
    for _ in range(5):
        access_log.add(make_entry())
    access_log.record(make_disclosure())
    access_log.close()
    assert read_ids(engine) == ["r"]
    with engine.connect() as connection:
        assert [row.requests for row in read_usage(connection, None, None)] == [5]
    assert list(folder.iterdir()) == []


def test_rows_have_the_order_of_their_responses(engine: sa.Engine, make_log: MakeLog) -> None:
    """Those of one worker also within a millisecond."""
    first, second = make_log(), make_log()
    now = datetime.now(UTC)
    second.record(make_disclosure("later", now + timedelta(seconds=1)))
    second.flush()
    for number in range(20):
        first.record(make_disclosure(str(number), now))
    first.flush()
    assert read_ids(engine) == [*map(str, range(20)), "later"]


def test_a_database_that_is_away_loses_nothing(
    engine: sa.Engine, access_log: AccessLog, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the spool does not get a file with each attempt."""
    with without_table(engine):
        for number in range(5):
            access_log.add(make_entry())
            access_log.record(make_disclosure(str(number)))
            access_log.flush()
        assert len(list(folder.iterdir())) == 2
    access_log.flush()
    access_log.flush()
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "the access log does not answer",
        "the access log answers again",
    ]
    assert read_ids(engine) == [*map(str, range(5))]
    with engine.connect() as connection:
        assert [row.requests for row in read_usage(connection, None, None)] == [5]


# --- a worker that is killed ----------------------------------------------------------------------------------------

# Records disclosures, names each once its response could leave, and is killed before its thread begins.
KILLED = """
import sys, os, signal
from pathlib import Path
from roster_service.access_log.writer import AccessLog
from roster_service.access_log.spool import REFUSED_NAME, Spool
from roster_service.db.engine import make_engine
from tests.access_log.test_writer import make_disclosure
url, folder, name, count = sys.argv[1:]
log = AccessLog(make_engine(url), Spool(Path(folder)), is_required=True)
for number in range(int(count)):
    log.record(make_disclosure(f"{name}-{number}"))
    print(f"{name}-{number}", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_worker(engine: sa.Engine, folder: Path, name: str, count: int) -> list[str]:
    """Lets a process record disclosures and be killed; the ids of those that it recorded."""
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", KILLED, url, str(folder), name, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.split()


@pytest.mark.shows(
    "Access log",
    "Each answer with records has exactly one row, also if its worker is killed right after it.",
)
def test_another_worker_adopts_the_rows_of_a_killed_one(engine: sa.Engine, make_log: MakeLog, folder: Path) -> None:
    """And not those of a worker that lives, nor a line that was being written."""
    living = make_log()
    living.record(make_disclosure("living"))
    [own] = folder.iterdir()
    recorded = kill_worker(engine, folder, "killed", 3)
    [left] = set(folder.iterdir()) - {own}
    with left.open("ab") as out:
        out.write(make_disclosure("torn").make_line()[:-20])
    make_log().flush()
    assert read_ids(engine) == recorded == ["killed-0", "killed-1", "killed-2"]
    assert list(folder.iterdir()) == [own]


def read_id(url: str) -> str:
    """The id of a database."""
    engine = make_engine(url)
    with engine.connect() as connection:
        found = read_database_id(connection)
    engine.dispose()
    return found


def test_a_service_of_another_database_moves_no_row_and_says_so(
    make_database: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one of a copy of the database. Rows in the folder above are of nobody."""
    settings = Settings(home=tmp_path)
    ids = [read_id(make_database()) for _ in range(2)]
    own, other = (open_spool(settings, database_id) for database_id in ids)
    own.append(make_disclosure().make_line())
    own.close()
    [left] = settings.access_log_folder.rglob("*.jsonl")
    other.adopt()
    assert (other.list_waiting(), other.list_strangers()) == ((), [left])
    assert caplog.records == []
    open_spool(settings, ids[1])
    assert [record.getMessage() for record in caplog.records] == [
        f"1 files of the access log are of another database, as {left}: only a service of that database moves them"
    ]
    same = open_spool(settings, ids[0])
    same.adopt()
    assert (len(same.list_waiting()), same.list_strangers()) == (1, [])
    same.close()
    above = settings.access_log_folder / "above.jsonl"
    above.touch()
    assert same.list_strangers() == [above]


@pytest.mark.shows("Access log", "A crash between the commit of rows and the removal of their file doubles none.")
def test_a_crash_between_the_commit_and_the_removal_doubles_no_row(
    engine: sa.Engine, make_log: MakeLog, folder: Path
) -> None:
    recorded = kill_worker(engine, folder, "killed", 3)
    [left] = folder.iterdir()
    lines = left.read_bytes()
    make_log().flush()
    # As the crash leaves it, with a row that is not in the table yet.
    left.write_bytes(lines + make_disclosure("new").make_line())
    make_log().flush()
    assert read_ids(engine) == [*recorded, "new"]
    assert list(folder.iterdir()) == []


def test_damage_by_a_crash_of_the_machine_costs_the_damaged_rows_alone(
    engine: sa.Engine, make_log: MakeLog, folder: Path
) -> None:
    folder.mkdir(parents=True)
    lines = [make_disclosure("a").make_line(), bytes(50) + b"\n", b'{"at": \n', make_disclosure("b").make_line()]
    (folder / "damaged.jsonl").write_bytes(b"".join(lines))
    make_log().flush()
    assert read_ids(engine) == ["a", "b"]


@pytest.mark.parametrize("bound", [{"BATCH_ROWS": 2}, {"BATCH_BYTES": 3 * len(make_disclosure().make_line()) - 1}])
def test_a_file_is_moved_by_few_rows_at_once(
    engine: sa.Engine, make_log: MakeLog, folder: Path, monkeypatch: pytest.MonkeyPatch, bound: dict[str, int]
) -> None:
    """Few, and of few bytes. A longer row goes alone."""
    for name, value in bound.items():
        monkeypatch.setattr(spool, name, value)
    monkeypatch.setattr(writer, "write_rows", write := Mock(wraps=writer.write_rows))
    folder.mkdir(parents=True)
    ids = ["1", "2", "3", "long" * 300, "5"]
    (folder / "left.jsonl").write_bytes(b"".join(make_disclosure(it).make_line() for it in ids))
    make_log().flush()
    assert read_ids(engine) == ids
    sizes = [len(call.args[1]) for call in write.call_args_list]
    assert sizes == ([2, 2, 1] if "BATCH_ROWS" in bound else [2, 1, 1, 1])


def test_rows_that_the_database_refuses_are_put_aside_and_hold_up_no_other(
    engine: sa.Engine, make_log: MakeLog, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Aloud, without a value of the row, once, and for good."""
    folder.mkdir(parents=True)
    good = [make_disclosure(str(number)).make_line() for number in range(20)]
    refused = [bend(make_disclosure("refused").make_line()) for bend in REFUSED.values()]
    lines = [line for pair in zip(good, refused, strict=False) for line in pair] + good[len(refused) :]
    (folder / "left.jsonl").write_bytes(b"".join(lines))
    access_log = make_log()
    for _ in range(3):
        access_log.record(make_disclosure("later"))
        access_log.flush()
    assert read_ids(engine) == [*map(str, range(20)), "later", "later", "later"]
    assert [path.name for path in folder.iterdir()] == [REFUSED_NAME]
    aside = folder / REFUSED_NAME
    assert aside.read_bytes().splitlines(True) == refused
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(refused)
    assert all(message.startswith("the database refuses a row of the access log (") for message in messages)
    assert not [message for message in messages if "192.0.2.1" in message or "bent" in message]


def change_member(name: str, value: object) -> Callable[[bytes], bytes]:
    """Gives a member of a row another value."""
    return lambda line: json.dumps(json.loads(line) | {name: value}).encode() + b"\n"


def damage(damaged: bytes) -> Callable[[bytes], bytes]:
    """Puts bytes that are no text into a member of a row, as a crash of the machine may leave it."""
    return lambda line: line.replace(b'"/x"', b'"bent%b"' % damaged)


# Rows that PostgreSQL or its driver refuses.
REFUSED = {
    "no number": change_member("records", "bent"),
    "too large": change_member("records", 10**12),
    "no time": change_member("at", "bent"),
    "no bytes": change_member("people", "\\xbent"),
    "no array": change_member("districts", "bent"),
    "NUL": change_member("path", "bent\0"),
    "half a character": change_member("path", "bent\ud800"),
    "missing": change_member("vendor_id", None),
    "zeros": damage(bytes(50)),
    "no UTF-8": damage(b"\xff"),
}


def test_a_fault_ends_neither_the_thread_nor_the_counters(
    engine: sa.Engine, access_log: AccessLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named once, without its text."""
    with monkeypatch.context() as broken:
        broken.setattr(writer, "FLUSH_SECONDS", 0.01)
        broken.setattr(writer, "write_entries", fail := Mock(side_effect=RuntimeError("bent")))
        access_log.start()
        access_log.add(make_entry())
        wait_for(lambda: fail.call_count > 2)
    access_log.close()
    with engine.connect() as connection:
        assert [row.requests for row in read_usage(connection, None, None)] == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "the access log does not answer (RuntimeError); its entries wait",
        "the access log answers again",
    ]


def test_a_row_that_neither_the_database_nor_the_disk_takes_stays(
    engine: sa.Engine, make_log: MakeLog, folder: Path
) -> None:
    folder.mkdir(parents=True)
    line = REFUSED["no time"](make_disclosure().make_line())
    (folder / "left.jsonl").write_bytes(line)
    (folder / REFUSED_NAME).mkdir()
    access_log = make_log()
    access_log.flush()
    assert (folder / "left.jsonl").read_bytes() == line
    (folder / REFUSED_NAME).rmdir()
    access_log.flush()
    assert [path.name for path in folder.iterdir()] == [REFUSED_NAME]
    assert read_ids(engine) == []


# --- no disk, no database -------------------------------------------------------------------------------------------


@pytest.mark.shows("Access log", "Without a disk, the row is in the database before the answer leaves.")
@pytest.mark.parametrize("kind", ["no folder", "full disk"])
def test_without_a_disk_the_row_is_in_the_database_before_the_answer(
    engine: sa.Engine, make_log: MakeLog, folder: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    access_log = make_log()
    if kind == "no folder":
        with without_folder(folder):
            access_log.record(make_disclosure("refused"))
            assert read_ids(engine) == ["refused"]
        access_log.record(make_disclosure("after"))
    else:
        access_log.record(make_disclosure("before"))
        size = next(folder.iterdir()).stat().st_size
        # A part of a line has room.
        with with_full_disk(size + 20):
            access_log.record(make_disclosure("refused"))
        assert read_ids(engine) == ["refused"]
        access_log.record(make_disclosure("after"))
    access_log.flush()
    assert set(read_ids(engine)) == {"refused", "after"} | ({"before"} if kind == "full disk" else set())
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "the folder of the access log does not answer",
        "the folder of the access log answers again",
    ]


@pytest.mark.shows(
    "Access log",
    "An answer that cannot be recorded is 503, unless `ROSTER_ACCESS_LOG_REQUIRED` is `false`.",
)
def test_with_neither_the_answer_is_refused_and_no_row_claims_it(
    engine: sa.Engine, access_log: AccessLog, folder: Path
) -> None:
    with without_table(engine), without_folder(folder), pytest.raises(RefusedRequestError, match="access log"):
        access_log.record(make_disclosure())
    access_log.flush()
    assert read_ids(engine) == []


def test_an_answer_that_needs_no_row_leaves_and_its_row_waits(
    engine: sa.Engine, make_log: MakeLog, folder: Path
) -> None:
    access_log = make_log(is_required=False)
    with without_table(engine), without_folder(folder):
        access_log.record(make_disclosure())
        access_log.flush()
    access_log.flush()
    assert read_ids(engine) == ["r"]


# --- people -----------------------------------------------------------------------------------------------------------


def split_people(people: bytes) -> list[bytes]:
    """The check of the key, and the hashes."""
    return [people[start : start + HASH_BYTES] for start in range(0, len(people), HASH_BYTES)]


@pytest.mark.shows(
    "Access log",
    "After a restore no answer is of another person, and no number or order of hashes tells an id.",
)
def test_a_row_has_each_person_once_in_an_order_of_its_own() -> None:
    hasher = PersonHasher("k" * 40)
    ids = [f"person-{number}" for number in range(100)]
    check, *hashes = split_people(hasher.hash_people([*ids, *ids[:50]]))
    in_order = [hasher.hash_id(it) for it in ids]
    assert (check, sorted(hashes)) == (hasher.check, sorted(in_order))
    assert hashes != in_order
    assert hasher.hash_people([]) == b""


def test_a_worker_keeps_a_bounded_number_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And answers the same for more people."""
    monkeypatch.setattr(entries, "KEPT_HASHES", 10)
    hasher, other = PersonHasher("k" * 40), PersonHasher("k" * 40)
    for start in (0, 5, 50, 0):
        ids = [f"person-{number}" for number in range(start, start + 30)]
        assert set(split_people(hasher.hash_people(ids))) == {other.check, *map(other.hash_id, ids)}
        assert len(hasher._kept) == 10


# --- privacy --------------------------------------------------------------------------------------------------------


@pytest.mark.shows(
    "Access log",
    "Files on their way to the access log are their owner's alone, and have what the table has.",
)
def test_the_spool_is_private_and_holds_what_the_table_holds(access_log: AccessLog, folder: Path) -> None:
    access_log.record(make_disclosure())
    [file] = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert set(json.loads(file.read_bytes())) == {column.name for column in audit.c if column.identity is None}
