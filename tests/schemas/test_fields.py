"""The declared fields: every one shown, documented, and known to filters by one declaration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import sqlalchemy as sa
from oneroster_filter import FieldType, Kind, field_types
from sqlalchemy.dialects import postgresql

from roster_service.db import tables
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.kinds import (
    ORG,
    ChildRows,
    Day,
    Flag,
    Instant,
    Metadata,
    Ref,
    RosterField,
    StoredList,
    StrictSchema,
    Text,
    TextArray,
    list_roster_fields,
)
from roster_service.schemas.records import Record
from roster_service.schemas.students import Student
from roster_service.schemas.versions import VERSIONS
from tests.offenders import in_one_test

NOTHING = ContentRights(
    Viewer.ONE_VENDOR, guardians=False, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
)
RECORDS = pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, id=f"{version.prefix}-{record.__name__}")
        for version in VERSIONS
        for record in version.records.values()
    ],
)


def list_all_fields(members: Mapping[str, RosterField], place: str) -> Iterator[tuple[str, RosterField]]:
    """The fields at every depth, by the way to them."""
    for name, member in members.items():
        yield f"{place}.{name}", member
        yield from list_all_fields(member.members, f"{place}.{name}")


@RECORDS
def test_every_member_of_a_record_is_a_roster_field(record: type[Record]) -> None:
    """A plain marshmallow field would be documented and never served."""
    assert len(list_roster_fields(record)) == len(record().fields)
    assert list(list_roster_fields(record))[:3] == ["sourcedId", "status", "dateLastModified"]


@RECORDS
def test_no_record_has_a_password(record: type[Record]) -> None:
    assert not [name for name in field_types(record()) if "password" in name.lower()]
    assert "password" not in list_roster_fields(record)


def test_both_versions_have_the_same_resources() -> None:
    first, second = VERSIONS
    assert list(first.records) == list(second.records)


# schema, name in a filter -> its type.
TYPES = [
    (v1p1.Org, "parent.sourcedId", FieldType(Kind.TEXT)),
    (v1p1.Org, "children.sourcedId", FieldType(Kind.TEXT, many=True)),
    (v1p1.Org, "metadata.anything", FieldType(Kind.TEXT)),
    (v1p1.Org, "dateLastModified", FieldType(Kind.INSTANT)),
    (v1p1.AcademicSession, "startDate", FieldType(Kind.DAY)),
    (v1p1.AcademicSession, "schoolYear", FieldType(Kind.TEXT)),
    (v1p1.Course, "schoolYear.sourcedId", FieldType(Kind.TEXT)),
    (v1p1.Course, "grades", FieldType(Kind.TEXTS)),
    (v1p1.Course, "resources.sourcedId", None),
    (v1p1.User, "enabledUser", FieldType(Kind.FLAG)),
    (v1p1.User, "role", FieldType(Kind.TEXT)),
    (v1p1.User, "orgs.sourcedId", FieldType(Kind.TEXT, many=True)),
    (v1p1.User, "roles.role", None),
    (v1p2.User, "role", None),
    (v1p2.User, "roles.role", FieldType(Kind.TEXT, many=True)),
    (v1p2.User, "roles.beginDate", FieldType(Kind.DAY, many=True)),
    (v1p2.User, "roles.org.sourcedId", FieldType(Kind.TEXT, many=True)),
    (v1p2.User, "roles.userProfile", None),
    (v1p2.User, "userProfiles.credentials.type", FieldType(Kind.TEXT, many=True)),
    (v1p2.User, "userProfiles.profileId", None),
    (v1p2.Enrollment, "class.sourcedId", FieldType(Kind.TEXT)),
    (v1p2.Enrollment, "class_.sourcedId", None),
    (v1p2.Class, "terms.sourcedId", FieldType(Kind.TEXT, many=True)),
    (v1p2.Class, "metadata.x", None),
]


@in_one_test
@pytest.mark.parametrize(
    ("record", "name", "kind"), [pytest.param(*row, id=f"{row[0].__module__[-4:]}-{row[1]}") for row in TYPES]
)
def test_a_filter_knows_this_name_as_this_type(record: type[Record], name: str, kind: FieldType | None) -> None:
    assert field_types(record()).find(name) == kind


@RECORDS
def test_everything_that_a_filter_may_name_has_sql(record: type[Record]) -> None:
    rights = ContentRights(
        Viewer.ONE_VENDOR, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
    )
    fields = list_roster_fields(record)
    for path in field_types(record()):
        name, _, rest = path.partition(".")
        assert fields[name].source(rest, rights) is not None


@RECORDS
def test_every_field_makes_a_json_text(record: type[Record]) -> None:
    rights = ContentRights(
        Viewer.ONE_VENDOR, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
    )
    for name, field in list_roster_fields(record).items():
        assert str(field.json(rights).compile(dialect=postgresql.dialect())), name


WITHHOLDABLE = {
    name: member
    for version in VERSIONS
    for record in version.records.values()
    for name, member in list_all_fields(list_roster_fields(record), f"{record.__module__}.{record.__name__}")
} | dict(list_all_fields(list_roster_fields(Student), "Student"))


def test_every_word_withholds_a_field_and_no_field_that_the_standard_requires() -> None:
    """A record without a required member would not be one of the standard."""
    found = {name: member for name, member in WITHHOLDABLE.items() if member.withheld_as is not None}
    assert {member.withheld_as for member in found.values()} == set(WithheldField)
    assert [name for name, member in found.items() if member.required] == []


@pytest.mark.parametrize("table", [tables.users, tables.demographics], ids=lambda table: table.name)
def test_every_personal_column_that_the_standard_does_not_require_can_be_withheld(table: sa.Table) -> None:
    """A new field of a person needs a decision: a word, or a place in this list."""
    shown = {
        *("sourcedId", "status", "dateLastModified", "metadata", "username", "enabledUser", "givenName", "familyName"),
        *("grades", "role", "orgs", "roles", "primaryOrg", "resources"),
    }
    for version in VERSIONS:
        for record in version.records.values():
            if record.table is table:
                fields = list_roster_fields(record)
                assert {name for name, member in fields.items() if member.withheld_as is None} <= shown


def sql(expression: object) -> str:
    """The text of an expression."""
    return str(expression.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        pytest.param(Text(sa.column("c"), ""), "CAST(to_json(c) AS TEXT)", id="text"),
        pytest.param(TextArray(sa.column("c"), ""), "CAST(to_json(c) AS TEXT)", id="texts"),
        pytest.param(
            Flag(sa.column("c"), ""),
            "CASE WHEN c THEN '\"true\"' WHEN (NOT c) THEN '\"false\"' ELSE NULL END",
            id="flag",
        ),
        pytest.param(Day(sa.column("c"), ""), 'to_char(c, \'"\\""YYYY-MM-DD"\\""\')', id="day"),
        pytest.param(
            Instant(sa.column("c"), ""),
            'to_char(timezone(\'UTC\', c), \'"\\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\\""\')',
            id="instant",
        ),
    ],
)
def test_the_json_of_a_kind(field: Text, text: str) -> None:
    assert sql(field.json(NOTHING)).replace("%%", "%") == text


def test_a_reference_is_made_only_where_it_may_be_seen() -> None:
    shown = Ref(ORG, sa.column("c"), "", visible=lambda _id, _rights: sa.column("seen") == sa.true())
    assert "seen" in sql(shown.json(NOTHING))
    assert "seen" in sql(shown.source("sourcedId", NOTHING))


def test_a_reference_must_say_who_may_see_it() -> None:
    with pytest.raises(TypeError, match="visible"):
        Ref(ORG, sa.column("c"), "")  # type: ignore[call-arg]


@RECORDS
def test_what_a_version_requires_is_there_where_the_export_had_none(record: type[Record]) -> None:
    """A column that may be NULL is replaced, by its field or in its text."""
    for place, field in list_all_fields(list_roster_fields(record), record.__name__):
        stored = getattr(field, "value", getattr(field, "identifier", None))
        if field.required and isinstance(stored, sa.Column) and stored.nullable:
            assert "coalesce" in sql(field.json(NOTHING)), place


def test_a_list_that_rights_cut_is_not_shown_as_it_is_stored() -> None:
    class Item(StrictSchema):
        phone = Text(sa.column("phone"), "", withheld_as=WithheldField.PHONE)

    with pytest.raises(TypeError, match="Item"):
        StoredList(Item, sa.column("c"), ChildRows(lambda _rights: sa.true(), ()), "")


def test_metadata_that_is_hidden_cannot_be_asked_for() -> None:
    hidden = Metadata(sa.column("c"), lambda _rights: None, "")
    assert hidden.is_hidden(NOTHING)
    for ask in (lambda: hidden.json(NOTHING), lambda: hidden.source("key", NOTHING)):
        with pytest.raises(LookupError):
            ask()
