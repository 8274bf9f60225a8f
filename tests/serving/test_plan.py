"""The params held against the schema: names resolved, values typed, hidden things unknown."""

from __future__ import annotations

import dataclasses

import pytest
from oneroster_filter import And, Or

from roster_service.errors import Problem, RefusedRequestError
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.kinds import list_roster_fields
from roster_service.schemas.records import Record
from roster_service.serving.params import Params
from roster_service.serving.path_filters import everything
from roster_service.serving.plan import Plan, make_plan
from tests.offenders import in_one_test

NOTHING = ContentRights(
    Viewer.ONE_VENDOR, guardians=False, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
)
ALL = ContentRights(
    Viewer.ONE_VENDOR, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
)
PARAMS = Params(limit=10, offset=5, filter=None, sort=None, descending=False, fields=None)


def plan(record: type[Record], rights: ContentRights = NOTHING, **params: object) -> Plan:
    """The plan of params for a collection of all records."""
    return make_plan(dataclasses.replace(PARAMS, **params), record, rights, everything, {"schoolId": "s"})  # type: ignore[arg-type]


def test_plain_params_are_a_plan_for_everything() -> None:
    made = plan(v1p2.Enrollment)
    assert (made.limit, made.offset, made.filter, made.notices) == (10, 5, None, ())
    assert made.path_ids == (("schoolId", "s"),)
    assert made.shape.sort is None
    assert set(made.shape.fields) == set(v1p2.Enrollment().fields) - {"class_"} | {"class"}


# record, sort -> whether records can be ordered by it, with all content rights.
SORTS = [
    (v1p1.User, "familyName", True),
    (v1p1.User, "role", True),
    (v1p2.User, "role", False),
    (v1p2.User, "roles.role", False),
    (v1p2.User, "primaryOrg.sourcedId", True),
    (v1p1.User, "primaryOrg.sourcedId", False),
    (v1p1.User, "enabledUser", True),
    (v1p1.User, "grades", False),
    (v1p1.User, "agents.sourcedId", False),
    (v1p1.User, "userIds.type", False),
    (v1p1.User, "metadata", False),
    (v1p1.User, "metadata.x", True),
    (v1p1.Class, "metadata.x", False),
    (v1p1.Class, "course.sourcedId", True),
    (v1p1.Class, "course", False),
    (v1p1.Class, "course.title", False),
    (v1p1.Class, "terms.sourcedId", False),
    (v1p1.Enrollment, "class.sourcedId", True),
    (v1p1.Enrollment, "class_.sourcedId", False),
    (v1p2.Demographics, "birthDate", True),
    (v1p2.Demographics, "birth_date", False),
    (v1p2.Demographics, "", False),
    (v1p2.Demographics, ".", False),
    (v1p2.Course, "resources.sourcedId", False),
    (v1p2.User, "userProfiles.profileId", False),
]


@in_one_test
@pytest.mark.parametrize(
    ("record", "name", "taken"),
    [pytest.param(*row, id=f"{row[0].__name__}-{row[1]}") for row in SORTS],
)
def test_a_sort_is_a_field_with_one_value_or_a_notice(record: type[Record], name: str, taken: bool) -> None:
    made = plan(record, ALL, sort=name)
    assert made.shape.sort == (name if taken else None)
    assert [notice.problem for notice in made.notices] == ([] if taken else [Problem.SORT_FIELD])


@pytest.mark.parametrize(
    ("names", "chosen", "noticed"),
    [
        pytest.param(("name", "sourcedId"), ("sourcedId", "name"), False, id="in-the-record-s-own-order"),
        pytest.param(("name", "name"), ("name",), False, id="once-each"),
        pytest.param(("name", "shoeSize"), ("name",), True, id="unknown-ones-are-left-out"),
        pytest.param(("shoeSize",), None, True, id="none-known-means-all"),
        pytest.param(("Name",), None, True, id="case-counts"),
        pytest.param(("metadata",), None, True, id="hidden-is-unknown"),
        pytest.param(("parent.sourcedId",), None, True, id="paths-are-no-fields"),
    ],
)
def test_fields_are_chosen(names: tuple[str, ...], chosen: tuple[str, ...] | None, noticed: bool) -> None:
    made = plan(v1p1.Org, fields=names)
    every = plan(v1p1.Org).shape.fields
    assert made.shape.fields == (every if chosen is None else chosen)
    assert [notice.problem for notice in made.notices] == ([Problem.SELECTION_FIELD] if noticed else [])


