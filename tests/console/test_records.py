"""The page of a record: references both ways, history, and the JSON of every interface."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts.clients import add_client, disable_client
from roster_service.accounts.vendor_rights import grant, set_flags
from roster_service.accounts.vendors import add_vendor
from roster_service.accounts.ways import VENDOR_INTERFACE
from roster_service.app import make_serving_engine
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_segment
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.db.tables import ROSTER_TABLES, changes, courses, sync_runs
from roster_service.explore.vendor_view import show_as
from roster_service.feeds.run_history import TYPES
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.flags import PermissionFlag
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.console.conftest import SECRET, Browser, Console, name_operator
from tests.console.hostile import SCRIPT, TEXTS, add_people
from tests.postgres.loaded import EXPORTS
from tests.verdicts import list_verdicts

BIG_PAGE = 100_000
# The collections, by the word for one record.
KINDS = {endpoint.resource.singular: endpoint.resource.plural for endpoint in ENDPOINTS}


@pytest.fixture(scope="module")
def browser(console: Console) -> Browser:
    """A viewer."""
    return console.log_in(OperatorRole.VIEWER)


def read(browser: Browser, sourced_id: str) -> dict[str, Any]:
    """The content of the page, by the kind of record."""
    answer = browser.get(f"/records/{to_segment(sourced_id)}.json")
    assert answer.status_code == 200
    return {record["kind"]: record for record in answer.get_json()["records"]}


@pytest.mark.parametrize("table", ROSTER_TABLES, ids=lambda table: table.name)
def test_the_json_is_that_of_the_interfaces(console: Console, browser: Browser, table: Any) -> None:
    pages: dict[str, dict[str, Any]] = {}
    for version, title in (("v1p1", "OneRoster 1.1"), ("v1p2", "OneRoster 1.2")):
        answer = console.client.call(version, f"/{TYPES[table.name]}")
        assert answer.records
        for record in answer.records[:8]:
            sourced_id = record["sourcedId"]
            if sourced_id not in pages:
                pages[sourced_id] = read(browser, sourced_id)
            faces = {
                face["text"]
                for found in pages[sourced_id].values()
                for face in found["faces"]
                if face["title"] == title
            }
            wanted = re.sub("http://[^/]+", "", json.dumps(record, sort_keys=True))
            assert wanted in {
                re.sub("http://[^/]+", "", json.dumps(json.loads(text), sort_keys=True)) for text in faces
            }


def test_a_student_has_the_json_of_the_vendor_interface(browser: Browser) -> None:
    (face,) = (it for it in read(browser, "spr-student-1")["user"]["faces"] if it["title"] == "POST /v1/students")
    student = json.loads(face["text"])
    assert (student["sourcedId"], student["districtlea"]) == ("spr-student-1", "17-0042")
    assert {"demographics", "contacts", "enrollments"} <= student.keys()
    (face,) = (it for it in read(browser, "spr-teacher-1")["user"]["faces"] if it["title"] == "POST /v1/students")
    assert face["text"] is None


def move_course(console: Console, org_id: str) -> None:
    """Writes an org into a course, without its label."""
    with console.engine.begin() as connection:
        change = sa.update(courses).where(courses.c.sourced_id == "spr-course-math3").values(org_id=org_id)
        assert connection.execute(change).rowcount == 1


def test_a_reference_to_a_record_that_is_not_there_says_so(console: Console, browser: Browser) -> None:
    move_course(console, "gone")
    (group,) = (it for it in read(browser, "spr-course-math3")["course"]["references"] if it["title"] == "Org")
    assert group["shown"] == [{"sourcedId": "gone", "label": None, "detail": None}]
    assert "not in the roster" in browser.get("/records/spr-course-math3").text
    assert browser.get("/records/gone").status_code == 404
    move_course(console, "spr-district")
    assert 'href="/console/records/spr-district"' in browser.get("/records/spr-course-math3").text


def test_the_history_has_each_run_with_the_values_before_and_after(own_console: Console, tmp_path: Path) -> None:
    console, browser, export = own_console, own_console.log_in(OperatorRole.VIEWER), tmp_path / "export"
    shutil.copytree(EXPORTS / "springfield-1.1", export)
    for number, name in enumerate(("Zoe", SCRIPT)):
        text = (export / "users.csv").read_text()
        (export / "users.csv").write_text(text.replace(("Zoë", "Zoe")[number], name, 1))
        load(console.engine, "springfield", export)
    history = read(browser, "spr-student-1")["user"]["history"]
    with console.engine.connect() as connection:
        runs = list(connection.scalars(sa.select(sync_runs.c.id).order_by(sync_runs.c.id.desc()).limit(2)))
    assert [change["run"] for change in history[:2]] == runs
    values = [change["fields"]["givenName"] for change in history[:2]]
    assert values == [{"before": "Zoe", "after": SCRIPT}, {"before": "Zoë", "after": "Zoe"}]
    page = browser.get("/records/spr-student-1").text
    assert f'href="/console/runs/{runs[0]}"' in page
    assert SCRIPT not in page
    # A record that only the first run had has that run alone.
    assert [it["change"] for it in read(browser, "spr-high")["org"]["history"]] == ["added"]


def test_hostile_texts_are_texts(own_console: Console) -> None:
    browser = own_console.log_in(OperatorRole.VIEWER)
    for sourced_id in add_people(own_console.engine, [(text, text) for text in TEXTS]):
        answer = browser.get(f"/records/{to_segment(sourced_id)}")
        assert answer.status_code == 200
        assert SCRIPT not in answer.text
        assert "<img" not in answer.text
        assert len(answer.data) < BIG_PAGE


@pytest.mark.parametrize("sourced_id", ["nothing", "a%00b", "a~00b", "%2F", "~FF", "x" * 3000, "%F0%9F%91%A9"])
def test_an_id_that_no_record_has_is_not_found(browser: Browser, sourced_id: str) -> None:
    assert browser.get(f"/records/{sourced_id}").status_code == 404


NARROW = "narrow@vendors.example"


def add_narrow(console: Console) -> str:
    """Adds a vendor of both districts, with clients of which one sees no guardians and one is disabled, and an API key;
    returns its e-mail."""
    with console.engine.begin() as connection:
        add_vendor(connection, TESTER, NARROW, "narrow")
        for district in ("spr-district", "shv-district"):
            grant(connection, TESTER, NARROW, district, ())
        add_client(connection, TESTER, NARROW, "core", [Scope("v1p2", ScopeName.CORE)])
        off = add_client(connection, TESTER, NARROW, "off", [Scope("v1p2", ScopeName.CORE)])
        disable_client(connection, TESTER, off.client_id)
    return NARROW


@pytest.fixture(scope="module")
def narrow(console: Console) -> str:
    """That vendor, as it was added."""
    return add_narrow(console)


@pytest.mark.parametrize("table", ROSTER_TABLES, ids=lambda table: table.name)
def test_each_vendor_is_judged_as_its_clients_are_answered(console: Console, narrow: str, table: Any) -> None:
    settings = Settings(secret_key=SECRET)
    outcomes = set()
    with console.engine.connect() as connection:
        serving = make_serving_engine(make_role_urls(connection, None)[DatabaseRole.SERVING], settings)
        ids = connection.scalars(sa.select(table.c.sourced_id).order_by(table.c.sourced_id)).all()
        for sourced_id in {*ids[::4], *(it for it in ids if it == "spr-guardian-1")}:
            verdicts = [it for it in list_verdicts(connection, sourced_id) if it.by != VENDOR_INTERFACE]
            looks = {
                vendor: show_as(connection, serving, TESTER, sourced_id, vendor, "v1p2", settings)
                for vendor in {verdict.vendor for verdict in verdicts}
            }
            for verdict in verdicts:
                views = looks[verdict.vendor]
                (view,) = (it for it in views if it.client == verdict.by and f"/{KINDS[verdict.kind]}/" in it.path)
                assert verdict.shown == (view.body is not None), verdict
                outcomes.add((verdict.vendor, verdict.shown))
                # A vendor without a grant is refused before the record is looked for.
                if not verdict.shown and "lacks" not in verdict.reason and verdict.vendor != "nobody@vendors.example":
                    assert verdict.reason == view.refusal
        serving.dispose()
    assert {vendor for vendor, _ in outcomes} >= {NARROW, "nobody@vendors.example", "both@vendors.example"}
    assert {shown for _, shown in outcomes} == {True, False}


def test_a_vendor_with_a_key_sees_students_alone(console: Console, narrow: str) -> None:
    with console.engine.connect() as connection:
        for sourced_id, vendor, shown in (
            ("spr-student-1", narrow, True),
            ("spr-teacher-1", narrow, False),
            ("spr-guardian-1", narrow, False),
            ("shv-student-1", "elementary@vendors.example", False),
            ("spr-student-1", "elementary@vendors.example", True),
        ):
            (verdict,) = (
                it
                for it in list_verdicts(connection, sourced_id)
                if (it.kind, it.by, it.vendor) == ("user", VENDOR_INTERFACE, vendor)
            )
            assert verdict.shown is shown, verdict


def test_what_students_have_inside_is_judged_by_the_flags_of_the_vendor(own_console: Console) -> None:
    """A vendor without a client sees classes, demographics and schools in the record of a student."""
    console, narrow = own_console, add_narrow(own_console)
    inside = ("spr-class-math3-a", "spr-enr-01", "spr-elementary")

    def find_shown() -> dict[tuple[str, str], bool]:
        with console.engine.connect() as connection:
            verdicts = [it for sourced_id in (*inside, "spr-student-1") for it in list_verdicts(connection, sourced_id)]
            own = [it for it in verdicts if (it.by, it.vendor) == (VENDOR_INTERFACE, narrow)]
        return {it.kind: it.shown for it in own}

    assert find_shown() == {"class": False, "enrollment": False, "org": True, "user": True, "demographics": False}
    with console.engine.begin() as connection:
        set_flags(connection, TESTER, narrow, [PermissionFlag.ENROLLMENTS, PermissionFlag.DEMOGRAPHICS])
    assert find_shown() == dict.fromkeys(("class", "enrollment", "org", "user", "demographics"), True)


def test_a_look_at_a_pupil_has_the_answer_of_the_vendor_interface(browser: Browser) -> None:
    for version in ("", "v1"):
        looked = browser.send("/records/spr-student-1/look", vendor="both@vendors.example", version=version)
        assert looked.status_code == 200
        shown = html.unescape(looked.text).partition("POST /v1/students")[2]
        assert '"sourcedId": "spr-student-1"' in shown, version


def test_a_look_shows_the_answer_of_the_vendor_and_is_recorded(console: Console, browser: Browser) -> None:
    path = "/records/spr-student-1/look"
    looked = browser.send(path, vendor="both@vendors.example", version="v1p2", reason="a call of the family")
    assert looked.status_code == 200
    answer = console.client.call("v1p2", "/users/spr-student-1")
    assert html.escape(json.dumps(answer.json, ensure_ascii=False, indent=2)[:40], quote=False) in html.unescape(
        looked.text
    )
    refused = browser.send(path, vendor="north@vendors.example", version="v1p2")
    assert "Not shown" in refused.text
    assert "Springfield Elementary School" in refused.text
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(changes).order_by(changes.c.id.desc()).offset(1).limit(1)).one()
    assert (row.verb, row.actor, row.vendor, row.reason) == (
        "show",
        name_operator(OperatorRole.VIEWER),
        "both@vendors.example",
        "a call of the family",
    )
    assert "spr-student-1" not in row.subject
    unknown = browser.send(path, vendor="none@vendors.example")
    assert unknown.status_code == 422
    assert "none@vendors.example" in unknown.text
