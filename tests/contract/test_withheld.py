"""Withheld fields: no answer of either interface has a value of one, and a change counts for the next request."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights, vendors
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from tests.access_matrix.record_json import HIDDEN_OF_DEMOGRAPHICS, HIDDEN_OF_USERS, list_hidden
from tests.actors import TESTER
from tests.extent import examples
from tests.offenders import in_one_test
from tests.vendor.client import PLENTY, Account, VendorClient

from .client import VERSIONS, Answer, RosterClient
from .conftest import GRANTS, Roster, Served, add_vendor
from .paths import COLLECTIONS, ENDPOINTS, Endpoint, each_path

pytestmark = pytest.mark.shows(
    "Visibility",
    "A withheld field is in no record, filter, sort, tag or token of before, on either interface.",
)

EMAIL, OTHER = "both@vendors.example", "springfield@vendors.example"
WORDS = (*HIDDEN_OF_USERS, *HIDDEN_OF_DEMOGRAPHICS)
# Values that no other field has, in every field that can be withheld and takes a text or a day.
PLANTED = (
    """UPDATE users SET email = 'planted email', phone = 'planted phone', sms = 'planted sms',
        identifier = 'planted number', user_master_identifier = 'planted master', middle_name = 'planted middle',
        preferred_first_name = 'planted first', preferred_middle_name = 'planted second',
        preferred_last_name = 'planted last', pronouns = 'planted pronouns',
        user_ids = '[{"type": "planted type", "identifier": "planted id"}]'""",
    """INSERT INTO user_profiles (user_id, profile_id, profile_type, vendor_id, credentials)
        SELECT sourced_id, 'planted-profile', 'planted kind', 'planted vendor',
        '[{"type": "planted login", "username": "planted name"}]' FROM users""",
    "UPDATE user_roles SET profile_id = 'planted-profile'",
    """UPDATE demographics SET sex = 'female', birth_date = DATE '1901-02-03',
        country_of_birth_code = 'planted country', state_of_birth_abbreviation = 'planted state',
        city_of_birth = 'planted city', public_school_residence_status = 'planted residence'""",
)
MARKS = (b"planted", b"1901-02-03", b"female")
ANN, GUARDIAN = "spr-student-1", b"spr-guardian-1"


@dataclass(frozen=True)
class Planted:
    """A service with planted values, and a vendor with every scope and flag."""

    served: Served
    account: Account
    students: VendorClient
    make_client: Callable[[], RosterClient]

    def withhold(self, words: Iterable[str] | None, email: str = EMAIL) -> RosterClient:
        """Withholds these fields from a vendor; None: those of the default. Returns a client whose tokens follow."""
        listed = None if words is None else list(map(WithheldField, words))
        with self.served.engine.begin() as connection:
            vendor_rights.change_withheld(connection, TESTER, email, listed)
        return self.make_client()

    def set_flags(self, *flags: PermissionFlag) -> RosterClient:
        """Leaves the vendor these flags."""
        with self.served.engine.begin() as connection:
            vendor_rights.revoke(connection, TESTER, EMAIL, None, list(PermissionFlag))
            vendor_rights.grant(connection, TESTER, EMAIL, None, (), flags)
        return self.make_client()

    def ask_students(self, include: Collection[str] = tuple(PermissionFlag), **more: Any) -> Any:
        """The answer of the vendor interface with the students of Springfield."""
        body = {"districtlea": "17-0042", "include": list(include), **more}
        return self.students.students(self.account, self.students.token(self.account), body)


@pytest.fixture(scope="module")
def made(make_served: Callable[..., Served], roster: Roster) -> Planted:
    """The service."""
    served = make_served()
    with served.engine.begin() as connection:
        for statement in PLANTED:
            connection.execute(sa.text(statement))
        vendor_rights.grant(connection, TESTER, EMAIL, None, (), list(PermissionFlag))
        password = vendors.change_password(connection, TESTER, EMAIL, None)
        key = vendors.replace_key(connection, TESTER, EMAIL, timedelta(0))
        vendors.change_allowance(connection, TESTER, EMAIL, PLENTY, ROSTERING_DEFAULTS)
        account = Account(vendors.find_vendor(connection, EMAIL).id, EMAIL, key.api_key, str(password))

    def make_client() -> RosterClient:
        return RosterClient(served.app, roster.credentials, served.client.documents)

    return Planted(served, account, VendorClient(served.app), make_client)


@pytest.fixture
def planted(made: Planted) -> Planted:
    """The service, with nothing withheld from the vendor."""
    made.set_flags(*PermissionFlag)
    made.withhold(())
    return made


@pytest.fixture(scope="module")
def blind(made: Planted) -> RosterClient:
    """A client of another vendor with every scope and flag, from which everything is withheld."""
    with made.served.engine.begin() as connection:
        credentials = add_vendor(connection, "blind", GRANTS["both"])
    made.withhold(WORDS, "blind@vendors.example")
    # Its client calls it by the name of the usual vendor.
    return RosterClient(made.served.app, {"both": credentials}, made.served.client.documents)


def find_marks(answer: Answer | Any) -> list[bytes]:
    """The planted values in an answer, body and headers."""
    sent = answer.body + repr(sorted(answer.headers.items())).encode()
    return [mark for mark in MARKS if mark in sent]


@pytest.mark.shows(
    "Visibility",
    "No path shows a planted value of a withheld field; each word withholds its own fields and no others.",
)
@in_one_test
@each_path(ENDPOINTS)
def test_no_path_shows_a_withheld_value(blind: RosterClient, version: str, endpoint: Endpoint) -> None:
    names = "email,phone,userIds,birthDate,sex,agents,roles,sourcedId"
    for query in (None, {"fields": names}):
        answer = blind.call(version, endpoint.address, query)
        assert answer.status == 200
        assert find_marks(answer) == []


@pytest.mark.shows("Visibility", "A withheld name is answered like a name that the service never had.")
@each_path([endpoint for endpoint in COLLECTIONS if endpoint.key in ("users", "demographics")])
def test_a_withheld_name_is_unknown_in_sort_and_filter(blind: RosterClient, version: str, endpoint: Endpoint) -> None:
    ids = blind.call(version, endpoint.address).ids
    for name in ("email", "birthDate"):
        answer = blind.call(version, endpoint.address, {"sort": name, "orderBy": "asc"})
        assert (answer.ids, answer.minor) == (ids, "invalid_sort_field")
        refused = blind.call(version, endpoint.address, {"filter": f"{name}!='planted' OR sourcedId!='x'"})
        assert (refused.status, refused.minor) == (400, "invalid_filter_field")


def test_the_values_are_shown_while_nothing_is_withheld(planted: Planted) -> None:
    """Without this, the tests of this file would prove nothing."""
    client = planted.make_client()
    shown = [client.call(version, path) for version in VERSIONS for path in ("/users", "/demographics")]
    assert [find_marks(answer) for answer in shown] == [[MARKS[0]], [*MARKS]] * 2
    answer = planted.ask_students()
    assert find_marks(answer) == list(MARKS)
    assert GUARDIAN in answer.body


@pytest.mark.shows(
    "Visibility",
    "No path shows a planted value of a withheld field; each word withholds its own fields and no others.",
)
def test_the_vendor_interface_shows_no_withheld_value(planted: Planted) -> None:
    planted.withhold(WORDS)
    answer = planted.ask_students()
    assert find_marks(answer) == []
    assert GUARDIAN not in answer.body
    [ann] = (student for student in answer.json["students"] if student["sourcedId"] == ANN)
    assert (ann["contacts"], ann["demographics"]) == ({}, {})
    assert [teacher for it in ann["enrollments"] for teacher in it["teachers"] if "email" in teacher] == []
    assert find_marks(planted.ask_students(modifiedSince="2020-01-01T00:00:00Z")) == []


# Word -> the places of a student of the vendor interface that it hides, beside the demographic fields.
HIDDEN_OF_STUDENTS = {
    "email": ("email", "contacts.guardians.email", "enrollments.teachers.email"),
    "phone": ("contacts.phone", "contacts.guardians.phone"),
    "sms": ("contacts.sms", "contacts.guardians.sms"),
    "identifier": ("identifier",),
    "middleName": ("middleName",),
    "preferredNames": ("preferredFirstName", "preferredLastName"),
    "agents": ("contacts.guardians",),
}


def leave_out(value: Any, names: Collection[str], place: str = "") -> Any:
    """The JSON without the members at these places; lists do not count as a level."""
    if isinstance(value, list):
        return [leave_out(item, names, place) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: leave_out(item, names, f"{place}{name}.") for name, item in value.items() if f"{place}{name}" not in names
    }


@pytest.fixture(scope="module")
def whole(made: Planted) -> dict[str, Any]:
    """What is shown of a student while nothing is withheld, by path; the last one is of the vendor interface."""
    made.set_flags(*PermissionFlag)
    return read_whole(made, made.withhold(()))


def read_whole(made: Planted, client: RosterClient) -> dict[str, Any]:
    """The record of a student at each path that shows people."""
    paths = {"users": f"/users/{ANN}", "demographics": f"/demographics/{ANN}"}
    records: dict[str, Any] = {
        f"{version} {table}": client.call(version, path).records
        for version in VERSIONS
        for table, path in paths.items()
    }
    return records | {"students": made.ask_students().json["students"]}


# So many lists tell more words apart than there are: each stands in another three of them, hence for every two words
# one list has the first and lacks the second. A run of all also has a list of each word.
LISTS = 7
PLACES = dict(zip(WORDS, itertools.combinations(range(LISTS), 3), strict=False))
WITHHELD = [[word for word in WORDS if number in PLACES[word]] for number in range(LISTS)]


@pytest.mark.shows(
    "Visibility",
    "No path shows a planted value of a withheld field; each word withholds its own fields and no others.",
)
@pytest.mark.parametrize("words", WITHHELD + examples([], [], [[word] for word in WORDS]), ids=len)
def test_a_word_withholds_its_own_fields_and_no_others(
    planted: Planted, whole: dict[str, Any], words: list[str]
) -> None:
    shown = read_whole(planted, planted.withhold(words))
    of_students = {place for word in words for place in HIDDEN_OF_STUDENTS.get(word, (f"demographics.{word}",))}
    expected = {
        **{f"{version} users": list_hidden("users", words) for version in VERSIONS},
        **{f"{version} demographics": list_hidden("demographics", words) for version in VERSIONS},
        "students": of_students,
    }
    assert shown == {path: leave_out(record, expected[path]) for path, record in whole.items()}


def test_phone_numbers_follow_the_flag_on_both_interfaces(planted: Planted) -> None:
    """Whatever the vendor's own list says: a list never shows what a missing flag hides."""
    for words in (None, (), ("email",)):
        planted.withhold(words)
        client = planted.set_flags(PermissionFlag.ENROLLMENTS)
        for version in VERSIONS:
            assert {"phone", "sms"}.isdisjoint(client.call(version, f"/users/{ANN}").records[0])
            refused = client.call(version, "/users", {"filter": "phone='planted phone'"})
            assert refused.minor == "invalid_filter_field"
        assert planted.ask_students(["contacts"]).status == 403
        client = planted.set_flags(PermissionFlag.CONTACTS)
        for version in VERSIONS:
            assert {"phone", "sms"} <= set(client.call(version, f"/users/{ANN}").records[0])
        assert b"planted phone" in planted.ask_students(["contacts"]).body


