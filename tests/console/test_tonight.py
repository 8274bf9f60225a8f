"""Tonight says of random installations what SQL says that is written apart from it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from roster_service.accounts.districts import list_districts
from roster_service.change_log.actors import OperatorRole
from roster_service.console.views.runs import Urgency, read_run
from roster_service.console.views.tonight import MOST_FEEDS, MOST_IN_NEED, NAMED, Tonight, read_tonight
from roster_service.db.tables import feeds, quality_counts, roster_state, vendor_grants, vendors
from roster_service.settings import Settings
from tests.console.conftest import Console
from tests.console.histories import LAST, add_feed, add_feeds
from tests.extent import examples

# The state of each feed, from its latest run alone; a run without an end whose feed nobody loads was killed.
STATES = """
SELECT feeds.name, latest.id AS run,
    CASE WHEN latest.outcome = 'running' THEN 'interrupted' ELSE latest.outcome END AS outcome,
    (now() AT TIME ZONE :zone)::date BETWEEN coalesce(pause_from, 'infinity')
        AND coalesce(pause_until, '-infinity') AS is_paused,
    (SELECT count(*) FROM users WHERE users.feed_id = feeds.id AND status = 'active' AND EXISTS (
        SELECT FROM sync_runs good WHERE good.feed_id = feeds.id AND good.outcome IN ('done', 'partial')
    )) AS people,
    100.0 * latest.rejected / nullif((latest.files->0->>'rows')::int, 0) AS rejected_percent,
    EXISTS (SELECT FROM sync_runs loaded WHERE loaded.feed_id = feeds.id
        AND loaded.outcome IN ('done', 'partial', 'unchanged')) AS has_loaded
FROM feeds LEFT JOIN sync_runs latest ON latest.id = (SELECT max(id) FROM sync_runs WHERE feed_id = feeds.id)
WHERE feeds.state <> 'removed' ORDER BY feeds.name
"""
OUTCOMES = """
SELECT (SELECT coalesce((SELECT CASE outcome WHEN 'running' THEN 'interrupted' ELSE outcome END
    FROM sync_runs JOIN feeds ON feeds.id = feed_id
    WHERE name = :feed AND (started_at AT TIME ZONE :zone)::date = day::date ORDER BY sync_runs.id DESC LIMIT 1), '-'))
