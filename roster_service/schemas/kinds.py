"""The kinds of wire fields.

Each kind subclasses a marshmallow field, which gives the OpenAPI model, and adds the SQL of its value:

- `json(rights)`: the SQL expression of its JSON text, NULL where the record has no value;
- `filter_types`: the type of each name that a filter may use, relative to the field ("" is the field itself);
- `source(path, rights)`: the SQL expression for such a name, or a Through for a name inside a list.

One line of a schema thus decides the documented model, the names for `filter`, `sort` and `fields`, and the SQL. Each
kind takes a description for the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from marshmallow import Schema, fields, validate
from oneroster_filter import FieldType, Kind, Through
from oneroster_filter.typing import TypedClause
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db.tables import CTexts
from roster_service.roster import json_text
from roster_service.roster.person_parts import OF_GUARDIANS, PART_OF, PersonPart
from roster_service.roster.visibility import ContentRights, MetadataOf
from roster_service.roster.vocabulary import Narrowing, Vocabulary
from roster_service.roster.withheld import WithheldField

# A column or expression, or a function of the caller's content rights that returns one.
Value = sa.ColumnElement[Any] | Callable[[ContentRights], sa.ColumnElement[Any]]
Source = sa.ColumnElement[Any] | Through

ITSELF = ""


@dataclass(frozen=True)
class ChildRows:
    """The rows of a child table that belong to a record: the condition that selects them, and their sort keys."""

    condition: Callable[[ContentRights], sa.ColumnElement[bool]]
    order: tuple[sa.ColumnElement[Any], ...]


# The pattern of a text that PostgreSQL can store.
NO_NUL = r"^[^\u0000]*$"


def describe(description: str, **more: Any) -> dict[str, Any]:
    """Returns the metadata from which apispec makes the documentation of a field."""
    return {"description": description, **more}


class RosterField(fields.Field[Any]):
    """The base class of all kinds."""

    # The type of each name that a filter may use, relative to the field; None where the field's own schema decides.
    filter_types: Mapping[str, FieldType] | None
    # The fields of the objects inside, by wire name.
    members: Mapping[str, RosterField] = MappingProxyType({})
    # The words that values have as a rule; None for a field of any text.
    vocabulary: Vocabulary | None = None

    def __init__(
        self,
        *given: Any,
        withheld_as: WithheldField | None = None,
        part: PersonPart | None = None,
        part_words: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        """`withheld_as`: the word that withholds the field from a vendor; None for a field that every vendor sees.
        `part`: of people that a value tells, beside what `withheld_as` says; `part_words`: the values that do, if not
        all do."""
        super().__init__(*given, **options)
        self.withheld_as = withheld_as
        self.part = PART_OF.get(withheld_as, part) if withheld_as is not None else part
        self.part_words = part_words

    def is_hidden(self, rights: ContentRights) -> bool:
        """Whether these content rights hide the field of all records; a view then has no such field."""
        return self.withheld_as in rights.withheld

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        """Returns the expression of the value's JSON text, NULL where the value is absent."""
        raise NotImplementedError

    # Of a field inside the record or of a list: the beginning of its JSON text, by which the text tells the part.
    json_start = "["

    def list_values(self, _rights: ContentRights) -> Iterator[tuple[PersonPart, sa.ColumnElement[Any]]]:
        """Yields the parts of people that a column tells, each with an expression that is NULL where the record has no
        value; none for a field that only its JSON text tells of."""
        return iter(())

    # The fixed JSON value of a required field in a departure, which tells nothing of the record.
    blank: Any = ""

    def blank_json(self) -> sa.ColumnElement[str]:
        """Returns the expression of the JSON text of `blank`."""
        return json_text.constant(json.dumps(self.blank))

    def source(self, path: str, rights: ContentRights) -> Source:
        """Returns the expression that a filter compares for `path`, a name of `filter_types`."""
        raise NotImplementedError

    def preselect(self, clause: TypedClause, rights: ContentRights) -> sa.ColumnElement[bool] | None:
        """Returns a condition that all records of a clause on this field satisfy and that indexes answer, where the
        clause itself has to be evaluated for each row; else None."""
        return None


class _Plain(RosterField):
    """A kind with one value: `to_json` makes its JSON text, and `kind` is its type in filters."""

    kind: Kind
    json_start = '"'
    to_json: Callable[[sa.ColumnElement[Any]], sa.ColumnElement[str]]

    def __init__(self, value: Value, description: str, **options: Any) -> None:
        super().__init__(metadata=describe(description), **options)
        self.value = value
        self.filter_types = {ITSELF: FieldType(self.kind)}

    def expression(self, rights: ContentRights) -> sa.ColumnElement[Any]:
        """Returns the SQL expression of the value."""
        return self.value if isinstance(self.value, sa.ColumnElement) else self.value(rights)

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return type(self).to_json(self.expression(rights))

    def source(self, path: str, rights: ContentRights) -> Source:
        return self.expression(rights)

    def list_values(self, rights: ContentRights) -> Iterator[tuple[PersonPart, sa.ColumnElement[Any]]]:
        if self.part is not None and not self.part_words:
            yield self.part, self.expression(rights)


