"""Agreements: nothing beyond what was agreed, nothing after its last day."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from marshmallow import Schema
from marshmallow.fields import List, Nested

from roster_service.accounts import agreements, clients, secret_links, vendor_rights, vendors
from roster_service.accounts.districts import end_district
from roster_service.accounts.known_agreements import KnownAgreement, find_agreement, list_agreements, resolve_elements
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.vendors import Grant
from roster_service.app import create_app
from roster_service.auth.credentials.api_keys import find_key_holder
from roster_service.auth.scopes import Scope, ScopeName, read_scopes
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.db import tables
from roster_service.errors import CommandError
from roster_service.roster.person_parts import PART_OF
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import students
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.schemas.versions import DEMOGRAPHICS, USERS, VERSIONS
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.purge import purge
from tests.accounts.agreed import DISTRICT, EVERY, FLAGS, LEA, TODAY, VENDOR, WHOLE, Asked, add_asked
from tests.accounts.test_parts import SECRET_KEY, find_parts
from tests.actors import TESTER
from tests.conftest import close_app
from tests.extent import examples, long
from tests.offenders import in_one_test
from tests.postgres.loaded import load_first
from tests.rates import UNBOUNDED
from tests.sync.conftest import EXPORTS, SHELBYVILLE
from tests.vendor.client import VendorClient

SCHOOLS = ("shv-north", "shv-south")
ALWAYS = ("names", "classes")
# What says which record it is, and what the service always leaves empty.
OF_NOBODY = {"sourcedId", "status", "dateLastModified", "resources"}
# What no right withholds: the elements `names` and `classes`.
NAMES = {
    *("username", "givenName", "familyName", "enabledUser", "grades", "role", "roles", "orgs", "primaryOrg"),
}
METADATA = {"metadata"}
GUARDIANS = Scope("v1p2", ScopeName.GUARDIANS)


@pytest.fixture
def asked(engine: sa.Engine, database_url: str, tmp_path: Path) -> Iterator[Asked]:
    """The service with the vendor."""
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path), database_url)
    yield add_asked(engine, app)
    close_app(app)


# --- what counts ------------------------------------------------------------------------------------------------------


def test_every_right_and_field_belongs_to_elements() -> None:
    none, all_of_them = resolve_elements((), ()), resolve_elements(tuple(PARTS), ("locker",))
    assert none == {"fields": [], "scopes": [], "flags": []}
    assert all_of_them == {
        "fields": [*WithheldField],
        "scopes": [*ScopeName],
        "flags": [*PermissionFlag],
    }
    assert PART_OF.keys() == set(WithheldField)


def test_every_served_field_of_people_belongs_to_an_element() -> None:
    lacking = {
        f"{version.prefix} {resource.singular}.{name}"
        for version in VERSIONS
        for resource in (USERS, DEMOGRAPHICS)
        for name, field in version.records[resource]().fields.items()
        if getattr(field, "withheld_as", None) is None and name not in OF_NOBODY | NAMES | METADATA
    }
    assert lacking == set()


# What the flag `enrollments` opens as a whole is about classes, which its own element has.
OF_V1 = (students.Student, students.StudentDemographics, students.Guardian, students.Contacts, students.StudentTeacher)
# Of the schools of a person, which the element `names` has.
OF_SCHOOLS = {"districtlea", "identifier", "name", "primary"}


def list_without_element(schema: Schema, above: str) -> Iterator[str]:
    """The served fields that belong to none, those of objects in it, too."""
    for name, field in schema.fields.items():
        if getattr(field, "withheld_as", None) is not None or getattr(field, "part", None) is not None:
            continue
        inner = field.inner if isinstance(field, List) else field
        if isinstance(inner, Nested):
            yield from list_without_element(inner.schema, f"{above}.{name}")
        elif name not in OF_NOBODY | NAMES | METADATA | OF_SCHOOLS:
            yield f"{above}.{name}"


def test_every_field_of_people_at_v1_belongs_to_an_element() -> None:
    assert [name for kind in OF_V1 for name in list_without_element(kind(), kind.__name__)] == []


ALONE = {
    "birthDate": {"roster-demographics.readonly", "demographics"},
    "phone": set(),
    "guardians": {"guardians.readonly"},
    "guardianMetadata": set(),
    "studentMetadata": {"students-metadata.readonly"},
    "demographicMetadata": {"roster-demographics.readonly", "demographic-metadata.readonly"},
    "names": set(),
    "classes": {"enrollments"},
}


@in_one_test
@pytest.mark.parametrize(("element", "rights"), ALONE.items(), ids=ALONE)
def test_an_element_opens_only_what_shows_nothing_else(element: str, rights: set[str]) -> None:
    found = resolve_elements((element,), ("locker",))
    assert {*found["scopes"], *found["flags"]} - {ScopeName.ORGS_METADATA} == rights


def make_model(elements: set[str], withheld: set[str], flags: set[str]) -> set[str]:
    """The parts that a vendor of every scope may get, written from the words of the agreement alone."""
    # Guardians are users of their own, also where nobody names them.
    shown = {part for part in elements if part == "guardians" or not (withheld >= all_fields(part) > set())}
    if not {"names", "classes"} <= elements:
        return set()
    if not ({"phone", "guardians"} <= elements and "contacts" in flags):
        shown -= {"phone"}
    return shown


def all_fields(part: str) -> set[str]:
    """The words that withhold a part."""
    return {field.value for field, of in PART_OF.items() if of == part}


def find_shown(asked: Asked, scopes: Collection[str] = EVERY) -> tuple[set[str], set[str]]:
    """The parts of people, and the schools, in all answers of both interfaces to a client with these scopes."""
    parts, schools = set[str](), set[str]()
    for version in VERSIONS:
        records = asked.list_records(version.prefix, sorted(scopes))
        users, demographics = records.get("users", []), records.get("demographics", [])
        roles = [{it.get("role"), *(one["role"] for one in it.get("roles", ()))} for it in users]
        guardians = [it for it, held in zip(users, roles, strict=True) if held.intersection(GUARDIAN_ROLES)]
        pupils = [it for it, held in zip(users, roles, strict=True) if "student" in held]
        parts |= {*find_parts(users), *find_parts(demographics)}
        parts |= {"guardians"} if guardians or any(it.get("agents") for it in users) else set()
        parts |= {"classes"} if records.get("classes") or records.get("enrollments") else set()
        for name, listed in (
            ("studentMetadata", pupils), ("guardianMetadata", guardians), ("demographicMetadata", demographics)
        ):  # fmt: skip
            parts |= {name} if any("metadata" in record for record in listed) else set()
        schools |= {it["school"]["sourcedId"] for it in [*records.get("classes", ()), *records.get("enrollments", ())]}
        schools |= {it["sourcedId"] for it in records.get("orgs", ()) if it["type"] == "school"}
    students = asked.list_students(FLAGS)
    contacts = [student["contacts"] for student in students if "contacts" in student]
    guardians = [it for contact in contacts for it in contact.get("guardians", ())]
    demographics = [student["demographics"] for student in students if "demographics" in student]
    parts |= set(find_parts([*students, *contacts, *guardians, *demographics]))
    parts |= {"guardians"} if guardians else set()
    parts |= {"classes"} if any(student.get("enrollments") for student in students) else set()
    return parts, schools | {student["school"]["sourcedId"] for student in students if student.get("school")}


@pytest.mark.shows(
    "Visibility", "No answer goes beyond the agreement of a vendor, whatever is granted, listed or set after it."
)
def test_no_answer_goes_beyond_a_random_agreement(asked: Asked) -> None:
    draw = random.Random(57)
    everything, own = find_shown(asked)
    for number in range(examples(3, 8, 60)):
        elements = {*ALWAYS, *draw.sample(sorted(PARTS), draw.randint(0, len(PARTS)))}
        withheld = {*draw.sample([*WithheldField], draw.choice((0, 0, 4)))}
        flags = {*draw.sample(FLAGS, draw.randint(1, len(FLAGS)))}
        # Those by which schools are seen, and some others.
        others = draw.sample(sorted(EVERY), draw.randint(len(EVERY) // 2, len(EVERY)))
        scopes = {*others, *(f"{version.prefix}/{ScopeName.CORE}" for version in VERSIONS)}
        agreed, granted = (draw.choice((None, *sorted(own))) for _ in range(2))
        with asked.engine.begin() as connection:
            # Nobody waits for a token here.
            connection.execute(sa.text("TRUNCATE rate_windows, rate_hits"))
            vendor_rights.set_flags(connection, TESTER, VENDOR, [*flags])
            clients.change_scopes(connection, TESTER, asked.client[0], read_scopes(sorted(scopes)))
            vendor_rights.set_district_grant(
                connection, TESTER, VENDOR, DISTRICT, None if granted is None else [granted]
            )
        asked.save(
            elements=tuple(sorted(elements)),
            districts=(DISTRICT,) if agreed is None else (),
            schools=() if agreed is None else (agreed,),
        )
        # After the agreement: a later list replaces the former one, and none widens the agreement.
        with asked.engine.begin() as connection:
            change = vendor_rights.change_withheld_default if number % 2 else None
            if change is None:
                vendor_rights.change_withheld(connection, TESTER, VENDOR, [*withheld])
            else:
                vendor_rights.change_withheld(connection, TESTER, VENDOR, None)
                change(connection, TESTER, [*withheld])
        reachable = {*own} if granted is None else {granted}
        reachable &= {*own} if agreed is None else {agreed}
        shown, seen = find_shown(asked, scopes)
        case = (number, sorted(elements), sorted(withheld), sorted(flags), sorted(scopes), agreed, granted)
        assert seen == reachable, case
        model = make_model(elements, {*withheld}, {*flags}) & everything
        assert shown <= model, case
        with asked.engine.connect() as connection:
            stated = {*list_received(connection)[VENDOR]} if reachable else set()
        if reachable:
            assert shown <= stated <= elements, case


# The keys that are agreed -> those that the records show; a filter by one that is not finds nothing.
KEYS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "one of several": (("locker", "unknown"), {"locker"}),
    "another": (("notes",), {"notes"}),
    "none that a record has": (("unknown",), set()),
}


@pytest.mark.shows("Visibility", "Of `metadata`, a vendor sees and finds only the keys that its agreement names.")
@in_one_test
@pytest.mark.parametrize(("keys", "shown"), KEYS.values(), ids=KEYS)
def test_metadata_is_shown_by_agreed_keys_alone(asked: Asked, keys: tuple[str, ...], shown: set[str]) -> None:
    with asked.engine.begin() as connection:
        connection.execute(sa.text("TRUNCATE rate_windows, rate_hits"))
        for table in ("users", "demographics", "orgs"):
            value = '{"locker": "7", "notes": {"x": [1]}}'
            connection.execute(sa.text(f"UPDATE {table} SET metadata = '{value}'".replace(":", "\\:")))
    asked.save(metadata_keys=keys)
    for version in VERSIONS:
        token = asked.ask_token(version.prefix).json["access_token"]
        for path in ("users", "demographics", "orgs"):
            records = asked.get(version.prefix, f"/{path}?limit=1000", token).json[path]
            assert {key for record in records for key in record.get("metadata", ())} == shown, path
            found = asked.get(version.prefix, f"/{path}?filter=metadata.locker='7'", token).json[path]
            assert bool(found) == ("locker" in shown), path
            single = asked.get(version.prefix, f"/{path}/{records[0]['sourcedId']}", token).json
            assert set(next(iter(single.values())).get("metadata", ())) <= shown, path


def test_without_agreed_keys_there_is_no_metadata(asked: Asked) -> None:
    with pytest.raises(CommandError, match=r"name the keys of `metadata` that are agreed"):
        asked.save(metadata_keys=())
    asked.save(elements=tuple(name for name, part in PARTS.items() if not part.is_metadata), metadata_keys=())
    for version in VERSIONS:
        for path, records in asked.list_records(version.prefix).items():
            assert not any("metadata" in record for record in records), path
    assert asked.ask_token("v1p2", (f"v1p2/{ScopeName.ORGS_METADATA}",)).status_code == 400


def test_a_rule_counts_where_its_place_is_agreed_as_a_whole(asked: Asked) -> None:
    rules = Rules("grades~'09'", None, Staff.ALL, guardians=True)
    with asked.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, VENDOR, DISTRICT, None, rules, even_nothing=True)
    before = asked.list_records("v1p2")
    assert before["users"]
    asked.save(metadata_keys=("locker", "city"))
    assert asked.list_records("v1p2") == before
    asked.save(districts=(), schools=SCHOOLS[:1])
    assert asked.list_records("v1p2") == {}
    with asked.engine.connect() as connection:
        known = find_agreement(connection, vendors.find_vendor(connection, VENDOR))
    assert known is not None
    assert known.refusal == "covers none of the districts and schools that are granted"
    assert "the grant of Shelbyville School District (shv-district) opens nothing" in known.beyond


def test_a_school_that_leaves_the_agreed_district_is_seen_no_more(asked: Asked) -> None:
    with asked.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, VENDOR, DISTRICT, [SCHOOLS[0]])
    asked.save()
    assert find_shown(asked)[1] == {SCHOOLS[0]}
    with asked.engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE orgs SET district_id = 'another' WHERE sourced_id = :school"), {"school": SCHOOLS[0]}
        )
        connection.execute(sa.text("SELECT refresh_visible_orgs(id) FROM vendors"))
    assert asked.list_records("v1p2") == {}


# --- when -------------------------------------------------------------------------------------------------------------


WAYS: dict[str, Callable[[Asked, dict[str, str], str], Any]] = {
    "page": lambda it, tokens, _: it.get("v1p2", "/users?limit=2", tokens["v1p2"]),
    "later page": lambda it, tokens, _: it.get("v1p2", "/users?limit=2&offset=2", tokens["v1p2"]),
    "record": lambda it, tokens, _: it.get("v1p1", "/orgs/shv-district", tokens["v1p1"]),
    "unchanged": lambda it, tokens, tag: it.get("v1p2", "/orgs/shv-district", tokens["v1p2"], **{"If-None-Match": tag}),
    "status": lambda it, tokens, _: it.get("v1p2", "/status", tokens["v1p2"]),
    "token": lambda it, _tokens, _: it.ask_token("v1p2"),
    "login": lambda it, _tokens, _: it.http.post(
        "/v1/login",
        json={"email": it.account.email, "password": it.account.password},
        headers={"x-api-key": it.account.api_key},
    ),
    "students": lambda it, tokens, _: it.http.post(
        "/v1/students", json={"districtlea": LEA}, headers=make_headers(it, tokens)
    ),
    "feeds": lambda it, tokens, _: it.http.get("/v1/status", headers=make_headers(it, tokens)),
}


def make_headers(asked: Asked, tokens: dict[str, str]) -> dict[str, str]:
    """Those of a request of the vendor interface."""
    return {"x-api-key": asked.account.api_key, "Authorization": f"Bearer {tokens['permission']}"}


def take_tokens(asked: Asked) -> dict[str, str]:
    """A token of each kind."""
    tokens = {version.prefix: asked.ask_token(version.prefix).json["access_token"] for version in VERSIONS}
    return {**tokens, "permission": VendorClient(asked.app).token(asked.account)}


def test_no_link_is_made_that_the_end_of_an_agreement_stops(asked: Asked) -> None:
    asked.save()
    with asked.engine.begin() as connection:
        token = secret_links.make_link(connection, TESTER, asked.client[0])
    asked.move_end("-1 minute")
    with asked.engine.begin() as connection:
        [link] = secret_links.list_links(connection)
        assert link.has_ended
        assert secret_links.use_link(connection, token, None) is None
        with pytest.raises(CommandError, match=r"ended on .*, so nobody could use the link; save its next agreement"):
            secret_links.make_link(connection, TESTER, asked.client[0])
    # To open it tells the vendor of the end, too.
    assert asked.http.get(f"/client-secrets/{token}").status_code == 410
    asked.move_end("1 hour")
    assert asked.http.post(f"/client-secrets/{token}").status_code == 410


LEFT = {0: "this is its last day", 1: "for 1 more day", 2: "for 2 more days"}


@in_one_test
@pytest.mark.parametrize(("days", "words"), LEFT.items(), ids=map(str, LEFT))
def test_the_days_that_are_left_are_counted_in_words(days: int, words: str) -> None:
    known = KnownAgreement(1, VENDOR, "App", WHOLE, None, days, (), (), (), ())
    assert known.state.endswith(words)


@pytest.mark.shows(
    "Visibility", "From the end of an agreement on nothing is answered, by any way, also if the clock goes back."
)
def test_nothing_is_answered_from_the_end_on(asked: Asked) -> None:
    asked.save()
    tokens = take_tokens(asked)
    tag = asked.get("v1p2", "/orgs/shv-district", tokens["v1p2"]).headers["ETag"]
    expected = {"unchanged": 304}
    answers = {name: ask(asked, tokens, tag) for name, ask in WAYS.items()}
    assert {name: it.status_code for name, it in answers.items()} == {name: expected.get(name, 200) for name in answers}
    asked.move_end("-1 minute")
    for clock_goes_back in (False, True):
        answers = {name: ask(asked, tokens, tag) for name, ask in WAYS.items()}
        for name, answer in answers.items():
            assert answer.status_code == (400 if name == "token" else 403), name
            assert answer.headers["X-Roster-Agreement"].startswith("ended on "), name
            assert answer.headers["X-Roster-Agreement"] in answer.get_data(as_text=True), name
        assert answers["token"].json["error"] == "unauthorized_client"
        assert answers["students"].json["code"] == "no-agreement"
        if not clock_goes_back:
            asked.move_end("1 hour")
    with asked.engine.connect() as connection:
        assert list_received(connection)[VENDOR] == {}


@pytest.mark.parametrize("way", ["students", "login"])
def test_an_end_after_the_key_was_found_is_refused_with_its_day(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    asked.save()
    tokens = take_tokens(asked)

    def end_then(*arguments: Any) -> Any:
        found = find_key_holder(*arguments)
        asked.move_end("-1 minute")
        return found

    monkeypatch.setattr("roster_service.vendor.views.find_key_holder", end_then)
    refused = WAYS[way](asked, tokens, "")
    assert (refused.status_code, refused.json["code"]) == (403, "no-agreement")
    assert refused.headers["X-Roster-Agreement"].startswith("ended on ")


# By how many seconds the clocks of the workers are off.
OFF = (0, 2, -2, 3600, -3600)
# Its seconds, the service as it runs there, its tokens, and the tag of a record.
Worker = tuple[int, Asked, dict[str, str], str]


@long
@pytest.mark.shows(
    "Visibility", "The clock of the database alone ends an agreement, whatever the clocks of the workers say."
)
def test_requests_across_the_instant_of_the_end(
    asked: Asked, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever begins after the instant is refused with code and day, whatever ends before it is answered; then the
    clock of the database goes back. `make check-long` sends 10,000 requests."""
    with asked.engine.begin() as connection:
        # Nobody waits here.
        names = ("requests_per_second", "burst", "rostering_per_second", "rostering_burst", "rostering_at_once")
        connection.execute(sa.update(tables.vendors).values(dict.fromkeys(names, 10_000)))
    own, read_clock = threading.local(), time.time
    monkeypatch.setattr(time, "time", lambda: read_clock() + getattr(own, "off", 0))
    asked.save()
    number = examples(90, 900, 10_000) // len(OFF) // 2

    def begin(off: int) -> Worker:
        own.off = off
        app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path / str(off)), database_url, rates=UNBOUNDED)
        service = replace(asked, app=app)
        tokens = take_tokens(service)
        return off, service, tokens, service.get("v1p2", "/orgs/shv-district", tokens["v1p2"]).headers["ETag"]

    def send(worker: Worker, until: float) -> list[tuple[str, float, float, Any]]:
        """At least so many requests, and until an instant: the kind, when it began and ended, and the answer."""
        own.off, service, tokens, tag = worker
        sent: list[tuple[str, float, float, Any]] = []
        while len(sent) < number or read_clock() < until:
            for name, ask in WAYS.items():
                begun = read_clock()
                answer = ask(service, tokens, tag)
                sent.append((name, begun, read_clock(), answer))
        return sent

    with ThreadPoolExecutor(len(OFF)) as workers:
        begun = list(workers.map(begin, OFF))
        # The clocks are off: the token of the fast one is of the future for the slow one.
        assert asked.get("v1p2", "/users?limit=1", begun[3][2]["v1p2"]).status_code == 401
        asked.move_end(f"{examples(1, 2, 20)} seconds")
        with asked.engine.connect() as connection:
            end: float = connection.scalar(sa.text("SELECT extract(epoch FROM ends_at)::float8 FROM agreements"))
        sent = [one for of_worker in workers.map(partial(send, until=end + 1), begun) for one in of_worker]
        asked.move_end("1 hour")
        sent += [one for of_worker in workers.map(partial(send, until=0), begun) for one in of_worker]
    for _, service, _, _ in begun:
        close_app(service.app)
    before = [one for one in sent if one[2] < end]
    after = [one for one in sent if one[1] >= end]
    assert len(before) > len(WAYS)
    assert len(after) > number * len(OFF)
    assert [(name, it.status_code) for name, _, _, it in before if it.status_code not in (200, 304)] == []
    for name, _, _, it in after:
        day = it.headers.get("X-Roster-Agreement", "")
        code = {"token": (400, "unauthorized_client"), "login": (403, "no-agreement")}.get(name, (403, ""))
        assert (it.status_code, day.startswith("ended on ")) == (code[0], True), name
        assert code[1] in it.text, name
        assert day in it.text, name


