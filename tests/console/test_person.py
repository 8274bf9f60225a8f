"""The page of a person: the grid against what vendors are answered, the sentences against the log, the card, and what
may be done."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts.clients import add_client
from roster_service.accounts.vendor_rights import change_withheld, grant, set_flags
from roster_service.accounts.vendors import (
    Vendor,
    add_vendor,
    change_password,
    find_vendor,
    list_vendors,
    replace_key,
)
from roster_service.app import make_serving_engine
from roster_service.auth.credentials.api_keys import find_holder_of
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.db.tables import users
from roster_service.errors import CommandError
from roster_service.explore.access import list_access
from roster_service.explore.person_grid import COLUMNS, GridCell, make_grid
from roster_service.explore.vendor_view import VendorView, show_as
from roster_service.explore.who_sees import Seeing, explain
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.console.conftest import SECRET, Browser, Console
from tests.console.test_statements import read
from tests.extent import examples
from tests.vendor.client import Account, VendorClient
from tests.vendor.test_disclosed_people import LEAS

PUPIL = "spr-student-1"
# The keys of a JSON body that show a column, on either interface.
KEYS = {
    "Name": {"familyName"},
    "E-mail": {"email"},
    "Demographics": {"birthDate", "sex", "white", "asian", "hispanicOrLatinoEthnicity", "demographics"},
    "Guardians": {"agents", "guardians"},
}
# Vendors by their scopes, flags, withheld fields and whether the whole of two districts is granted.
VENDORS: dict[str, tuple[tuple[ScopeName, ...], tuple[PermissionFlag, ...], tuple[WithheldField, ...]]] = {
    "core": ((ScopeName.CORE,), (), ()),
    "all": (
        (ScopeName.CORE, ScopeName.DEMOGRAPHICS, ScopeName.GUARDIANS),
        (PermissionFlag.CONTACTS, PermissionFlag.DEMOGRAPHICS, PermissionFlag.ENROLLMENTS),
        (),
    ),
    "bare": ((ScopeName.CORE, ScopeName.GUARDIANS), (), (WithheldField.EMAIL, WithheldField.AGENTS)),
    "birthless": ((ScopeName.CORE, ScopeName.DEMOGRAPHICS), (), (WithheldField.BIRTH_DATE,)),
    "keyed": ((), (PermissionFlag.CONTACTS,), (WithheldField.EMAIL,)),
}


def add_vendors(console: Console) -> None:
    """Adds these vendors to a console, each with a grant of both districts."""
    with console.engine.begin() as connection:
        for name, (scopes, flags, fields) in VENDORS.items():
            email = f"{name}@person.example"
            add_vendor(connection, TESTER, email, name)
            for district in ("spr-district", "shv-district"):
                grant(connection, TESTER, email, district, ())
            if scopes:
                add_client(connection, TESTER, email, f"app {name}", [Scope("v1p2", scope) for scope in scopes])
            set_flags(connection, TESTER, email, flags)
            change_withheld(connection, TESTER, email, fields)


@pytest.fixture(scope="module", autouse=True)
def vendors(console: Console) -> None:
    """They are on the console of the module."""
    add_vendors(console)


def list_keys(body: Any) -> Iterator[str]:
    """The keys of a JSON value that have a value, at every depth but inside of references to guardians."""
    if isinstance(body, dict):
        for key, value in body.items():
            if value not in ({}, [], None):
                yield key
            if key not in ("agents", "guardians", "enrollments"):
                yield from list_keys(value)


def list_named_keys(body: Any, sourced_id: str) -> set[str]:
    """The keys of what names a person inside of the records of others."""
    if isinstance(body, list):
        return {key for item in body for key in list_named_keys(item, sourced_id)}
    if not isinstance(body, dict):
        return set()
    found = {key for value in body.values() for key in list_named_keys(value, sourced_id)}
    is_named = body.get("sourcedId") == sourced_id and "type" not in body and "districtlea" not in body
    return found | ({key for key, value in body.items() if value not in ({}, [], None)} if is_named else set())


def ask_students(console: Console, vendor: Vendor) -> list[Any]:
    """The students that the vendor interface answers a vendor with, with all parts that its flags allow."""
    with console.engine.begin() as connection:
        password = change_password(connection, TESTER, vendor.email, None)
        account = Account(
            vendor.id, vendor.email, replace_key(connection, TESTER, vendor.email, timedelta(0)).api_key, str(password)
        )
        holder = find_holder_of(connection, connection, vendor.id)
    assert holder is not None
    client, found = VendorClient(console.vendors), []
    answer = client.login(account)
    # Without a district it may not log in.
    token = answer.json.get("token")
    for lea in LEAS.values() if token else ():
        # One that the vendor may not see is refused.
        answer = client.students(account, token, {"districtlea": lea, "include": sorted(holder.flags)})
        found += answer.json.get("students", [])
    return found


def test_the_grid_says_what_the_interfaces_answer(own_console: Console) -> None:
    console = own_console
    add_vendors(console)
    settings, states = Settings(secret_key=SECRET), set()
    with console.engine.connect() as connection:
        serving = make_serving_engine(make_role_urls(connection, None)[DatabaseRole.SERVING], settings)
        ids = connection.scalars(sa.select(users.c.sourced_id).order_by(users.c.sourced_id)).all()
        students = {vendor.email: ask_students(console, vendor) for vendor in list_vendors(connection)}
        assert sum(map(bool, students.values())) > len(VENDORS)
        for turn, sourced_id in enumerate(ids[:: examples(6, 3, 1)]):
            rows = make_grid(explain(connection, sourced_id))
            # Each vendor with every other person.
            for row in examples(rows[turn % 2 :: 2], rows[turn % 2 :: 2], rows):
                views: list[VendorView] = []
                # A vendor without clients has students alone.
                with contextlib.suppress(CommandError):
                    views = show_as(connection, serving, TESTER, sourced_id, row.vendor, None, settings)
                own = [student for student in students[row.vendor] if student["sourcedId"] == sourced_id]
                keys = {key for body in (*own, *(view.body for view in views)) for key in list_keys(body)}
                keys |= list_named_keys(students[row.vendor], sourced_id)
                for column, cell in zip(COLUMNS, row.cells, strict=True):
                    # A guardian has agents too: the children.
                    if column == "Classes" or (column == "Guardians" and "student" not in sourced_id):
                        continue
                    is_seen = bool(keys & KEYS[column])
                    assert (cell.state is Seeing.SEES) == is_seen, (sourced_id, row.vendor, column, cell, views)
                    states.add((column, cell.state))
                if any(student.get("enrollments") for student in own):
                    assert row.cells[-1].state is Seeing.SEES, (sourced_id, row.vendor, row.cells[-1])
        serving.dispose()
    assert {state for _, state in states} == {*Seeing}


def test_who_has_no_guardian_has_none_withheld(console: Console) -> None:
    with console.engine.connect() as connection:
        states = {
            person: row.cells[list(COLUMNS).index("Guardians")].state
            for person in (PUPIL, "spr-teacher-1")
            for row in make_grid(explain(connection, person))
            if row.vendor == "bare@person.example"
        }
    assert states == {PUPIL: Seeing.WITHHELD, "spr-teacher-1": Seeing.EMPTY}


def test_a_student_who_left_has_no_classes_and_demographics_on_the_vendor_interface(own_console: Console) -> None:
    console = own_console
    with console.engine.begin() as connection:
        set_flags(connection, TESTER, "both@vendors.example", [*PermissionFlag])
        connection.execute(sa.text("UPDATE oauth_clients SET enabled = false"))
        before = {row.vendor: row.cells for row in make_grid(explain(connection, PUPIL))}["both@vendors.example"]
        for table, key in (("enrollments", "user_id"), ("demographics", "sourced_id")):
            connection.execute(sa.text(f"UPDATE {table} SET status = 'tobedeleted' WHERE {key} = :id"), {"id": PUPIL})
        after = {row.vendor: row.cells for row in make_grid(explain(connection, PUPIL))}["both@vendors.example"]
        access = list_access(connection, vendor="both@vendors.example", school=None, person=PUPIL)
    changed = {
        column
        for column, one, other in zip(COLUMNS, before, after, strict=True)
        if (one.state is Seeing.SEES) != (other.state is Seeing.SEES)
    }
    assert changed == {"Demographics", "Classes"}
    assert access
    assert all({"classes", "birthDate"}.isdisjoint(row.parts) and "names" in row.parts for row in access)


def test_classes_are_those_that_the_enrollments_of_a_vendor_name(console: Console) -> None:
    with console.engine.connect() as connection:
        for sourced_id in (PUPIL, "spr-student-2", "shv-student-1", "spr-teacher-1", "spr-guardian-1"):
            for row in make_grid(explain(connection, sourced_id)):
                if row.vendor != "both@vendors.example":
                    continue
                answer = console.client.call("v1p2", "/enrollments", [("filter", f"user.sourcedId='{sourced_id}'")])
                assert (row.cells[-1].state is Seeing.SEES) == bool(answer.records), (sourced_id, row.cells[-1])


def test_what_is_marked_as_deleted_is_seen_and_what_is_withheld_is_not(own_console: Console) -> None:
    """A delta serves the whole record. A part whose only value is withheld is not seen, though the part is not."""
    console = own_console
    with console.engine.begin() as connection:
        marked = sa.text("UPDATE demographics SET status = 'tobedeleted' WHERE sourced_id = :id")
        connection.execute(marked, {"id": PUPIL})
    answer = console.client.call("v1p2", f"/demographics/{PUPIL}", vendor="springfield")
    assert (answer.status, "birthDate" in answer.json["demographics"]) == (200, True)
    email = "springfield@vendors.example"

    def find_cell() -> GridCell:
        with console.engine.connect() as connection:
            rows = make_grid(explain(connection, PUPIL), {"Birth": ("birthDate", "birthPlace")})
        return next(row.cells[0] for row in rows if row.vendor == email)

    assert find_cell().state is Seeing.SEES
    with console.engine.begin() as connection:
        left = "country_of_birth_code = NULL, state_of_birth_abbreviation = NULL"
        connection.execute(sa.text(f"UPDATE demographics SET {left} WHERE sourced_id = :id"), {"id": PUPIL})
        change_withheld(connection, TESTER, email, [WithheldField.BIRTH_DATE, WithheldField.CITY_OF_BIRTH])
    assert find_cell().state is Seeing.WITHHELD


def test_the_rules_of_a_vendor_are_named_where_they_narrow(console: Console, browser: Browser) -> None:
    """In the grid, in the reasons of the record's page, on the page of the vendor, in the table of schools."""
    rules = Rules("grades~'03'", "subjects~'Mathematics'", Staff.CLASSES, guardians=False)
    email, words = "ruled@person.example", "grade 3, mathematics; the teachers of these classes; no guardians"
    with console.engine.begin() as connection:
        add_vendor(connection, TESTER, email, "ruled")
        scopes = [Scope("v1p2", name) for name in (ScopeName.CORE, ScopeName.GUARDIANS)]
        add_client(connection, TESTER, email, "app", scopes)
        grant(connection, TESTER, email, "spr-district", (), rules=rules)
        grant(connection, TESTER, email, "shv-district", ())
        number = find_vendor(connection, email).id
        reasons = {}
        for person in (PUPIL, "spr-student-3", "shv-student-1", "spr-guardian-1"):
            [explained] = explain(connection, person, email)
            [row] = make_grid([explained])
            [verdict] = [it for it in explained.records if (it.by, it.kind) == ("app", "user")]
            assert (row.cells[0].state is Seeing.SEES) == verdict.shown, person
            reasons[person] = (verdict.shown, row.only, verdict.reason)
    school = reasons[PUPIL][2].removeprefix("a grant opens student at ").partition(",")[0]
    assert reasons[PUPIL] == (True, words, f"a grant opens student at {school}, only {words}")
    closed = (False, words, f"the rules of its grants do not open it: only {words}")
    assert (reasons["spr-student-3"], reasons["spr-guardian-1"]) == (closed, closed)
    assert reasons["shv-student-1"][:2] == (True, "")
    assert f"only {words}" in read(browser.get(f"/vendors/{number}").text)
    table = browser.get("/access.json").json["rows"]["rows"]
    only = {row["sourcedId"]: row["only"].get(str(number)) for row in table}
    assert only == {"spr-elementary": words, "spr-high": words, "shv-north": None, "shv-south": None}
    assert f"only {words}" in read(browser.get("/access").text)
    assert f"only {words}" in read(browser.get(f"/records/{PUPIL}").text)
    notice = csv.DictReader(io.StringIO(browser.get("/access.csv").text))
    assert {row["sourcedId"]: row["only"] for row in notice if row["email"] == email} == {
        key: it or "" for key, it in only.items()
    }
    log = read(browser.get(f"/changes?vendor={email}").text)
    assert (
        f"only {rules.words}, staff classes, classes subjects~'Mathematics', students grades~'03', guardians no" in log
    )


