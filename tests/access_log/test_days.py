"""The rows of days of the access log answer as the rows of responses do, of which the nightly sync makes them."""

from __future__ import annotations

import dataclasses
import itertools
import random
import subprocess
import threading
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import Disclosure, PersonHasher
from roster_service.access_log.reports import (
    AccessLogFilter,
    AccessLogRow,
    count_unsearchable,
    read_access_log,
    was_disclosed,
)
from roster_service.access_log.writer import write_rows
from roster_service.db.tables import DAY_KEY, audit, audit_days, audit_people
from roster_service.roster.person_parts import list_parts
from roster_service.settings import Settings
from sync_scripts.access_log_days import fold_days
from sync_scripts.retention import delete_expired
from tests.db.schema_snapshot import PG_DUMP
from tests.extent import examples

SEEDS = range(examples(1, 1, 30))
HASHER, OTHER = PersonHasher("k" * 40), PersonHasher("o" * 40)
PEOPLE = [f"person-{number}" for number in range(74)]
TODAY = date(2026, 11, 20)
FIELDS = ("vendor_id", *(name for name in DAY_KEY if name != "hash_check"))
Key = tuple[Any, ...]
# A disclosure, and the people who were shown.
Shown = tuple[Disclosure, frozenset[str]]


def make_shown(dice: random.Random, number: int, *, days: int = 4) -> Shown:
    """A disclosure on one of the last days, with few or many people, or nobody."""
    people = frozenset(dice.sample(PEOPLE, dice.choice((0, 1, 2, 30, 60))))
    at = datetime(2026, 11, 20, tzinfo=UTC) - timedelta(
        days=dice.randint(0, days), milliseconds=-dice.randrange(86_400_000)
    )
    made = Disclosure(
        at=at,
        vendor_id=dice.randint(1, 3),
        caller=dice.choice(("client", "key-1")),
        address=dice.choice(("192.0.2.1", None)),
        method="GET",
        path=dice.choice(("/users", "/users/{sourcedId}")),
        scope="v1p2/roster.readonly",
        districts=dice.choice((("a", "b"), ("a",), None)),
        filter=dice.choice((None, "status='*'")),
        records=dice.randint(1, 9),
        people=HASHER.hash_people(people),
        parts=dice.choice((0, 1, 2, 6, 1 << 17)),
        request_id=f"request-{number}",
    )  # fmt: skip
    return made, people


def make_lines(shown: Sequence[Shown]) -> list[bytes]:
    return [disclosure.make_line() for disclosure, _ in shown]


def write(engine: sa.Engine, lines: Sequence[bytes]) -> None:
    with engine.begin() as connection:
        write_rows(connection, lines)


def ask(engine: sa.Engine, **wanted: Any) -> list[AccessLogRow]:
    with engine.connect() as connection:
        return read_access_log(connection, AccessLogFilter(**wanted))


def read_key(row: Any, day: date) -> Key:
    """What the responses of a row have in common."""
    values = {**dataclasses.asdict(row), "vendor_id": int(getattr(row, "vendor_id", 0) or row.vendor)}
    return (day, *(tuple(it) if isinstance(it, (list, tuple)) else it for it in map(values.get, FIELDS)))


def list_keys(rows: Sequence[AccessLogRow]) -> set[Key]:
    return {read_key(row, datetime.fromisoformat(row.at).date()) for row in rows}


def answer_plainly(shown: Sequence[Shown], person: str) -> set[Key]:
    """The keys of the disclosures that had a person, as a plain model has them."""
    return {read_key(disclosure, disclosure.at.date()) for disclosure, people in shown if person in people}


@pytest.mark.shows("Access log", "Rows of days answer for each person as rows of pages do, late or doubled ones too.")
@pytest.mark.parametrize("seed", SEEDS)
def test_days_answer_for_each_person_as_pages_and_a_plain_model_do(engine: sa.Engine, seed: int) -> None:
    """74 people, 300 disclosures, of which some come after the rows of their day were made."""
    dice = random.Random(seed)
    shown = [make_shown(dice, number) for number in range(300)]
    lines = make_lines(shown)
    answers = {person: answer_plainly(shown, person) for person in PEOPLE}

    def differ() -> list[str]:
        return [it for it in PEOPLE if list_keys(ask(engine, person=HASHER.hash_id(it))) != answers[it]]

    write(engine, lines[:250])
    fold_days(engine, TODAY)
    write(engine, lines)
    assert differ() == []
    fold_days(engine, TODAY)
    assert differ() == []
    rows = ask(engine)
    old = [it for it, _ in shown if it.at.date() < TODAY - timedelta(days=1)]
    assert {it.request_id for it, _ in shown if it not in old} == {row.request_id for row in rows if row.by == "page"}
    fold_days(engine, TODAY + timedelta(days=2))
    assert differ() == []
    rows = ask(engine)
    assert {row.by for row in rows} == {"day"}
    for person, vendor in itertools.product(PEOPLE[:9], (1, 2, 3)):
        found = list_keys(ask(engine, person=HASHER.hash_id(person), vendor_id=vendor, district="b"))
        assert found == {
            key for key in answers[person] if key[1] == vendor and "b" in (key[FIELDS.index("districts") + 1] or ())
        }
    check_sums(rows, shown)
    everybody: dict[tuple[int, date], set[str]] = {}
    for disclosure, people in shown:
        everybody.setdefault((disclosure.vendor_id, disclosure.at.date()), set()).update(people)
    with engine.connect() as connection:
        counted = connection.execute(sa.select(audit_days.c.vendor_id, audit_days.c.at, audit_days.c.people_of_day))
        found_people = {(vendor_id, at.date(), number) for vendor_id, at, number in counted}
    assert found_people == {(*key, len(people)) for key, people in everybody.items()}