def test_nothing_is_answered_before_its_first_day_or_without_one_that_is_required(asked: Asked) -> None:
    first_day = TODAY + timedelta(days=20)
    asked.save(first_day=first_day, last_day=first_day)
    answer = asked.ask_token("v1p2")
    assert answer.headers["X-Roster-Agreement"] == f"begins on {first_day}"
    asked.remove()
    assert asked.ask_token("v1p2").status_code == 200
    with asked.engine.begin() as connection:
        without = agreements.require_agreements(connection, TESTER, required=True)
    assert [vendor.email for vendor in without] == [VENDOR]
    assert asked.ask_token("v1p2").headers["X-Roster-Agreement"] == "is required, and there is none"
    asked.save()
    assert asked.ask_token("v1p2").status_code == 200


def test_an_agreement_that_changes_nothing_ends_no_token_and_one_that_does_ends_all(asked: Asked) -> None:
    asked.save()
    tokens = take_tokens(asked)
    asked.save(purpose="Lessons in writing", last_day=WHOLE.last_day + timedelta(days=1))
    assert asked.get("v1p2", "/users?limit=1", tokens["v1p2"]).status_code == 200
    asked.save(elements=ALWAYS)
    assert asked.get("v1p2", "/users?limit=1", tokens["v1p2"]).status_code == 401


