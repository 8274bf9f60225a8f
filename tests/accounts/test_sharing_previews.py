"""Previews of grants: what they count is what the vendor then sees, and nothing is changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.kept_people import keep_from_vendor
from roster_service.accounts.vendors import Grant
from roster_service.db.tables import classes, group_members, user_roles, users, vendor_grants
from roster_service.errors import CommandError
from roster_service.feeds.sharing_previews import KINDS, SharingPreview
from roster_service.roster.visibility import VENDOR, ContentRights, Viewer, role_is_visible, row_is_visible
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER
from tests.postgres.loaded import load_districts

EMAIL, DISTRICT = "previewed@vendor.example", "spr-district"
RIGHTS = ContentRights(
    viewer=Viewer.RULED_VENDOR, guardians=True, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
)
STATES: dict[str, Sequence[Grant]] = {
    "nothing": [],
    "the district": [Grant(DISTRICT)],
    "a school": [Grant(DISTRICT, "spr-high")],
    "a grade": [Grant(DISTRICT, rules=Rules("grades~'03,10'", None, Staff.ALL, guardians=True))],
    "a subject": [Grant(DISTRICT, rules=Rules(None, "subjects~'Mathematics'", Staff.CLASSES, guardians=True))],
    "both": [Grant(DISTRICT, "spr-high", rules=Rules("grades~'11'", "title~'s'", Staff.NONE, guardians=False))],
    "two rules": [
        Grant(DISTRICT, "spr-high", rules=Rules(None, "classCode='CHEM-1.1'", Staff.CLASSES, guardians=True)),
        Grant(DISTRICT, rules=Rules("grades~'03'", None, Staff.NONE, guardians=True)),
    ],
    "a school and a rule": [
        Grant(DISTRICT, "spr-elementary"),
        Grant(DISTRICT, "spr-high", rules=Rules("grades~'11'", None, Staff.NONE, guardians=False)),
    ],
}
# Of each kind of people one, whom some of these states open.
KEPT = ("spr-student-6", "spr-teacher-1", "spr-guardian-1")
Seen = set[tuple[str, str, str]]


@pytest.fixture
def set_grants(engine: sa.Engine) -> Callable[[Sequence[Grant]], Seen]:
    """Makes the grants of a vendor, from whom people are kept, these. Returns what the vendor then sees, as (kind, id,
    org)."""
    load_districts(engine)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "previewed")
        for person in KEPT:
            keep_from_vendor(connection, vendors.find_vendor(connection, EMAIL).id, person)

    def change(grants: Sequence[Grant]) -> Seen:
        with engine.begin() as connection:
            vendor = vendor_rights.set_district_grant(connection, TESTER, EMAIL, DISTRICT, [])
            for item in grants:
                schools = [] if item.school_id is None else [item.school_id]
                vendor_rights.grant(connection, TESTER, EMAIL, DISTRICT, schools, rules=item.rules, even_nothing=True)
            values = {VENDOR.key: vendor.id}
            held = sa.select(user_roles.c.role, user_roles.c.user_id, user_roles.c.org_id)
            held = held.join(users, users.c.sourced_id == user_roles.c.user_id).where(users.c.status == "active")
            roles = connection.execute(held.where(role_is_visible(user_roles, RIGHTS)), values).all()
            shared = sa.select(sa.literal("classes"), classes.c.sourced_id, classes.c.school_id)
            shared = shared.where(classes.c.status == "active", row_is_visible(classes, classes, RIGHTS))
            found = connection.execute(shared, values).all()
        kinds = {"student": "students", **dict.fromkeys(GUARDIAN_ROLES, "guardians")}
        return {(kinds.get(role, "staff"), person, org) for role, person, org in roles} | {tuple(row) for row in found}

    return change


def count(seen: Seen) -> dict[str, int]:
    """The number of records of each kind."""
    return {kind: len({key for of, key, _ in seen if of == kind}) for kind in KINDS}


def read_preview(engine: sa.Engine, now: Sequence[Grant], then: Sequence[Grant]) -> SharingPreview:
    """A preview, for the vendor if it is there; its transaction is rolled back."""
    with engine.connect() as connection:
        vendor = next((it for it in vendors.list_vendors(connection) if it.email == EMAIL), None)
        return vendor_rights.preview_grants(connection, vendor, now, then, guardians=True)


def test_a_preview_counts_what_the_vendor_then_sees(
    set_grants: Callable[[Sequence[Grant]], Seen], engine: sa.Engine
) -> None:
    seen = {name: set_grants(grants) for name, grants in STATES.items()}
    assert len({frozenset(found) for found in seen.values()}) == len(STATES), "two states show the same"
    for before, after in itertools.product(STATES, repeat=2):
        made = read_preview(engine, STATES[before], STATES[after])
        people = [{(kind, key) for kind, key, _ in seen[name]} for name in (before, after)]
        come, go = (
            {(kind, key, "") for kind, key in found} for found in (people[1] - people[0], people[0] - people[1])
        )
        wanted = {"now": count(seen[before]), "then": count(seen[after]), "come": count(come), "go": count(go)}
        for side, counts in wanted.items():
            assert {it.kind: getattr(it, side) for it in made.counts} == counts, (before, after, side)
        orgs = {org for _, _, org in seen[before] | seen[after]}
        assert {school.sourcedId for school in made.schools} == orgs
        for school in made.schools:
            own = count({item for item in seen[after] if item[2] == school.sourcedId})
            assert {it.kind: it.then for it in school.counts} == {it.kind: own[it.kind] for it in school.counts}, (
                before,
                after,
                school,
            )


def test_a_preview_names_pupils_and_changes_nothing(
    set_grants: Callable[[Sequence[Grant]], Seen], engine: sa.Engine
) -> None:
    set_grants(STATES["a grade"])
    rows = [sa.select(table).order_by(*table.primary_key) for table in (vendor_grants, group_members)]
    with engine.connect() as connection:
        before = [connection.execute(row).all() for row in rows]
        third, tenth = (
            connection.scalars(
                sa.select(users.c.given_name + " " + users.c.family_name)
                .where(users.c.grades.contains([grade]), users.c.sourced_id.startswith("spr-"))
                .where(users.c.sourced_id.not_in(KEPT))
                .order_by(users.c.family_name, users.c.given_name)
            ).all()
            for grade in ("03", "10")
        )
    third_alone = [Grant(DISTRICT, rules=Rules("grades~'03'", None, Staff.ALL, guardians=True))]
    made = read_preview(engine, STATES["a grade"], third_alone)
    assert (made.seen, made.coming, made.going) == (third, [], tenth)
    with engine.connect() as connection:
        assert [connection.execute(row).all() for row in rows] == before


def test_a_preview_refuses_a_filter_that_means_nothing(
    set_grants: Callable[[Sequence[Grant]], Seen], engine: sa.Engine
) -> None:
    set_grants([])
    wrong = Grant(DISTRICT, rules=Rules("noSuchField='x'", None, Staff.ALL, guardians=True))
    with pytest.raises(CommandError, match="noSuchField"):
        read_preview(engine, [], [wrong])


def test_guardians_count_where_the_vendor_can_get_them(engine: sa.Engine) -> None:
    load_districts(engine)
    with engine.connect() as connection:
        made = vendor_rights.preview_grants(connection, None, [], STATES["the district"], guardians=False)
    assert [counted.kind for counted in made.counts] == ["students", "classes", "staff"]
    assert {counted.kind for school in made.schools for counted in school.counts} == {"students", "classes", "staff"}
    assert "guardians do not count" in made.notes[0]
    whole = read_preview(engine, [], STATES["the district"])
    assert (list(whole.counts[:3]), whole.counts[3].then > 0, whole.notes) == (list(made.counts), True, [])


@pytest.mark.parametrize(
    ("students", "classes_", "notes"),
    [
        ("grades~'3'", None, ["no student of the roster has the grade 3: "]),
        ("grades~'03, 6,7' AND status='active'", None, ["no student of the roster has the grade 6 or 7: "]),
        ("grades='03' OR grades~'x'", "grades~'zz'", ["no student of the roster has the grade x: ",
                                                     "no class of the roster has the grade zz: "]),
        ("grades~'03,10'", None, []),
        ("grades!='6'", None, []),
        ("familyName='6'", None, []),
    ],
)  # fmt: skip
def test_a_grade_that_nobody_has_is_named(
    engine: sa.Engine, students: str, classes_: str | None, notes: Sequence[str]
) -> None:
    load_districts(engine)
    rules = Rules(students, classes_, Staff.ALL, guardians=True)
    made = read_preview(engine, [], [Grant(DISTRICT, rules=rules)])
    assert [note.partition(": ")[0] + ": " for note in made.notes] == notes
    assert all("the grades of the roster are 03, " in note for note in made.notes if "student" in note)
