"""A test of many cases tries them all, and names those that do not hold."""

from __future__ import annotations

import inspect

import pytest

from tests.extent import EXTENT, Extent, long
from tests.offenders import in_one_test


def test_each_case_is_tried_and_the_failure_names_the_offenders() -> None:
    tried: list[tuple[str, int, int]] = []

    @in_one_test
    @pytest.mark.parametrize("one", [1, pytest.param(2, id="two"), pytest.param(3, marks=long)])
    @pytest.mark.parametrize(("two", "_three"), [(1, 0), (2, 0)], ids=str)
    def check(given: str, one: int, two: int, _three: int) -> None:
        tried.append((given, one, two))
        assert one != two, "is the same"

    assert list(inspect.signature(check).parameters) == ["given"]
    with pytest.raises(AssertionError) as caught:
        check(given="x")
    ones = (1, 2) if EXTENT is Extent.SAMPLE else (1, 2, 3)
    assert tried == [("x", one, two) for one in ones for two in (1, 2)]
    assert [line for line in str(caught.value).splitlines() if "is the same" in line] == [
        "1-1-0: is the same",
        "two-2-0: is the same",
    ]


def test_any_other_error_names_its_case() -> None:
    @in_one_test
    @pytest.mark.parametrize("number", [1, 0])
    def check(number: int) -> None:
        assert 1 / number

    with pytest.raises(ZeroDivisionError) as caught:
        check()
    assert caught.value.__notes__ == ["in the case 0"]