def read_floors(asked: Asked) -> tuple[Any, Any]:
    """What moves if the copies of the vendor, or those of its client, are not kept right by deltas any more."""
    with asked.engine.connect() as connection:
        floors = "SELECT (SELECT floor FROM vendors), (SELECT floor FROM oauth_clients)"
        return tuple(connection.execute(sa.text(floors)).one())


def test_no_copy_is_of_no_use_for_a_change_that_shows_nothing_else(asked: Asked) -> None:
    def change(function: Callable[..., Any], *given: Any) -> Callable[[], None]:
        def run() -> None:
            with asked.engine.begin() as connection:
                function(connection, TESTER, *given)

        return run

    core = read_scopes([f"v1p2/{ScopeName.CORE}", f"v1p1/{ScopeName.CORE}"])
    steps: list[tuple[str, Callable[[], None], tuple[bool, bool]]] = [
        ("all is agreed, but metadata of named keys", asked.save, (True, False)),
        ("the same with another purpose", lambda: asked.save(purpose="Lessons in writing"), (False, False)),
        ("all is agreed no more", asked.remove, (True, False)),
        ("less is agreed", lambda: asked.save(elements=ALWAYS), (True, False)),
        ("flags that are not", change(vendor_rights.set_flags, VENDOR, [PermissionFlag.ENROLLMENTS]), (False, False)),
        ("a flag that is", change(vendor_rights.set_flags, VENDOR, []), (True, False)),
        ("scopes that are not", change(clients.change_scopes, asked.client[0], [*core, GUARDIANS]), (False, True)),
        ("the same without", change(clients.change_scopes, asked.client[0], core), (False, False)),
        ("its schools", lambda: asked.save(elements=ALWAYS, districts=(), schools=SCHOOLS), (True, False)),
    ]
    for name, step, moved in steps:
        before = read_floors(asked)
        step()
        assert tuple(was != now for was, now in zip(before, read_floors(asked), strict=True)) == moved, name


