"""The label of a record opens it for exactly those who see it by its tables, whatever the roster and the grants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.roster.visibility import ContentRights, Viewer, row_is_visible
from tests.conftest import Tally
from tests.extent import examples

from .districts import CHANGES, District, move_school
from .world import World

TABLES = (tables.courses, tables.classes, tables.users, tables.demographics, tables.enrollments)
# Rosters, and the syncs that each has after its first load.
ROSTERS, SYNCS = examples(1, 1, 60), 6
CALLERS = 12


@dataclass(frozen=True)
class Caller:
    """What a caller sees of the orgs, and whether it sees guardians."""

    vendor: int
    granted: frozenset[str]
    visible: frozenset[str]
    guardians: bool


def opens(label: Mapping[str, frozenset[str]], caller: Caller) -> bool:
    """Whether a label opens its records for a caller: the rule of the labels in plain Python."""
    by_any = label["any_orgs"] & caller.granted or label["listed_orgs"] & caller.visible
    by_guardians = caller.guardians and label["guardian_orgs"] & caller.granted
    return label["all_orgs"] <= caller.granted and bool(by_any or by_guardians)


def read_labels(connection: sa.Connection, table: str) -> dict[str, Mapping[str, frozenset[str]]]:
    """The label of each record of a table, by id."""
    columns = ("all_orgs", "any_orgs", "guardian_orgs", "listed_orgs", "student_orgs", "teacher_orgs")
    found = sa.text(f"SELECT t.sourced_id, l.* FROM {table} t LEFT JOIN visibility_labels l ON l.id = t.label_id")
    return {
        row["sourced_id"]: {name: frozenset(row[name] or ()) for name in columns}
        for row in connection.execute(found).mappings()
    }


ORG = "EXISTS (SELECT FROM visible_orgs seen WHERE seen.vendor_id = :vendor AND seen.org_id = {}{})"
GRANTED = " AND seen.granted"
USER = f"""
    EXISTS (
        SELECT FROM user_roles held WHERE held.user_id = {{}} AND {ORG.format("held.org_id", GRANTED)}
            AND (:guardians OR held.role NOT IN ('guardian', 'parent', 'relative'))
    )
"""
CLASS = f"EXISTS (SELECT FROM classes taught WHERE {{}} AND {ORG.format('taught.school_id', GRANTED)})"
# Who sees a record, by the tables that its label follows from.
BY_TABLES = {
    "courses": f"{ORG.format('t.org_id', '')} "
    f"OR {CLASS.format('taught.course_id = t.sourced_id AND taught.status = ' + repr('active'))}",
    "classes": ORG.format("t.school_id", GRANTED),
    "users": USER.format("t.sourced_id"),
    "demographics": USER.format("t.sourced_id"),
    "enrollments": f"{ORG.format('t.school_id', GRANTED)} AND {CLASS.format('taught.sourced_id = t.class_id')} "
    f"AND {USER.format('t.user_id')}",
}


def read_by_tables(connection: sa.Connection, table: sa.Table, caller: Caller) -> set[str]:
    """The ids of the records that a caller sees by the tables."""
    rows = sa.text(f"SELECT t.sourced_id FROM {table.name} t WHERE {BY_TABLES[table.name]}")
    return set(connection.scalars(rows, {"vendor": caller.vendor, "guardians": caller.guardians}))


def read_visible(connection: sa.Connection, table: sa.Table, caller: Caller) -> set[str]:
    """The ids of the records that the service shows a caller."""
    rights = ContentRights(
        Viewer.ONE_VENDOR, caller.guardians, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
    )
    visible = sa.select(table.c.sourced_id).where(row_is_visible(table, table, rights))
    return set(connection.scalars(visible, {"vendor_id": caller.vendor}))


def list_callers(world: World, dice: Random) -> Iterator[Caller]:
    """Callers with random grants: nothing, single schools of some districts, whole districts."""
    name = next(iter(world.vendors))
    for place in range(CALLERS):
        # The first one has the grants of before the sync, also where their orgs came later.
        for district in ("a-d", "a-e", "b-d") if place else ():
            with world.engine.connect() as connection:
                orgs = tables.orgs.c
                own = sa.select(orgs.sourced_id).where(orgs.district_id == district, orgs.type == "school")
                schools = sorted(connection.scalars(own.where(orgs.status == "active")))
            some = dice.sample(schools, dice.randint(0, len(schools)))
            world.grant(name, district, dice.choice([None, some, some]))
        with world.engine.connect() as connection:
            vendor = connection.execute(
                sa.select(tables.vendors).where(tables.vendors.c.email == world.find_email(name))
            )
            number = vendor.one().id
            seen = connection.execute(
                sa.select(tables.visible_orgs).where(tables.visible_orgs.c.vendor_id == number)
            ).all()
        granted = frozenset(row.org_id for row in seen if row.granted)
        for guardians in (False, True):
            yield Caller(number, granted, frozenset(row.org_id for row in seen), guardians)


def add_wanderer(district: District) -> None:
    """A person with roles at twelve orgs, some of which are new."""
    for _ in range(9):
        CHANGES["a school opens"](district)
    user = district.add("users", district.name("u"), givenName="Wanderer")
    orgs = district.dice.sample(sorted(district.rows["orgs"]), 12)
    for org in orgs:
        word = district.dice.choice(["student", "teacher", "guardian", "aide"])
        key = district.name("r")
        district.add("roles", key, userSourcedId=user, roleType="primary", role=word, orgSourcedId=org)


@pytest.fixture
def engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A database for this test."""
    made = make_engine(make_database())
    yield made
    made.dispose()


