"""One meaning: every back end chooses the records that a plain model chooses."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oneroster_filter import any_of, check, parse, to_text
from oneroster_filter.dialect import Dialect, ExtraOperator
from oneroster_filter.typing import Expr

from tests.extent import EXTENT, Extent, examples

from . import back_ends, model
from .back_ends import Choose
from .samples import TYPES, Record, expressions, records, typed_clauses


@pytest.fixture(scope="session")
def by_model() -> Choose:
    return model.choose


@pytest.fixture(scope="session")
def by_predicate() -> Choose:
    return back_ends.choose_by_predicate


@pytest.fixture(scope="session")
def by_sqlalchemy_on_sqlite(sqlite: sa.Connection) -> Choose:
    return back_ends.choose_by_sqlalchemy(sqlite, "")


@pytest.fixture(scope="session")
def by_sqlalchemy_on_postgresql(postgresql: sa.Connection) -> Choose:
    return back_ends.choose_by_sqlalchemy(postgresql, None)


@pytest.fixture(scope="session")
def by_text_on_sqlite(sqlite: sa.Connection) -> Choose:
    return back_ends.choose_by_text(sqlite, "")


@pytest.fixture(scope="session")
def by_text_on_postgresql(postgresql: sa.Connection, collation: str) -> Choose:
    return back_ends.choose_by_text(postgresql, collation)


@pytest.fixture(scope="session")
def by_sqlalchemy_on_mariadb(mariadb: sa.Connection) -> Choose:
    return back_ends.choose_by_sqlalchemy(mariadb, "")


@pytest.fixture(scope="session")
def by_text_on_mariadb(mariadb: sa.Connection) -> Choose:
    return back_ends.choose_by_text(mariadb, "")


@pytest.fixture(scope="session")
def by_pandas() -> Choose:
    pytest.importorskip("pandas")
    return back_ends.choose_by_pandas


@pytest.fixture(scope="session")
def by_polars() -> Choose:
    pytest.importorskip("polars")
    return back_ends.choose_by_polars


@pytest.fixture(scope="session")
def django_on(server_url: str) -> Iterator[back_ends.ChooseOn]:
    pytest.importorskip("django")
    from .django_models import open_models

    with open_models(server_url) as choose_on:
        yield choose_on


@pytest.fixture(scope="session")
def by_django_on_sqlite(django_on: back_ends.ChooseOn) -> Choose:
    return django_on("sqlite", "")


@pytest.fixture(scope="session")
def by_django_on_postgresql(django_on: back_ends.ChooseOn) -> Choose:
    return django_on("postgresql", None)


BACK_ENDS = (
    "by_predicate",
    "by_sqlalchemy_on_sqlite",
    "by_sqlalchemy_on_postgresql",
    "by_text_on_sqlite",
    "by_text_on_postgresql",
    "by_pandas",
    "by_polars",
    "by_django_on_sqlite",
    "by_django_on_postgresql",
    *(("by_sqlalchemy_on_mariadb", "by_text_on_mariadb") if EXTENT is Extent.ALL else ()),
)


PEOPLE: tuple[Record, ...] = (
    {
        "status": "active",
        "familyName": "O'Brien",
        "enabledUser": True,
        "dateLastModified": datetime(2026, 11, 21, 2, 0, 0, 123456, UTC),
        "birthDate": date(2012, 2, 29),
        "grades": ["09", "10"],
        "class": {"sourcedId": "c1"},
        "roles": [{"role": "teacher", "beginDate": date(2020, 9, 1)}, {"role": "aide"}],
        "metadata": {"tier": "100%"},
    },
    {
        "status": "tobedeleted",
        "familyName": "ΣΊΣΥΦΟΣ",
        "enabledUser": False,
        "dateLastModified": datetime(2026, 11, 21, tzinfo=UTC),
        "birthDate": date(2010, 1, 1),
        "grades": ["10"],
        "class": {},
        "roles": [{"role": "student"}],
        "metadata": {"tier": ""},
    },
    {
        "familyName": "İzmir_50%",
        "dateLastModified": datetime(2026, 11, 22, 5, 44, 59, 999999, timezone(timedelta(hours=5, minutes=45))),
        "grades": [],
        "class": None,
        "roles": [],
        "metadata": {},
    },
    {},
)
"""Two people with everything, one with little, one with nothing: 0, 1, 2, 3 in the table below."""

MEANINGS: dict[str, list[tuple[str, set[int]]]] = {
    "text equals exactly": [("familyName='O''Brien'", {0}), ("familyName='o''brien'", set())],
    "not equal holds for what is absent": [("status!='active'", {1, 2, 3}), ("enabledUser!='true'", {1, 2, 3})],
    "an empty text is not an absent one": [("metadata.tier=''", {1}), ("metadata.tier!=''", {0, 2, 3})],
    "text is ordered by code point": [
        ("familyName<'o'", {0}),
        ("familyName>'Z'", {1, 2}),
        ("familyName<='O''Brien'", {0}),
    ],
    "order holds for nothing absent": [("birthDate<'9999-12-31'", {0, 1}), ("status>=''", {0, 1})],
    "contains ignores case": [("familyName~'BRI'", {0}), ("familyName~'σίσυφος'", {1}), ("familyName~'σίσ'", {1})],
    "contains takes a final sigma for a sigma": [("familyName~'φος'", {1}), ("familyName~'φοσ'", {1})],
    "contains takes a dotted capital I for an i": [("familyName~'izmir'", {2}), ("familyName~'İZMİR'", {2})],
    "contains knows no wildcards": [("familyName~'%'", {2}), ("familyName~'_'", {2}), ("metadata.tier~'0%'", {0})],
    "every present text contains the empty one": [("familyName~''", {0, 1, 2})],
    "a flag equals its word": [("enabledUser='true'", {0}), ("enabledUser='false'", {1})],
    "an instant is a millisecond": [
        ("dateLastModified='2026-11-21T02:00:00.123Z'", {0}),
        ("dateLastModified>'2026-11-21T02:00:00.123Z'", {2}),
        ("dateLastModified>='2026-11-21T02:00:00.123Z'", {0, 2}),
        ("dateLastModified<='2026-11-21T02:00:00.123Z'", {0, 1}),
        ("dateLastModified!='2026-11-21T02:00:00.123Z'", {1, 2, 3}),
    ],
    "what is finer than a millisecond is cut off": [("dateLastModified='2026-11-21T02:00:00.123999999Z'", {0})],
    "an offset is converted": [
        ("dateLastModified='2026-11-21T03:00:00.123+01:00'", {0}),
        ("dateLastModified='2026-11-21T03:00:00.123+0100'", {0}),
        ("dateLastModified<'2026-11-20T19:00:00.000-05:00'", set()),
        ("dateLastModified<='2026-11-20T19:00:00.000-05:00'", {1}),
    ],
    "an instant without a zone is in UTC": [("dateLastModified='2026-11-21T00:00'", {1})],
    "a day alone is its first instant for >, >= and <": [
        ("dateLastModified>'2026-11-21'", {0, 2}),
        ("dateLastModified>='2026-11-21'", {0, 1, 2}),
        ("dateLastModified<'2026-11-21'", set()),
    ],
    "a day alone is the whole day for =, != and <=": [
        ("dateLastModified='2026-11-21'", {0, 1, 2}),
        ("dateLastModified!='2026-11-21'", {3}),
        ("dateLastModified<='2026-11-21'", {0, 1, 2}),
        ("dateLastModified<='2026-11-20'", set()),
    ],
    "days are compared as days": [("birthDate>'2010-01-01'", {0}), ("birthDate='2010-01-01'", {1})],
    "a list equals when it holds every item": [
        ("grades='09,10'", {0}),
        ("grades='10'", {0, 1}),
        ("grades='10 , 10'", {0, 1}),
    ],
    "a list contains when it holds any item": [("grades~'09,11'", {0}), ("grades~'11'", set())],
    "a list differs when it does not hold every item": [("grades!='09,10'", {1, 2, 3})],
    "an item of a list is compared exactly": [("grades='1'", set()), ("grades~'1'", set())],
    "a dot reaches into a reference": [("class.sourcedId='c1'", {0}), ("class.sourcedId!='c1'", {1, 2, 3})],
    "any of many may satisfy": [
        ("roles.role='aide'", {0}),
        ("roles.role~'T'", {0, 1}),
        ("roles.beginDate<'2021-01-01'", {0}),
    ],
    "of many, none may equal": [("roles.role!='aide'", {1, 2, 3}), ("roles.beginDate!='2020-09-01'", {1, 2, 3})],
    "two clauses on many may meet different ones": [("roles.role='aide' AND roles.beginDate='2020-09-01'", {0})],
    "AND and OR": [
        ("status='active' AND grades='10'", {0}),
        ("status='active' OR grades='10'", {0, 1}),
        ("status!='active' AND enabledUser!='false'", {2, 3}),
    ],
}


@pytest.mark.parametrize("back_end", ["by_model", *BACK_ENDS])
@pytest.mark.parametrize("cases", MEANINGS.values(), ids=MEANINGS)
def test_means(request: pytest.FixtureRequest, back_end: str, cases: list[tuple[str, set[int]]]) -> None:
    choose: Choose = request.getfixturevalue(back_end)

    chosen = choose(PEOPLE, [check(parse(text), TYPES) for text, _ in cases])

    assert [(text, set(places)) for (text, _), places in zip(cases, chosen, strict=True)] == cases


@pytest.mark.parametrize("back_end", ["by_model", *BACK_ENDS])
def test_an_operator_that_stands_for_an_or_means_the_same_inside_an_and(
    request: pytest.FixtureRequest, back_end: str
) -> None:
    choose: Choose = request.getfixturevalue(back_end)
    is_in = ExtraOperator("in", lambda field, value: any_of(*(field == item for item in value.split(","))))
    expr = Dialect(operators=[is_in]).parse("status in 'tobedeleted,active' AND grades='09'")

    assert choose(PEOPLE, [check(expr, TYPES)]) == [[0]]


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_every_back_end_agrees_with_the_model(request: pytest.FixtureRequest, back_end: str) -> None:
    choose: Choose = request.getfixturevalue(back_end)

    @settings(max_examples=examples(10, 40, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        kept=st.lists(records, min_size=1, max_size=6),
        wanted=st.lists(expressions(typed_clauses()), min_size=1, max_size=12),
    )
    def agrees(kept: Sequence[Record], wanted: Sequence[Expr]) -> None:
        typed = [check(expr, TYPES) for expr in wanted]
        expected = model.choose(kept, typed)
        for expr, places, model_places in zip(wanted, choose(kept, typed), expected, strict=True):
            assert places == model_places, to_text(expr)

    agrees()
