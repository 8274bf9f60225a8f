"""Plain records: the values they may hold, how a field is reached, and what is not of its kind."""

from array import array
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import pytest
from oneroster_filter import FieldType, Kind, RecordError, check, parse, predicate
from oneroster_filter.nodes import Operator
from oneroster_filter.operators import OPERATORS
from oneroster_filter.predicate import COMPARISONS

from tests.offenders import in_one_test

TYPES = {
    "text": Kind.TEXT,
    "flag": Kind.FLAG,
    "instant": Kind.INSTANT,
    "day": Kind.DAY,
    "texts": Kind.TEXTS,
    "class.sourcedId": Kind.TEXT,
    "roles.role": FieldType(Kind.TEXT, many=True),
    "roles.org.sourcedId": FieldType(Kind.TEXT, many=True),
    "nicknames": FieldType(Kind.TEXT, many=True),
    "words": FieldType(Kind.TEXTS, many=True),
    "metadata.*": Kind.TEXT,
}


def test(text: str, record: dict) -> bool:
    return predicate(check(parse(text), TYPES))(record)


test.__test__ = False


class NotAvailable:
    """Each comparison of `pandas.NA` is NA, which is neither true nor false."""

    def __eq__(self, other: object) -> "NotAvailable":  # type: ignore[override]
        return self

    __ne__ = __eq__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


class NotATime(datetime):
    """`pandas.NaT` is a datetime that is not equal to itself."""

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = datetime.__hash__


ABSENT = {
    "None": None,
    "NaN": float("nan"),
    "a decimal NaN": Decimal("nan"),
    "NaT": NotATime(1, 1, 1),
    "NA": NotAvailable(),
}
KINDS_OF_ABSENT = {
    "text": ("text!='nan'", "text~''"),
    "flag": ("flag!='true'", "flag='false'"),
    "instant": ("instant!='2026-11-21'", "instant<'2026-11-21'"),
    "day": ("day!='2026-11-21'", "day<'2026-11-21'"),
    "texts": ("texts!='nan'", "texts='nan'"),
    "nicknames": ("nicknames!='nan'", "nicknames~''"),
    "class": ("class.sourcedId!='nan'", "class.sourcedId~''"),
    "metadata": ("metadata.tier!='nan'", "metadata.tier~''"),
}


@in_one_test
@pytest.mark.parametrize("value", ABSENT.values(), ids=ABSENT)
@pytest.mark.parametrize("field", KINDS_OF_ABSENT)
def test_an_absent_value_satisfies_only_not_equal(field: str, value: object) -> None:
    holding, failing = KINDS_OF_ABSENT[field]

    assert test(holding, {field: value})
    assert not test(failing, {field: value})


class Color(StrEnum):
    RED = "red"


class Shade(Enum):
    DARK = "dark"
    TWO = 2


class Year(IntEnum):
    FIRST = 1


HOLDS = {
    "a text": ("text='x'", {"text": "x"}),
    "a word of an enumeration": ("text~'RED'", {"text": Color.RED}),
    "a number of an enumeration": ("text='1'", {"text": Year.FIRST}),
    "a member of an enumeration that is no text itself": ("text='dark'", {"text": Shade.DARK}),
    "a member whose value is a number": ("text='2'", {"text": Shade.TWO}),
    "a UUID": (
        "text='0b5e4e8c-6b1f-4d43-9d55-000000000001'",
        {"text": UUID("0B5E4E8C-6B1F-4D43-9D55-000000000001")},
    ),
    "False taken for text": ("text='false'", {"text": False}),
    "a day that a data frame stores as a datetime": (
        "day='2026-11-21'",
        {"day": datetime(2026, 11, 21)},  # noqa: DTZ001
    ),
    "an array of many": ("nicknames='2'", {"nicknames": array("i", [1, 2])}),
    "an absent one among many": ("nicknames='a'", {"nicknames": [float("nan"), None, "a"]}),
    "a list with NaN": ("texts='a'", {"texts": ["a", float("nan")]}),
    "a number, as JSON writes it": ("text='1.5'", {"text": 1.5}),
    "a flag that is taken for text": ("text='true'", {"text": True}),
    "a flag": ("flag='true'", {"flag": True}),
    "a flag as the wire writes it": ("flag='false'", {"flag": "false"}),
    "an instant": ("instant='2026-11-21T02:00:00Z'", {"instant": datetime(2026, 11, 21, 2, tzinfo=UTC)}),
    "an instant elsewhere": (
        "instant='2026-11-21T02:00:00Z'",
        {"instant": datetime(2026, 11, 21, 3, tzinfo=timezone(timedelta(hours=1)))},
    ),
    "an instant without a zone, in UTC": (
        "instant='2026-11-21T02:00:00Z'",
        {"instant": datetime(2026, 11, 21, 2)},  # noqa: DTZ001
    ),
    "an instant as the wire writes it": (
        "instant='2026-11-21T02:00:00Z'",
        {"instant": "2026-11-20T21:00:00.000-05:00"},
    ),
    "a day for an instant, its first": ("instant<='2026-11-21T00:00:00.000Z'", {"instant": date(2026, 11, 21)}),
    "a day for an instant, as text": ("instant<='2026-11-21T00:00:00.000Z'", {"instant": "2026-11-21"}),
    "a day": ("day='2026-11-21'", {"day": date(2026, 11, 21)}),
    "a day as the wire writes it": ("day='2026-11-21'", {"day": "2026-11-21"}),
    "a list": ("texts='a,b'", {"texts": ["b", "a"]}),
    "a set": ("texts~'b,c'", {"texts": {"b"}}),
    "a list with a hole": ("texts='a'", {"texts": ["a", None]}),
    "a nested value": ("class.sourcedId='c1'", {"class": {"sourcedId": "c1"}}),
    "a flat value by its dotted name": ("class.sourcedId='c1'", {"class.sourcedId": "c1"}),
    "a flat value before a nested one": (
        "class.sourcedId='c1'",
        {"class.sourcedId": "c1", "class": {"sourcedId": "c2"}},
    ),
    "any element of a list": ("roles.role='b'", {"roles": [{"role": "a"}, {"role": "b"}]}),
    "any element, below it": ("roles.org.sourcedId='o'", {"roles": [{}, {"org": {"sourcedId": "o"}}]}),
    "any of a list of texts": ("nicknames='b'", {"nicknames": ("a", "b")}),
    "any of a flat list": ("roles.role='b'", {"roles.role": ["a", "b"]}),
    "one where many may be": ("nicknames='a'", {"nicknames": "a"}),
    "any list of a list of lists": ("words='a,b'", {"words": [["a"], ["a", "b"]]}),
    "a list where many lists may be": ("words='a,b'", {"words": ["a", "b"]}),
    "an open field": ("metadata.tier='1'", {"metadata": {"tier": "1"}}),
    "nothing there": ("text!='x'", {}),
    "None there": ("text!='x'", {"text": None}),
    "nothing on the way": ("class.sourcedId!='x'", {"class": None}),
    "no elements": ("roles.role!='x'", {"roles": []}),
}