def test_a_token_ends_when_a_rule_is_agreed_that_was_not(asked: Asked) -> None:
    rules = Rules(None, None, Staff.NONE, guardians=False)
    with asked.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, VENDOR, DISTRICT, [SCHOOLS[0]])
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, [SCHOOLS[1]], (), rules)
    asked.save(districts=(), schools=SCHOOLS[:1])
    narrow = asked.ask_token("v1p2").json["access_token"]
    assert asked.get("v1p2", "/classes", narrow).status_code == 200
    asked.save()
    assert asked.get("v1p2", "/classes", narrow).status_code == 401
    for place, district_id in (("outside", "another"), ("inside again", DISTRICT)):
        token = asked.ask_token("v1p2").json["access_token"]
        with asked.engine.begin() as connection:
            moved = sa.text("UPDATE orgs SET district_id = :district WHERE sourced_id = :school")
            connection.execute(moved, {"district": district_id, "school": SCHOOLS[1]})
            connection.execute(sa.text("SELECT refresh_visible_orgs(id) FROM vendors"))
        # Without rules there is nothing that a token with rules would not be answered.
        assert asked.get("v1p2", "/classes", token).status_code == (200 if place == "outside" else 401), place


def test_a_vendor_without_a_scope_that_is_agreed_is_refused_with_that_reason(asked: Asked) -> None:
    with asked.engine.begin() as connection:
        connection.execute(sa.text("UPDATE oauth_clients SET scopes = ARRAY['v1p2/guardians.readonly']"))
    asked.save(elements=ALWAYS)
    refused = asked.ask_token("v1p2", ("v1p2/guardians.readonly",))
    assert refused.json["error"] == "unauthorized_client"
    assert "allows none of the scopes of the client" in refused.json["error_description"]


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no title": ({"title": " "}, "the agreement needs a title"),
    "several lines": ({"purpose": "one\ntwo"}, "the purpose is one line"),
    "a blank key of metadata": ({"metadata_keys": ("",)}, "of 1 to 64 characters"),
    "many keys of metadata": ({"metadata_keys": tuple(map(str, range(31)))}, "at most 30"),
    "a long text": ({"purpose": "x" * 2001}, "at most 2,000 characters"),
    "a paper over http": ({"link": "http://example.com"}, "begins with https://"),
    "an unknown element": ({"elements": (*ALWAYS, "shoe size")}, "there is no element shoe size"),
    "no names": ({"elements": ("classes",)}, "the elements lack names"),
    "no classes, for a client": ({"elements": ("names",)}, "the elements lack classes"),
    "no place": ({"districts": ()}, "names no district and no school"),
    "an unknown district": ({"districts": ("nowhere",)}, "no district with the sourcedId"),
    "a school as a district": ({"districts": SCHOOLS}, "no district with the sourcedId"),
    "an unknown zone": ({"zone": "UTC"}, ""),
    "days in the wrong order": (
        {"first_day": TODAY, "last_day": TODAY - timedelta(days=1)},
        "the last day of the agreement is before its first day",
    ),
    "a last day without an end": ({"last_day": date.max}, "is at the latest 9999-12-30"),
    "a day that its zone left out": (
        {"zone": "Pacific/Apia", "first_day": date(2011, 12, 30), "last_day": date(2011, 12, 30)},
        "or there was no such day",
    ),
}


