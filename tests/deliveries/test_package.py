"""What a zip has and has not: files by scopes, rows by what they need, values as cells can have them."""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa

from roster_service.accounts.agreements import remove_agreement, set_agreement
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db.engine import make_engine
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.people import exclude_person
from roster_service.schemas.file_presets import PRESETS
from roster_service.settings import Settings
from tests.accounts.agreed import WHOLE
from tests.actors import TESTER
from tests.contract.client import CORE, DEMOGRAPHICS, FULL, GUARDIANS
from tests.contract.conftest import GRANTS, SECRET_KEY, add_vendor
from tests.postgres.loaded import EXPORTS, load_first

from .checker import check
from .conftest import Made, load_export, make

V1P1, V1P2 = PRESETS["oneroster-1.1"], PRESETS["oneroster-1.2"]
BOTH, ELEMENTARY = "both@vendors.example", "elementary@vendors.example"
MARKER = "mark3r"


@pytest.fixture(scope="module")
def engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """Both OneRoster exports, and the vendors of the contract tests."""
    made = make_engine(make_database())
    for name in ("springfield-1.1", "shelbyville-1.2"):
        load_export(made, name)
    with made.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        for name, grants in GRANTS.items():
            add_vendor(connection, name, grants)
    yield made
    made.dispose()