def test_the_page_says_who_sees_a_pupil_and_the_sentences_follow_the_log(own_console: Console) -> None:
    """Before an answer, after one, and without vendors, when no sentence leads to a table."""
    console = own_console
    browser = console.log_in()
    assert "No answer to a vendor had records of this person" in read(browser.get("/records/spr-student-3").text)
    assert console.client.call("v1p2", f"/demographics/{PUPIL}", vendor="springfield").status == 200
    console.vendors.extensions["roster_access_log"].flush()
    page = read(browser.get(f"/records/{PUPIL}").text)
    with console.engine.connect() as connection:
        day = connection.scalar(sa.text("SELECT to_char(max(at) AT TIME ZONE 'UTC', 'FMDD Mon YYYY') FROM audit"))
        pupil = connection.execute(sa.select(users).where(users.c.sourced_id == PUPIL)).one()
        schools = connection.scalars(
            sa.text("SELECT o.name FROM user_roles r JOIN orgs o ON o.sourced_id = r.org_id WHERE r.user_id = :id"),
            {"id": PUPIL},
        ).all()
    shown = "was shown this person in answers with birth dates, sex, race and ethnicity"
    assert f"springfield@vendors.example {shown}" in page
    assert f"on {day} ." in page
    assert "one of these parts may have been in it of others only" in page
    assert f"{pupil.given_name} {pupil.family_name} is in the roster." in page
    for text in (*schools, pupil.email, *pupil.grades):
        assert text in page
    with console.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM vendors"))
    page = read(browser.get(f"/records/{PUPIL}").text)
    assert ("There is no vendor yet" in page, "No rejected row that is stored names" in page) == (True, True)
    assert "in the table" not in page


