"""Erased and hidden people: what the sync does with them in every format, who may do what, and how it ends."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import operators, vendor_rights, vendors
from roster_service.accounts.deletion_requests import answer_request
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.db import tables
from roster_service.errors import CommandError, SettingError, StorageError
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.feeds.export_previews import FACTS, ExportPreview
from roster_service.feeds.feeds import Pause, pause_feed
from roster_service.feeds.sync_lock import hold_lock
from roster_service.people import (
    ask_deletion,
    end_exclusion,
    exclude_person,
    export_has,
    finish,
    keep_person,
    keep_same_people,
    sweep,
)
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import CLEVER, ONEROSTER, SDS
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.cli.test_serve import environment_of
from tests.conditions import is_blocked, wait_for
from tests.postgres.loaded import load_first
from tests.sync.conftest import SHELBYVILLE, SPRINGFIELD, snapshot
from tests.sync.export_changes import (
    Bend,
    both,
    cell_of,
    column,
    declared,
    read_csv,
    replaced,
    without_file,
    without_rows,
    write_csv,
)

SETTINGS = Settings(secret_key="a secret key of the tests, long enough to be one")
OPTIONS = Options(SETTINGS)
ID = "spr-student-1"
KEPT, OTHER = "kept@vendor.example", "other@vendor.example"


def exclude(engine: sa.Engine, sourced_id: str, kind: ExclusionKind = ExclusionKind.ERASED) -> dict[str, int]:
    """Takes a person out of the roster, and returns the numbers of deleted records."""
    with engine.begin() as connection:
        return dict(exclude_person(connection, TESTER, kind, sourced_id, SETTINGS).records)


def end(engine: sa.Engine, person: str, kind: ExclusionKind = ExclusionKind.ERASED) -> None:
    """Ends an exclusion."""
    with engine.begin() as connection:
        end_exclusion(connection, TESTER, kind, person, SETTINGS)


def find_names(engine: sa.Engine) -> set[tuple[str, ...]]:
    """(table, ids) for each row that names a user: the ids of the users, and of other records."""
    columns = (
        (tables.users.c.sourced_id,),
        (tables.user_roles.c.user_id, tables.user_roles.c.org_id, tables.user_roles.c.role),
        (tables.user_agents.c.user_id, tables.user_agents.c.agent_id),
        (tables.enrollments.c.user_id, tables.enrollments.c.sourced_id),
        (tables.demographics.c.sourced_id,),
    )
    with engine.connect() as connection:
        return {(keys[0].table.name, *row) for keys in columns for row in connection.execute(sa.select(*keys))}


def without(rows: set[tuple[str, ...]], person: str) -> set[tuple[str, ...]]:
    """The rows that do not name a person."""
    return {row for row in rows if person not in row}


def touch(folder: Path) -> None:
    """Changes the export so that the sync does not take it for the last one."""
    for file in folder.glob("*.csv"):
        file.write_bytes(file.read_bytes() + b"\r\n")


FORMATS = [
    pytest.param(SPRINGFIELD, ONEROSTER, "spr-student-1", id="OneRoster 1.1"),
    pytest.param(SPRINGFIELD, ONEROSTER, "spr-guardian-1", id="an agent of two pupils"),
    pytest.param(SHELBYVILLE, ONEROSTER, "shv-student-1", id="OneRoster 1.2"),
    pytest.param("shelbyville-clever", CLEVER, "student", id="Clever"),
    pytest.param("shelbyville-clever", CLEVER, "contact", id="a contact of Clever"),
    pytest.param("shelbyville-clever", CLEVER, "teacher", id="a teacher of Clever"),
    pytest.param("northhaven-sds", SDS, "", id="School Data Sync 2.1"),
    pytest.param("northhaven-sds-v1", SDS, "student", id="School Data Sync 1"),
    pytest.param("northhaven-sds-v2", SDS, "", id="School Data Sync 2"),
]


@pytest.mark.shows("Erased people", "No export and no delta brings an erased person back until the erasure is lifted.")
@pytest.mark.parametrize(("export", "family", "who"), FORMATS)
def test_a_person_stays_erased_until_lifted(
    engine: sa.Engine, copy_export: Callable[[str], Path], export: str, family: Any, who: str
) -> None:
    folder = copy_export(export)
    first = load(engine, "feed", folder, family=family, options=OPTIONS)
    before = find_names(engine)
    people = sorted(row[1] for row in before if row[0] == "users")
    [person, *_] = [it for it in people if it == who or f"feed:{who}:" in it] or people
    assert exclude(engine, person)["users"] == 1
    after = without(before, person)
    assert find_names(engine) == after
    for bend in (lambda _folder: None, touch):
        bend(folder)
        report = load(engine, "feed", folder, family=family, options=OPTIONS)
        assert report.findings.total == first.findings.total
        found = find_names(engine)
        # In a converted export, a parent has roles at the schools of the children.
        assert found <= after
        assert {row[0] for row in after - found} <= {"user_roles"}
    assert report.notices[0].startswith("people who were erased or hidden, and whom the run leaves out: 1")
    end(engine, person)
    load(engine, "feed", folder, family=family, options=OPTIONS)
    assert find_names(engine) == before


def test_a_rejected_row_of_another_format_names_no_erased_person(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    folder = copy_export("shelbyville-clever")
    load(engine, "feed", folder, family=CLEVER, options=OPTIONS)
    with engine.connect() as connection:
        wanted = sa.select(tables.users.c.sourced_id).where(tables.users.c.sourced_id.startswith("feed:student:"))
        people = sorted(connection.scalars(wanted))
    column("students", "Last_name", "")(folder)
    exclude(engine, people[0])
    report = load(engine, "feed", folder, family=CLEVER, options=Options(SETTINGS, allow_mass_delete=True))
    erased, *others = [person.rsplit(":", 1)[1] for person in people]
    rejected = {it.sourced_id for it in report.findings.first if it.file == "students.csv"}
    assert rejected == set(others)
    assert erased not in {it.value for it in report.findings.first}
    assert people[0] not in {record.sourcedId for it in report.findings.first for record in it.records}
    assert report.findings.total > len(report.findings.first)


# An export, a pupil of it, and how some files get a row of the pupil that has too few cells.
SHORT: dict[str, tuple[str, Any, str, dict[str, tuple[str, str]]]] = {
    "Clever": (
        "shelbyville-clever",
        CLEVER,
        "feed:student:1",
        {"students": ("\n20,1,S-0001,O'Brien", "\n1,S-0001,O'Brien"), "enrollments": ("\n20,100,1", "\n100,1")},
    ),
    "School Data Sync 1": (
        "northhaven-sds-v1",
        SDS,
        "feed:student:1",
        {"Student": ("\n1,2,Amina", "\n2,Amina"), "StudentEnrollment": ("\n1,1", "\n1")},
    ),
    "OneRoster 1.1": (
        SPRINGFIELD,
        ONEROSTER,
        ID,
        {"demographics": (f"\n{ID},,,", f"\n,{ID},"), "enrollments": (f",spr-elementary,{ID},", f",{ID},")},
    ),
}


@pytest.mark.parametrize(("export", "family", "person", "short"), SHORT.values(), ids=SHORT)
def test_a_row_with_too_few_cells_leaves_no_value_while_anybody_is_erased(
    engine: sa.Engine,
    copy_export: Callable[[str], Path],
    export: str,
    family: Any,
    person: str,
    short: dict[str, tuple[str, str]],
) -> None:
    """Its cells may be those of other columns, so nothing tells whose they are."""
    folder = copy_export(export)
    load(engine, "feed", folder, family=family, options=OPTIONS)
    exclude(engine, person)
    for file, (old, new) in short.items():
        replaced(f"{file}.csv", old, new)(folder)
    report = load(engine, "feed", folder, family=family, options=Options(SETTINGS, allow_mass_delete=True))
    found = [it for it in report.findings.first if it.reason.startswith("the row has ")]
    assert {it.file for it in found} == {f"{file}.csv" for file in short}
    assert {(it.line is None, it.value, it.sourced_id, it.records) for it in found} == {(False, None, None, ())}


def only_delta(file: str) -> Bend:
    """Leaves an export with one file, which is a delta."""

    def bend(folder: Path) -> None:
        declared(file, "delta")(folder)
        for name, mode in read_csv(folder / "manifest.csv")[1:]:
            if mode == "bulk":
                both(declared(name.removeprefix("file."), "absent"), without_file(f"{name[5:]}.csv"))(folder)

    return bend


@pytest.mark.shows("Erased people", "No export and no delta brings an erased person back until the erasure is lifted.")
@pytest.mark.parametrize("file", ["users", "enrollments", "demographics"])
def test_a_delta_does_not_bring_an_erased_person_back(engine: sa.Engine, springfield: Path, file: str) -> None:
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    after = find_names(engine)
    only_delta(file)(springfield)
    report = load(engine, "feed", springfield, options=OPTIONS)
    assert (report.findings.total, find_names(engine)) == (0, after)


def test_a_person_whose_row_was_rejected_is_kept_out(engine: sa.Engine, springfield: Path) -> None:
    cell_of("users", ID, "enabledUser", "maybe")(springfield)
    assert load(engine, "feed", springfield, options=OPTIONS).findings.total > 0
    assert exclude(engine, ID) == {}
    cell_of("users", ID, "enabledUser", "true")(springfield)
    load(engine, "feed", springfield, options=OPTIONS)
    assert without(find_names(engine), ID) == find_names(engine)


def test_a_row_of_an_erased_person_is_not_rejected_for_a_fault(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    both(cell_of("users", ID, "enabledUser", "maybe"), cell_of("demographics", ID, "sex", "?"))(springfield)
    rows = read_csv(springfield / "enrollments.csv")
    bad = [[it.replace("spr-class-math3-a", "nowhere") if ID in row else it for it in row] for row in rows]
    assert bad != rows
    write_csv(springfield / "enrollments.csv", bad)
    assert load(engine, "feed", springfield, options=OPTIONS).findings.total == 0


def test_an_erasure_reaches_every_consumer(engine: sa.Engine, springfield: Path) -> None:
    """Without a tombstone, a consumer of deltas has to read the whole roster; who named the person has changed."""
    load_first(engine, "feed", springfield)
    before = snapshot(engine, tables.roster_state)
    agents = sa.select(tables.user_agents.c.user_id).where(tables.user_agents.c.agent_id == "spr-guardian-1")
    with engine.connect() as connection:
        pupils = set(connection.scalars(agents))
    exclude(engine, "spr-guardian-1")
    with engine.connect() as connection:
        state = connection.execute(sa.select(tables.roster_state)).one()
        changed = sa.select(tables.users.c.sourced_id).where(tables.users.c.date_last_modified == state.as_of)
        assert set(connection.scalars(changed)) == pupils != set()
    [old] = before.values()
    assert state.deletions_since == state.as_of > old["as_of"]
    assert state.revision > old["revision"]


@pytest.mark.shows("Erased people", "A run with another secret key than that of an erasure is refused.")
def test_a_run_with_another_secret_key_is_refused(engine: sa.Engine, springfield: Path) -> None:
    """It would match nobody, and bring the person back."""
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    touch(springfield)
    other = Options(Settings(secret_key="another secret key of the tests, long enough"))
    with pytest.raises(SettingError, match="would bring them back"):
        load(engine, "feed", springfield, options=other)
    with engine.connect() as connection:
        assert ID not in connection.scalars(sa.select(tables.users.c.sourced_id)).all()


def test_under_a_lost_key_people_stay_out_until_they_are_out_under_the_new_one(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path
) -> None:
    """No run in between may bring them back, so they are excluded before the former exclusions end."""
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    touch(springfield)
    (tmp_path / "secret_key").write_text("another secret key of the tests, long enough")
    options = Options(Settings(home=tmp_path))
    former = run_roster(database_url, tmp_path, "person", "list").stdout.split("\n")[1].split()[0]
    unknown = run_roster(database_url, tmp_path, "person", "erase", ID, "--yes")
    assert (unknown.exit_code, "nobody in the roster has the id" in unknown.stderr) == (2, True)
    for refused in (("erase", ID, "--even-unknown"), ("hide", ID, "--even-unknown", "--from", "v@example.org")):
        assert run_roster(database_url, tmp_path, "person", *refused).exit_code != 0, "it asks first"
    assert run_roster(database_url, tmp_path, "person", "erase", ID, "--yes", "--even-unknown").exit_code == 0
    with pytest.raises(SettingError, match="--even-unknown"):
        load(engine, "feed", springfield, options=options)
    listed = json.loads(run_roster(database_url, tmp_path, "person", "list", "--json").stdout)
    assert {item["reference"] == former: item["key"] for item in listed} == {True: "another", False: "present"}
    by_id = run_roster(database_url, tmp_path, "person", "lift", ID, "--yes")
    assert (by_id.exit_code, "name the exclusion to end by its reference" in by_id.stderr) == (1, True)
    assert run_roster(database_url, tmp_path, "person", "lift", former, "--yes").exit_code == 0
    load(engine, "feed", springfield, options=options)
    with engine.connect() as connection:
        assert ID not in connection.scalars(sa.select(tables.users.c.sourced_id)).all()


def test_an_erasure_takes_the_id_of_a_person_who_was_hidden_under_a_lost_key(
    engine: sa.Engine, springfield: Path
) -> None:
    load_first(engine, "feed", springfield)
    with engine.begin() as connection:
        exclude_person(connection, TESTER, ExclusionKind.HIDDEN, ID, SETTINGS)
    other = Settings(secret_key="another secret key of the tests, long enough")
    with engine.begin() as connection:
        exclude_person(connection, TESTER, ExclusionKind.ERASED, ID, other, must_be_known=False)
        assert connection.scalars(sa.select(tables.exclusions.c.sourced_id)).all() == [None]


# The name of the file that was uploaded, what a script has printed for its preview, and whether it is still running;
# whether an erasure of the person takes it.
PREVIEWS = {
    "the file has the name": ("Zo\xeb Garcia.zip, uploaded", "{}", False, True),
    "an enrollment of the person": ("x.zip", '{"samples": ["student: Zo\\u00eb Garcia in Math"]}', False, True),
    "an enrollment of somebody else": ("x.zip", '{"samples": ["student: Zoe Garciaz in Math"]}', False, False),
    "nothing yet": ("x.zip", "", True, True),
}


@pytest.mark.parametrize(("source", "said", "is_running", "goes"), PREVIEWS.values(), ids=PREVIEWS)
def test_an_erasure_takes_the_previews_that_name_the_person(
    engine: sa.Engine, springfield: Path, tmp_path: Path, source: str, said: str, *, is_running: bool, goes: bool
) -> None:
    """The preview of a path has no copy of the export, and the sample of an enrollment no id of the person."""
    for header, value in (("givenName", "Zo\xeb"), ("familyName", "Garcia"), ("middleName", "")):
        cell_of("users", ID, header, value)(springfield)
    load(engine, "feed", springfield, options=OPTIONS)
    folder = tmp_path / "previews" / "0123"
    folder.mkdir(parents=True)
    facts = dict.fromkeys(ExportPreview.__dataclass_fields__, "") | {"id": folder.name, "source": source}
    (folder / FACTS).write_text(json.dumps(facts))
    with engine.begin() as connection:
        removal = exclude_person(connection, TESTER, ExclusionKind.ERASED, ID, SETTINGS)
    with (folder / "output.txt").open("w") as output:
        output.write(said)
        output.flush()
        if is_running:
            fcntl.flock(output, fcntl.LOCK_EX)
        finish(engine, tmp_path, removal, 0)
    assert folder.exists() != goes


def test_an_erasure_under_a_lost_key_is_lifted_by_its_reference(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path
) -> None:
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    reference = run_roster(database_url, tmp_path, "person", "list").stdout.split("\n")[1].split()[0]
    assert run_roster(database_url, tmp_path, "person", "lift", reference, "--yes").exit_code == 0
    assert "nobody is erased" in run_roster(database_url, tmp_path, "person", "list").stdout


def test_a_hidden_person_keeps_the_history_of_runs_and_comes_back(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    before = find_names(engine)
    both(cell_of("users", ID, "middleName", "M"), without_rows("demographics", "spr-student-4"))(springfield)
    load(engine, "feed", springfield, options=OPTIONS)
    kept = snapshot(engine, tables.sync_runs)
    exclude(engine, ID, ExclusionKind.HIDDEN)
    assert without(find_names(engine), ID) == find_names(engine)
    assert snapshot(engine, tables.sync_runs) == kept
    load(engine, "feed", springfield, options=OPTIONS)
    assert without(find_names(engine), ID) == find_names(engine)
    with pytest.raises(CommandError, match="no erased person"):
        end(engine, ID)
    end(engine, ID, ExclusionKind.HIDDEN)
    load(engine, "feed", springfield, options=OPTIONS)
    assert {row for row in before if row[0] == "users"} <= find_names(engine)


def test_a_hidden_person_can_be_erased_and_no_show_brings_the_person_back(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    exclude(engine, ID, ExclusionKind.HIDDEN)
    exclude(engine, ID)
    exclude(engine, ID, ExclusionKind.HIDDEN)
    with engine.connect() as connection:
        [row] = connection.execute(sa.select(tables.exclusions)).all()
    assert (row.kind, row.sourced_id) == ("erased", None)
    with pytest.raises(CommandError, match="no hidden person"):
        end(engine, ID, ExclusionKind.HIDDEN)


TODAY = date(2026, 11, 30)
# As telephones and other keyboards write the name.
SPELLED = ["about ZOË O’BRIEN", "about Zoe\u0308 O'Brien", "about Zoë\u00a0 O'Brien's mother", "about Zoe O Brien"]


@pytest.mark.shows(
    "Erased people",
    "The change log names an erased person by a keyed hash, and refuses a reason with the name.",
)
@pytest.mark.parametrize(
    "reason",
    [
        *(f"about {ID}", "about ZOË O'BRIEN", "about O'Brien, Zoë", "zoe.obrien@example.org"),
        *("about Zoë Maxine O'Brien", "about O'Brien, Zoë M.", "about card 4711-0815"),
        *SPELLED,
    ],
)
def test_a_reason_that_names_the_person_is_refused(engine: sa.Engine, springfield: Path, reason: str) -> None:
    cell_of("users", ID, "middleName", "Maxine")(springfield)
    cell_of("users", ID, "userIds", "{Card:4711-0815}")(springfield)
    load(engine, "feed", springfield)
    before = find_names(engine)
    actor = Actor(ActorKind.SYSTEM_USER, "tester@tests", reason)
    with pytest.raises(CommandError, match="names the person"), engine.begin() as connection:
        exclude_person(connection, actor, ExclusionKind.ERASED, ID, SETTINGS)
    assert find_names(engine) == before


@pytest.mark.shows(
    "Erased people",
    "The change log names an erased person by a keyed hash, and refuses a reason with the name.",
)
def test_the_change_log_names_an_erased_person_by_a_hash(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    exclude(engine, ID)
    end(engine, ID)
    with engine.connect() as connection:
        of_people = sa.select(tables.changes).where(tables.changes.c.kind == "person")
        rows = connection.execute(of_people.order_by(tables.changes.c.id)).all()
    assert [row.verb for row in rows] == ["person erase", "person lift"]
    assert len({row.subject for row in rows}) == 1
    assert ID not in str(rows)
    assert "Brien" not in str(rows)


def test_an_erasure_takes_the_reasons_that_name_the_person_however_it_is_spelled(
    engine: sa.Engine, springfield: Path
) -> None:
    cell_of("users", ID, "identifier", "4711")(springfield)
    load(engine, "feed", springfield)
    naming = [*SPELLED, "about 4711"]
    others = ["about Zoë Brien", "about Zoë and O'Brien"]
    with engine.begin() as connection:
        for reason in (*naming, *others):
            actor = Actor(ActorKind.SYSTEM_USER, "tester@tests", reason)
            pause_feed(connection, actor, "feed", Pause(TODAY, TODAY, reason), TODAY)
    exclude(engine, ID)
    paused = sa.select(tables.changes).where(tables.changes.c.verb == "feed pause").order_by(tables.changes.c.id)
    with engine.connect() as connection:
        rows = connection.execute(paused).all()
    assert [row.reason for row in rows] == [None] * len(naming) + others
    assert [row.after["pause_reason"] for row in rows] == ["(erased)"] * len(naming) + others
    assert [row.before["pause_reason"] for row in rows] == [None] + ["(erased)"] * len(naming) + others[:1]


RULED = "ruled@vendor.example"
NUMBERED = "UPDATE users SET identifier = '20000', username = 'false', email = 'o''brien@example.org'"


@pytest.fixture
def grant_students(engine: sa.Engine, springfield: Path) -> Callable[[str], None]:
    """Grants a vendor the students that a filter matches. All have the identifiers of NUMBERED."""
    load_first(engine, "feed", springfield)
    with engine.begin() as connection:
        connection.execute(sa.text(NUMBERED))
        vendors.add_vendor(connection, TESTER, RULED, "ruled")

    def grant(students: str) -> None:
        rules = Rules(students, None, Staff.NONE, guardians=False)
        with engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, RULED, "spr-district", (), rules=rules, even_nothing=True)

    return grant


def read_logged(engine: sa.Engine) -> list[Any]:
    """What the change log has of vendors, oldest first."""
    of_vendor = sa.select(tables.changes.c.before, tables.changes.c.after).where(tables.changes.c.kind == "vendor")
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(of_vendor.order_by(tables.changes.c.id))]


@pytest.mark.shows(
    "Erased people",
    "Erasing is refused while the rule of a grant names the person, and then cleans the change log of it.",
)
@pytest.mark.parametrize(
    ("students", "left"),
    [
        (f"sourcedId!='{ID}' AND grades~'03'", "sourcedId!='(erased)' AND grades~'03'"),
        ("identifier='20000'", "identifier='(erased)'"),
        ("email='O''Brien@example.org'", "email='(erased)'"),
        (f"sourcedId~'spr-student-2,{ID}'", "sourcedId~'spr-student-2,(erased)'"),
        ("username='false' OR grades~'03'", "username='(erased)' OR grades~'03'"),
        ("userProfiles.credentials.username='of-profile'", "userProfiles.credentials.username='(erased)'"),
    ],
)
def test_a_rule_that_names_the_person_ends_before_and_leaves_the_log(
    engine: sa.Engine, grant_students: Callable[[str], None], students: str, left: str
) -> None:
    with engine.begin() as connection:
        profile = {"user_id": ID, "profile_id": "1", "profile_type": "x", "vendor_id": "y"}
        credentials = [{"type": "x", "username": "of-profile"}]
        connection.execute(sa.insert(tables.user_profiles).values(**profile, credentials=credentials))
    grant_students(students)
    with pytest.raises(CommandError, match=r"rules of ruled@vendor\.example name the person"):
        exclude(engine, ID)
    with engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, RULED, "spr-district")
    before = read_logged(engine)
    assert json.dumps(students)[1:-1] in json.dumps(before)
    assert exclude(engine, ID)
    expected = json.loads(json.dumps(before).replace(json.dumps(students)[1:-1], json.dumps(left)[1:-1]))
    assert [list(pair) for pair in read_logged(engine)] == expected


@pytest.mark.parametrize("students", ["sourcedId!='spr-20000'", "grades~'20000'", "familyName='false'"])
def test_a_rule_that_names_another_one_or_nobody_stays(
    engine: sa.Engine, grant_students: Callable[[str], None], students: str
) -> None:
    """Numbers and words of the log that are an identifier, too, stay."""
    grant_students(students)
    with engine.begin() as connection:
        vendors.change_allowance(connection, TESTER, RULED, Allowance(None, None, 20000), ROSTERING_DEFAULTS)
    before = read_logged(engine)
    assert exclude(engine, ID)
    assert read_logged(engine) == before


@pytest.mark.parametrize(
    ("kind", "role", "is_allowed"),
    [
        (ExclusionKind.ERASED, OperatorRole.EDITOR, False),
        (ExclusionKind.ERASED, OperatorRole.OWNER, True),
        (ExclusionKind.HIDDEN, OperatorRole.EDITOR, False),
        (ExclusionKind.HIDDEN, OperatorRole.OWNER, True),
    ],
)
def test_who_may_take_a_person_out(
    engine: sa.Engine, springfield: Path, kind: ExclusionKind, role: OperatorRole, is_allowed: bool
) -> None:
    load_first(engine, "feed", springfield)
    actor = Actor(ActorKind.OPERATOR, "ann@district.example", None)
    with engine.begin() as connection:
        operators.add_operator(connection, TESTER, actor.name, "Ann", role, str(SETTINGS.secret_key))
    for act in (exclude_person, end_exclusion):
        with engine.begin() as connection:
            if is_allowed:
                act(connection, actor, kind, ID, SETTINGS)
                continue
            exclude_person(connection, TESTER, kind, ID, SETTINGS)
            with pytest.raises(CommandError, match="needs the role"):
                act(connection, actor, kind, ID, SETTINGS)


@pytest.mark.shows("Erased people", "An erasure waits for a run that is under way.")
def test_an_erasure_waits_for_a_run_that_is_under_way(engine: sa.Engine, springfield: Path) -> None:
    """The run has read whom to leave out, and may bring the person back."""
    load_first(engine, "feed", springfield)
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with engine.connect() as connection, hold_lock(connection, "feed"):
            erasure = pool.submit(exclude, engine, ID)
            with engine.connect() as looking:
                while not looking.scalar(waiting):
                    time.sleep(0.01)
            assert without(find_names(engine), ID) != find_names(engine)
        assert erasure.result()["users"] == 1
    assert without(find_names(engine), ID) == find_names(engine)


@pytest.mark.shows("Erased people", "Nobody can keep a person from a vendor who is erased, or is being erased.")
@pytest.mark.parametrize("is_copied", [False, True], ids=["kept", "kept as from another vendor"])
def test_who_is_erased_meanwhile_is_not_kept_from_a_vendor(
    engine: sa.Engine, springfield: Path, is_copied: bool
) -> None:
    load_first(engine, "feed", springfield)
    with engine.begin() as connection:
        for email in (KEPT, OTHER):
            vendors.add_vendor(connection, TESTER, email, "x")
        if is_copied:
            keep_person(connection, TESTER, KEPT, ID, SETTINGS)

    def keep() -> None:
        with engine.begin() as connection:
            if is_copied:
                keep_same_people(connection, TESTER, KEPT, OTHER, SETTINGS)
            else:
                keep_person(connection, TESTER, KEPT, ID, SETTINGS)

    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as erasing:
            exclude_person(erasing, TESTER, ExclusionKind.ERASED, ID, SETTINGS)
            keeping = pool.submit(keep)
            wait_for(lambda: keeping.done() or is_blocked(engine))
        with nullcontext() if is_copied else pytest.raises(CommandError, match="is erased"):
            keeping.result()
    with engine.connect() as connection:
        assert connection.execute(sa.select(tables.kept_people)).all() == []


def test_an_erasure_takes_the_answer_of_a_vendor_under_another_key(engine: sa.Engine, springfield: Path) -> None:
    """Its request names the person by a hash with a key that is lost."""
    load_first(engine, "feed", springfield)
    lost = replace(SETTINGS, secret_key="the former secret key of the tests, long enough")
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, KEPT, "x")
        request = ask_deletion(connection, TESTER, KEPT, ID, date(2999, 1, 1), lost)
        answer_request(connection, TESTER, request.number, "we deleted Zoë O'Brien", TODAY)
    exclude(engine, ID)
    with engine.connect() as connection:
        assert connection.scalars(sa.select(tables.deletion_requests.c.words)).all() == [""]


@contextmanager
def hold_a_request(engine: sa.Engine) -> Iterator[None]:
    """A transaction that began before."""
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        yield


@contextmanager
def hold_a_run(engine: sa.Engine) -> Iterator[None]:
    """A run that is under way."""
    with engine.connect() as connection, hold_lock(connection, "feed"):
        yield


WAITS: dict[str, tuple[Callable[[sa.Engine], AbstractContextManager[None]], str]] = {
    "for a run": (hold_a_run, "waiting for the end of another sync (roster sync: feed, process "),
    "for a request": (hold_a_request, "waiting at most 35 seconds for the end of requests that began before"),
}


@pytest.mark.parametrize(("hold", "words"), WAITS.values(), ids=WAITS)
def test_an_erasure_says_what_it_waits_for(
    engine: sa.Engine,
    database_url: str,
    tmp_path: Path,
    springfield: Path,
    hold: Callable[[sa.Engine], AbstractContextManager[None]],
    words: str,
) -> None:
    load_first(engine, "feed", springfield)
    command = [sys.executable, "-c", "from roster_service.cli import main; main()", "person", "erase", ID, "--yes"]
    environment, said = environment_of(database_url=database_url, home=str(tmp_path)), tmp_path / "said"
    with said.open("w") as err, ExitStack() as started:
        with hold(engine):
            process = started.enter_context(
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=err, text=True)
            )
            # It ends only after the block.
            wait_for(lambda: "\n" in said.read_text())
        out, _ = process.communicate()
    assert (process.returncode, out.partition(":")[0]) == (0, "erased")
    [line] = said.read_text().splitlines()
    assert line.startswith(words)


@pytest.mark.shows("Erased people", "A request of before an erasure leaves nothing when the command has ended.")
def test_the_sweep_waits_for_requests_from_before_and_deletes_what_they_store(
    engine: sa.Engine, springfield: Path
) -> None:
    load_first(engine, "feed", springfield)
    late = engine.connect()
    late.execute(sa.text("SELECT 1"))
    with engine.begin() as connection:
        removal = exclude_person(connection, TESTER, ExclusionKind.ERASED, ID, SETTINGS)
    late.execute(tables.ordering_chunks.insert().values(ordering_id=1, number=0, ids=["other", ID]))
    assert not sweep(engine, removal, 0)
    late.commit()
    late.close()
    assert sweep(engine, removal, 0)
    with engine.connect() as connection:
        assert connection.execute(sa.select(tables.ordering_chunks)).all() == []


def test_the_commands_ask_show_and_list(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path
) -> None:
    load_first(engine, "feed", springfield)
    before = find_names(engine)

    def roster(*arguments: str) -> Any:
        return run_roster(database_url, tmp_path, "person", *arguments)

    for command in ("erase", "hide"):
        asked = roster(command, ID)
        assert (
            asked.exit_code,
            f"Zoë O'Brien ({ID}), grade 03, S-1001, Springfield Elementary School, born 2018, in the roster: this "
            in asked.stderr,
        ) == (1, True)
        assert "somebody else may be meant: Conor O'Brien (spr-student-2)" in asked.stderr
        assert "Type" not in roster(command, f"{ID}-mistyped").stderr
        tried = roster(command, ID, "--dry-run")
        assert ("would be" in tried.stdout, "somebody else may be meant: Conor" in tried.stderr) == (True, True)
        assert f"Zoë O'Brien ({ID})" in tried.stderr
    assert find_names(engine) == before
    assert "hidden: " in roster("hide", ID, "--yes").stdout
    assert ID in roster("list").stdout
    erased = roster("erase", ID, "--yes").stdout
    assert ("erased: no records" in erased, "the roster has no names of the person now" in erased) == (True, True)
    assert ID not in roster("list").stdout
    assert "would be no longer erased" in roster("lift", ID, "--dry-run").stdout
    assert roster("show", ID, "--yes").exit_code == 1
    assert "is no longer erased" in roster("lift", ID, "--yes").stdout


@pytest.mark.parametrize("command", ["erase", "hide"])
@pytest.mark.parametrize("unknown", ["spr-student-l", "spr-class-math3-a"])
def test_an_id_that_nobody_has_is_refused_and_nothing_is_touched(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path, command: str, unknown: str
) -> None:
    cell_of("users", ID, "enabledUser", "maybe")(springfield)
    load(engine, "feed", springfield, options=OPTIONS)
    before = [snapshot(engine, table) for table in (tables.sync_rejections, tables.sync_runs, tables.users)]
    for options in (("--yes",), ("--dry-run",)):
        done = run_roster(database_url, tmp_path, "person", command, unknown, *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"nobody in the roster has the id or name {unknown};" in done.stderr
    assert (
        [snapshot(engine, table) for table in (tables.sync_rejections, tables.sync_runs, tables.users)] == before != []
    )
    assert "nobody is erased or hidden" in run_roster(database_url, tmp_path, "person", "list").stdout


def test_a_copy_that_is_not_found_is_an_error(engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    load_first(engine, "feed", springfield)
    with engine.begin() as connection:
        removal = exclude_person(connection, TESTER, ExclusionKind.ERASED, ID, SETTINGS)
    left = replace(removal, kept_exports=("/var/lib/roster/loaded/9/export",))
    with pytest.raises(StorageError, match=f"{tmp_path}/loaded/9/export cannot be found or deleted, and"):
        finish(engine, tmp_path, left, 0)


def test_an_erasure_deletes_exports_after_the_data_folder_has_moved(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path
) -> None:
    load_first(engine, "feed", springfield)
    for student in range(1, 4):
        without_rows("demographics", f"spr-student-{student}")(springfield)
    settings = Settings(secret_key=SETTINGS.secret_key, home=tmp_path / "home", hold_least_records=3)
    assert load(engine, "feed", springfield, options=Options(settings)).outcome == "held"
    moved = settings.home.rename(tmp_path / "elsewhere")
    (moved / "secret_key").write_text(str(SETTINGS.secret_key))
    assert [path.name for path in moved.glob("held/*")] == ["2"]
    done = run_roster(database_url, moved, "person", "erase", ID, "--yes")
    assert done.exit_code == 0, done.stderr
    assert list(moved.glob("held/*")) == []


# The id, the bytes of a file, whether the export has the person.
EXPORTS_WITH: dict[str, tuple[str, bytes, bool]] = {
    "the id": ("spr-1", b"x,spr-1,y", True),
    "an id of another format": ("feed:student:77", b"School,77", True),
    "one with a colon": ("feed:student:S%3A7", b"School,S:7", True),
    "one that has such an escape itself": ("feed:student:S%253A7", b"School,S%3A7", True),
    "in Windows-1252": ("zo\xe9-9", b"x,zo\xe9-9", True),
    "in UTF-16": ("spr-1", "x,spr-1".encode("utf-16"), True),
    "in quotes": ('a"b', b'x,"a""b"', True),
    "somebody else": ("feed:student:S%3A7", b"School,S-7", False),
}


@pytest.mark.parametrize(("sourced_id", "data", "has"), EXPORTS_WITH.values(), ids=EXPORTS_WITH)
def test_an_export_has_a_person_however_it_writes_the_id(
    tmp_path: Path, sourced_id: str, data: bytes, *, has: bool
) -> None:
    (tmp_path / "users.csv").write_bytes(data)
    assert export_has(tmp_path, sourced_id) is has


def test_an_erasure_leaves_what_names_others_alone(
    engine: sa.Engine, database_url: str, tmp_path: Path, springfield: Path
) -> None:
    """Rejected rows, changes, and held runs whose exports do not have the person."""
    load_first(engine, "feed", springfield)
    other = "spr-student-2"
    for person in (ID, other):
        cell_of("users", person, "phone", "555")(springfield)
        cell_of("demographics", person, "sex", "?")(springfield)
    assert load(engine, "feed", springfield, options=OPTIONS).outcome == "done"
    without_person = tmp_path / "without"
    shutil.copytree(springfield, without_person)
    for file in ("users", "enrollments", "demographics"):
        rows = read_csv(without_person / f"{file}.csv")
        write_csv(without_person / f"{file}.csv", [row for row in rows if not any("spr-student" in it for it in row)])
    options = Options(Settings(secret_key=SETTINGS.secret_key, home=tmp_path, hold_least_records=3))
    assert load(engine, "feed", without_person, options=options).outcome == "held"
    (tmp_path / "secret_key").write_text(str(SETTINGS.secret_key))

    def roster(*arguments: str) -> str:
        return run_roster(database_url, tmp_path, *arguments).stdout

    listed = [("sync", name, "2", "--csv") for name in ("rejected", "changes")]
    assert all(ID in roster(*command) for command in listed)
    assert "held runs" not in roster("person", "erase", ID, "--yes")
    for command in listed:
        shown = roster(*command)
        assert f"{ID}," not in shown
        assert other in shown
    assert "when a person whom it names is erased" in roster("sync", "rejected", "2")
    assert "held" in roster("sync", "list")
