"""`roster access` and `roster show`: who sees what, and why, as the interfaces answer."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.ways import VENDOR_INTERFACE
from roster_service.app import create_app
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.cli.conftest import Roster
from tests.conftest import close_app
from tests.postgres.loaded import load_districts
from tests.vendor.client import Account, VendorClient
from tests.verdicts import list_verdicts

Answer = Callable[..., Any]
WIDE, NARROW, CLOSED = "wide@vendor.example", "narrow@vendor.example", "closed@vendor.example"
SECRET_KEY = "a secret key of the tests, long enough to be one"
FULL = (ScopeName.FULL, ScopeName.DEMOGRAPHICS, ScopeName.GUARDIANS)


@pytest.fixture
def credentials(engine: sa.Engine, tmp_path: Path) -> dict[str, tuple[str, str]]:
    """A vendor of two districts with guardians, one of a school without, and a disabled one; their credentials."""
    (tmp_path / "secret_key").write_text(SECRET_KEY)
    load_districts(engine)
    made = {}
    with engine.begin() as connection:
        for email, scopes in ((WIDE, FULL), (NARROW, (ScopeName.CORE,)), (CLOSED, (ScopeName.FULL,))):
            vendors.add_vendor(connection, TESTER, email, email)
            held = [Scope("v1p2", name) for name in scopes]
            client = clients.add_client(connection, TESTER, email, "app", held)
            made[email] = (client.client_id, client.client_secret)
        vendor_rights.grant(connection, TESTER, WIDE, "spr-district", (), [PermissionFlag.CONTACTS])
        vendor_rights.grant(connection, TESTER, WIDE, "shv-district", ())
        vendor_rights.grant(connection, TESTER, NARROW, "spr-district", ["spr-elementary"])
        vendor_rights.grant(connection, TESTER, CLOSED, "spr-district", ())
        vendors.set_vendor_enabled(connection, TESTER, CLOSED, enabled=False)
    return made


@pytest.mark.usefixtures("credentials")
def test_schools_are_listed_with_what_opens_them_and_what_is_withheld(answer: Answer) -> None:
    rows = answer("access", "--school", "spr-elementary")
    assert [(row["vendor"], row["enabled"], row["grant"]) for row in rows] == [
        (CLOSED, False, "district"),
        (NARROW, True, "school"),
        (WIDE, True, "district"),
    ]
    wide, narrow = rows[2], rows[1]
    assert (wide["flags"], narrow["flags"], narrow["keys"]) == (["contacts"], [], 1)
    assert wide["withheld"] == ["studentMetadata", "guardianMetadata", "demographicMetadata"]
    assert {"phone", "guardians", "birthDate"} <= {*narrow["withheld"]} - {*narrow["parts"]}
    assert (rows[0]["parts"], "names" in narrow["parts"]) == ([], True)
    assert {row["sourcedId"] for row in answer("access", "--vendor", NARROW)} == {"spr-elementary"}
    assert len({row["district"] for row in answer("access", "--vendor", WIDE)}) == 2


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("person", "seen_by"),
    [
        pytest.param("spr-student-1", {CLOSED, NARROW, WIDE}, id="a pupil of the school"),
        pytest.param("spr-student-3", {CLOSED, WIDE}, id="a pupil of another school"),
        pytest.param("spr-guardian-1", {WIDE}, id="a guardian"),
        pytest.param("shv-student-1", {WIDE}, id="a pupil of another district"),
    ],
)
def test_a_person_is_listed_with_the_vendors_that_see_the_person(
    answer: Answer, person: str, seen_by: set[str]
) -> None:
    assert {row["vendor"] for row in answer("access", "--person", person)} == seen_by


@pytest.mark.usefixtures("credentials")
def test_a_kept_person_is_not_seen_and_the_reason_says_so(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    kept = answer("person", "hide", "spr-student-1", "--from", NARROW, "--yes")
    assert kept == {
        "sourced_id": "spr-student-1", "vendor": NARROW, "kept": True, "dry_run": False, "recipients": [],
    }  # fmt: skip
    assert {row["vendor"] for row in answer("access", "--person", "spr-student-1")} == {CLOSED, WIDE}
    shown = roster("access", "--vendor", NARROW, "--person", "spr-student-1").stdout
    assert shown.startswith(f"{NARROW} does not see it: the person is kept from this vendor")
    (listed,) = answer("person", "list")
    assert (listed["kind"], listed["sourced_id"], listed["vendor"]) == ("kept", "spr-student-1", NARROW)
    with engine.connect() as connection:
        verdicts = [
            it for it in list_verdicts(connection, "spr-student-1") if it.vendor == NARROW and it.kind == "user"
        ]
    assert verdicts
    assert {(it.shown, it.reason) for it in verdicts} == {(False, "the person is kept from this vendor")}
    answer("person", "show", "spr-student-1", "--from", NARROW, "--yes")
    assert {row["vendor"] for row in answer("access", "--person", "spr-student-1")} == {CLOSED, NARROW, WIDE}


@pytest.mark.usefixtures("credentials")
def test_the_reason_of_the_vendor_interface_is_what_it_lacks(engine: sa.Engine) -> None:
    """Of who is no student: a flag, a field that is withheld, or a grant."""
    with engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, WIDE, [WithheldField.AGENTS])
        vendors.add_vendor(connection, TESTER, "new@vendor.example", "New")
        found = {
            (it.vendor.partition("@")[0], person): it.reason
            for person in ("spr-guardian-1", "spr-teacher-1")
            for it in list_verdicts(connection, person)
            if it.by == VENDOR_INTERFACE and it.kind == "user"
        }
    assert found["narrow", "spr-guardian-1"].endswith("the vendor lacks the permission flag contacts")
    assert found["narrow", "spr-teacher-1"].endswith("the vendor lacks the permission flag enrollments")
    assert found["wide", "spr-guardian-1"].endswith("who that is (`agents`) is withheld from the vendor")
    assert {reason for (vendor, _), reason in found.items() if vendor == "new"} == {"the vendor has no grant"}


@pytest.mark.usefixtures("credentials")
def test_the_list_is_csv_and_text_too(answer: Answer, roster: Roster) -> None:
    rows = list(csv.DictReader(io.StringIO(roster("access", "--csv").stdout)))
    assert [row["sourcedId"] for row in rows] == [row["sourcedId"] for row in answer("access")]
    assert f"{CLOSED} (disabled)" in roster("access").stdout
    assert {row["vendor"] for row in answer("access", "--part", "birthDate")} == {WIDE}
    # Of one vendor alone, it says nothing of the others.
    assert roster("access", "--vendor", NARROW, "--part", "birthDate").stdout == f"{NARROW} does not get birth dates\n"


@pytest.mark.usefixtures("credentials")
def test_a_person_is_named_as_in_other_commands(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    """One who is found, several to choose from, or nobody."""
    of_id = answer("access", "--person", "spr-student-2")
    assert answer("access", "--person", "conor") == answer("access", "--person", "Conor O'Brien") == of_id != []
    person = "Conor O'Brien (spr-student-2), grade 03, S-1002, Springfield Elementary School, born 2018, in the roster"
    assert f"these vendors see {person}: {NARROW}, {WIDE}\n" in roster("access", "--person", "conor").stdout
    several = roster("access", "--person", "O'Brien")
    assert (several.exit_code, "people fit O'Brien; give the sourcedId of one:\n" in several.stderr) == (2, True)
    assert person in several.stderr
    unknown = roster("access", "--person", "nobody")
    assert (unknown.exit_code, "nobody in the roster has the id or name nobody;" in unknown.stderr) == (2, True)
    with engine.begin() as connection:
        connection.execute(tables.vendor_grants.delete())
        connection.execute(tables.visible_orgs.delete())
    assert roster("access", "--person", "conor").stdout == f"no vendor sees {person}\n"


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(("--person", "spr-student-3"), "the vendor has no grant where the person is", id="person"),
        pytest.param(("--school", "shv-north"), "no grant of the vendor opens it", id="school"),
        pytest.param(("--person", "spr-student-1", "--part", "birthDate"), "it does not get birth dates", id="part"),
    ],
)
def test_a_vendor_that_sees_nothing_of_it_is_named_and_the_others_are_listed(
    roster: Roster, options: tuple[str, ...], why: str
) -> None:
    shown = roster("access", "--vendor", NARROW, *options).stdout
    assert shown.startswith(f"{NARROW} does not see it: {why}")
    assert WIDE in shown.partition("\n")[2]


@pytest.mark.shows(
    "Operators",
    "`roster show --as` shows what the vendor's interface answers, and leaves its own row of the change log.",
)
def test_a_record_is_shown_as_the_interface_answers(
    answer: Answer, engine: sa.Engine, database_url: str, credentials: dict[str, tuple[str, str]]
) -> None:
    """Every record of the roster, for each vendor: the same JSON, or refused where the interface refuses."""
    app = create_app(Settings(secret_key=SECRET_KEY), database_url)
    asked = app.test_client()
    with engine.connect() as connection:
        columns = (tables.users, tables.classes, tables.enrollments, tables.orgs)
        ids = [it for table in columns for it in connection.scalars(sa.select(table.c.sourced_id))][::4]
    outcomes = set()
    for email, pair in ((WIDE, credentials[WIDE]), (NARROW, credentials[NARROW])):
        token = asked.post("/oauth/token", data={"grant_type": "client_credentials"}, auth=pair).json
        assert token is not None
        for sourced_id in [*ids, "spr-student-1"]:
            for view in answer("show", sourced_id, "--as", email, "--version", "v1p2"):
                headers = {"Authorization": f"Bearer {token['access_token']}"}
                got = asked.get(view["path"], headers=headers, base_url="http://127.0.0.1:8000")
                outcomes.add((got.status_code, view["body"] is None))
                assert (view["body"] is None) == (view["refusal"] is not None)
                if view["body"] is not None:
                    assert view["body"] == got.json
    close_app(app)
    assert outcomes == {(200, False), (404, True), (403, True)}


@pytest.mark.shows(
    "Operators",
    "`roster show --as` shows what the vendor's interface answers, and leaves its own row of the change log.",
)
def test_a_student_is_shown_as_the_vendor_interface_answers(
    answer: Answer, roster: Roster, engine: sa.Engine, database_url: str, credentials: dict[str, tuple[str, str]]
) -> None:
    """With all parts that the flags allow, less the withheld fields; refused where no page has the student."""
    accounts = {}
    with engine.begin() as connection:
        vendor_rights.grant(connection, TESTER, WIDE, None, (), list(PermissionFlag))
        vendor_rights.change_withheld(connection, TESTER, WIDE, [WithheldField.EMAIL, WithheldField.SEX])
        for email, flags in ((WIDE, list(PermissionFlag)), (NARROW, [])):
            password = vendors.change_password(connection, TESTER, email, None)
            key = vendors.replace_key(connection, TESTER, email, timedelta(0))
            account = Account(vendors.find_vendor(connection, email).id, email, key.api_key, str(password))
            accounts[email] = (account, [flag.value for flag in flags])
        ids = connection.scalars(
            sa.select(tables.user_roles.c.user_id).where(tables.user_roles.c.role == "student")
        ).all()
    app = create_app(Settings(secret_key=SECRET_KEY), database_url)
    client = VendorClient(app)
    shown = []
    for email, (account, include) in accounts.items():
        token = client.token(account)
        found = {}
        for lea in ("17-0042", "17-0077"):
            page = client.students(account, token, {"districtlea": lea, "include": include})
            found |= {student["sourcedId"]: student for student in page.json.get("students", ())}
        for sourced_id in dict.fromkeys(ids):
            [view] = answer("show", sourced_id, "--as", email, "--version", "v1")
            assert (view["method"], view["path"], view["client_id"]) == ("POST", "/v1/students", account.api_key[:12])
            assert view["body"] == found.get(sourced_id)
            assert (view["body"] is None) == (view["refusal"] is not None)
            shown.append(view["body"] is None)
    close_app(app)
    assert set(shown) == {True, False}
    assert {view["version"] for view in answer("show", ids[0], "--as", WIDE)} == {"v1p2", "v1"}
    [named] = answer("show", "spr-guardian-1", "--as", WIDE, "--version", "v1")
    assert (named["body"], "inside of a student: it is named as a guardian" in named["refusal"]) == (None, True)
    assert answer("show", "spr-guardian-1", "--as", NARROW, "--version", "v1") == []
    assert "POST /v1/students" in roster("show", ids[0], "--as", WIDE).stdout


@pytest.mark.usefixtures("credentials")
def test_a_vendor_that_uses_the_vendor_interface_alone_has_a_view(answer: Answer, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(tables.oauth_clients.delete())
    assert [view["version"] for view in answer("show", "spr-student-1", "--as", WIDE)] == ["v1"]
    with engine.begin() as connection:
        connection.execute(tables.api_keys.delete())
    assert [view["refusal"] for view in answer("show", "spr-student-1", "--as", WIDE)] == [
        "the vendor has no valid API key"
    ]


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("email", "sourced_id", "why"),
    [
        pytest.param(NARROW, "spr-student-3", "no grant where the person is: student at ", id="another school"),
        pytest.param(NARROW, "spr-guardian-1", "lacks guardians.readonly", id="a guardian"),
        pytest.param(NARROW, "shv-north", "no grant of the vendor opens it", id="another org"),
        pytest.param(CLOSED, "spr-student-1", "the vendor is disabled", id="a disabled vendor"),
    ],
)
def test_a_refusal_says_why(answer: Answer, roster: Roster, email: str, sourced_id: str, why: str) -> None:
    refusals = [view["refusal"] or "" for view in answer("show", sourced_id, "--as", email)]
    assert any(why in refusal for refusal in refusals)
    assert "not shown: " in roster("show", sourced_id, "--as", email).stdout


@pytest.mark.shows(
    "Operators",
    "`roster show --as` shows what the vendor's interface answers, and leaves its own row of the change log.",
)
@pytest.mark.usefixtures("credentials")
def test_a_look_is_recorded_without_the_id_of_a_person(answer: Answer, engine: sa.Engine) -> None:
    """And is no disclosure: the vendor got nothing."""
    before = len(answer("changes"))
    answer("show", "spr-student-1", "--as", WIDE, "--version", "v1p2", "--reason", "a parent asks")
    answer("show", "spr-district", "--as", WIDE)
    person, org = answer("changes")[before:]
    assert (person["verb"], person["kind"], person["vendor"], person["reason"]) == (
        "show",
        "person",
        WIDE,
        "a parent asks",
    )
    assert "spr-student-1" not in str(person)
    assert (org["kind"], org["subject"]) == ("org", "spr-district")
    with engine.connect() as connection:
        assert connection.execute(sa.select(tables.audit)).all() == []


@pytest.mark.usefixtures("credentials")
def test_an_unknown_record_or_version_has_nothing_to_show(answer: Answer, roster: Roster) -> None:
    assert "the roster has no record nobody" in roster("show", "nobody", "--as", WIDE).stderr
    assert answer("show", "spr-student-1", "--as", WIDE, "--version", "v1p1") == []