def check_sums(rows: Sequence[AccessLogRow], shown: Sequence[Shown]) -> None:
    """Each disclosure counts once, in the row of its key."""
    of_key: dict[Key, list[Disclosure]] = {}
    for disclosure, _ in sorted(shown, key=lambda it: it[0].at):
        of_key.setdefault(read_key(disclosure, disclosure.at.date()), []).append(disclosure)
    found: dict[Key, list[AccessLogRow]] = {}
    for row in rows:
        found.setdefault(read_key(row, datetime.fromisoformat(row.at).date()), []).append(row)
    assert found.keys() == of_key.keys()
    for key, disclosures in of_key.items():
        # The responses without people have a row of their own.
        assert sum(row.answers for row in found[key]) == len(disclosures)
        assert sum(row.records for row in found[key]) == sum(it.records for it in disclosures)
        parts = {part for it in disclosures for part in list_parts(it.parts)}
        assert {part for row in found[key] for part in row.parts} == parts
        assert min(row.at for row in found[key]) == disclosures[0].at.isoformat(timespec="milliseconds")
        assert max(row.last_at for row in found[key]) == disclosures[-1].at.isoformat(timespec="milliseconds")
        assert disclosures[0].request_id in {row.request_id for row in found[key]}
        assert disclosures[-1].request_id in {row.last_request_id for row in found[key]}


@pytest.mark.shows("Access log", "Rows of days answer for each person as rows of pages do, late or doubled ones too.")
def test_a_response_that_is_moved_again_after_its_day_counts_once(engine: sa.Engine) -> None:
    """As after a crash between the commit of rows and the removal of their file, on a machine that comes back later."""
    shown = [make_shown(random.Random(number), number) for number in range(20)]
    lines = make_lines(shown)
    for _ in range(3):
        write(engine, lines)
        fold_days(engine, TODAY + timedelta(days=9))
    check_sums(ask(engine), shown)


def test_rows_without_known_people_are_counted_by_day_too(engine: sa.Engine) -> None:
    shown = [make_shown(random.Random(number), number) for number in range(30)]
    write(engine, make_lines(shown))
    with engine.begin() as connection:
        number = sa.cast(sa.func.substr(audit.c.request_id, len("request-") + 1), sa.Integer)
        people = sa.case((number < 9, OTHER.hash_people(["x"])), else_=audit.c.people)
        connection.execute(sa.update(audit).values(people=people))
    for fold in (False, True):
        if fold:
            fold_days(engine, TODAY + timedelta(days=9))
        with engine.connect() as connection:
            assert count_unsearchable(connection, AccessLogFilter(), HASHER.check) == 9
            assert was_disclosed(connection, OTHER.hash_id("x"))
            assert not was_disclosed(connection, HASHER.hash_id("nobody"))