def test_an_agreement_that_is_not_clear_is_refused(asked: Asked) -> None:
    for name, (changed, said) in REFUSED.items():
        if not said:
            asked.save(**changed)
            asked.remove()
            continue
        with pytest.raises(CommandError, match=said):
            asked.save(**changed)
        with asked.engine.connect() as connection:
            assert list_agreements(connection) == [], name


def test_the_next_agreement_does_not_end_the_present_one_ahead_of_its_day(asked: Asked) -> None:
    """A vendor has one, so the next one with a later first day would end what holds."""
    later = TODAY + timedelta(days=20)
    asked.save()
    with pytest.raises(CommandError, match=f"holds, and until {later} the vendor would get nothing"):
        asked.save(first_day=later, last_day=later)
    assert asked.ask_token("v1p2").status_code == 200
    asked.save(last_day=later)
    asked.move_end("-1 minute")
    asked.save(first_day=later, last_day=later)
    assert asked.ask_token("v1p2").headers["X-Roster-Agreement"] == f"begins on {later}"


def test_what_is_granted_beyond_the_agreement_is_said(asked: Asked) -> None:
    asked.save(elements=ALWAYS, districts=(), schools=SCHOOLS[:1])
    with asked.engine.connect() as connection:
        known = find_agreement(connection, vendors.find_vendor(connection, VENDOR))
    assert known is not None
    said = "; ".join(known.beyond)
    assert "(shv-district) opens only the schools that are agreed" in said
    assert "the flag contacts does not count; the flag demographics does not count" in said
    assert "the client reader does not get v1p1/roster-demographics.readonly" in said