@pytest.mark.parametrize("number", range(ROSTERS))
def test_a_label_opens_what_the_tables_open(engine: sa.Engine, tmp_path: Path, tally: Tally, number: int) -> None:
    world, dice, compared = World(engine, tmp_path, 2 * number), Random(number), 0
    try:
        add_wanderer(world.districts["a"])
        for place in range(SYNCS):
            feed = dice.choice("aab")
            district = world.districts[feed]
            district.dice = dice
            for name in dice.sample(sorted(CHANGES), 6 * min(place, 1)):
                CHANGES[name](district)
            if feed == "a" and place % 2:
                move_school(district)
            world.load(feed)
            for caller in list_callers(world, dice) if place % 2 else ():
                with engine.connect() as connection:
                    wrong, checked = compare(connection, caller)
                assert wrong == {}, caller
                compared += checked
    finally:
        world.close()
    tally(f"labels: {compared} records compared")


def compare(connection: sa.Connection, caller: Caller) -> tuple[dict[tuple[str, str], str], int]:
    """Returns the records for which tables, label and service differ, with what each says, and the number of all."""
    wrong, checked = {}, 0
    for table in TABLES:
        labels, by_tables = read_labels(connection, table.name), read_by_tables(connection, table, caller)
        shown = read_visible(connection, table, caller)
        checked += len(labels)
        for key, label in labels.items():
            said = (key in by_tables, opens(label, caller), key in shown)
            if len(set(said)) > 1:
                wrong[table.name, key] = f"seen by the tables, by its label, shown: {said}; label {dict(label)}"
    return wrong, checked


@pytest.mark.parametrize("number", range(ROSTERS))
def test_a_word_of_a_label_is_that_of_a_role_at_the_org(engine: sa.Engine, tmp_path: Path, number: int) -> None:
    """`/students` and `/teachers` ask for it."""
    world = World(engine, tmp_path, 2 * number)
    try:
        add_wanderer(world.districts["a"])
        world.load("a")
        with engine.connect() as connection:
            labels = read_labels(connection, "users")
            roles = {
                (role.user_id, role.role, role.org_id) for role in connection.execute(sa.select(tables.user_roles))
            }
    finally:
        world.close()
    for word in ("student", "teacher"):
        found = {(key, word, org) for key, label in labels.items() for org in label[f"{word}_orgs"]}
        assert found == {role for role in roles if role[1] == word}


def test_a_label_is_kept_once(engine: sa.Engine, tmp_path: Path) -> None:
    """Of a feed, no two labels say the same, and all numbers are those of labels."""
    world = World(engine, tmp_path)
    world.close()
    arrays = "feed_id, all_orgs, any_orgs, guardian_orgs, listed_orgs, student_orgs, teacher_orgs"
    with engine.connect() as connection:
        twins = connection.execute(
            sa.text(f"SELECT {arrays}, count(*) FROM visibility_labels GROUP BY {arrays} HAVING count(*) > 1")
        )
        assert twins.all() == []
        for table in TABLES:
            lost = f"SELECT sourced_id FROM {table.name} WHERE label_id NOT IN (SELECT id FROM visibility_labels)"
            assert connection.execute(sa.text(f"{lost} OR label_id IS NULL")).all() == []