def test_the_default_applies_to_vendors_without_a_list(planted: Planted) -> None:
    planted.withhold(None)
    planted.withhold(["email"], OTHER)
    before = planted.make_client()
    tokens = {name: before.token("v1p2", vendor=name) for name in ("both", "springfield")}
    with planted.served.engine.begin() as connection:
        vendor_rights.change_withheld_default(connection, TESTER, [WithheldField.MIDDLE_NAME])
    try:
        # The tokens of the vendor with its own list are as good as they were.
        ended = {name: before.call("v1p2", "/users", bearer=token).status for name, token in tokens.items()}
        assert ended == {"both": 401, "springfield": 200}
        client = planted.make_client()
        shown = {
            name: set(client.call("v1p2", f"/users/{ANN}", vendor=name).records[0]) & {"email", "middleName"}
            for name in tokens
        }
        assert shown == {"both": {"email"}, "springfield": {"middleName"}}
        assert b"planted middle" not in planted.ask_students().body
    finally:
        with planted.served.engine.begin() as connection:
            vendor_rights.change_withheld_default(connection, TESTER, [])


@pytest.mark.shows("Visibility", "A token, tag or pull of before a field was withheld shows nothing of it.")
def test_a_token_and_a_tag_of_before_the_change_show_nothing_afterwards(planted: Planted) -> None:
    before = planted.make_client()
    permission = planted.students.token(planted.account)
    tags = {path: before.call("v1p2", path).headers["ETag"] for path in ("/users", f"/users/{ANN}")}
    after = planted.withhold(["email"])
    for path, tag in tags.items():
        same = {"If-None-Match": tag}
        assert before.call("v1p2", path).status == 401
        assert before.call("v1p2", path, headers=same).status == 401
        answer = after.call("v1p2", path, headers=same)
        assert (answer.status, answer.headers["ETag"] != tag) == (200, True)
        assert b"planted email" not in answer.body
    assert planted.students.students(planted.account, permission, {"districtlea": "17-0042"}).outcome == (
        401,
        "invalid-token",
    )


@pytest.mark.shows("Visibility", "A token, tag or pull of before a field was withheld shows nothing of it.")
def test_a_pull_ends_as_soon_as_a_field_is_withheld(planted: Planted) -> None:
    """Its consumer could not know that its first pages have what the later ones lack."""
    first = planted.make_client().call("v1p2", "/users", {"limit": "2", "sort": "familyName"})
    client = planted.withhold(["email"])
    page = client.follow("v1p2", first.links["next"])
    assert b"planted email" in first.body
    assert page.status == 410
    assert b"planted email" not in page.body
