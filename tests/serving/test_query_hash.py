"""Which requests are pages of one ordering, where their vendors see the same orgs, and which never may be."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.round_trip import Call
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.student_stamps import make_student_record
from roster_service.serving.path_filters import everything, users_with_role
from roster_service.serving.plan import make_plan
from roster_service.serving.request import AuthorizedRequest

from .test_statements import params

STUDENTS, TEACHERS = users_with_role("student"), users_with_role("teacher")
PLAIN: dict[str, Any] = {
    "params": {"filter": "metadata.a='b'", "limit": 10},
    "rights": ContentRights(
        Viewer.ONE_VENDOR,
        guardians=True,
        metadata=frozenset({MetadataOf.STUDENTS}),
        metadata_keys=None,
        withheld=frozenset(),
    ),
    "path_filter": STUDENTS,
    "path_ids": {"schoolId": "s"},
    "path_values": {"requested_schools": ["a", "b"], "requested_lea": "17"},
    "vendor_id": 1,
    "admission": Call(sa.text("SELECT 1"), {}),
    "record": v1p2.User,
}


def request_of(**changed: Any) -> AuthorizedRequest:
    """A request for users; a change of a mapping adds to it."""
    facts = {
        name: value | changed.get(name, {}) if isinstance(value, dict) else changed.get(name, value)
        for name, value in PLAIN.items()
    }
    made = make_plan(
        params(**facts["params"]), facts["record"], facts["rights"], facts["path_filter"], facts["path_ids"]
    )
    return AuthorizedRequest(made, facts["vendor_id"], "client", facts["admission"], facts["path_values"])


def hash_of(**changed: Any) -> bytes:
    """The hash of its ordering."""
    return request_of(**changed).query_hash


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"params": {"limit": 3}}, id="page-size"),
        pytest.param({"params": {"offset": 3}}, id="offset"),
        pytest.param({"params": {"fields": ("email",)}}, id="fields"),
        pytest.param({"params": {"descending": True}}, id="direction"),
        pytest.param({"path_values": {"requested_schools": ["b", "a"]}}, id="order-of-the-asked-schools"),
        pytest.param({"vendor_id": 2}, id="vendor"),
        pytest.param({"admission": Call(sa.text("SELECT 2"), {})}, id="token"),
        pytest.param({"params": {"sort": "sourcedId"}}, id="the-sort-that-it-has-anyway"),
    ],
)
def test_one_ordering(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) == hash_of()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"path_values": {"requested_schools": ["a"]}}, id="asked-schools"),
        pytest.param({"path_values": {"requested_lea": "18"}}, id="asked-district"),
        pytest.param({"path_ids": {"schoolId": "t"}}, id="id-of-the-path"),
        pytest.param({"path_filter": TEACHERS}, id="another-role"),
        pytest.param({"record": v1p1.User}, id="a-filter-of-another-version"),
        pytest.param({"path_filter": everything}, id="another-path"),
        pytest.param({"params": {"filter": "metadata.a='c'"}}, id="value"),
        pytest.param({"params": {"filter": "metadata.c='b'"}}, id="key-of-metadata"),
        pytest.param({"params": {"filter": "metadata.a!='b'"}}, id="operator"),
        pytest.param({"params": {"filter": None}}, id="no-filter"),
        pytest.param({"params": {"sort": "familyName"}}, id="sort"),
        pytest.param({"params": {"sort": "metadata.a"}}, id="sort-by-a-key-of-metadata"),
    ],
)
def test_another_ordering(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) != hash_of()


# Another value of each right. Whether there are rules is in the visible set of an ordering and of a pull.
OTHER_RIGHTS = {
    "guardians": False,
    "metadata": frozenset({MetadataOf.GUARDIANS}),
    "metadata_keys": frozenset({"a"}),
    "withheld": frozenset({WithheldField.SMS}),
}


# What a statement asks by, and shows nothing more by.
OF_STATEMENTS = ("viewer", "joined")


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(ContentRights) if field.name not in OF_STATEMENTS]
)
def test_every_right_makes_another_ordering_and_another_pull(name: str) -> None:
    """Also one that is new: else clients with other rights would share what one of them may see."""
    rights = dataclasses.replace(PLAIN["rights"], **{name: OTHER_RIGHTS[name]})
    assert hash_of(rights=rights) != hash_of()
    assert request_of(rights=rights).values["content_rights"] != request_of().values["content_rights"]


def test_keys_of_metadata_are_orders_of_their_own() -> None:
    keys = ("metadata.a", "metadata.b", "metadata.A")
    assert len({hash_of(params={"sort": key}) for key in keys}) == len(keys)


def test_the_sort_that_a_whole_collection_has_is_an_order_of_its_own() -> None:
    plans = [make_plan(params(sort=sort), v1p2.User, PLAIN["rights"], everything, {}) for sort in (None, "sourcedId")]
    hashes = {AuthorizedRequest(plan, 1, "client", PLAIN["admission"], {}).query_hash for plan in plans}
    assert len(hashes) == len(plans)


def test_the_parts_that_stamp_a_student_decide_which_students_have_changed() -> None:
    kept, withheld = (frozenset[WithheldField](), frozenset({WithheldField.AGENTS}))
    stamps = [(frozenset[PermissionFlag](), kept), (frozenset({PermissionFlag.CONTACTS}), kept)]
    stamps += [(frozenset({PermissionFlag.CONTACTS}), withheld), (frozenset({PermissionFlag.ENROLLMENTS}), kept)]
    since = {"filter": "dateLastModified>='2026-11-21T02:00:00.000Z'"}
    hashes = {
        hash_of(
            params=since,
            record=make_student_record(included),
            rights=ContentRights(
                Viewer.ONE_VENDOR, guardians=True, metadata=frozenset(), metadata_keys=None, withheld=hidden
            ),
        )
        for included, hidden in stamps
    }
    assert len(hashes) == len(stamps)


def test_who_only_counts_asks_for_no_order() -> None:
    assert hash_of(params={"limit": 0, "sort": "familyName"}) == hash_of()


NO_RIGHTS = ContentRights(
    Viewer.RULED_VENDOR,
    guardians=False,
    metadata=frozenset(),
    metadata_keys=None,
    withheld=frozenset({WithheldField.BIRTH_DATE}),
)


@pytest.mark.parametrize("sort", [None, "familyName", "metadata.a"])
def test_a_pull_is_found_after_a_change_of_rights(sort: str | None) -> None:
    """Also where the sort is ignored then, and where other districts have the asked identifier."""
    asked = {"params": {"filter": "familyName='b'", "sort": sort}}
    after = request_of(**asked, rights=NO_RIGHTS, path_values={"requested_districts": ["d"]})
    assert after.asked_hash == request_of(**asked, path_values={"requested_districts": ["e"]}).asked_hash


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"path_values": {"requested_schools": ["a"]}}, id="asked-schools"),
        pytest.param({"path_values": {"requested_lea": "18"}}, id="asked-district"),
        pytest.param({"path_ids": {"schoolId": "t"}}, id="id-of-the-path"),
        pytest.param({"path_filter": TEACHERS}, id="another-role"),
        pytest.param({"record": v1p1.User}, id="another-version"),
        pytest.param({"params": {"filter": "metadata.a='c'"}}, id="value"),
        pytest.param({"params": {"sort": "familyName"}}, id="sort"),
    ],
)
def test_who_asks_for_something_else_has_another_pull(changed: dict[str, Any]) -> None:
    assert request_of(**changed).asked_hash != request_of().asked_hash