@in_one_test
@pytest.mark.parametrize(("text", "record"), HOLDS.values(), ids=HOLDS)
def test_holds(text: str, record: dict) -> None:
    assert test(text, record)


FAILS = {
    "no list has them all": ("words='a,b'", {"words": [["a"], ["b"]]}),
    "a missing text": ("text>=''", {}),
    "a missing flag": ("flag='false'", {}),
    "an empty list": ("texts~'a'", {"texts": []}),
    "an item in part": ("texts='a'", {"texts": ["ab"]}),
    "one of many equals": ("roles.role!='b'", {"roles": [{"role": "a"}, {"role": "b"}]}),
}


@pytest.mark.parametrize(("text", "record"), FAILS.values(), ids=FAILS)
def test_does_not_hold(text: str, record: dict) -> None:
    assert not test(text, record)


UNREADABLE = {
    "an object for a text": ("text='x'", {"text": {}}),
    "a word for a flag": ("flag='true'", {"flag": "TRUE"}),
    "a number for a flag": ("flag='true'", {"flag": 1}),
    "a word for an instant": ("instant>'2026-01-01'", {"instant": "yesterday"}),
    "a number for an instant": ("instant>'2026-01-01'", {"instant": 1767225600}),
    "an instant before all others": (
        "instant>'2026-01-01'",
        {"instant": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))},
    ),
    "an instant for a day": ("day>'2026-01-01'", {"day": datetime(2026, 1, 1, tzinfo=UTC)}),
    "an instant without a zone for a day": ("day>'2026-01-01'", {"day": datetime(2026, 1, 1, 1)}),  # noqa: DTZ001
    "a word for a day": ("day>'2026-01-01'", {"day": "01/01/2026"}),
    "a text for a list": ("texts='a'", {"texts": "a"}),
    "a list of numbers": ("texts='a'", {"texts": [1]}),
    "a list on the way to one value": ("class.sourcedId='x'", {"class": [{"sourcedId": "x"}]}),
    "a text on the way": ("class.sourcedId='x'", {"class": "x"}),
}


@pytest.mark.parametrize(("text", "record"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_value_that_is_not_of_its_kind_is_refused(text: str, record: dict) -> None:
    with pytest.raises(RecordError) as caught:
        test(text, record)

    assert text.startswith(caught.value.field)
    assert caught.value.value == next(iter(record.values()))
    assert str(caught.value) == f"{caught.value.field}: {caught.value.message}: {caught.value.value!r}"


def test_every_operator_of_every_kind_but_not_equal_has_a_row() -> None:
    assert set(COMPARISONS) == {
        (kind, operator)
        for kind, operators in OPERATORS.items()
        for operator in operators
        if operator is not Operator.NOT_EQUAL
    }


def test_a_key_of_a_free_form_object_may_have_dots() -> None:
    is_free = predicate(check(parse("metadata.lunch.plan='free'"), {"metadata.*": Kind.TEXT}))
    assert is_free({"metadata": {"lunch.plan": "free"}})
    assert not is_free({"metadata": {"lunch": {"plan": "free"}}})
