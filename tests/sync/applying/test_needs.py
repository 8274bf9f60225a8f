"""What a record needs: it ends with that, in a delta too, and returns with it unless the export has ended it itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.settings import Settings
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from sync_scripts.reading.registry import SDS
from tests.postgres.loaded import load_first
from tests.sync.export_changes import Bend, both, cell_of, rows_of, with_row, without_file, without_rows

from .test_deltas import alone, only

USER, ENROLLMENT, CLASS, SCHOOL = "spr-student-4", "spr-enr-13", "spr-class-chem-1", "spr-high"
ANYTHING = Options(allow_mass_delete=True)


def say(file: str, identifier: str, status: str) -> Bend:
    """A delta of one row."""
    return alone(only(file, identifier), cell_of(file, identifier, "status", status))


def list_active(engine: sa.Engine) -> dict[str, set[str]]:
    """The ids of the active records of each type."""
    with engine.connect() as connection:
        return {
            table.name: set(connection.scalars(sa.select(table.c.sourced_id).where(table.c.status == "active")))
            for table in tables.ROSTER_TABLES
        }


@pytest.fixture
def bring(engine: sa.Engine, springfield: Path, tmp_path: Path) -> Callable[[Bend], dict[str, set[str]]]:
    """Loads the export, and then what bends make of it; returns what is active after each."""
    load_first(engine, "feed", springfield)
    numbers = iter(range(100))

    def bring(bend: Bend) -> dict[str, set[str]]:
        export = tmp_path / f"export-{next(numbers)}"
        shutil.copytree(springfield, export)
        bend(export)
        load(engine, "feed", export, options=ANYTHING)
        return list_active(engine)

    return bring


def without_rows_of(file: str, user: str) -> Bend:
    return rows_of(file, lambda rows: rows.__setitem__(slice(None), [row for row in rows if user not in row]))


def list_hanging(engine: sa.Engine, user: str) -> set[str]:
    with engine.connect() as connection:
        own = sa.select(tables.enrollments.c.sourced_id).where(tables.enrollments.c.user_id == user)
        return set(connection.scalars(own))


def let_days_pass(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for table in tables.ROSTER_TABLES:
            connection.execute(sa.update(table).values(date_last_modified=sa.func.now() - sa.text("interval '8 days'")))


def list_naming(engine: sa.Engine, user: str = USER) -> set[str]:
    """The users who name a user as an agent."""
    with engine.connect() as connection:
        named = tables.user_agents.c.agent_id == user
        return set(connection.scalars(sa.select(tables.user_agents.c.user_id).where(named)))


def test_what_hangs_on_a_user_ends_and_returns_with_the_user(
    engine: sa.Engine, springfield: Path, bring: Callable[[Bend], dict[str, set[str]]]
) -> None:
    first, hanging = list_active(engine), list_hanging(engine, USER)
    assert hanging
    gone = bring(say("users", USER, "tobedeleted"))
    assert {name: first[name] - gone[name] for name in first if first[name] != gone[name]} == {
        "users": {USER},
        "demographics": {USER},
        "enrollments": hanging,
    }
    assert bring(say("users", USER, "active")) == first
    # With its roles: those that follow from enrollments, too.
    assert bring(both()) == first
    assert load(engine, "feed", springfield).outcome == "unchanged"


def test_what_hangs_on_a_school_ends_and_returns_in_the_order_of_its_needs(
    engine: sa.Engine, bring: Callable[[Bend], dict[str, set[str]]]
) -> None:
    first = list_active(engine)
    gone = bring(say("orgs", SCHOOL, "tobedeleted"))
    with engine.connect() as connection:
        own = tables.classes.c.school_id == SCHOOL
        classes = set(connection.scalars(sa.select(tables.classes.c.sourced_id).where(own)))
        of_classes = tables.enrollments.c.class_id.in_(classes)
        enrollments = set(connection.scalars(sa.select(tables.enrollments.c.sourced_id).where(of_classes)))
    assert (classes, enrollments) == (first["classes"] - gone["classes"], first["enrollments"] - gone["enrollments"])
    assert classes
    assert enrollments
    assert bring(say("orgs", SCHOOL, "active")) == first


@dataclass(frozen=True)
class Case:
    """Deltas and exports after a delta that deletes the user, and whether the enrollment is active after the user is
    back."""

    exports: Sequence[Bend]
    returns: bool


CASES = {
    "nothing said": Case((), returns=True),
    "deleted by its own row": Case((say("enrollments", ENROLLMENT, "tobedeleted"),), returns=False),
    "named while the user is gone": Case((say("enrollments", ENROLLMENT, "active"),), returns=True),
    "its class deleted, too": Case((say("classes", CLASS, "tobedeleted"),), returns=False),
    "its class deleted, and back": Case(
        (say("classes", CLASS, "tobedeleted"), say("classes", CLASS, "active")), returns=True
    ),
    "absent from a file in bulk": Case(
        (both(without_rows("users", USER), without_rows("enrollments", ENROLLMENT)),), returns=False
    ),
    "in a file in bulk without its user": Case((without_rows("users", USER),), returns=True),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_ended_by_a_need_returns_unless_the_export_has_ended_it_since(
    engine: sa.Engine, bring: Callable[[Bend], dict[str, set[str]]], case: Case
) -> None:
    assert ENROLLMENT in list_hanging(engine, USER)
    assert ENROLLMENT not in bring(say("users", USER, "tobedeleted"))["enrollments"]
    for bend in case.exports:
        assert ENROLLMENT not in bring(bend)["enrollments"]
    assert (ENROLLMENT in bring(say("users", USER, "active"))["enrollments"]) == case.returns


def test_what_a_rejected_row_leaves_as_it_is_returns_with_its_needs(
    engine: sa.Engine, bring: Callable[[Bend], dict[str, set[str]]]
) -> None:
    first = bring(both())
    assert ENROLLMENT not in bring(without_rows("users", USER))["enrollments"]
    assert bring(cell_of("enrollments", ENROLLMENT, "role", "a word of nobody")) == first


def test_a_class_does_not_return_to_an_org_that_is_no_school(
    engine: sa.Engine, bring: Callable[[Bend], dict[str, set[str]]]
) -> None:
    bring(say("orgs", SCHOOL, "tobedeleted"))
    district = alone(only("orgs", SCHOOL), cell_of("orgs", SCHOOL, "type", "district"))
    assert CLASS not in bring(district)["classes"]
    assert CLASS in bring(say("orgs", SCHOOL, "active"))["classes"]


def test_what_an_export_is_converted_to_returns_with_its_needs(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    """The rows of its own files are checked before, and are no records."""
    sds = copy_export("northhaven-sds")
    whole = {path.name: path.read_bytes() for path in sds.iterdir()}
    load_first(engine, "feed", sds, family=SDS)
    first = list_active(engine)

    def bring(bend: Bend) -> dict[str, set[str]]:
        for name, text in whole.items():
            (sds / name).write_bytes(text)
        bend(sds)
        load(engine, "feed", sds, family=SDS, options=ANYTHING)
        return list_active(engine)

    of_person = ("users", "roles", "enrollments", "relationships")
    leaves = both(without_file("demographics.csv"), *(without_rows_of(file, "u1") for file in of_person))
    assert first["demographics"] - bring(leaves)["demographics"] == {"u1"}
    assert bring(cell_of("demographics", "u1", "birthDate", "no day")) == first
    assert "u1" in bring(without_file("demographics.csv"))["demographics"]


def test_what_a_good_and_a_bad_row_describe_returns_once(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    sds = copy_export("northhaven-sds")
    whole = {path.name: path.read_bytes() for path in sds.iterdir()}
    load_first(engine, "feed", sds, family=SDS)
    both(*(without_rows_of(file, "u1") for file in ("users", "roles", "demographics", "relationships")))(sds)
    assert load(engine, "feed", sds, family=SDS, options=ANYTHING).counts["enrollments"].tombstoned == 1
    for name, text in whole.items():
        (sds / name).write_bytes(text)
    with_row("enrollments", classSourcedId="c1", userSourcedId="u1", role="")(sds)
    report = load(engine, "feed", sds, family=SDS, options=ANYTHING)
    assert report.counts["enrollments"] == Counts(revived=1, unchanged=3, rejected=1)


def test_a_user_whom_a_delta_deletes_is_purged_with_what_hangs_on_the_user(
    engine: sa.Engine, bring: Callable[[Bend], dict[str, set[str]]]
) -> None:
    """Nor does anybody stay for being named as somebody's pupil: who names them has changed."""
    hanging, naming = list_hanging(engine, USER), list_naming(engine)
    assert naming
    assert naming <= bring(say("users", USER, "tobedeleted"))["users"]
    assert not list_naming(engine)
    let_days_pass(engine)
    purged = purge(engine, Settings().retention_days)
    assert (purged["users"], purged["enrollments"], purged["demographics"]) == (1, len(hanging), 1)
    assert not list_hanging(engine, USER)
    # What is purged does not return.
    assert ENROLLMENT not in bring(say("users", USER, "active"))["enrollments"]


def test_a_delta_that_ends_much_by_ending_a_school_is_held(
    engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    """No row of it is rejected; the limits count what hangs on the school."""
    load_first(engine, "feed", springfield)
    say("orgs", SCHOOL, "tobedeleted")(springfield)
    report = load(engine, "feed", springfield, options=Options(Settings(home=tmp_path, hold_least_records=3)))
    assert (report.outcome, report.rejected) == ("held", 0)
    assert "enrollments would vanish" in str(report.message)
    assert report.counts["enrollments"].tombstoned
