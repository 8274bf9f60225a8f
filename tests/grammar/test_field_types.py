"""Field types from every kind of declaration: a mapping, a marshmallow schema, a dataclass, a TypedDict."""

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, List, Literal, NewType, NotRequired, Optional, TypedDict, TypeVar  # noqa: UP035
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema, fields
from oneroster_filter import FieldType, FieldTypes, Kind, UnknownFieldError, check, field_types, parse
from typing_extensions import TypeAliasType

from tests.offenders import in_one_test

TEXT, FLAG, INSTANT, DAY, TEXTS = map(FieldType, Kind)


def many(kind: Kind) -> FieldType:
    return FieldType(kind, many=True)


class RefSchema(Schema):
    href = fields.Url()
    sourced_id = fields.String(data_key="sourcedId")


class Narrowed(fields.List):
    """A field that says its own types."""

    def __init__(self, types: Mapping[str, FieldType]) -> None:
        super().__init__(fields.String())
        self.filter_types = types


class Color(StrEnum):
    RED = "red"


class UserSchema(Schema):
    sourced_id = fields.String(data_key="sourcedId")
    id_card = fields.UUID(data_key="idCard")
    color = fields.Enum(Color)
    enabled = fields.Boolean()
    modified = fields.DateTime()
    noticed = fields.AwareDateTime()
    born = fields.Date()
    grades = fields.List(fields.String())
    holidays = fields.List(fields.Date())
    words = fields.List(fields.List(fields.String()))
    school = fields.Nested(RefSchema)
    orgs = fields.List(fields.Nested(RefSchema(only=("sourced_id",))))
    classes = fields.Nested(RefSchema, many=True)
    course = fields.Pluck(RefSchema, "sourced_id")
    terms = fields.Pluck(RefSchema, "sourced_id", many=True)
    metadata = fields.Dict()
    parent = fields.Nested(lambda: UserSchema(only=("sourced_id", "parent")))
    own = Narrowed({"": TEXT, "first": DAY})
    hidden = Narrowed({})
    password = fields.String(load_only=True)
    size = fields.Integer()
    hour = fields.Time()
    computed = fields.Function(lambda user: "x")


class Level(Enum):
    """An enumeration whose values are texts, without being texts itself."""

    LOW = "low"


class Number(Enum):
    ONE = 1


SourcedId = NewType("SourcedId", str)
Name = TypeAliasType("Name", str | None)
Item = TypeVar("Item")
Many = TypeAliasType("Many", list[Item], type_params=(Item,))

USER_TYPES = {
    "sourcedId": TEXT,
    "idCard": TEXT,
    "color": TEXT,
    "enabled": FLAG,
    "modified": INSTANT,
    "noticed": INSTANT,
    "born": DAY,
    "grades": TEXTS,
    "holidays": many(Kind.DAY),
    "words": many(Kind.TEXTS),
    "school.href": TEXT,
    "school.sourcedId": TEXT,
    "orgs.sourcedId": many(Kind.TEXT),
    "classes.href": many(Kind.TEXT),
    "classes.sourcedId": many(Kind.TEXT),
    "course": TEXT,
    "terms": TEXTS,
    "metadata.*": TEXT,
    "parent.sourcedId": TEXT,
    "own": TEXT,
    "own.first": DAY,
}


def test_of_a_schema_class() -> None:
    assert field_types(UserSchema) == USER_TYPES


def test_of_a_schema_instance_what_it_leaves_out_is_left_out() -> None:
    assert field_types(UserSchema(only=("sourced_id", "school.href"))) == {"sourcedId": TEXT, "school.href": TEXT}
    assert "metadata.*" not in field_types(UserSchema(exclude=("metadata",)))


class NodeSchema(Schema):
    name = fields.String()
    children = fields.List(fields.Nested(lambda: NodeSchema()))


def test_a_schema_that_holds_itself_is_read_one_level_deep() -> None:
    assert field_types(NodeSchema) == {"name": TEXT, "children.name": many(Kind.TEXT)}


class Ref(TypedDict):
    sourcedId: str
    href: NotRequired[str]


@dataclass
class Role:
    role: Literal["student", "teacher"]
    begin: date | None