@pytest.fixture
def change(engine: sa.Engine) -> Iterator[Callable[[str], None]]:
    """Changes the roster by SQL, and back."""
    tables = ("orgs", "classes", "users", "demographics", "enrollments", "user_roles", "user_profiles")
    with engine.begin() as connection:
        for table in tables:
            connection.execute(sa.text(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}"))

    def run(statement: str) -> None:
        with engine.begin() as connection:
            connection.execute(sa.text(statement))

    yield run
    with engine.begin() as connection:
        for table in tables:
            connection.execute(sa.text(f"DELETE FROM {table}"))
            connection.execute(sa.text(f"INSERT INTO {table} SELECT * FROM kept_{table}"))
            connection.execute(sa.text(f"DROP TABLE kept_{table}"))


@pytest.mark.parametrize(
    ("scopes", "absent"),
    [
        ((FULL,), {"demographics"}),
        ((CORE, DEMOGRAPHICS), set()),
        # Demographics alone would name nobody.
        ((DEMOGRAPHICS,), None),
    ],
)
def test_a_scope_that_is_lacking_makes_a_file_absent(
    engine: sa.Engine, scopes: tuple[str, ...], absent: set[str] | None
) -> None:
    if absent is None:
        with pytest.raises(CommandError, match="no scope for any file"):
            make(engine, BOTH, V1P1, scopes)
        return
    made = make(engine, BOTH, V1P1, scopes)
    assert set(made.package.absent) == absent
    assert check(made.content) == []


def test_a_withheld_part_makes_its_file_absent(engine: sa.Engine) -> None:
    change_list = (
        "UPDATE vendors SET withheld = {}, grant_version = grant_version + 1 WHERE email = 'both@vendors.example'"
    )
    with engine.begin() as connection:
        connection.execute(sa.text(change_list.format("'{userIds,email,agents}'")))
    made = make(engine, BOTH, V1P2)
    with engine.begin() as connection:
        connection.execute(sa.text(change_list.format("'{}'")))
    assert made.package.absent == ["userProfiles"]
    assert not any(row[it] for row in made.files["users"] for it in ("userIds", "email", "agentSourcedIds"))
    assert not any(row["userProfileSourcedId"] for row in made.files["roles"])
    assert check(made.content) == []


def test_without_the_scope_of_guardians_nobody_names_one(engine: sa.Engine) -> None:
    made = make(engine, BOTH, V1P1, (FULL,))
    assert {row["role"] for row in made.files["users"]}.isdisjoint({"guardian", "parent", "relative"})
    # A guardian who helps in a class is named as what that is.
    helpers = {row["sourcedId"]: row["role"] for row in made.files["users"] if "guardian" in row["sourcedId"]}
    assert helpers == {"shv-guardian-1": "aide"}
    assert {row["agentSourcedIds"] for row in made.files["users"] if "guardian" in row["agentSourcedIds"]} == {*helpers}
    with_guardians = make(engine, BOTH, V1P1, (FULL, GUARDIANS))
    assert any("spr-guardian-1" in row["agentSourcedIds"] for row in with_guardians.files["users"])


def test_the_same_roster_gives_the_same_bytes(engine: sa.Engine) -> None:
    first, second = (make(engine, BOTH, V1P2) for _ in range(2))
    assert first.content == second.content
    assert first.package.digest == second.package.digest


@pytest.mark.parametrize(
    ("statement", "file", "lacks", "consequence"),
    [
        ("UPDATE users SET username = NULL WHERE sourced_id = 'spr-student-1'", "users", "username", "enrollments"),
        (
            "UPDATE classes SET class_type = NULL WHERE sourced_id = 'spr-class-math3-a'",
            "classes",
            "classType",
            "enrollments",
        ),
        ("UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-1'", None, None, "enrollments"),
    ],
)
def test_a_row_that_lacks_something_is_left_out_with_what_hangs_on_it(
    engine: sa.Engine,
    change: Callable[[str], None],
    statement: str,
    file: str | None,
    lacks: str | None,
    consequence: str,
) -> None:
    before = make(engine, ELEMENTARY, V1P1)
    change(statement)
    made = make(engine, ELEMENTARY, V1P1)
    assert check(made.content) == []
    if file is not None:
        assert made.package.left_out[file] == {lacks: 1}
        assert made.package.rows[file] == before.package.rows[file] - 1
    left = sum(made.package.left_out[consequence].values())
    assert left > 0
    assert made.package.rows[consequence] == before.package.rows[consequence] - left


def test_a_line_break_is_a_space_and_a_comma_quotes_its_cell(engine: sa.Engine, change: Callable[[str], None]) -> None:
    change("UPDATE users SET given_name = E'A\\r\\nB\\nC\\\\n, \"D\"' WHERE sourced_id = 'spr-student-1'")
    made = make(engine, ELEMENTARY, V1P1)
    (row,) = (it for it in made.files["users"] if it["sourcedId"] == "spr-student-1")
    assert row["givenName"] == 'A B C\\n, "D"'
    assert check(made.content) == []


def test_ids_of_parts_are_stable_and_name_nobody(engine: sa.Engine) -> None:
    first = make(engine, BOTH, V1P2).files["roles"]
    with_one_school = {row["sourcedId"] for row in make(engine, ELEMENTARY, V1P2).files["roles"]}
    assert with_one_school <= {row["sourcedId"] for row in first}
    assert len({row["sourcedId"] for row in first}) == len(first)
    assert not any(row["userSourcedId"] in row["sourcedId"] for row in first)


def test_apple_gets_students_and_teachers_alone(engine: sa.Engine) -> None:
    made = make(engine, ELEMENTARY, PRESETS["apple"])
    assert {row["role"] for row in made.files["users"]} == {"student", "teacher"}
    assert {row["role"] for row in made.files["enrollments"]} <= {"student", "teacher"}
    assert made.package.left_out["users"]["role"] > 0
    assert check(made.content) == []
    assert "metadata" not in made.content.decode("latin-1")


def test_apple_takes_an_id_once(engine: sa.Engine, change: Callable[[str], None]) -> None:
    change("UPDATE enrollments SET sourced_id = 'spr-student-1' WHERE sourced_id = 'spr-enr-01'")
    with pytest.raises(CommandError, match="enrollments and users have the same id"):
        make(engine, ELEMENTARY, PRESETS["apple"])


def test_st_math_gets_its_seven_files(engine: sa.Engine) -> None:
    made = make(engine, BOTH, PRESETS["st-math"])
    wanted = {"manifest", "users", "courses", "classes", "enrollments", "orgs", "academicSessions"}
    assert made.files.keys() == wanted
    assert PRESETS["st-math"].zip_name == "OneRoster.zip"


def test_rights_that_have_ended_give_no_file(engine: sa.Engine) -> None:
    with pytest.raises(CommandError, match="no district or school is granted"):
        make(engine, "nobody@vendors.example", V1P1)


def test_a_file_has_the_agreed_keys_of_metadata_alone(engine: sa.Engine, change: Callable[[str], None]) -> None:
    change("UPDATE users SET metadata = jsonb_build_object('locker', 7, 'notes', 'x')")
    before = {name for name in make(engine, BOTH, V1P2).files["users"][0] if name.startswith("metadata.")}
    agreed = replace(WHOLE, districts=("spr-district", "shv-district"))
    with engine.begin() as connection:
        set_agreement(connection, TESTER, BOTH, agreed)
    shown = {name for name in make(engine, BOTH, V1P2).files["users"][0] if name.startswith("metadata.")}
    with engine.begin() as connection:
        remove_agreement(connection, TESTER, BOTH)
    assert (before, shown) == ({"metadata.locker", "metadata.notes"}, {"metadata.locker"})


def test_a_marker_of_a_person_whom_the_client_does_not_see_is_nowhere(
    engine: sa.Engine, change: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody at another school, a guardian without the scope, and a tombstone, with a marker in each text column."""
    caplog.set_level(logging.DEBUG)
    hidden = ["spr-student-3", "spr-guardian-1", "spr-student-2"]
    change("UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-2'")
    for table, key in (("users", "sourced_id"), ("demographics", "sourced_id"), ("user_profiles", "user_id")):
        listed = ", ".join(f"'{it}'" for it in hidden)
        change(f"UPDATE {table} SET {_mark(engine, table)} WHERE {key} IN ({listed})")
    for preset in (V1P1, V1P2):
        made = make(engine, ELEMENTARY, preset, (FULL, DEMOGRAPHICS))
        _require_absent(made, caplog.text, [MARKER, *hidden])
        assert "spr-student-1" in {row["sourcedId"] for row in made.files["users"]}


def _mark(engine: sa.Engine, table: str) -> str:
    """The assignments that put the marker into every text column but keys and words."""
    columns = (
        "SELECT column_name FROM information_schema.columns WHERE table_name = :name AND data_type = 'text' "
        "AND column_name NOT IN ('sourced_id', 'user_id', 'profile_id', 'status', 'primary_org_id')"
    )
    with engine.connect() as connection:
        found = connection.execute(sa.text(columns), {"name": table}).scalars().all()
    assert found
    return ", ".join(f"{name} = '{MARKER}'" for name in found)


def _require_absent(made: Made, log: str, markers: list[str]) -> None:
    with zipfile.ZipFile(io.BytesIO(made.content)) as packed:
        texts = [made.content, *(packed.read(name) for name in packed.namelist())]
    for marker in markers:
        assert not any(marker.encode() in it for it in texts)
        assert marker not in log


def test_an_erased_person_is_nowhere(make_database: Callable[[], str]) -> None:
    made = make_engine(make_database())
    load_first(made, "springfield-1.1", EXPORTS / "springfield-1.1")
    with made.begin() as connection:
        add_vendor(connection, "both", [("spr-district", ())])
        exclude_person(connection, TESTER, ExclusionKind.ERASED, "spr-student-1", Settings(secret_key=SECRET_KEY))
    zipped = make(made, BOTH, V1P2)
    made.dispose()
    _require_absent(zipped, "", ["spr-student-1"])
    assert check(zipped.content) == []