class Text(_Plain, fields.String):
    """A text."""

    kind = Kind.TEXT
    to_json = staticmethod(json_text.text_json)


class Token(Text):
    """A word of a vocabulary. A Narrowing maps the stored word to a smaller vocabulary."""

    def __init__(self, value: Value, words: Vocabulary | Narrowing, description: str, **options: Any) -> None:
        vocabulary = words.vocabulary if isinstance(words, Narrowing) else words
        rule = validate.Regexp(vocabulary.pattern) if vocabulary.extensible else validate.OneOf(vocabulary.words)
        super().__init__(value, f"{description}: {vocabulary.sentence}", validate=rule, **options)
        self.blank = vocabulary.words[0]
        self.narrow = words.narrow if isinstance(words, Narrowing) else None
        self.vocabulary = vocabulary

    def expression(self, rights: ContentRights) -> sa.ColumnElement[Any]:
        stored = super().expression(rights)
        return stored if self.narrow is None else self.narrow(stored)


class Flag(_Plain, fields.String):
    """A boolean, written as the string "true" or "false"."""

    kind = Kind.FLAG
    blank = "false"
    to_json = staticmethod(json_text.flag_json)

    def __init__(self, value: Value, description: str, **options: Any) -> None:
        super().__init__(value, description, validate=validate.OneOf(("true", "false")), **options)


class Instant(_Plain, fields.DateTime):
    """An instant, in UTC with milliseconds."""

    kind = Kind.INSTANT
    to_json = staticmethod(json_text.instant_json)


class Day(_Plain, fields.Date):
    """A calendar day."""

    kind = Kind.DAY
    blank = "1970-01-01"
    to_json = staticmethod(json_text.day_json)


class TextArray(_Plain, fields.List[Any]):
    """A list of texts, stored as an array. An empty list is stored as NULL, and the record omits it."""

    kind = Kind.TEXTS
    json_start = "["
    blank = ()
    to_json = staticmethod(json_text.stored_json)

    def __init__(self, value: Value, description: str, *, vocabulary: Vocabulary | None = None, **options: Any) -> None:
        super().__init__(value, description, cls_or_instance=fields.String(), **options)
        self.vocabulary = vocabulary


class Address(Text, fields.Url):
    """The absolute URL of a record without an endpoint of its own: the URL of another record with a fragment.

    `path` and `identifier` give the URL of the other record, and `fragment` the id inside it.
    """

    def __init__(
        self,
        path: str,
        identifier: sa.ColumnElement[Any],
        fragment: sa.ColumnElement[Any],
        description: str,
        **options: Any,
    ) -> None:
        super().__init__(identifier, description, **options)
        self.path = path
        self.fragment = fragment
        # A URL depends on the host name of the request, so a filter cannot compare it.
        self.filter_types = {}

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        address = json_text.href(self.path, self.expression(rights)).concat(json_text.constant("#"))
        quote = json_text.constant('"')
        return quote.concat(address).concat(json_text.href_segment(self.fragment)).concat(quote)