def test_a_person_who_left_is_known_by_the_log_alone(own_console: Console) -> None:
    console, gone = own_console, "spr-student-4"
    assert console.client.call("v1p2", f"/users/{gone}").status == 200
    console.vendors.extensions["roster_access_log"].flush()
    with console.engine.begin() as connection:
        for table in ("user_roles", "user_agents", "enrollments", "demographics", "users"):
            column = "sourced_id" if table in ("users", "demographics") else "user_id"
            connection.execute(sa.text(f"DELETE FROM {table} WHERE {column} = :gone"), {"gone": gone})
    for role in (OperatorRole.VIEWER, OperatorRole.OWNER):
        answer = console.log_in(role).get(f"/records/{gone}")
        assert answer.status_code == 200
        page = read(answer.text)
        assert f"{gone} is no longer in the roster. No vendor gets anything of this person now." in page
        assert "both@vendors.example was shown this person in answers with names, usernames and grades" in page
        assert "What each vendor sees" not in page
        assert ("Hide" in page) == (role is OperatorRole.OWNER)


def test_the_page_says_why_a_person_is_missing(own_console: Console, own_export: Path) -> None:
    """A row of the person is rejected, and a held run waits."""
    console, browser = own_console, own_console.log_in()
    assert "No rejected row that is stored names this person" in read(browser.get(f"/records/{PUPIL}").text)
    enrollments = own_export / "enrollments.csv"
    text = enrollments.read_text()
    header, *rows = text.splitlines()
    place = header.split(",").index("classSourcedId")
    row = next(line for line in rows if PUPIL in line)
    cells = row.split(",")
    cells[place] = "nowhere"
    enrollments.write_text(text.replace(row, ",".join(cells)))
    load(console.engine, "springfield", own_export)
    page = read(browser.get(f"/records/{PUPIL}").text)
    with console.engine.connect() as connection:
        run, file, line = connection.execute(
            sa.text(
                "SELECT run_id, file, line FROM sync_rejections WHERE records @> CAST(:named AS jsonb)"
                " ORDER BY run_id DESC LIMIT 1"
            ),
            {"named": f'[{{"type": "users", "sourcedId": "{PUPIL}"}}]'},
        ).one()
    assert f"Run {run} of springfield rejected 1 row that names the person; {file}, line {line}: " in page