WITHHOLDING = ContentRights(
    Viewer.ONE_VENDOR,
    guardians=True,
    metadata=frozenset(MetadataOf),
    metadata_keys=None,
    withheld=frozenset(WithheldField),
)


def leave_out(record: type[Record]) -> type[Record]:
    """The same record as if it never had the fields that can be withheld."""
    names = [name for name, member in list_roster_fields(record).items() if member.withheld_as is not None]
    return type("Never", (record,), {"Meta": type("Meta", (record.Meta,), {"exclude": names})})


def describe_everything(record: type[Record], rights: ContentRights, name: str) -> list[tuple[Problem, str]]:
    """What a filter, a sort and a selection by a name are answered with."""
    with pytest.raises(RefusedRequestError) as caught:
        plan(record, rights, filter=f"{name}='x'")
    notices = plan(record, rights, sort=name, fields=(name,)).notices
    return [(caught.value.problem, caught.value.description), *((it.problem, it.description) for it in notices)]


@pytest.mark.shows(
    "Visibility",
    "A withheld field is in no record, filter, sort, tag or token of before, on either interface.",
)
@pytest.mark.shows("Visibility", "A withheld name is answered like a name that the service never had.")
@in_one_test
@pytest.mark.parametrize(
    ("record", "name"),
    [
        *((v1p1.User, name) for name in ("email", "phone", "sms", "identifier", "middleName")),
        *((v1p1.User, name) for name in ("userIds", "userIds.identifier", "agents", "agents.sourcedId", "phones")),
        *((v1p2.User, name) for name in ("userMasterIdentifier", "preferredFirstName", "pronouns", "Email")),
        *((v1p2.User, name) for name in ("userProfiles.vendorId", "userProfiles.credentials.username")),
        *((v1p1.Demographics, name) for name in ("birthDate", "sex", "asian", "cityOfBirth")),
    ],
)
def test_a_withheld_name_is_one_that_the_service_never_had(record: type[Record], name: str) -> None:
    """With the same words and the same suggestions, so that no answer tells that there is such a field."""
    answered = describe_everything(record, WITHHOLDING, name)
    assert answered == describe_everything(leave_out(record), ALL, name)
    assert [problem for problem, _ in answered] == [Problem.FILTER, Problem.SORT_FIELD, Problem.SELECTION_FIELD]


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        pytest.param("dateLastModified>'2026-11-21T00:00:00 00:00'", 1, id="a-plus-that-became-a-space"),
        pytest.param("dateLastModified>'2026-11-21T00:00:00 0530'", 1, id="without-a-colon"),
        pytest.param("dateLastMod>'2026-11-21T00:00:00 00:00'", 0, id="an-unknown-field-is-the-first-fault"),
    ],
)
def test_a_lost_plus_is_hinted_at_once(text: str, hints: int) -> None:
    with pytest.raises(RefusedRequestError) as caught:
        plan(v1p1.Org, filter=text)
    assert caught.value.description.count("%2B") == hints


def test_a_filter_keeps_its_shape() -> None:
    assert isinstance(plan(v1p1.Org, filter="name='a' AND type='b'").filter, And)
    assert isinstance(plan(v1p1.Org, filter="name='a' OR type='b'").filter, Or)


def test_plans_of_the_same_request_share_their_shape() -> None:
    """Statements cached by query shape are found again: there is one view per record type and content rights."""
    first, second = plan(v1p1.Org, sort="name"), plan(v1p1.Org, sort="name", filter="name='x'")
    assert first.shape == second.shape
    assert hash(first.shape) == hash(second.shape)
    for other in (
        plan(v1p2.Org, sort="name"),
        plan(v1p1.Org, ALL, sort="name"),
        plan(v1p1.Org),
        plan(v1p1.Org, fields=("name",)),
    ):
        assert other.shape != first.shape
