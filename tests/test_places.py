"""How `make places` decides which tests `make test` asks."""

from __future__ import annotations

import re

from tests.places import PLACES, ROOT, Measured, Places, Reaching, choose, join, read_places

MOTHER = Measured("tests/a.py::test_all", own=9.0, shared=0.0, lines=0b1111)
CHEAP = Measured("tests/a.py::test_one[x]", own=0.5, shared=0.0, lines=0b0011)
AGAIN = Measured("tests/a.py::test_one[y]", own=0.6, shared=0.0, lines=0b0011)
OTHER = Measured("tests/b.py::test_two", own=3.0, shared=1.0, lines=0b0001)
ALL = (MOTHER, CHEAP, AGAIN, OTHER)
REACHES_TWO = "the cheapest test that reaches 2 lines of the product"


def list_places(seconds: float, kept: dict[str, str] | None = None) -> set[str]:
    return {test.name for test in ALL} - choose(ALL, kept or {}, seconds).long


def test_the_cheapest_test_of_a_line_stays_whatever_it_takes() -> None:
    assert list_places(0) == {MOTHER.name, CHEAP.name}
    assert choose(ALL, {}, 0).slow == {MOTHER.name: REACHES_TWO}


def test_each_function_has_a_case_before_another_has_two() -> None:
    assert list_places(13.9) == {MOTHER.name, CHEAP.name, OTHER.name}
    assert list_places(14.2) == {test.name for test in ALL}


def test_what_found_a_fault_stays() -> None:
    kept = {AGAIN.name: "finds a fault", "tests/gone.py::test_gone": "found one"}
    assert list_places(0, kept) == {MOTHER.name, CHEAP.name, AGAIN.name}
    assert choose(ALL, kept, 0).kept == {AGAIN.name: "finds a fault"}


def test_the_fixtures_of_a_file_are_paid_by_its_tests_together() -> None:
    phases = {
        "tests/a.py::test_x": {"setup": 6.1, "call": 1.0, "teardown": 0.5},
        "tests/a.py::test_y": {"setup": 0.1, "call": 2.0},
        "tests/a.py::test_z": {"setup": 0.1, "call": 3.0},
        "tests/b.py::test_skipped": {"setup": 0.0},
    }
    found = {test.name[-4:]: (round(test.own, 3), round(test.shared, 3)) for test in join(phases, {})}
    assert found == {"st_x": (1.6, 2.0), "st_y": (2.1, 2.0), "st_z": (3.1, 2.0), "pped": (0.0, 0.0)}


def test_lines_are_counted_for_each_test() -> None:
    reaching = Reaching(["a", "b"], {("x.py", 1): 0b01, ("x.py", 2): 0b11, ("y.py", 1): 0b00})
    assert reaching.list_lines() == {"a": 0b011, "b": 0b010}
    assert list(reaching.list_tests("x.py", range(2, 4))) == ["a", "b"]
    assert not list(reaching.list_tests("y.py", [1, 2]))


def test_the_file_is_read_as_it_is_written() -> None:
    finds = "finds x.py:3: a == b -> a != b"
    places = Places(frozenset({"tests/a.py::test[a: b]"}), {"tests/b.py::test[c: d]": "why"}, {"tests/c.py::t": finds})
    assert read_places(places.write()) == places


def test_each_row_of_the_file_names_a_test() -> None:
    """A case whose name has changed has a place again; a function that is gone leaves rows that nobody misses."""
    rows = {*PLACES.long, *PLACES.slow, *PLACES.kept}
    named = {match.groups() for match in (re.match(r"([^:]+)::(\w+)", row) for row in rows) if match}
    # Some files import tests of others.
    assert not {(path, name) for path, name in named if name not in (ROOT / path).read_text()}
    assert not PLACES.long & {*PLACES.slow, *PLACES.kept}