def test_what_another_version_adds_is_not_agreed_and_waits_for_a_person(asked: Asked) -> None:
    asked.save()
    with asked.engine.begin() as connection:
        # As if the version that saved it had no such field, scope and flag.
        for column, word in (("fields", "sex"), ("scopes", "students-metadata.readonly"), ("flags", "enrollments")):
            removed = sa.text(f"UPDATE agreements SET {column} = array_remove({column}, :word)")
            connection.execute(removed, {"word": word})
    shown, _ = find_shown(asked)
    assert shown.isdisjoint({"sex", "studentMetadata"})
    assert not any(student.get("enrollments") for student in asked.list_students(FLAGS))
    with asked.engine.connect() as connection:
        known = find_agreement(connection, vendors.find_vendor(connection, VENDOR))
    assert known is not None
    assert known.unsaved == ["sex", "students-metadata.readonly", "enrollments"]
    assert known.list_facts()["review"] == "save it again to agree to sex, students-metadata.readonly, enrollments"
    asked.save()
    assert find_shown(asked)[0] >= {"sex", "studentMetadata"}


def test_what_another_version_takes_out_of_an_element_waits_for_a_person_too(asked: Asked) -> None:
    """It stays open: a new table changes nothing by itself."""
    asked.save(elements=tuple(name for name in WHOLE.elements if name not in ("birthDate", "sex")))
    with asked.engine.begin() as connection:
        # As if the version that saved it had counted these to another element.
        connection.execute(sa.text("UPDATE agreements SET fields = fields || ARRAY['birthDate', 'sex']"))
    assert "sex" in find_shown(asked)[0]
    with asked.engine.connect() as connection:
        known = find_agreement(connection, vendors.find_vendor(connection, VENDOR))
    assert known is not None
    assert known.list_facts()["review"] == "save it again to end birthDate, sex"