@dataclass
class User:
    sourced_id: str
    color: Color
    enabled: bool
    modified: datetime | None
    born: Optional[date]  # noqa: UP045
    noted: Annotated[str, "anything"]
    grades: list[str]
    subjects: tuple[str, ...]
    periods: Sequence[str]
    codes: frozenset[str]
    roles: list[Role]
    school: Ref
    metadata: dict[str, Any]
    parent: "User | None"
    size: int
    either: str | int
    id_card: UUID
    shade: Level
    grade: Number
    own_id: SourcedId
    nickname: Name
    names: Many[Name]
    level: Literal[1, 2]
    anything: Any
    bare: List  # noqa: UP006


DATACLASS_TYPES = {
    "sourced_id": TEXT,
    "color": TEXT,
    "enabled": FLAG,
    "modified": INSTANT,
    "born": DAY,
    "noted": TEXT,
    "grades": TEXTS,
    "subjects": TEXTS,
    "periods": TEXTS,
    "codes": TEXTS,
    "roles.role": many(Kind.TEXT),
    "roles.begin": many(Kind.DAY),
    "school.sourcedId": TEXT,
    "school.href": TEXT,
    "metadata.*": TEXT,
    "id_card": TEXT,
    "shade": TEXT,
    "own_id": TEXT,
    "nickname": TEXT,
    "names": TEXTS,
}


def test_of_a_dataclass_and_what_it_holds_of_itself_is_read_one_level_deep() -> None:
    assert field_types(User) == DATACLASS_TYPES | {f"parent.{name}": type_ for name, type_ in DATACLASS_TYPES.items()}


def test_of_a_typed_dict() -> None:
    assert field_types(Ref) == {"sourcedId": TEXT, "href": TEXT}


def test_of_a_mapping_a_kind_stands_for_its_type() -> None:
    assert field_types({"a": Kind.DAY, "b": many(Kind.TEXT)}) == {"a": DAY, "b": many(Kind.TEXT)}


@pytest.mark.parametrize("source", [None, "text", 7, int, 1.5, ["a"]], ids=repr)
def test_of_nothing_else(source: object) -> None:
    with pytest.raises(TypeError):
        field_types(source)


def test_of_a_mapping_types_of_python_are_read_as_those_of_a_class() -> None:
    assert field_types(
        {"a": str, "b": date | None, "c": list[str], "d": Ref, "e": list[Role], "f": dict[str, str], "g.*": str}
    ) == {
        "a": TEXT,
        "b": DAY,
        "c": TEXTS,
        "d.sourcedId": TEXT,
        "d.href": TEXT,
        "e.role": many(Kind.TEXT),
        "e.begin": many(Kind.DAY),
        "f.*": TEXT,
        "g.*": TEXT,
    }


@pytest.mark.parametrize("wrong", [int, "text", None, 7, list[int], str | int], ids=repr)
def test_of_a_mapping_what_is_no_type_is_refused_with_those_that_are_allowed(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"a: .* is no type of a field; write a FieldType, a Kind, or one of"):
        field_types({"b": str, "a": wrong})


@pytest.mark.parametrize("wrong", [str, "text", None])
def test_field_types_hold_only_types(wrong: object) -> None:
    with pytest.raises(TypeError, match="a: a FieldType or a Kind is allowed"):
        FieldTypes({"a": wrong})


def test_field_types_keep_their_hash_in_another_process() -> None:
    """The hash of a text differs between processes."""
    program = "import pickle, sys; one = pickle.load(sys.stdin.buffer); print(hash(one) == hash(type(one)(one)))"
    types = pickle.dumps(FieldTypes({"a": Kind.TEXT}))

    assert subprocess.run([sys.executable, "-c", program], input=types, capture_output=True).stdout == b"True\n"


@pytest.mark.parametrize("name", ["first name", "naïve", "a..b", "", "*", "a.*.b", "metadata.**", "a\n"])
def test_a_name_that_no_filter_can_write_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be written in a filter"):
        FieldTypes({"a": Kind.TEXT, name: Kind.TEXT})