@pytest.mark.shows(
    "Access log",
    "After a restore no answer is of another person, and no number or order of hashes tells an id.",
)
def test_after_a_restore_no_answer_is_of_another_person(engine: sa.Engine, tmp_path: Path) -> None:
    """Others get the numbers that were given after the backup."""
    url, backup = engine.url.set(drivername="postgresql").render_as_string(hide_password=False), tmp_path / "backup"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run([PG_DUMP.with_name(program), *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    def add(first: int, last: int) -> Shown:
        ids = [f"{number}-person" for number in range(first, last)]
        shown = make_large(ids, f"caller-{first}-{last}")
        write(engine, make_lines([shown]))
        fold_days(engine, TODAY)
        return shown

    before = add(0, 100)
    run("pg_dump", "--format=custom", f"--file={backup}", url)
    add(100, 150)
    engine.dispose()
    run("pg_restore", "--clean", "--if-exists", "--exit-on-error", f"--dbname={url}", str(backup))
    shown = [before, add(120, 200)]
    for number in range(0, 200, 7):
        person = f"{number}-person"
        assert list_keys(ask(engine, person=HASHER.hash_id(person))) == answer_plainly(shown, person)


@pytest.mark.parametrize(
    ("numbers", "form"),
    [
        pytest.param(range(20_000), "people_bits", id="all people"),
        pytest.param(range(0, 20_000, 3), "people_bits", id="a third"),
        pytest.param(range(0, 20_000, 700), "people", id="few"),
        pytest.param([], "people", id="nobody"),
    ],
)
def test_people_are_stored_in_the_shorter_form(engine: sa.Engine, numbers: Sequence[int], form: str) -> None:
    ids = [f"person-{number}" for number in range(20_000)]
    write(engine, make_lines([make_large(ids, "everyone"), make_large([ids[number] for number in numbers], "some")]))
    fold_days(engine, TODAY)
    with engine.connect() as connection:
        row = connection.execute(sa.select(audit_days).where(audit_days.c.request_id == "some")).one()
        assert [name for name in ("people", "people_bits") if getattr(row, name) is not None] == [form]
    chosen = set(numbers)
    for number in (0, 1, 2, 3, 700, 1400, 19_998, 19_999):
        found = {row.request_id for row in ask(engine, person=HASHER.hash_id(ids[number]))}
        assert found == ({"everyone", "some"} if number in chosen else {"everyone"})


def make_large(ids: Sequence[str], name: str) -> Shown:
    """A disclosure of some days ago to a caller of this name."""
    made, _ = make_shown(random.Random(0), 0)
    at = datetime(2026, 11, 10, tzinfo=UTC)
    changed = dataclasses.replace(made, at=at, caller=name, people=HASHER.hash_people(ids), request_id=name)
    return changed, frozenset(ids)


@pytest.mark.shows(
    "Access log",
    "After a restore no answer is of another person, and no number or order of hashes tells an id.",
)
def test_numbers_do_not_follow_the_order_of_the_ids(engine: sa.Engine) -> None:
    ids = [f"person-{number:04}" for number in range(500)]
    write(engine, make_lines([make_large(ids, "everyone")]))
    fold_days(engine, TODAY)
    with engine.connect() as connection:
        numbers = dict(map(tuple, connection.execute(sa.select(audit_people.c.hash, audit_people.c.number))))
    order = [numbers[HASHER.hash_id(it)] for it in ids]
    rising = sum(former < later for former, later in itertools.pairwise(order))
    assert 200 < rising < 300
    assert sorted(order) == list(range(1, 501))


def test_yesterday_stays_by_page(engine: sa.Engine) -> None:
    made, people = make_large(PEOPLE, "x")
    midnight = datetime(2026, 11, 19, tzinfo=UTC)
    instants = {"before": midnight - timedelta(milliseconds=1), "yesterday": midnight}
    shown = [(dataclasses.replace(made, at=at, request_id=name), people) for name, at in instants.items()]
    write(engine, make_lines(shown))
    assert fold_days(engine, TODAY) == 1
    assert {row.request_id: row.by for row in ask(engine)} == {"before": "day", "yesterday": "page"}


def test_a_run_that_has_no_time_left_leaves_the_rest_to_the_next_one(engine: sa.Engine) -> None:
    shown = [make_shown(random.Random(number), number) for number in range(20)]
    write(engine, make_lines(shown))
    assert fold_days(engine, TODAY + timedelta(days=9), seconds=-1) == 0
    assert fold_days(engine, TODAY + timedelta(days=9)) == 20
    assert fold_days(engine, TODAY + timedelta(days=9)) == 0
    check_sums(ask(engine), shown)


@pytest.mark.shows("Access log", "Rows of days answer for each person as rows of pages do, late or doubled ones too.")
def test_two_runs_at_once_count_each_response_once(engine: sa.Engine) -> None:
    """And a row that a worker adds meanwhile is not lost."""
    shown = [make_shown(random.Random(number), number) for number in range(300)]
    lines = make_lines(shown)
    write(engine, lines[:200])
    threads = [threading.Thread(target=fold_days, args=(engine, TODAY + timedelta(days=9))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(200, 300, 10):
        write(engine, lines[start : start + 10])
    for thread in threads:
        thread.join()
    fold_days(engine, TODAY + timedelta(days=9))
    check_sums(ask(engine), shown)


@pytest.mark.shows("Access log", "A hash ends at most a week after the last row of its person.")
def test_no_hash_stays_longer_than_a_week_after_the_last_row(engine: sa.Engine) -> None:
    """A number that is in a later row stays, with its answers."""
    today = datetime.now(UTC)
    made, _ = make_large([], "x")

    def show(days: int, *people: str) -> None:
        at = today - timedelta(days=days)
        write(engine, [dataclasses.replace(made, at=at, people=HASHER.hash_people(people)).make_line()])
        fold_days(engine)

    def list_known() -> set[str]:
        delete_expired(engine, Settings(log_days=30, retention_days=7))
        with engine.connect() as connection:
            hashes = set(connection.scalars(sa.select(audit_people.c.hash)))
            assert {it for it in ("old", "often", "new") if was_disclosed(connection, HASHER.hash_id(it))} == found
        return {it for it in ("old", "often", "new") if HASHER.hash_id(it) in hashes}

    show(60, "old", "often")
    show(55, "often")
    show(40, "often")
    show(29, "often", "new")
    found = {"often", "new"}
    assert list_known() == {"often", "new"}
    with engine.begin() as connection:
        for column in (audit_days.c.at, audit_days.c.last_at):
            connection.execute(sa.update(audit_days).values({column: column - timedelta(days=5)}))
    found = set()
    assert list_known() == {"often", "new"}
    with engine.begin() as connection:
        connection.execute(sa.update(audit_people).values(last_day=audit_people.c.last_day - 9))
    assert list_known() == set()
