"""`POST /v1/students`: the records, the pages, and what a body may ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.schemas.flags import PermissionFlag
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

SPRINGFIELD, SHELBYVILLE = "17-0042", "17-0077"
BOTH: dict[str, tuple[str, ...]] = {"spr-district": (), "shv-district": ()}


@pytest.fixture(scope="module")
def account(served: Served) -> Account:
    """A vendor who may have everything."""
    return served.add(grants=BOTH, flags=tuple(PermissionFlag))


@pytest.fixture(scope="module")
def token(client: VendorClient, account: Account) -> str:
    """Its permission token."""
    return client.token(account)


@pytest.fixture
def ask(client: VendorClient, account: Account, token: str) -> Any:
    """Asks with the keys of a body, beside the district."""
    return lambda lea=SPRINGFIELD, **keys: client.students(account, token, {"districtlea": lea, **keys})


def find(answer: Any, sourced_id: str) -> Any:
    """One student of an answer."""
    (student,) = (item for item in answer.json["students"] if item["sourcedId"] == sourced_id)
    return student


def test_a_student_is_what_the_export_says(ask: Any) -> None:
    student = find(ask(), "spr-student-1")
    assert student.pop("dateLastModified").endswith("Z")
    assert student == {
        "sourcedId": "spr-student-1",
        "status": "active",
        "identifier": "S-1001",
        "username": "zoe.obrien",
        "givenName": "Zoë",
        "middleName": "Maeve",
        "familyName": "O'Brien",
        "email": "zoe.obrien@example.org",
        "grades": ["03"],
        "districtlea": SPRINGFIELD,
        "schools": [
            {
                "sourcedId": "spr-elementary",
                "identifier": "17-0042-01",
                "name": "Springfield Elementary School",
                "primary": "true",
            }
        ],
    }


def test_preferred_names_are_those_of_1_2(ask: Any) -> None:
    student = find(ask(SHELBYVILLE), "shv-student-1")
    assert (student["preferredFirstName"], student["preferredLastName"]) == ("Zo", "Brien")
    assert student["schools"][0] == {
        "sourcedId": "shv-north",
        "identifier": "17-0077-01",
        "name": "North School",
        "primary": "true",
    }


def test_absent_values_are_left_out(ask: Any) -> None:
    student = find(ask(), "spr-student-5")
    assert {"email", "middleName", "preferredFirstName", "demographics", "contacts", "enrollments"}.isdisjoint(student)


def test_demographics_are_included_where_there_are_any(ask: Any) -> None:
    answer = ask(include=["demographics"])
    assert find(answer, "spr-student-1")["demographics"] == {
        "birthDate": "2018-02-28",
        "sex": "female",
        "americanIndianOrAlaskaNative": "false",
        "asian": "false",
        "blackOrAfricanAmerican": "false",
        "nativeHawaiianOrOtherPacificIslander": "false",
        "white": "true",
        "demographicRaceTwoOrMoreRaces": "false",
        "hispanicOrLatinoEthnicity": "false",
        "countryOfBirthCode": "US",
        "stateOfBirthAbbreviation": "IL",
        "cityOfBirth": "Springfield",
        "publicSchoolResidenceStatus": "01652",
    }
    assert find(answer, "spr-student-5")["demographics"] == {"sex": "male"}


def test_contacts_have_the_guardians(ask: Any) -> None:
    contacts = find(ask(include=["contacts"]), "spr-student-1")["contacts"]
    assert (contacts["phone"], contacts["sms"]) == ("+1-217-555-0102", "+1-217-555-0101")
    assert contacts["guardians"] == [
        {
            "sourcedId": "spr-guardian-1",
            "status": "active",
            "role": "guardian",
            "givenName": "Siobhán",
            "familyName": "O'Brien",
            "email": "siobhan.obrien@example.org",
            "phone": "+1-217-555-0103",
        },
        {
            "sourcedId": "spr-parent-1",
            "status": "active",
            "role": "parent",
            "givenName": "Pádraig",
            "familyName": "O'Brien",
            "sms": "+1-217-555-0104",
        },
    ]


def test_enrollments_have_class_course_terms_and_teachers(ask: Any) -> None:
    [enrollment] = find(ask(include=["enrollments"]), "spr-student-3")["enrollments"]
    assert {name: enrollment[name] for name in ("sourcedId", "status", "school", "beginDate", "endDate")} == {
        "sourcedId": "spr-enr-09",
        "status": "active",
        "school": "spr-high",
        "beginDate": "2026-08-17",
        "endDate": "2027-01-16",
    }
    assert enrollment["class"] == {
        "sourcedId": "spr-class/stats@1",
        "status": "active",
        "title": "100%_sure: Statistics, Section 1",
        "classCode": "STAT-1.1",
        "grades": ["11", "12"],
        "subjects": ["Probability and Statistics"],
    }
    assert enrollment["course"]["sourcedId"] == "spr-course-stats"
    assert [term["sourcedId"] for term in enrollment["terms"]] == ["spr-2027-fall"]
    assert [teacher["sourcedId"] for teacher in enrollment["teachers"]] == ["spr-teacher-1", "spr-teacher-2"]


def test_all_that_can_be_included_goes_together(ask: Any) -> None:
    student = find(ask(include=["enrollments", "contacts", "demographics", "contacts"]), "spr-student-1")
    assert {"demographics", "contacts", "enrollments"} <= set(student)


def test_students_of_some_schools(ask: Any) -> None:
    """spr-student-6 is at the elementary school, and in a class of the high school."""
    assert ask(schools=["spr-high"]).ids == [f"spr-student-{number}" for number in (3, 4, 5, 6)]
    assert len(ask(schools=["spr-high", "spr-elementary", "spr-high"]).ids) == 6


def test_pages_add_up_to_all_students(ask: Any) -> None:
    whole = ask()
    assert len(whole.ids) == whole.json["total"] == 6
    assert (whole.json["limit"], whole.json["offset"], "nextOffset" in whole.json) == (100, 0, False)
    seen, offset = [], 0
    while offset is not None:
        page = ask(limit=4, offset=offset)
        assert page.json["total"] == 6
        seen += page.ids
        offset = page.json.get("nextOffset")
    assert seen == whole.ids == sorted(seen)


def test_past_the_end_there_are_no_students_and_the_right_total(ask: Any) -> None:
    for offset in (6, 10**18):
        answer = ask(offset=offset)
        assert (answer.ids, answer.json["total"], "nextOffset" in answer.json) == ([], 6, False)


@contextmanager
def changed_record(served: Served, table: str, sourced_id: str, column: str, value: str) -> Iterator[None]:
    """Gives a record another value until the block ends: other tests ask for the same roster."""
    change = sa.text(f"UPDATE {table} SET {column} = :value WHERE sourced_id = :id")
    with served.engine.begin() as connection:
        read = sa.text(f"SELECT {column} FROM {table} WHERE sourced_id = :id")
        before = connection.execute(read, {"id": sourced_id}).scalar_one()
        connection.execute(change, {"id": sourced_id, "value": value})
    try:
        yield
    finally:
        with served.engine.begin() as connection:
            connection.execute(change, {"id": sourced_id, "value": before})


def test_changed_students_alone(served: Served, ask: Any) -> None:
    stamp = "2027-03-01T10:00:00.500Z"
    with changed_record(served, "users", "spr-student-2", "date_last_modified", stamp):
        assert ask(modifiedSince=stamp).ids == []
        assert ask(modifiedSince="2027-03-01T10:00:00.499Z").ids == ["spr-student-2"]
        assert ask(modifiedSince="2027-03-01T10:00:00.499999Z").ids == ["spr-student-2"]
        assert ask(modifiedSince="2027-03-01T11:00:00.499+01:00").ids == ["spr-student-2"]
        assert ask(modifiedSince="2027-03-01T10:00:00.500001Z").ids == []
        assert ask(modifiedSince="0001-01-01T00:00:00+14:00").json["total"] == 6
        # Zones that PostgreSQL does not take, though ISO 8601 can write them.
        assert ask(modifiedSince="2027-03-02T03:31:00.499+17:31").ids == ["spr-student-2"]
        assert ask(modifiedSince="0001-01-01T00:00:00+23:59").json["total"] == 6
        assert ask(modifiedSince="9999-12-31T23:59:59-23:59").json["total"] == 0
        assert ask(modifiedSince="9999-12-31T23:59:59.999999Z").json["total"] == 0


# A changed record, the part of the answer that shows it (None: every answer does), and the students it is shown of.
CHANGED_PARTS = [
    pytest.param(("orgs", "spr-elementary"), None, "1 2 6", id="a school"),
    pytest.param(("demographics", "spr-student-2"), "demographics", "2", id="demographics"),
    pytest.param(("users", "spr-guardian-1"), "contacts", "1 2", id="a guardian"),
    pytest.param(("enrollments", "spr-enr-02"), "enrollments", "2", id="an enrollment"),
    pytest.param(("classes", "spr-class-math3-a"), "enrollments", "1 2 6", id="a class"),
    pytest.param(("courses", "spr-course-math3"), "enrollments", "1 2 6", id="a course"),
    pytest.param(("academic_sessions", "spr-2027-summer"), "enrollments", "6", id="a term"),
    pytest.param(("users", "spr-teacher-1"), "enrollments", "1 2 3 5 6", id="a teacher"),
    pytest.param(("enrollments", "spr-enr-04"), "enrollments", "1 2 6", id="the enrollment of a teacher"),
]


@pytest.mark.parametrize(("changed", "part", "numbers"), CHANGED_PARTS)
def test_a_change_of_what_the_answer_shows_is_a_change(
    served: Served, ask: Any, changed: tuple[str, str], part: str | None, numbers: str
) -> None:
    before, stamp = "2028-01-01T00:00:00.001Z", "2028-01-01T00:00:00.002Z"
    parts = ["demographics", "contacts", "enrollments"]
    with changed_record(served, *changed, "date_last_modified", stamp):
        for include in ([], *([one] for one in parts), parts):
            answer = ask(modifiedSince=before, include=include)
            shown = [f"spr-student-{number}" for number in numbers.split()] if part is None or part in include else []
            assert answer.ids == shown
            assert {it["dateLastModified"] for it in answer.json["students"]} <= {stamp}


def test_a_tombstone_comes_with_its_status(served: Served, ask: Any) -> None:
    with changed_record(served, "users", "spr-student-4", "status", "tobedeleted"):
        assert find(ask(), "spr-student-4")["status"] == "tobedeleted"


def test_an_answer_says_where_the_roster_stands(ask: Any, client: VendorClient) -> None:
    """As the document does: without these headers, a consumer of changes keeps erased people for ever."""
    headers = ask().headers
    documented = client.document["paths"]["/v1/students"]["post"]["responses"]["200"]["headers"]
    for name in ("Revision", "As-Of", "Deletions-Since"):
        assert f"X-Roster-{name}" in headers
        assert f"X-Roster-{name}" in documented
    assert "X-Roster-Deletions-Since" in client.document["info"]["description"]


INSTANT = "`modifiedSince`: Must be an instant with its time zone, for instance 2026-11-20T02:00:00.000Z"
BAD_KEYS: list[Any] = [
    pytest.param({"limit": 0}, "`limit`", id="limit 0"),
    pytest.param({"limit": 5001}, "`limit`", id="limit 5001"),
    pytest.param({"limit": -1}, "`limit`", id="a negative limit"),
    pytest.param({"limit": "5"}, "`limit`", id="a limit in quotes"),
    pytest.param({"limit": 5.0}, "`limit`", id="a limit with a point"),
    pytest.param({"limit": True}, "`limit`", id="a limit of true"),
    pytest.param({"limit": None}, "`limit`", id="a limit of null"),
    pytest.param({"limit": 10**400}, "`limit`", id="an endless limit"),
    pytest.param({"offset": -1}, "`offset`", id="a negative offset"),
    pytest.param({"offset": 2**63}, "`offset`", id="a large offset"),
    pytest.param({"districtlea": None}, "`districtlea`", id="a district of null"),
    pytest.param({"districtlea": 17}, "`districtlea`", id="a district in digits"),
    pytest.param({"districtlea": ""}, "`districtlea`", id="an empty district"),
    pytest.param({"districtlea": "a\x00"}, "`districtlea`", id="a NUL"),
    pytest.param({"districtlea": "\ud800"}, "`districtlea`", id="half a surrogate pair"),
    pytest.param({"districtlea": "x" * 257}, "`districtlea`", id="a long district"),
    pytest.param({"schools": "spr-high"}, "`schools`", id="schools as a text"),
    pytest.param({"schools": []}, "`schools`", id="no schools"),
    pytest.param({"schools": ["spr-high", 5]}, "`schools`, item 1", id="a school in digits"),
    pytest.param({"schools": ["a\x00"]}, "`schools`, item 0", id="a school with a NUL"),
    pytest.param({"modifiedSince": "2026-11-01"}, INSTANT, id="a day"),
    pytest.param({"modifiedSince": "2026-11-01T00:00:00"}, INSTANT, id="no time zone"),
    pytest.param({"modifiedSince": "yesterday"}, "`modifiedSince`", id="a word"),
    pytest.param({"modifiedSince": 5}, "`modifiedSince`", id="a number for an instant"),
    pytest.param({"include": "contacts"}, "`include`", id="include as a text"),
    pytest.param({"include": ["contact"]}, "`include`, item 0", id="an unknown include"),
    pytest.param({"include": [{}]}, "`include`, item 0", id="an object to include"),
    pytest.param({"limits": 5}, "did you mean `limit`", id="an unknown key"),
    pytest.param({"filter": "x"}, "there is no key `filter`", id="a key of the other interface"),
]


@pytest.mark.parametrize(("keys", "reported"), BAD_KEYS)
def test_a_body_that_cannot_be_used_names_the_key(ask: Any, keys: dict[str, Any], reported: str) -> None:
    answer = ask(**{"lea": SPRINGFIELD, **keys})
    assert answer.outcome == (400, "bad-request")
    assert reported in answer.message


def test_the_district_must_be_named(client: VendorClient, account: Account, token: str) -> None:
    answer = client.students(account, token, {"limit": 5})
    assert answer.outcome == (400, "bad-request")
    assert "`districtlea`" in answer.message