class Metadata(fields.Dict, RosterField):
    """The free-form object `metadata`.

    `visible(rights)` returns the condition under which a record's metadata is visible and can be filtered, or None
    where the content rights hide the metadata of all records.
    """

    def __init__(
        self,
        column: sa.ColumnElement[Any],
        visible: Callable[[ContentRights], sa.ColumnElement[bool] | None],
        description: str,
        *,
        parts: Mapping[MetadataOf, PersonPart] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """`parts`: of people that the metadata is, by the scope that shows it."""
        super().__init__(keys=fields.String(), metadata=describe(description), **options)
        self.column = column
        self.visible = visible
        self.parts = parts
        self.filter_types = {"*": FieldType(Kind.TEXT)}

    def is_hidden(self, rights: ContentRights) -> bool:
        """Whether these content rights hide the metadata of all records."""
        return self.visible(rights) is None

    def _shown(self, rights: ContentRights, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        condition = self.visible(rights)
        if condition is None:
            raise LookupError("these content rights hide the metadata")
        # Of a record without metadata, PostgreSQL then asks nothing more.
        return json_text.only_if(self.column.is_not(None) & condition, value)

    def _cut(self, rights: ContentRights) -> sa.ColumnElement[Any]:
        """The object with the keys that these rights name; NULL where it has none of them."""
        if rights.metadata_keys is None:
            return self.column
        entry = sa.func.jsonb_each(self.column).table_valued("key", "value", name="entry")
        named = entry.c.key == sa.any_(sa.literal(sorted(rights.metadata_keys), CTexts))
        return sa.select(sa.func.jsonb_object_agg(entry.c.key, entry.c.value)).where(named).scalar_subquery()

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return self._shown(rights, sa.cast(self._cut(rights), sa.Text))

    def list_values(self, rights: ContentRights) -> Iterator[tuple[PersonPart, sa.ColumnElement[Any]]]:
        for kind, part in self.parts.items():
            if kind in rights.metadata:
                yield part, self._shown(replace(rights, metadata=frozenset({kind})), self._cut(rights))

    def source(self, path: str, rights: ContentRights) -> Source:
        return self._shown(rights, sa.collate(self._cut(rights).op("->>", return_type=sa.Text())(path), "C"))


@dataclass(frozen=True)
class RefKind:
    """A kind of reference: its `type`, and the path of the endpoint in its `href`."""

    type: str
    path: str


ORG = RefKind("org", "orgs")
ACADEMIC_SESSION = RefKind("academicSession", "academicSessions")
COURSE = RefKind("course", "courses")
CLASS = RefKind("class", "classes")
USER = RefKind("user", "users")
RESOURCE = RefKind("resource", "resources")


def make_ref_schema(kind: RefKind) -> type[Schema]:
    """Returns the GUIDRef model of one kind, whose `type` is a constant."""
    members: dict[str, fields.Field[Any]] = {
        "href": fields.Url(required=True, metadata=describe("The absolute URL of the record")),
        "sourcedId": fields.String(required=True, metadata=describe("The id of the record")),
        "type": fields.String(
            required=True, validate=validate.OneOf((kind.type,)), metadata=describe("The resource of the record")
        ),
    }
    name = kind.type[0].upper() + kind.type[1:] + "RefSchema"
    return type(name, (StrictSchema,), members)


class StrictSchema(Schema):
    """A model that rejects unknown members: `additionalProperties: false` in the OpenAPI document."""

    class Meta:
        unknown = "raise"


_REF_SCHEMAS = {kind: make_ref_schema(kind) for kind in (ORG, ACADEMIC_SESSION, COURSE, CLASS, USER, RESOURCE)}


class Ref(fields.Nested, RosterField):
    """A reference to one record.

    `visible(id, rights)` returns the condition that the caller may read the referenced record. None states that every
    caller who sees this record sees that one too. The argument has no default, because forgetting it would leak an id.
    """

    def __init__(
        self,
        kind: RefKind,
        identifier: sa.ColumnElement[Any],
        description: str,
        *,
        visible: Callable[[sa.ColumnElement[Any], ContentRights], sa.ColumnElement[bool]] | None,
        **options: Any,
    ) -> None:
        super().__init__(_REF_SCHEMAS[kind], metadata=describe(description), **options)
        self.kind = kind
        self.identifier = identifier
        self.visible = visible
        self.filter_types = {"sourcedId": FieldType(Kind.TEXT)}

    def blank_json(self) -> sa.ColumnElement[str]:
        """Returns the expression of a reference to no record."""
        return json_text.ref_json(self.kind.type, self.kind.path, sa.cast(json_text.constant(""), sa.Text))

    def _shown(self, rights: ContentRights, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        if self.visible is None:
            return value
        return json_text.only_if(self.visible(self.identifier, rights), value)

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return self._shown(rights, json_text.ref_json(self.kind.type, self.kind.path, self.identifier))

    def source(self, path: str, rights: ContentRights) -> Source:
        return self._shown(rights, self.identifier)

    def list_values(self, rights: ContentRights) -> Iterator[tuple[PersonPart, sa.ColumnElement[Any]]]:
        if self.part is not None:
            yield self.part, self._shown(rights, self.identifier)


class _Many(RosterField):
    """A list whose items are rows of a child table. A record without items omits the list, unless it is required."""

    rows: ChildRows
    blank = ()

    def item_json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        """Returns the expression of the JSON text of an item."""
        raise NotImplementedError

    def join_items(self, rights: ContentRights) -> sa.ColumnElement[str]:
        """Returns the aggregate of the items of a list, separated by commas."""
        order = aggregate_order_by(json_text.constant(","), *self.rows.order)
        joined = sa.func.string_agg(self.item_json(rights), order, type_=sa.Text)
        return sa.func.coalesce(joined, "", type_=sa.Text) if self.required else joined

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        rows = sa.select(self.join_items(rights)).where(self.rows.condition(rights))
        return json_text.list_json(rows.scalar_subquery())

    def _through(self, element: Source, rights: ContentRights) -> Through:
        def wrap(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
            return sa.exists(sa.select(sa.literal_column("1")).where(self.rows.condition(rights), condition))

        if isinstance(element, Through):
            inner = element
            return Through(inner.element, lambda condition: wrap(inner.wrap(condition)))
        return Through(element, wrap)


class RefList(_Many, fields.List[Any]):
    """References to several records. `rows` must select only those that the caller may read."""

    def __init__(
        self, kind: RefKind, identifier: sa.ColumnElement[Any], rows: ChildRows, description: str, **options: Any
    ) -> None:
        super().__init__(cls_or_instance=fields.Nested(_REF_SCHEMAS[kind]), metadata=describe(description), **options)
        self.kind = kind
        self.identifier = identifier
        self.rows = rows
        self.filter_types = {"sourcedId": FieldType(Kind.TEXT, many=True)}

    def item_json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return json_text.ref_json(self.kind.type, self.kind.path, self.identifier)

    def source(self, path: str, rights: ContentRights) -> Source:
        return self._through(self.identifier, rights)


class ObjectList(_Many, fields.List[Any]):
    """A list of objects with a schema of their own, whose fields read the rows of a child table."""

    def __init__(self, schema: type[Schema], rows: ChildRows, description: str, **options: Any) -> None:
        super().__init__(cls_or_instance=fields.Nested(schema), metadata=describe(description), **options)
        self.members = list_roster_fields(schema)
        self.rows = rows
        # None: the names for filters follow from the members.
        self.filter_types = None

    def item_json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return make_members_json(self.members, rights)

    def source(self, path: str, rights: ContentRights) -> Source:
        name, _, rest = path.partition(".")
        return self._through(self.members[name].source(rest, rights), rights)


class StoredList(ObjectList):
    """A list of objects that a column stores as records show them, or NULL."""

    def __init__(
        self, schema: type[Schema], stored: sa.ColumnElement[Any], rows: ChildRows, *given: Any, **options: Any
    ) -> None:
        """`stored`: the column; `rows`: its entries, which filters read. Raises TypeError for a schema of which rights
        cut something."""
        super().__init__(schema, rows, *given, **options)
        if any(member.withheld_as or member.part for member in self.members.values()):
            raise TypeError(f"{schema.__name__} has members that not every vendor sees")
        self.stored = stored

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        # To make the texts of the entries takes a tenth of the time of a page.
        return json_text.stored_json(self.stored)


def find_list(schema: type[Schema], name: str) -> _Many:
    """Returns the list `name` of a schema. Raises TypeError for another field."""
    found = list_roster_fields(schema)[name]
    if not isinstance(found, _Many):
        raise TypeError(f"{name} is no list of rows")
    return found


class Unserved(fields.List[Any], RosterField):
    """A list that the standard defines and this service has no data for: records omit it, filters cannot name it."""

    def __init__(self, kind: RefKind, **options: Any) -> None:
        super().__init__(
            fields.Nested(_REF_SCHEMAS[kind]),
            metadata=describe("Never present: the service has no data for it"),
            **options,
        )
        self.filter_types = {}

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return json_text.nothing()


def make_members_json(members: Mapping[str, RosterField], rights: ContentRights) -> sa.ColumnElement[str]:
    """Returns the expression of the JSON object of these fields, less those that the content rights hide."""
    shown = ((name, member) for name, member in members.items() if not member.is_hidden(rights))
    return json_text.object_json((name, member.json(rights)) for name, member in shown)


def list_hidden(members: Mapping[str, RosterField], rights: ContentRights) -> Iterator[str]:
    """Yields the dotted names of the fields that these content rights hide, at every depth."""
    for name, member in members.items():
        if member.is_hidden(rights):
            yield name
        else:
            yield from (f"{name}.{inner}" for inner in list_hidden(member.members, rights))


def list_roster_fields(schema: type[Schema]) -> Mapping[str, RosterField]:
    """Returns the fields of a schema by wire name, in the order of the JSON text."""
    return {
        member.data_key or name: member for name, member in schema().fields.items() if isinstance(member, RosterField)
    }


def find_shown_parts(shown: Mapping[str, RosterField], rights: ContentRights) -> frozenset[PersonPart]:
    """Returns the parts of people that fields can show with these content rights."""
    found = set[PersonPart]()
    for field in shown.values():
        if not field.is_hidden(rights):
            found.update(part for part, _ in field.list_values(rights))
            found |= find_shown_parts(field.members, rights) | ({field.part} if field.part else set())
    return frozenset(found if rights.guardians else found - OF_GUARDIANS)
