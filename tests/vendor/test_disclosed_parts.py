"""The access log tells which parts of people each answer had, of both interfaces: those that are in its JSON, whatever
the scopes open."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, read_access_log
from roster_service.accounts import clients
from roster_service.accounts.vendor_rights import change_withheld
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.tables import audit
from roster_service.explore.person import list_shown
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from sync_scripts.access_log_days import fold_days
from tests.actors import TESTER
from tests.contract.paths import ENDPOINTS
from tests.extent import examples
from tests.vendor.client import Account
from tests.vendor.conftest import SECRET_KEY, Served, open_served

DAY = timedelta(days=1)
PEOPLE = frozenset({ScopeName.CORE, ScopeName.FULL})
SEEDS = range(examples(1, 1, 20))
# Of each of three vendors.
REQUESTS = examples(40, 40, 60)
NUMBERS = itertools.count(1)
ROOTS = {version.prefix: version.root for version in VERSIONS}
# Of a vendor from whom nothing is withheld.
SEED_WITHOUT_WITHHELD = 1
DISTRICTS = ("spr-district", "shv-district")
LEAS = ("17-0042", "17-0077")
RACE = (
    *("americanIndianOrAlaskaNative", "asian", "blackOrAfricanAmerican", "nativeHawaiianOrOtherPacificIslander"),
    *("white", "demographicRaceTwoOrMoreRaces", "hispanicOrLatinoEthnicity"),
)
BIRTH_PLACE = ("countryOfBirthCode", "stateOfBirthAbbreviation", "cityOfBirth")
# The part of a member of a record, by key of the body.
DEMOGRAPHICS = {
    "birthDate": "birthDate",
    "sex": "sex",
    "publicSchoolResidenceStatus": "residence",
    "metadata": "demographicMetadata",
    **dict.fromkeys(RACE, "race"),
    **dict.fromkeys(BIRTH_PLACE, "birthPlace"),
}
USERS = {
    **dict.fromkeys(("givenName", "familyName", "username", "grades"), "names"),
    "email": "email",
    "phone": "phone",
    "sms": "phone",
    "middleName": "middleName",
    "pronouns": "pronouns",
    "identifier": "identifier",
    "userMasterIdentifier": "identifier",
    "agents": "guardians",
    "userIds": "userIds",
    "userProfiles": "userIds",
    **dict.fromkeys(("preferredFirstName", "preferredMiddleName", "preferredLastName"), "preferredNames"),
}
CLASSES = ("title", "classCode", "location", "grades", "subjects", "course", "periods")
GUARDIANS = ("guardian", "parent", "relative")


def find_parts(key: str, record: Mapping[str, Any], roles: Mapping[str, str]) -> Iterator[str]:
    """The parts that a record of the rostering interface tells. `roles`: of the users."""
    # A departure has nothing of its record.
    if all(value in ("", [], "false") for name, value in record.items() if name in ("givenName", "title", "enabledUser")
           ) and record.get("status") == "tobedeleted":  # fmt: skip
        return
    match key:
        case "users" | "user":
            yield from (USERS[name] for name in record if name in USERS)
            own = [role["role"] for role in record.get("roles", ())] + [record.get("role")]
            if set(own) & set(GUARDIANS):
                yield "guardians"
            if any("userProfile" in role for role in record.get("roles", ())):
                yield "userIds"
            if "metadata" in record:
                yield "studentMetadata" if roles[record["sourcedId"]] == "student" else "guardianMetadata"
        case "demographics":
            yield from (DEMOGRAPHICS[name] for name in record if name in DEMOGRAPHICS)
        case "enrollments" | "enrollment":
            yield from ("classes" for name in record if name in ("user", "class"))
        case "classes" | "class":
            yield from ("classes" for name in record if name in CLASSES)


def find_parts_of_student(student: Mapping[str, Any]) -> Iterator[str]:
    """The parts that a record of the vendor interface tells."""
    contacts, enrollments = student.get("contacts", {}), student.get("enrollments", [])
    teachers = [teacher for enrollment in enrollments for teacher in enrollment.get("teachers", ())]
    guardians = contacts.get("guardians", [])
    plain = {name for name in student if name in USERS and name not in ("phone", "sms", "agents", "userIds")}
    yield from (USERS[name] for name in plain)
    yield from (DEMOGRAPHICS[name] for name in student.get("demographics", {}))
    if any(name in one for one in (contacts, *guardians) for name in ("phone", "sms")):
        yield "phone"
    if any("email" in one for one in (*guardians, *teachers)):
        yield "email"
    yield from ("guardians" for _ in guardians)
    yield from ("classes" for _ in enrollments)


class Reading:
    """A vendor that reads both interfaces, and what its answers had."""

    def __init__(self, served: Served, dice: random.Random, districts: Sequence[str] = DISTRICTS) -> None:
        self.served, self.dice, self.parts = served, dice, dict[str, list[str]]()
        self.account: Account = served.add(grants=dict.fromkeys(districts, ()), flags=tuple(PermissionFlag))
        withheld = dice.sample(list(WithheldField), dice.choice((0, 3, 12)))
        more = dice.sample(list(ScopeName), dice.choice((0, 5, len(ScopeName))))
        names = {ScopeName.CORE, ScopeName.DEMOGRAPHICS, *more}
        self.tokens = {}
        with served.engine.begin() as connection:
            change_withheld(connection, TESTER, self.account.email, withheld)
            scopes = [Scope(version, name) for version in ROOTS for name in names]
            made = clients.add_client(connection, TESTER, self.account.email, "tests", scopes)
            self.roles = dict(
                map(tuple, connection.execute(sa.text("SELECT user_id, min(role) FROM user_roles GROUP BY user_id")))
            )
        for version in ROOTS:
            wanted = " ".join(str(Scope(version, name)) for name in names)
            form = {"grant_type": "client_credentials", "scope": wanted}
            answer = served.app.test_client().post("/oauth/token", data=form, auth=(made.client_id, made.client_secret))
            self.tokens[version] = answer.json["access_token"]
        self.permission_token = served.client.token(self.account)

    def get(self, version: str, address: str, request_id: str, **headers: str) -> Any:
        """The answer to a request of the rostering interface."""
        own = {"Authorization": f"Bearer {self.tokens[version]}", "X-Request-Id": request_id, **headers}
        answer = self.served.app.test_client().get(ROOTS[version] + address, headers=own)
        assert answer.status_code in (200, 304, 403, 404), answer.text
        return answer

    def ask_rostering(self) -> None:
        """Asks for a page or a record, with all fields or some."""
        dice, version, endpoint = self.dice, self.dice.choice(list(ROOTS)), self.dice.choice(ENDPOINTS)
        request_id = f"request-of-parts-{next(NUMBERS)}"
        address = f"{endpoint.address}?"
        if not endpoint.single:
            address += f"limit={dice.choice((1, 2, 100))}&offset={dice.randint(0, 9)}&"
        fields = dice.sample(
            (*USERS, "roles", "role", "class", "user", "title", "birthDate"), dice.choice((0, 0, 2, 6))
        )
        if fields:
            address += f"fields={','.join(('sourcedId', 'status', *fields))}"
        answer = self.get(version, address, request_id)
        if answer.status_code == 200:
            body = answer.json[endpoint.key]
            records = [body] if endpoint.single else body
            found = {part for record in records for part in find_parts(endpoint.key, record, self.roles)}
            self.parts[request_id] = sorted(found)

    def ask_students(self) -> None:
        """Asks for students, with some of what their records can have."""
        include = self.dice.sample(list(PermissionFlag), self.dice.randint(0, 3))
        body = {"districtlea": self.dice.choice(LEAS), "limit": self.dice.choice((1, 100)), "offset": 0}
        request_id = f"request-of-parts-{next(NUMBERS)}"
        headers = {"X-Request-Id": request_id}
        answer = self.served.client.students(
            self.account, self.permission_token, {**body, "include": include}, headers=headers
        )
        if answer.status == 200:
            found = {part for student in answer.json["students"] for part in find_parts_of_student(student)}
            self.parts[request_id] = sorted(found)

    def read_log(self, **wanted: Any) -> dict[str, list[str] | None]:
        """The parts of each answer, as the log has them."""
        self.served.app.extensions["roster_access_log"].flush()
        with self.served.engine.connect() as connection:
            rows = read_access_log(connection, AccessLogFilter(vendor_id=self.account.id, **wanted))
        return {row.request_id: None if row.parts is None else sorted(row.parts) for row in rows}


@pytest.fixture(scope="module")
def worn(make_database: Callable[[], str]) -> Iterator[Served]:
    """A roster that lacks much: what has a namesake in a list, in an object inside or in the metadata is absent."""
    with open_served(make_database()) as served:
        with served.engine.begin() as connection:
            for statement in (
                """UPDATE users SET metadata = '{"email": "x", "agents": ["userIds"], "identifier": 7}',
                    user_ids = '[{"type": "SIS", "identifier": "email"}]', identifier = NULL, middle_name = NULL""",
                "UPDATE users SET email = NULL, phone = NULL WHERE sourced_id LIKE '%student%'",
                """UPDATE demographics SET sex = NULL, birth_date = NULL, metadata = '{"sex": 1}'""",
                """INSERT INTO departures (type, sourced_id, feed_id, label_id, departed_at, person_id)
                    SELECT 'users', sourced_id || '-left', feed_id, label_id, now() + interval '1 hour', sourced_id
                    FROM users""",
            ):
                connection.execute(sa.text(statement))
        yield served


@pytest.mark.parametrize("seed", SEEDS)
def test_the_log_has_the_parts_that_are_in_the_answer(served: Served, seed: int) -> None:
    """Whole records and some fields, withheld fields and scopes of every kind."""
    read_at_random(served, random.Random(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_part_that_the_roster_does_not_have_is_in_no_row(worn: Served, seed: int) -> None:
    every = read_at_random(worn, random.Random(seed))
    assert not every & {"middleName", "sex", "birthDate"}
    assert {"names", "race", "userIds"} <= every


def read_at_random(served: Served, dice: random.Random) -> set[str]:
    """Compares the log with the answers to random requests of random vendors. Returns all parts that they had."""
    every = set[str]()
    for _ in range(3):
        reading = Reading(served, dice, dice.sample(DISTRICTS, dice.randint(1, 2)))
        for _ in range(REQUESTS):
            dice.choice((reading.ask_rostering, reading.ask_rostering, reading.ask_students))()
        found = reading.read_log()
        assert {request: found.get(request) for request in reading.parts} == reading.parts
        every.update(*reading.parts.values())
    return every


def test_a_departure_has_no_part(worn: Served) -> None:
    """Its names are blank. So no answer discloses anything of the people who left, whatever it shows of others."""
    reading = Reading(worn, random.Random(0))
    assert reading.get("v1p2", "/users?filter=status%3D'tobedeleted'", "request-of-departures").json["users"]
    answer = reading.get("v1p1", "/students/spr-student-1-left", "request-of-a-departure")
    assert answer.status_code == 200, answer.text
    assert reading.read_log() == {"request-of-departures": [], "request-of-a-departure": []}
    with worn.engine.connect() as connection:
        for person, request in (
            ("spr-student-1", "request-of-departures"),
            ("spr-student-1-left", "request-of-a-departure"),
            ("spr-student-1", "request-of-a-departure"),
        ):
            left = AccessLogFilter(person=PersonHasher(SECRET_KEY).hash_id(person), request=request)
            assert read_access_log(connection, left) == [], request


# The path with its query; the parts that it asks for.
ASKED: dict[str, tuple[str, list[str]]] = {
    "a value": ("/users?fields=sourcedId&filter=email~'@'", ["email"]),
    "a count": ("/demographics?limit=0&filter=birthDate>'2000-01-01'", ["birthDate"]),
    "the order": ("/demographics?fields=sourcedId&sort=sex", ["sex"]),
    "several": ("/users?fields=sourcedId&filter=phone>'0' OR familyName>'A'", ["names", "phone"]),
    "inside an object": ("/enrollments?fields=sourcedId&filter=class.sourcedId>'a'", ["classes"]),
    "whom a delta has": ("/users?fields=sourcedId&filter=dateLastModified>'2000-01-01T00:00:00.000Z'", []),
    "who is a student": ("/users?fields=sourcedId&filter=role='student'", []),
    "who there is": ("/users?fields=sourcedId&filter=sourcedId='spr-student-1'", []),
    "who is a guardian": ("/users?fields=sourcedId&filter=role='guardian'", ["guardians"]),
    "who is perhaps a guardian": ("/users?limit=0&filter=role!='student'", ["guardians"]),
}


@pytest.mark.parametrize(("address", "parts"), ASKED.values(), ids=ASKED)
def test_the_log_has_the_parts_that_a_filter_or_sort_asks_for(served: Served, address: str, parts: list[str]) -> None:
    """Whom it finds, how many and in which order tells of them; so does a 304, to somebody who may never have asked."""
    reading = Reading(served, random.Random(SEED_WITHOUT_WITHHELD))
    assert reading.get("v1p1", address, "request-that-asks").status_code == 200
    assert reading.get("v1p1", address, "request-of-no-tag", **{"If-None-Match": "*"}).status_code == 304
    assert reading.read_log() == dict.fromkeys(("request-that-asks", "request-of-no-tag"), parts)


def test_an_answer_that_only_counts_is_in_no_sentence(served: Served) -> None:
    """It showed nobody."""
    reading = Reading(served, random.Random(SEED_WITHOUT_WITHHELD))
    reading.get("v1p1", "/demographics?limit=0&filter=sex='male'", "request-of-a-count")
    assert reading.read_log() == {"request-of-a-count": ["sex"]}
    with served.engine.connect() as connection:
        assert list_shown(connection, AccessLogFilter(vendor_id=reading.account.id)) == []


def test_a_match_of_any_tag_discloses_that_there_is_a_person(served: Served) -> None:
    reading = Reading(served, random.Random(SEED_WITHOUT_WITHHELD))
    known = reading.get("v1p1", "/users/spr-student-1", "request-of-a-person").headers["ETag"]
    for request_id, tag in (("request-of-a-known-tag", known), ("request-of-any-tag", "*")):
        answer = reading.get("v1p1", "/users/spr-student-1", request_id, **{"If-None-Match": tag})
        assert answer.status_code == 304
    left = {"person": PersonHasher(SECRET_KEY).hash_id("spr-student-1")}
    assert reading.read_log(**left).keys() == {"request-of-a-person", "request-of-any-tag"}


def test_each_day_of_a_vendor_stands_in_one_sentence(served: Served) -> None:
    """With what its answers had together, also once the rows of the day are one."""
    reading = Reading(served, random.Random(0))
    wanted = AccessLogFilter(vendor_id=reading.account.id)

    def read_sentences() -> list[tuple[list[str], int]]:
        with served.engine.connect() as connection:
            return [(list(one.parts), len(one.days)) for one in list_shown(connection, wanted)]

    for number, (days_ago, fields) in enumerate(((5, "email"), (5, "familyName"), (4, "email"), (3, "email"))):
        reading.get("v1p1", f"/users?fields=sourcedId,{fields}", f"request-of-a-day-{number}")
        reading.get("v1p1", "/orgs", f"request-of-orgs-{number}")
        assert reading.read_log()
        with served.engine.begin() as connection:
            moved = sa.update(audit).where(audit.c.vendor_id == reading.account.id, audit.c.at > sa.func.now() - DAY)
            connection.execute(moved.values(at=datetime.now(UTC) - days_ago * DAY))
    for _ in range(2):
        assert sorted(read_sentences()) == [
            (["e-mail addresses"], 2),
            (["names, usernames and grades", "e-mail addresses"], 1),
        ]
        fold_days(served.engine)


def test_records_of_people_without_a_part_are_in_a_sentence(served: Served) -> None:
    reading = Reading(served, random.Random(0))
    reading.get("v1p1", "/users?fields=sourcedId,role,orgs&filter=role%3D'student'", "request-of-ids-alone")
    assert reading.read_log() == {"request-of-ids-alone": []}
    with served.engine.connect() as connection:
        [shown] = list_shown(connection, AccessLogFilter(vendor_id=reading.account.id))
    assert shown.parts == []
