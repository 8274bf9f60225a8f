"""The rows that say which visibility labels a vendor's orgs open, and which records each of them shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights
from roster_service.db import tables
from roster_service.roster.labels import LISTS
from roster_service.roster.visible_orgs import refresh_visible_orgs
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER

from .test_visible_orgs import email_of, prepare

# Which orgs are in which list of a label.
Lists = Mapping[str, Collection[str]]
# What a row opens: without the guardians' scope, students, teachers. None: there is no row.
Opens = tuple[bool, bool, bool] | None
RECORD, GUARDIANS = (True, False, False), (False, False, False)

# What each label opens to a vendor of the school d1-a, which sees the district d1 above it.
LABELS: dict[str, tuple[Lists, Opens]] = {
    "one of any": ({"any_orgs": ["d1-a", "d2-a"]}, RECORD),
    "none of any": ({"any_orgs": ["d1-b", "d2-a"]}, None),
    "any, which is seen and not granted": ({"any_orgs": ["d1"]}, None),
    "guardian": ({"guardian_orgs": ["d1-a"]}, GUARDIANS),
    "guardian elsewhere": ({"guardian_orgs": ["d1-b"]}, None),
    "guardian, and another role elsewhere": ({"any_orgs": ["d1-b"], "guardian_orgs": ["d1-a"]}, GUARDIANS),
    "guardian elsewhere, and another role": ({"any_orgs": ["d1-a"], "guardian_orgs": ["d1-b"]}, RECORD),
    "guardian, which is seen and not granted": ({"guardian_orgs": ["d1"]}, None),
    "listed": ({"listed_orgs": ["d1-a"]}, RECORD),
    "listed, which is seen and not granted": ({"listed_orgs": ["d1"]}, RECORD),
    "listed elsewhere": ({"listed_orgs": ["d2"]}, None),
    "student": ({"any_orgs": ["d1-a"], "student_orgs": ["d1-a"]}, (True, True, False)),
    "student elsewhere": ({"any_orgs": ["d1-a", "d1-b"], "student_orgs": ["d1-b"]}, RECORD),
    "teacher": ({"any_orgs": ["d1-a"], "teacher_orgs": ["d1-a"]}, (True, False, True)),
    "teacher elsewhere": ({"any_orgs": ["d1-a", "d1-b"], "teacher_orgs": ["d1-b"]}, RECORD),
    "student and teacher alone": ({"student_orgs": ["d1-a"], "teacher_orgs": ["d1-a"]}, None),
    "all": ({"all_orgs": ["d1-a"], "any_orgs": ["d1-a"]}, RECORD),
    "all, opened by a guardian": ({"all_orgs": ["d1-a"], "guardian_orgs": ["d1-a"]}, GUARDIANS),
    "one of all": ({"all_orgs": ["d1-a", "d1-b"], "any_orgs": ["d1-a"]}, None),
    "all, one of which is seen and not granted": ({"all_orgs": ["d1", "d1-a"], "any_orgs": ["d1-a"]}, None),
    "all alone": ({"all_orgs": ["d1-a"]}, None),
    "no org": ({}, None),
}
# What is another thing to a vendor of the whole district d1, and of nothing else.
TO_THE_DISTRICT: dict[str, Opens] = {
    **{name: opens for name, (_, opens) in LABELS.items()},
    "none of any": RECORD,
    "any, which is seen and not granted": RECORD,
    "guardian elsewhere": GUARDIANS,
    "guardian, and another role elsewhere": RECORD,
    "guardian, which is seen and not granted": GUARDIANS,
    "student elsewhere": (True, True, False),
    "teacher elsewhere": (True, False, True),
    "one of all": RECORD,
    "all, one of which is seen and not granted": RECORD,
}


@pytest.fixture
def labels(engine: sa.Engine) -> sa.Engine:
    """A writing engine on the base orgs with these labels, and the vendors without grants."""
    prepare(engine)
    rows = [
        {"feed_id": 1, "digest": name.encode(), **{column: list(lists.get(column, ())) for column in LISTS}}
        for name, (lists, _) in LABELS.items()
    ]
    with engine.begin() as connection:
        connection.execute(sa.insert(tables.visibility_labels), rows)
        vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ["d1-a"])
    return engine


def read_labels(engine: sa.Engine, vendor: str) -> dict[str, Opens]:
    """What each label opens to a vendor, by its rows, which all have the vendor's key of now."""
    seen, label, owner = tables.visible_labels, tables.visibility_labels, tables.vendors
    columns = (label.c.digest, seen.c.without_guardians, seen.c.opens_students, seen.c.opens_teachers)
    own = sa.and_(owner.c.id == seen.c.vendor_id, owner.c.email == email_of(vendor))
    found = sa.select(*columns, seen.c.key == owner.c.visibility_key).join(seen, seen.c.label_id == label.c.id)
    with engine.connect() as connection:
        rows = connection.execute(found.join(owner, own)).all()
    assert all(row[4] for row in rows)
    return dict.fromkeys(LABELS) | {row[0].decode(): (row[1], row[2], row[3]) for row in rows}


