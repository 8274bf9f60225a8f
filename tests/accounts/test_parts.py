"""What the service states that vendors get of people, beside what their own calls return."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.parts import list_received
from roster_service.accounts.ways import VENDOR_INTERFACE
from roster_service.app import create_app
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.conftest import close_app
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE
from tests.vendor.client import Account, VendorClient

SECRET_KEY = "a secret key of the tests, long enough to be one"
VENDOR, DISTRICT, LEA = "app@vendor.example", "shv-district", "17-0077"
ROOTS = {version.prefix: version.root for version in VERSIONS}
EVERY = tuple(f"{version.prefix}/{name}" for version in VERSIONS for name in ScopeName)
FLAGS = tuple(PermissionFlag)
# The members of records that show a part.
MEMBERS = {
    "names": ("familyName",),
    "email": ("email",),
    "phone": ("phone", "sms"),
    "identifier": ("identifier",),
    "userIds": ("userIds",),
    "middleName": ("middleName",),
    "preferredNames": ("preferredFirstName", "preferredMiddleName", "preferredLastName"),
    "pronouns": ("pronouns",),
    "birthDate": ("birthDate",),
    "sex": ("sex",),
    "race": ("white", "asian", "hispanicOrLatinoEthnicity"),
    "birthPlace": ("cityOfBirth", "countryOfBirthCode", "stateOfBirthAbbreviation"),
    "residence": ("publicSchoolResidenceStatus",),
}
CASES = [
    pytest.param(("v1p1/roster-demographics.readonly",), (), (), id="birth dates by a scope alone"),
    pytest.param(("v1p2/roster-core.readonly",), (), (), id="students and teachers"),
    pytest.param(("v1p1/roster.readonly",), (), (), id="of version 1.1"),
    pytest.param((), (), (), id="no client"),
    pytest.param((), FLAGS, (), id="all flags and no client"),
    pytest.param(EVERY, (), (), id="all scopes and no flag"),
    pytest.param(EVERY, FLAGS, (), id="everything"),
    pytest.param(EVERY, FLAGS, tuple(WithheldField), id="all fields withheld"),
    pytest.param(EVERY, FLAGS, (WithheldField.AGENTS, WithheldField.EMAIL), id="agents withheld"),
    pytest.param(EVERY, FLAGS, (WithheldField.BIRTH_DATE, WithheldField.PHONE), id="birth dates withheld"),
    pytest.param(("v1p2/guardians.readonly", "v1p1/roster-core.readonly"), (), (), id="scopes of two versions"),
    pytest.param(
        ("v1p2/guardians-metadata.readonly", "v1p2/roster.readonly"), (), (), id="metadata of guardians it cannot see"
    ),
]
ALL = Rules(None, None, Staff.ALL, guardians=True)
RULES = [
    pytest.param(replace(ALL, guardians=False), id="no guardians"),
    pytest.param(replace(ALL, staff=Staff.NONE), id="no staff"),
    pytest.param(replace(ALL, staff=Staff.CLASSES), id="the staff of shared classes"),
    pytest.param(replace(ALL, students="grades~'09'"), id="one grade"),
    pytest.param(replace(ALL, classes="school.sourcedId='shv-north'"), id="some classes"),
    pytest.param(Rules("grades~'09'", None, Staff.NONE, guardians=False), id="all at once"),
]


def find_parts(people: list[dict[str, Any]]) -> Iterator[str]:
    """The parts that records show."""
    for name, members in MEMBERS.items():
        if any(member in person for person in people for member in members):
            yield name


def ask_rostering(app: Any, pair: tuple[str, str], version: str, scopes: list[str]) -> set[str]:
    """The parts in the answers to a client, with a token of all its scopes of a version."""
    asked = app.test_client()
    form = {"grant_type": "client_credentials", "scope": " ".join(scopes)}
    token = asked.post("/oauth/token", data=form, auth=pair).json["access_token"]

    def get(path: str, key: str) -> list[dict[str, Any]]:
        answer = asked.get(f"{ROOTS[version]}{path}?limit=1000", headers={"Authorization": f"Bearer {token}"})
        return list(answer.json[key]) if answer.status_code == 200 else []

    users, demographics = get("/users", "users"), get("/demographics", "demographics")
    guardians = [
        it
        for it in users
        if {it.get("role"), *(one["role"] for one in it.get("roles", ()))}.intersection(GUARDIAN_ROLES)
    ]
    found = {*find_parts(users), *find_parts(demographics)}
    found |= {"classes"} if get("/classes", "classes") else set()
    found |= {"guardians"} if guardians else set()
    others = [it for it in users if it not in guardians]
    for name, records in (
        ("studentMetadata", others), ("guardianMetadata", guardians), ("demographicMetadata", demographics)
    ):  # fmt: skip
        found |= {name} if any("metadata" in record for record in records) else set()
    return found


def ask_vendor_interface(app: Any, account: Account, flags: tuple[str, ...]) -> set[str]:
    """The parts in the answer with all that a vendor may request."""
    client = VendorClient(app)
    page = client.students(account, client.token(account), {"districtlea": LEA, "include": list(flags)})
    students = page.json.get("students", [])
    contacts = [student["contacts"] for student in students if "contacts" in student]
    guardians = [it for contact in contacts for it in contact.get("guardians", ())]
    demographics = [student["demographics"] for student in students if "demographics" in student]
    found = set(find_parts([*students, *contacts, *guardians, *demographics]))
    found |= {"guardians"} if guardians else set()
    return found | ({"classes"} if any(student.get("enrollments") for student in students) else set())


@pytest.mark.parametrize(("scopes", "flags", "fields"), CASES)
def test_a_vendor_gets_the_parts_that_are_stated(
    engine: sa.Engine,
    database_url: str,
    tmp_path: Path,
    scopes: tuple[str, ...],
    flags: tuple[PermissionFlag, ...],
    fields: tuple[WithheldField, ...],
) -> None:
    check_stated(engine, database_url, tmp_path, scopes, flags, fields)


@pytest.mark.parametrize("rules", RULES)
def test_the_rules_of_a_grant_leave_out_the_parts_that_are_stated(
    engine: sa.Engine, database_url: str, tmp_path: Path, rules: Rules
) -> None:
    check_stated(engine, database_url, tmp_path, EVERY, FLAGS, (), rules)


def check_stated(
    engine: sa.Engine,
    database_url: str,
    tmp_path: Path,
    scopes: tuple[str, ...],
    flags: tuple[PermissionFlag, ...],
    fields: tuple[WithheldField, ...],
    rules: Rules | None = None,
) -> None:
    """Checks what is stated of a vendor against what it is answered."""
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    found: dict[str, set[str]] = {}
    with engine.begin() as connection:
        for table in ("users", "demographics"):
            connection.execute(sa.text(f"UPDATE {table} SET metadata = jsonb_build_object('locker', '7')"))
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), flags, rules=rules)
        vendor_rights.change_withheld(connection, TESTER, VENDOR, fields)
        password = vendors.change_password(connection, TESTER, VENDOR, None)
        key = vendors.replace_key(connection, TESTER, VENDOR, timedelta(0)).api_key
        account = Account(vendors.find_vendor(connection, VENDOR).id, VENDOR, key, str(password))
        made = clients.add_client(connection, TESTER, VENDOR, "reader", read_scopes(scopes)) if scopes else None
    app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path), database_url)
    by_client: set[str] = set()
    for version, own in itertools.groupby(sorted(scopes), lambda scope: scope.partition("/")[0]):
        assert made is not None
        by_client |= ask_rostering(app, (made.client_id, made.client_secret), version, list(own))
    by_key = ask_vendor_interface(app, account, flags)
    close_app(app)
    for name in by_client | by_key:
        found[name] = {way for way, parts in (("reader", by_client), (VENDOR_INTERFACE, by_key)) if name in parts}
    with engine.connect() as connection:
        stated = {name: set(ways) for name, ways in list_received(connection)[VENDOR].items()}
    assert stated == found
    (tmp_path / "secret_key").write_text(SECRET_KEY)
    for part in ("birthDate", "guardians", "guardianMetadata"):
        printed = run_roster(database_url, tmp_path, "access", "--part", part).stdout
        assert (VENDOR in printed) == (part in found), part
    shown = run_roster(database_url, tmp_path, "vendor", "show", VENDOR).stdout
    assert (" metadata of guardians (by " in shown) == ("guardianMetadata" in found)


def test_a_vendor_without_grants_or_disabled_gets_nothing(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        clients.add_client(connection, TESTER, VENDOR, "reader", read_scopes(EVERY))
        assert list_received(connection)[VENDOR] == {}
        load(engine, "shelbyville", EXPORTS / SHELBYVILLE)
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), FLAGS)
        assert list_received(connection)[VENDOR]
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=False)
        assert list_received(connection)[VENDOR] == {}