def test_of_a_class_a_name_that_no_filter_can_write_is_left_out() -> None:
    declared = TypedDict("declared", {"@id": str, "naïve": str, "status": str})

    assert field_types(declared) == {"status": TEXT}


def test_field_types_are_their_own_source() -> None:
    types = FieldTypes({"a": Kind.TEXT})

    assert field_types(types) is types


def test_those_of_a_class_are_made_once() -> None:
    assert field_types(User) is field_types(User)
    assert field_types(UserSchema) is field_types(UserSchema)


def test_field_types_are_equal_and_hashed_by_what_they_hold() -> None:
    one, other = FieldTypes({"a": Kind.TEXT, "b": Kind.DAY}), FieldTypes({"b": DAY, "a": TEXT})

    assert one == other
    assert hash(one) == hash(other)
    assert len(one) == 2
    assert repr(FieldTypes({})) == "FieldTypes({})"


@pytest.mark.parametrize(
    "source", [Ref, UserSchema, UserSchema(), USER_TYPES, FieldTypes(USER_TYPES)], ids=lambda s: str(s)[:20]
)
def test_check_takes_every_source(source: object) -> None:
    assert check(parse("sourcedId='x'"), source).type == TEXT
    with pytest.raises(UnknownFieldError):
        check(parse("password='x'"), source)


def test_an_open_prefix_is_any_name_below() -> None:
    types = FieldTypes({"metadata.*": Kind.TEXT, "metadata.since": Kind.DAY})

    assert types.find("metadata.tier") == TEXT
    assert types.find("metadata.since") == DAY
    assert types.find("metadata") is None
    assert types.find("metadata.a.b") == TEXT
    assert types.find("metadat.a") is None


@pytest.mark.parametrize(
    ("field", "path"),
    [
        pytest.param("status", ("status",), id="a field"),
        pytest.param("class.sourcedId", ("class", "sourcedId"), id="a field below another"),
        pytest.param("metadata.tier", ("metadata", "tier"), id="a key"),
        pytest.param("metadata.lunch.plan", ("metadata", "lunch.plan"), id="a key with a dot"),
        pytest.param("metadata.a.b", ("metadata", "a", "b"), id="a field of its own below an open prefix"),
    ],
)
def test_a_path_leads_to_the_field(field: str, path: tuple[str, ...]) -> None:
    types = {"status": TEXT, "class.sourcedId": TEXT, "metadata.*": TEXT, "metadata.a.b": TEXT}
    assert check(parse(f"{field}='x'"), types).path == path
    assert FieldTypes(types).path(field) == path


NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=5).map(".".join)


@given(st.sets(NAMES), st.sets(NAMES), NAMES)
def test_the_nearest_open_prefix_counts_unless_the_field_has_a_name_of_its_own(
    own: set[str], open_: set[str], field: str
) -> None:
    types = FieldTypes(dict.fromkeys(own, Kind.DAY) | {f"{name}.*": Kind.TEXT for name in open_})
    below = [name for name in open_ if field.startswith(f"{name}.")]
    nearest = min(below, key=len, default=None)
    if field in own or nearest is None:
        assert types.path(field) == tuple(field.split("."))
    else:
        assert types.path(field) == (*nearest.split("."), field.removeprefix(f"{nearest}."))
    assert types.find(field) == (DAY if field in own else TEXT if below else None)


class Counted(dict[str, FieldType]):
    """Types that count the characters of the names that they are asked for."""

    asked = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.asked += len(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.asked += len(str(name))
        return super().__contains__(name)


@in_one_test
@pytest.mark.parametrize("lookup", ["find", "path"])
@pytest.mark.parametrize("names", [10, 1_000, 30_000])
@pytest.mark.parametrize("first", ["a", "metadata", "metadata.deep"])
def test_a_long_name_costs_what_it_is_long(lookup: str, names: int, first: str) -> None:
    """Whoever names a field chooses how many dots it has."""
    types = FieldTypes({"status": Kind.TEXT, "metadata.deep.*": Kind.TEXT, "roles.*": Kind.TEXT})
    types._types = counted = Counted(types._types)
    field = ".".join([first, *["a"] * names])
    getattr(types, lookup)(field)
    assert 0 < counted.asked <= 8 * len(field)
