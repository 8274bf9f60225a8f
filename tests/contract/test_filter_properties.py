"""Filters that nobody thought of: each gives what plain Python selects of the unfiltered records."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extent import examples

from .client import VERSIONS, RosterClient
from .evaluation import select, values_at
from .model import RESOURCES, filterable

SIGNS = {
    "text": ("=", "!=", ">", ">=", "<", "<=", "~"),
    "flag": ("=", "!="),
    "instant": ("=", "!=", ">", ">=", "<", "<="),
    "day": ("=", "!=", ">", ">=", "<", "<="),
    "texts": ("=", "!=", "~"),
}
# What breaks naive filters, and letters that the records have.
LETTERS = "aA%_'\\/\"* ,.&+#;éËÉşŻ王яЯß’\N{COMBINING DIAERESIS}\N{GRINNING FACE}"
words = st.text(LETTERS, max_size=4)
days = st.dates(date(2000, 1, 1), date(2050, 1, 1)).map(str)
moments = st.datetimes(datetime(2026, 10, 1), datetime(2027, 1, 1))  # noqa: DTZ001  (the Z is added as text)
instants = moments.map(lambda moment: moment.isoformat() + "Z") | days
Records = list[dict[str, object]]


@st.composite
def values_of(draw: st.DrawFn, kind: str, shown: list[str]) -> str:
    """A value for a kind: one that is shown, a part of it, or something else that the kind takes."""
    if kind == "flag":
        return draw(st.sampled_from(["true", "false"]))
    if kind == "instant":
        return draw(st.sampled_from(shown) | st.sampled_from(shown).map(lambda text: text[:10]) | instants)
    if kind == "day":
        return draw(st.sampled_from(shown) | days if shown else days)
    known = st.sampled_from(shown) if shown else words
    if kind == "texts":
        items = draw(
            st.lists(known | words.map(lambda word: word.replace(",", "").strip(" ") or "x"), min_size=1, max_size=3)
        )
        return draw(st.sampled_from([",", " , "])).join(items)
    text = draw(known)
    begin, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    part = draw(st.sampled_from([text, text[begin:end], text[begin:end].upper(), text.lower()]))
    return draw(st.just(part) | words)


@st.composite
def filters(draw: st.DrawFn, kinds: dict[str, str], records: Records) -> str:
    """A filter of one or two clauses."""

    def clause() -> str:
        name = draw(st.sampled_from(sorted(kinds)))
        kind = kinds[name].removeprefix("many ")
        shown = sorted({value for record in records for value in values_at(record, name)})
        value = draw(values_of(kind, shown)).replace("'", "''")
        space = draw(st.sampled_from(["", " "]))
        return f"{name}{space}{draw(st.sampled_from(SIGNS[kind]))}{space}'{value}'"

    join = draw(st.sampled_from([None, " AND ", " OR "]))
    return clause() if join is None else clause() + join + clause()


@pytest.mark.parametrize("vendor", ["both", "north"])
@pytest.mark.parametrize("path", RESOURCES)
@pytest.mark.parametrize("version", VERSIONS)
def test_any_filter_means_the_same_as_in_python(client: RosterClient, version: str, path: str, vendor: str) -> None:
    records = client.call(version, path, vendor=vendor).records
    kinds = filterable(version, path)

    @settings(max_examples=examples(4, 6, 20), deadline=None, derandomize=True, database=None)
    @given(text=filters(kinds, records))
    def check(text: str) -> None:
        answer = client.call(version, path, {"filter": text, "fields": "sourcedId"}, vendor=vendor)
        assert answer.ids == select(records, text, kinds)
        assert answer.total == len(answer.ids)

    check()


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text(max_size=30) | st.text("aT='<>~! ()%.ANDOR\0", max_size=20))
def test_any_text_at_all_is_answered_or_refused(client: RosterClient, text: str) -> None:
    """No text makes the service fail; what is refused is refused as a filter."""
    answer = client.call("v1p2", "/users", {"filter": text, "limit": "1"})
    assert answer.status == 200 or (answer.status, answer.minor) == (400, "invalid_filter_field")


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(query=st.binary(max_size=30).map(lambda data: data.replace(b"#", b"")))
def test_any_query_string_at_all_is_answered_or_refused(client: RosterClient, query: bytes) -> None:
    assert client.call("v1p1", "/orgs", raw_query=query).status in (200, 400)