def test_what_a_label_opens_to_a_vendor_of_a_school(labels: sa.Engine) -> None:
    assert read_labels(labels, "one") == {name: opens for name, (_, opens) in LABELS.items()}
    assert read_labels(labels, "two") == dict.fromkeys(LABELS)


def test_what_a_label_opens_follows_the_grants(labels: sa.Engine) -> None:
    """Rows come, change and go."""
    with labels.begin() as connection:
        vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ())
    assert read_labels(labels, "one") == TO_THE_DISTRICT
    with labels.begin() as connection:
        vendor_rights.revoke(connection, TESTER, email_of("one"), "d1")
        vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ["d1-a"])
    assert read_labels(labels, "one") == {name: opens for name, (_, opens) in LABELS.items()}
    with labels.begin() as connection:
        vendor_rights.revoke(connection, TESTER, email_of("one"), "d1")
    assert read_labels(labels, "one") == dict.fromkeys(LABELS)


@pytest.mark.parametrize("column", ["without_guardians", "opens_students", "opens_teachers"])
def test_a_row_that_says_too_much_is_made_right(labels: sa.Engine, column: str) -> None:
    expected = read_labels(labels, "one")
    with labels.begin() as connection:
        connection.execute(sa.update(tables.visible_labels).values({column: True}))
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.visible_labels))
    assert read_labels(labels, "one") != expected
    with labels.begin() as connection:
        refresh_visible_orgs(connection, 1)
    assert read_labels(labels, "one") == expected


# What each label opens to a vendor of the school d1-b without rules, and of d1-a with rules.
NARROWED: dict[str, Opens] = {
    **dict.fromkeys(LABELS),
    "none of any": RECORD,
    "guardian elsewhere": GUARDIANS,
    "guardian, and another role elsewhere": RECORD,
    "guardian elsewhere, and another role": GUARDIANS,
    "listed, which is seen and not granted": RECORD,
    "student elsewhere": (True, True, False),
    "teacher elsewhere": (True, False, True),
}


@pytest.mark.parametrize(
    ("plain", "opened"),
    [
        pytest.param((), dict.fromkeys(LABELS), id="alone"),
        pytest.param(("d1-b",), NARROWED, id="beside a grant without rules"),
    ],
)
def test_no_label_opens_a_record_to_a_grant_with_rules(
    labels: sa.Engine, plain: Collection[str], opened: Mapping[str, Opens]
) -> None:
    """Its groups do."""
    with labels.begin() as connection:
        vendor_rights.revoke(connection, TESTER, email_of("one"), "d1")
        rules = Rules(students=None, classes=None, staff=Staff.ALL, guardians=True)
        vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ["d1-a"], rules=rules, even_nothing=True)
        for school in plain:
            vendor_rights.grant(connection, TESTER, email_of("one"), "d1", [school])
    assert read_labels(labels, "one") == opened
