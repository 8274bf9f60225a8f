"""The query string, read into params."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roster_service.errors import RefusedRequestError
from roster_service.serving.params import COLLECTION_PARAMETERS, Limits, Params, read_params

LIMITS = Limits(max_limit=1000, filter_length=20)
Pairs = list[tuple[str, str]]


def read(pairs: Pairs) -> Params:
    """The params of a collection."""
    return read_params(pairs, COLLECTION_PARAMETERS, LIMITS)


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
