"""What each shape of grant shows, and that nothing tells of what lies outside it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.schemas.flags import PermissionFlag
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

SPRINGFIELD, SHELBYVILLE = "17-0042", "17-0077"
SCHOOLS = {SPRINGFIELD: ("spr-elementary", "spr-high"), SHELBYVILLE: ("shv-north", "shv-south")}
ALL_FLAGS = tuple(PermissionFlag)
# Ids and names that nobody may meet who was not granted what they belong to.
OF_SPRINGFIELD_HIGH = ("spr-high", "Springfield High", "spr-student-3", "spr-student-4", "spr-student-5", "17-0042-02")
OF_SHELBYVILLE = ("shv-", "Shelbyville", "North School", "O’Brien")

# (grants, what a call for each district answers, what the answers may not hold)
SHAPES: list[Any] = [
    pytest.param({"spr-district": ()}, {SPRINGFIELD: 6, SHELBYVILLE: None}, OF_SHELBYVILLE, id="one district"),
    pytest.param({"spr-district": (), "shv-district": ()}, {SPRINGFIELD: 6, SHELBYVILLE: 4}, (), id="two districts"),
    pytest.param(
        {"spr-district": ("spr-elementary",)},
        {SPRINGFIELD: 3, SHELBYVILLE: None},
        OF_SPRINGFIELD_HIGH + OF_SHELBYVILLE,
        id="one school",
    ),
    pytest.param(
        {"spr-district": ("spr-elementary", "spr-high")},
        {SPRINGFIELD: 6, SHELBYVILLE: None},
        OF_SHELBYVILLE,
        id="two schools",
    ),
    pytest.param(
        {"spr-district": ("spr-elementary",), "shv-district": ()},
        {SPRINGFIELD: 3, SHELBYVILLE: 4},
        OF_SPRINGFIELD_HIGH,
        id="a school of one district and another district",
    ),
    pytest.param(
        {"spr-district": ("spr-elementary",), "shv-district": ("shv-south",)},
        {SPRINGFIELD: 3, SHELBYVILLE: 2},
        (*OF_SPRINGFIELD_HIGH, "shv-north", "shv-student-1", "shv-student-2", "North School"),
        id="a school of each district",
    ),
]


@pytest.mark.parametrize(("grants", "totals", "hidden"), SHAPES)
def test_a_vendor_sees_what_it_was_granted(
    served: Served,
    client: VendorClient,
    grants: dict[str, tuple[str, ...]],
    totals: dict[str, int | None],
    hidden: tuple[str, ...],
) -> None:
    account = served.add(grants=grants, flags=ALL_FLAGS)
    token = client.token(account)
    for lea, total in totals.items():
        answer = client.students(
            account, token, {"districtlea": lea, "include": [flag.value for flag in PermissionFlag]}
        )
        if total is None:
            assert answer.outcome == (403, "no-privilege")
        else:
            assert (len(answer.ids), answer.json["total"]) == (total, total)
            assert all(student["districtlea"] == lea for student in answer.json["students"])
        assert not [text for text in hidden if text in answer.body.decode()]


@pytest.fixture(scope="module")
def elementary(served: Served) -> Account:
    """A vendor of one school, without flags."""
    return served.add(grants={"spr-district": ("spr-elementary",)})


REFUSED: list[Any] = [
    pytest.param({"districtlea": SHELBYVILLE}, id="another district"),
    pytest.param({"districtlea": "17-9999"}, id="no such district"),
    pytest.param({"districtlea": "spr-district"}, id="a district by its sourcedId"),
    pytest.param({"districtlea": "17-0042-01"}, id="a school as a district"),
    pytest.param({"districtlea": "%"}, id="a wildcard"),
    pytest.param({"districtlea": "' OR ''='"}, id="SQL"),
    pytest.param({"schools": ["spr-high"]}, id="another school"),
    pytest.param({"schools": ["spr-elementary", "spr-high"]}, id="another school beside its own"),
    pytest.param({"schools": ["shv-north"]}, id="a school of another district"),
    pytest.param({"schools": ["nowhere"]}, id="no such school"),
    pytest.param({"schools": ["spr-district"]}, id="a district as a school"),
    *(pytest.param({"include": [flag.value]}, id=f"{flag.value} without its flag") for flag in PermissionFlag),
]


@pytest.mark.parametrize("keys", REFUSED)
def test_what_is_not_granted_is_no_privilege(client: VendorClient, elementary: Account, keys: dict[str, Any]) -> None:
    answer = client.students(elementary, client.token(elementary), {"districtlea": SPRINGFIELD, **keys})
    assert answer.outcome == (403, "no-privilege")
    if "schools" in keys:
        assert f"item {len(keys['schools']) - 1} of `schools`" in answer.message
        assert "named by its sourcedId" in answer.message
    elif "districtlea" in keys:
        assert "named by its identifier, or by its sourcedId if it has no identifier" in answer.message
        assert f'for instance "{SPRINGFIELD}"' in answer.message


@pytest.mark.parametrize(("grants", "totals", "_hidden"), SHAPES)
def test_the_login_lists_what_can_be_asked_for(
    served: Served, client: VendorClient, grants: dict[str, tuple[str, ...]], totals: dict[str, int], _hidden: Any
) -> None:
    account = served.add(grants=grants)
    answer = client.login(account).json
    districts = {district["districtlea"]: district for district in answer["districts"]}
    assert set(districts) == {lea for lea, total in totals.items() if total is not None}
    for lea, district in districts.items():
        ids = [school["sourcedId"] for school in district["schools"]]
        assert sorted(ids) == sorted(grants[district["sourcedId"]] or SCHOOLS[lea])
        asked = client.students(account, answer["token"], {"districtlea": lea, "schools": ids})
        assert asked.json["total"] == totals[lea]


def test_a_district_without_an_identifier_is_called_by_its_sourced_id(served: Served, client: VendorClient) -> None:
    account = served.add(grants={"spr-district": ()})
    change = sa.text("UPDATE orgs SET identifier = :identifier WHERE sourced_id = 'spr-district'")
    with served.engine.begin() as connection:
        connection.execute(change, {"identifier": None})
    try:
        login = client.login(account).json
        assert [district["districtlea"] for district in login["districts"]] == ["spr-district"]
        assert len(client.students(account, login["token"], {"districtlea": "spr-district"}).ids) == 6
    finally:
        with served.engine.begin() as connection:
            connection.execute(change, {"identifier": SPRINGFIELD})


@pytest.mark.shows("Visibility", "A hidden record or district is answered like one that does not exist.")
def test_a_district_that_is_not_granted_and_one_that_does_not_exist_have_one_answer(
    client: VendorClient, elementary: Account
) -> None:
    token = client.token(elementary)
    answers = [client.students(elementary, token, {"districtlea": lea}).json for lea in (SHELBYVILLE, "17-9999")]
    assert len({(answer["code"], answer["message"]) for answer in answers}) == 1


@pytest.mark.shows(
    "Visibility",
    "Metadata and demographics need their scope, an `include` its permission flag: by the query alone.",
)
def test_one_flag_does_not_open_another(served: Served, client: VendorClient) -> None:
    account = served.add(grants={"spr-district": ()}, flags=(PermissionFlag.CONTACTS,))
    token = client.token(account)
    outcomes = {
        flag: client.students(account, token, {"districtlea": SPRINGFIELD, "include": [flag.value]}).status
        for flag in PermissionFlag
    }
    assert outcomes == {PermissionFlag.CONTACTS: 200, PermissionFlag.DEMOGRAPHICS: 403, PermissionFlag.ENROLLMENTS: 403}


def test_schools_outside_the_grant_are_left_out_of_a_student(client: VendorClient, elementary: Account) -> None:
    """spr-student-6 also attends a class of the high school."""
    answer = client.students(elementary, client.token(elementary), {"districtlea": SPRINGFIELD})
    assert answer.ids == ["spr-student-1", "spr-student-2", "spr-student-6"]
    schools = {school["sourcedId"] for student in answer.json["students"] for school in student["schools"]}
    assert schools == {"spr-elementary"}