def read_places(asked: Asked) -> set[str]:
    with asked.engine.connect() as connection:
        [known] = list_agreements(connection)
    assert asdict(known.agreement)["elements"] == WHOLE.elements
    return {*known.agreement.districts, *known.agreement.schools}


def end_the_district(asked: Asked) -> None:
    with asked.engine.begin() as connection:
        end_district(connection, TESTER, DISTRICT)


def purge_a_school(asked: Asked) -> None:
    purge(asked.engine, 7)


def remove_the_feed(asked: Asked) -> None:
    remove_feed(asked.engine, TESTER, "shelbyville", Settings(secret_key=SECRET_KEY), at_once=True)


# A school that was deleted long ago.
OLD_SCHOOL = "shv-old"
# What takes orgs away -> the places that are left; a vendor that has no grant of them is no exception.
GONE: dict[str, tuple[Callable[[Asked], None], set[str]]] = {
    "the district is ended": (end_the_district, {*SCHOOLS, OLD_SCHOOL}),
    "a school is purged": (purge_a_school, {DISTRICT, *SCHOOLS}),
    "the feed is removed": (remove_the_feed, set()),
}


@pytest.mark.parametrize(("change", "left"), GONE.values(), ids=GONE)
def test_an_org_that_is_gone_is_agreed_no_more(asked: Asked, change: Callable[[Asked], None], left: set[str]) -> None:
    old = {"sourced_id": OLD_SCHOOL, "status": "tobedeleted", "date_last_modified": "2020-01-01Z"}
    with asked.engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, VENDOR, DISTRICT)
        copied = "INSERT INTO orgs SELECT (jsonb_populate_record(own, :old)).* FROM orgs own WHERE sourced_id = :school"
        connection.execute(sa.text(copied), {"old": json.dumps(old), "school": SCHOOLS[0]})
    asked.save(schools=(*SCHOOLS, OLD_SCHOOL))
    change(asked)
    assert read_places(asked) == left


