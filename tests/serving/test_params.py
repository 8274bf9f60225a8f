"""The query string, read into params."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roster_service.errors import Problem, RefusedRequestError
from roster_service.serving.params import COLLECTION_PARAMETERS, SINGLE_PARAMETERS, Limits, Params, read_params
from tests.offenders import in_one_test

LIMITS = Limits(default_limit=100, max_limit=1000, filter_length=20)
NOTHING = Params(limit=100, offset=0, filter=None, sort=None, descending=False, fields=None)
Pairs = list[tuple[str, str]]


def read(pairs: Pairs) -> Params:
    """The params of a collection."""
    return read_params(pairs, COLLECTION_PARAMETERS, LIMITS)


READ = [
    pytest.param([], NOTHING, id="nothing"),
    pytest.param([("limit", "0")], {"limit": 0}, id="limit-0"),
    pytest.param([("limit", "1000")], {"limit": 1000}, id="largest-limit"),
    pytest.param([("limit", "007")], {"limit": 7}, id="leading-zeros"),
    pytest.param([("offset", "0")], {"offset": 0}, id="offset-0"),
    pytest.param([("offset", str(2**63 - 1))], {"offset": 2**63 - 1}, id="largest-offset"),
    pytest.param([("filter", "a='b'")], {"filter": "a='b'"}, id="filter"),
    pytest.param([("filter", "")], {"filter": None}, id="blank-filter-is-none"),
    pytest.param([("filter", "x" * 20)], {"filter": "x" * 20}, id="longest-filter"),
    pytest.param([("sort", "name")], {"sort": "name"}, id="sort"),
    pytest.param([("sort", "s" * 512)], {"sort": "s" * 512}, id="longest-sort"),
    pytest.param([("fields", "a" * 4096)], {"fields": ("a" * 4096,)}, id="longest-fields"),
    pytest.param([("sort", "")], {"sort": ""}, id="blank-sort-is-kept-for-its-warning"),
    pytest.param([("orderBy", "asc")], {"descending": False}, id="ascending"),
    pytest.param([("orderBy", "desc")], {"descending": True}, id="descending"),
    pytest.param([("fields", "a,b")], {"fields": ("a", "b")}, id="fields"),
    pytest.param([("fields", "a"), ("fields", "b,c")], {"fields": ("a", "b", "c")}, id="repeated-fields"),
    pytest.param([("fields", " a , b ")], {"fields": ("a", "b")}, id="spaces-around-fields"),
    pytest.param(
        [("fields", "a"), ("limit", "5"), ("filter", "x"), ("offset", "2"), ("orderBy", "desc"), ("sort", "s")],
        {"fields": ("a",), "limit": 5, "filter": "x", "offset": 2, "descending": True, "sort": "s"},
        id="all-at-once",
    ),
]


@in_one_test
@pytest.mark.parametrize(("pairs", "changed"), READ)
def test_these_pairs_are_these_params(pairs: Pairs, changed: dict[str, object] | Params) -> None:
    expected = changed if isinstance(changed, Params) else Params(**(vars(NOTHING) | changed))  # type: ignore[arg-type]
    assert read(pairs) == expected


REFUSED = [
    pytest.param([("limit", "1001")], Problem.PARAMETER, "limit", id="limit-too-large"),
    pytest.param([("limit", "9" * 5000)], Problem.PARAMETER, "limit", id="limit-of-5000-digits"),
    pytest.param([("limit", "-1")], Problem.PARAMETER, "limit", id="minus"),
    pytest.param([("limit", "+1")], Problem.PARAMETER, "limit", id="plus"),
    pytest.param([("limit", "1.0")], Problem.PARAMETER, "limit", id="point"),
    pytest.param([("limit", "1e3")], Problem.PARAMETER, "limit", id="exponent"),
    pytest.param([("limit", "١")], Problem.PARAMETER, "limit", id="arabic-digit"),
    pytest.param([("limit", "²")], Problem.PARAMETER, "limit", id="superscript-digit"),
    pytest.param([("limit", "")], Problem.PARAMETER, "limit", id="blank-limit"),
    pytest.param([("limit", "1"), ("limit", "1")], Problem.PARAMETER, "limit", id="repeated-limit"),
    pytest.param([("offset", str(2**63))], Problem.PARAMETER, "offset", id="offset-too-large"),
    pytest.param([("filter", "x" * 21)], Problem.FILTER, "21", id="filter-too-long"),
    pytest.param([("filter", "a\0")], Problem.FILTER, "NUL", id="nul-in-the-filter"),
    pytest.param([("filter", "a"), ("filter", "a")], Problem.PARAMETER, "filter", id="repeated-filter"),
    pytest.param([("sort", "a\0")], Problem.PARAMETER, "sort", id="nul-in-the-sort"),
    pytest.param([("sort", "a"), ("sort", "b")], Problem.PARAMETER, "sort", id="repeated-sort"),
    pytest.param([("orderBy", "ASC")], Problem.PARAMETER, "orderBy", id="direction-in-capitals"),
    pytest.param([("orderBy", "")], Problem.PARAMETER, "orderBy", id="blank-direction"),
    pytest.param([("sort", "s" * 513)], Problem.PARAMETER, "at most 512", id="long-sort"),
    pytest.param([("fields", "a" * 4096), ("fields", "b")], Problem.PARAMETER, "at most 4096", id="long-fields"),
    pytest.param([("fields", "")], Problem.BLANK_SELECTION, "fields", id="blank-fields"),
    pytest.param([("fields", ","), ("fields", " ")], Problem.BLANK_SELECTION, "fields", id="blank-repetition"),
    pytest.param([("page", "1")], Problem.PARAMETER, "page", id="unknown"),
    pytest.param([("Limit", "1")], Problem.PARAMETER, "Limit", id="other-case"),
    pytest.param([("", "1")], Problem.PARAMETER, "``", id="no-name"),
]


@in_one_test
@pytest.mark.parametrize(("pairs", "problem", "said"), REFUSED)
def test_these_pairs_are_refused(pairs: Pairs, problem: Problem, said: str) -> None:
    with pytest.raises(RefusedRequestError) as caught:
        read(pairs)
    assert caught.value.problem is problem
    assert said in caught.value.description
    assert len(caught.value.description) < 300


@pytest.mark.parametrize("name", ["filter", "sort", "orderBy"])
def test_a_single_record_takes_fields_alone(name: str) -> None:
    assert read_params([("fields", "a")], SINGLE_PARAMETERS, LIMITS).fields == ("a",)
    with pytest.raises(RefusedRequestError) as caught:
        read_params([(name, "1")], SINGLE_PARAMETERS, LIMITS)
    assert name in caught.value.description


@pytest.mark.parametrize(("name", "near"), [("Limit", "limit"), ("offest", "offset"), ("orderby", "orderBy")])
def test_a_near_parameter_is_suggested(name: str, near: str) -> None:
    with pytest.raises(RefusedRequestError) as caught:
        read([(name, "1")])
    assert f"did you mean `{near}`?" in caught.value.description


def test_of_several_faults_the_first_in_the_address_is_reported() -> None:
    with pytest.raises(RefusedRequestError) as caught:
        read([("page", "1"), ("limit", "x")])
    assert "page" in caught.value.description


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(text=st.text(max_size=25))
def test_a_number_is_read_exactly_where_it_is_digits_in_bounds(text: str) -> None:
    try:
        params = read([("limit", text)])
    except RefusedRequestError:
        assert not (text and set(text) <= set("0123456789") and int(text) <= 1000)
    else:
        assert text
        assert set(text) <= set("0123456789")
        assert params.limit == int(text)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(pairs=st.lists(st.tuples(st.sampled_from(["limit", "fields", "filter", "sort", "x"]), st.text(max_size=25))))
def test_whatever_the_pairs_are_they_are_read_or_refused(pairs: Pairs) -> None:
    try:
        params = read(pairs)
    except RefusedRequestError:
        return
    assert 0 <= params.limit <= 1000
    assert params.fields is None or any(params.fields)