FROM generate_series((now() AT TIME ZONE :zone)::date - 13, (now() AT TIME ZONE :zone)::date, interval '1 day') day
"""


@pytest.fixture
def connection(console: Console) -> Iterator[sa.Connection]:
    """One whose changes are taken back, without any feed that is shown."""
    with console.engine.connect() as connection:
        connection.execute(sa.text("UPDATE feeds SET state = 'removed'"))
        yield connection
        connection.rollback()


# The outcomes after which nobody must act, whatever came later.
FINE = ("done", "unchanged", "partial", "discarded", "replaced")
# Half a day behind the prime meridian, at it and half a day before it.
ZONES = ("Etc/GMT+12", "UTC", "Pacific/Auckland")


def read(connection: sa.Connection, console: Console, zone: str = "UTC") -> Tonight:
    """The content of the page."""
    return read_tonight(make_visit(connection, console, zone))


def make_visit(connection: sa.Connection, console: Console, zone: str, **place: int) -> Any:
    """What the screens read of a visit of an owner."""
    settings = Settings(home=console.home, time_zone=ZoneInfo(zone))
    signed_in = SimpleNamespace(role=OperatorRole.OWNER)
    return SimpleNamespace(connection=connection, settings=settings, place=place, signed_in=signed_in)


def needs(row: Any, most_rejected: int) -> bool:
    """Whether a feed needs a person, by the rules of the documentation. `most_rejected`: in percent."""
    if row.is_paused:
        return bool(row.outcome == "held")
    if row.outcome is None or row.outcome in ("held", "refused", "stale", "missing", "interrupted"):
        return True
    return (row.outcome == "partial" and row.rejected_percent > most_rejected) or not row.has_loaded


def is_about_its_run(row: Any, most_rejected: int) -> bool:
    """Whether what a person must do is about the latest run of a feed."""
    bad = row.outcome in ("held", "refused", "stale", "missing", "interrupted")
    return bad or (row.outcome == "partial" and row.rejected_percent > most_rejected)


@pytest.mark.parametrize("seed", range(examples(12, 12, 60)))
def test_the_page_says_what_sql_says(console: Console, connection: sa.Connection, seed: int) -> None:
    count = random.Random(seed).choice((1, 3, 8, MOST_FEEDS, MOST_FEEDS + 1, 40))
    add_feeds(connection, count, seed)
    zone = ZONES[seed % len(ZONES)]
    page, rows = read(connection, console, zone), connection.execute(sa.text(STATES), {"zone": zone}).all()
    most = Settings().rejected_percent
    needy = {row.name for row in rows if needs(row, most)}
    loaded = sum(row.outcome in ("done", "partial", "unchanged") and not row.is_paused for row in rows)
    said = re.match(r"(\d+) of (\d+) feeds? loaded", page.sentence)
    assert said is not None
    assert (int(said[1]), int(said[2])) == (loaded, count)
    asked = re.search(r"(\d+) feeds? needs? you: ([^.]+)", page.sentence)
    assert (int(asked[1]) if asked else 0) == len(needy)
    if asked is not None and len(needy) > NAMED:
        words = Counter(row.outcome or "not loaded" for row in rows if row.name in needy)
        said_words = {word: int(number) for number, word in re.findall(r"(\d+) ([^,]+)", asked[2])}
        assert said_words.keys() - words.keys() <= {"never loaded", "not loaded"}, page.sentence
        assert sum(said_words.values()) == len(needy)
    elif asked is not None:
        assert asked[2].partition(", because ")[0] in needy
    assert page.is_good == (not needy)
    shown = {row.feed.name: row for row in page.rows}
    assert {name for name, row in shown.items() if row.task is not None} <= needy
    assert page.hidden == len(needy) - min(len(needy), MOST_IN_NEED if count > MOST_FEEDS else count)
    if count <= MOST_FEEDS:
        assert set(shown) == {row.name for row in rows}
    for row in rows:
        if row.name in shown:
            of_feed = shown[row.name]
            is_loaded = row.outcome in ("done", "partial", "unchanged")
            assert (of_feed.people or 0, of_feed.is_loaded) == (row.people, is_loaded)
            outcomes = connection.scalars(sa.text(OUTCOMES), {"feed": row.name, "zone": zone}).all()
            assert [outcome or "-" for outcome in of_feed.days] == outcomes
    needing = {row.run for row in rows if needs(row, most) and is_about_its_run(row, most)}
    runs = connection.execute(sa.text("SELECT id, outcome FROM sync_runs ORDER BY id DESC LIMIT 20")).all()
    for run, outcome in runs:
        urgency = read_run(make_visit(connection, console, zone, run=run)).urgency
        assert (urgency == Urgency.NEEDS) == (run in needing), (run, outcome, urgency)
        # Whatever is no task any more says that it is over.
        assert urgency != Urgency.FINE or outcome in FINE, (run, outcome)
    rest = [row for row in rows if row.name not in needy] if count > MOST_FEEDS else []
    words = Counter("paused" if row.is_paused else row.outcome for row in rest)
    assert {it.word: it.feeds for it in page.rest} == words
    assert sum(it.people for it in page.rest) == sum(row.people for row in rest)


def test_the_first_page_counts_the_people_whom_the_list_of_districts_counts(console: Console) -> None:
    """Also once somebody was taken out between two nights."""
    with console.engine.connect() as connection:
        connection.execute(sa.text("UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-2'"))
        of_feeds = {row.feed.name: row.people for row in read(connection, console).rows if row.good}
        of_districts: Counter[str] = Counter()
        for district in list_districts(connection):
            of_districts[district.feed] += district.users
        connection.rollback()
    assert of_feeds == dict(of_districts)


@pytest.mark.parametrize("kind", LAST)
def test_each_kind_of_last_run_is_named(console: Console, connection: sa.Connection, kind: str) -> None:
    add_feed(connection, kind, LAST[kind], ["done", "done"] if LAST[kind].outcome else [], 677, random.Random(1))
    page = read(connection, console)
    is_loaded = kind in ("done", "unchanged", "rejected")
    assert page.sentence.startswith(f"{int(is_loaded)} of 1 feed loaded")
    assert (", with rejected rows." in page.sentence) == (kind == "rejected")
    assert (", 1 is paused." in page.sentence) == (kind == "paused")
    if LAST[kind].message is not None:
        assert f"1 feed needs you: {kind}, because {LAST[kind].message}." in page.sentence


def test_a_change_is_that_of_the_type_that_changed_most(console: Console, connection: sa.Connection) -> None:
    add_feed(connection, "one", LAST["done"], ["done"], 1000, random.Random(3))
    for order, enrollments in (("ASC", 500), ("DESC", 250)):
        classes = 990 if order == "ASC" else 996
        numbers = {"users": 1000, "classes": classes, "enrollments": enrollments}
        counts = {name: {"unchanged": number} for name, number in numbers.items()}
        connection.execute(
            sa.text(
                "UPDATE sync_runs SET counts = CAST(:counts AS jsonb) WHERE id = (SELECT id FROM sync_runs "
                f"WHERE feed_id = (SELECT id FROM feeds WHERE name = 'one') ORDER BY id {order} LIMIT 1)"
            ),
            {"counts": json.dumps(counts)},
        )
    [row] = read(connection, console).rows
    assert row.growth is not None
    assert (row.growth.type, row.growth.before, row.growth.now, row.growth.percent) == ("enrollments", 500, 250, -50)


def test_what_no_nightly_sync_does_is_said_and_is_no_task(console: Console, connection: sa.Connection) -> None:
    assert read(connection, console).notices == []
    for number, name in enumerate(("one", "two", "three", "four")):
        add_feed(connection, name, LAST["done"], ["done"], 100, random.Random(number))
    page = read(connection, console)
    assert [notice.partition(",")[0] for notice in page.notices] == ["No nightly sync has ever run"]
    connection.execute(sa.update(roster_state).values(sync_channels=[]))
    page = read(connection, console)
    assert (page.notices, page.is_good, "Nothing needs you" in page.sentence) == ([], True, True)
    connection.execute(sa.update(feeds).where(feeds.c.name == "two").values(path=None))
    page = read(connection, console)
    assert page.notices == [
        "1 feed has no path, so no nightly sync loads it: two. Give each the path of its export, or upload it."
    ]
    assert (page.is_good, page.sentence) == (True, "4 of 4 feeds loaded. No decision waits for you.")
    assert {row.feed.name: [it.word for it in row.conditions] for row in page.rows} == {
        "one": ["done"],
        "two": ["done", "no path"],
        "three": ["done"],
        "four": ["done"],
    }
    # One that is disabled is left out on purpose.
    connection.execute(sa.update(feeds).where(feeds.c.name == "two").values(enabled=False))
    assert read(connection, console).notices == []
    connection.execute(sa.update(feeds).where(feeds.c.state != "removed").values(path=None, enabled=True))
    [notice] = read(connection, console).notices
    assert notice.startswith("4 feeds have no path, so none loads them: four, one, three, and others.")


def test_a_rule_that_opens_nothing_is_a_notice_and_no_task(console: Console, connection: sa.Connection) -> None:
    before = read(connection, console)
    assert before.empty_rules == []
    granted = {"district_id": "gone", "staff": "all", "guardians": True, "classes": "title~'Latin'"}
    vendor_id = connection.scalar(sa.select(sa.func.min(vendors.c.id)))
    connection.execute(sa.insert(vendor_grants).values(vendor_id=vendor_id, **granted))
    page = read(connection, console)
    [task] = page.empty_rules
    assert "no class of gone has title~'Latin' now, so this rule opens nothing" in task.text
    assert (page.is_good, page.sentence) == (before.is_good, before.sentence)


@pytest.mark.parametrize("role", [OperatorRole.VIEWER, OperatorRole.OBSERVER])
def test_values_that_can_hardly_be_right_are_named_with_their_feed(console: Console, role: OperatorRole) -> None:
    """The counts of the last revision are said, and what is often so in good exports is not."""
    rows = [
        {"revision": 1, "totals": {"name-with-at": 4000, "impossible-age": 7}},
        {"revision": 2, "totals": {"name-with-at": 3000, "impossible-age": 0, "classes-without-teacher": 9}},
    ]
    with console.engine.begin() as connection:
        feed_id = connection.scalars(sa.select(feeds.c.id).where(feeds.c.name == "springfield")).one()
        connection.execute(sa.delete(quality_counts))
        connection.execute(sa.insert(quality_counts), [{"feed_id": feed_id, **row} for row in rows])
    page = console.log_in(role).get("").text
    assert "Values that can hardly be right" in page
    [said] = re.findall(r"springfield</bdi></strong> .*?<bdi>([^<]*)</bdi>", page, re.DOTALL)
    assert said == "Names with an @: 3,000"
    assert ("/quality?feed=springfield" in page) is role.includes(OperatorRole.VIEWER)
    with console.engine.begin() as connection:
        connection.execute(sa.delete(quality_counts))
    assert "Values that can hardly be right" not in console.log_in(role).get("").text