RULED = Grant(DISTRICT, rules=Rules("grades~'09,10,11,12'", None, Staff.ALL, guardians=True))
# The grants that are asked for, and the schools that the agreement names (none: the district) -> the schools of them
# that open something, and whether the preview says that it is less.
BOUND: dict[str, tuple[list[Grant], tuple[str, ...], set[str], bool]] = {
    "a district that is agreed": ([Grant(DISTRICT)], (), {*SCHOOLS}, False),
    "a district of which a school is": ([Grant(DISTRICT)], SCHOOLS[:1], {SCHOOLS[0]}, True),
    "a school that is": ([Grant(DISTRICT, SCHOOLS[0])], SCHOOLS[:1], {SCHOOLS[0]}, False),
    "a school that is not": ([Grant(DISTRICT, SCHOOLS[1])], SCHOOLS[:1], set(), True),
    "rules of a district that is": ([RULED], (), {*SCHOOLS}, False),
    "rules of a district of which a school is": ([RULED], SCHOOLS[:1], set(), True),
}


@in_one_test
@pytest.mark.parametrize(("grants", "schools", "opened", "is_less"), BOUND.values(), ids=BOUND)
def test_a_preview_of_grants_counts_what_the_agreement_allows(
    asked: Asked, grants: list[Grant], schools: tuple[str, ...], opened: set[str], is_less: bool
) -> None:
    asked.save(districts=() if schools else (DISTRICT,), schools=schools)
    with asked.engine.connect() as connection:
        vendor = vendors.find_vendor(connection, VENDOR)
        made = vendor_rights.preview_grants(connection, vendor, [], grants, guardians=True)
    assert {it.sourcedId for it in made.schools} & {*SCHOOLS} == opened
    assert any("allows less" in note for note in made.notes) == is_less


def test_owners_alone_save_agreements() -> None:
    verbs = (Verb.AGREEMENT_SET, Verb.AGREEMENT_REMOVE, Verb.AGREEMENT_REQUIRE)
    assert {verb.least_role for verb in verbs} == {OperatorRole.OWNER}


def test_the_access_log_names_the_agreed_districts_alone(asked: Asked) -> None:
    asked.save()
    token = asked.ask_token("v1p2").json["access_token"]
    assert asked.get("v1p2", "/users?limit=1", token).status_code == 200
    asked.app.extensions["roster_access_log"].flush()
    with asked.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT districts FROM audit ORDER BY id DESC LIMIT 1")) == [DISTRICT]
        agreed = sa.text("SELECT district_id FROM agreed_grants(:vendor)")
        assert connection.scalars(agreed, {"vendor": asked.account.id}).all() == [DISTRICT]
    with asked.engine.begin() as connection:
        # A grant of another district that the agreement does not name.
        granted = sa.text("INSERT INTO vendor_grants (vendor_id, district_id) VALUES (:vendor, 'another')")
        connection.execute(granted, {"vendor": asked.account.id})
        vendors.invalidate_tokens(connection, asked.account.id)
    token = asked.ask_token("v1p2").json["access_token"]
    assert asked.get("v1p2", "/users?limit=1", token).status_code == 200
    asked.app.extensions["roster_access_log"].flush()
    with asked.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT districts FROM audit ORDER BY id DESC LIMIT 1")) == [DISTRICT]
