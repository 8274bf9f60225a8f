"""The faults that `make mutants` puts into the product."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mutants
from tests.mutants import NEAR, ROOT, choose, list_mutants


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("x = a == b\n", {"a != b"}),
        ("x = a < b\n", {"a <= b"}),
        ("x = a in b\n", {"a not in b"}),
        ("x = a and b\n", {"a or b"}),
        ("x = (a & ~b)\n", {"a | ~b", "b"}),
        ("x = not a\n", {"a"}),
        ("x = a if b else c\n", {"c if b else a"}),
        ("x = f(True, 3)\n", {"False", "4"}),
        ("x = sa.true()\n", {"sa.false()"}),
        ("x = rows.where(a, b)\n", {"rows.where(a)"}),
        ("x = rows.where(a)\n", set()),
        # What is no behaviour.
        ('"""A == b."""\n', set()),
        ("def f(a: int | None = None) -> int | str: ...\n", set()),
        ("Kinds = int | str\n", set()),
    ],
)
def test_a_file_has_a_mutant_for_each_fault(source: str, after: set[str]) -> None:
    found = list(list_mutants("file.py", source))
    assert {mutant.after for mutant in found} == {f"({text})" for text in after}
    for mutant in found:
        assert mutant.source != source
        compile(mutant.source, "file.py", "exec")


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("-- a AND b\nSELECT x FROM y\n", set()),
        ("USING (a = b AND c)", {"USING (a <> b AND c)", "USING (a = b OR c)"}),
        ("USING (NOT EXISTS (SELECT FROM y))", {"USING (EXISTS (SELECT FROM y))"}),
        ("USING (EXISTS (SELECT FROM y))", {"USING (NOT EXISTS (SELECT FROM y))"}),
        ("USING (a IS NULL OR b > 'x AND y')", {
            "USING (a IS NOT NULL OR b > 'x AND y')", "USING (a IS NULL AND b > 'x AND y')",
            "USING (a IS NULL OR b >= 'x AND y')",
        }),
        ("UPDATE y SET a = b", set()),
    ],
)  # fmt: skip
def test_a_file_of_sql_has_a_mutant_for_each_fault(source: str, after: set[str]) -> None:
    assert {mutant.source for mutant in list_mutants("file.sql", source)} == after


def test_a_mutant_is_measured_by_the_lines_of_its_statement() -> None:
    source = "def f(\n    a\n):\n    x = (\n        a == 1\n    )\n    if x and a:\n        return a < 3\n"
    assert {mutant.before: mutant.lines for mutant in list_mutants("file.py", source)} == {
        "a == 1": range(4, 7), "1": range(4, 7), "x and a": range(7, 8), "a < 3": range(8, 9), "3": range(8, 9),
    }  # fmt: skip


def test_a_mutant_changes_its_own_place_alone() -> None:
    source = "a = é == 1\nb = (\n    c and\n    d\n)\ne = 2\n"
    found = {mutant.before: mutant.source for mutant in list_mutants("file.py", source)}
    assert found["é == 1"] == "a = (é != 1)\nb = (\n    c and\n    d\n)\ne = 2\n"
    assert found["c and\n    d"] == "a = é == 1\nb = (\n    (c or d)\n)\ne = 2\n"


def test_a_seed_chooses_the_same_of_every_place() -> None:
    chosen = choose(ROOT, 12, seed=3)
    assert [it.after for it in chosen] == [it.after for it in choose(ROOT, 12, seed=3)]
    assert [sum(it.file.startswith(prefix) for it in chosen) for prefix in NEAR] == [2, 2, 2, 2, 1, 1, 1, 1]


def test_a_fault_with_which_nothing_can_be_imported_is_found(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("raise ValueError('a fault')\n")
    (tmp_path / "test_one.py").write_text("def test_one() -> None:\n    pass\n")
    assert mutants.find_failing(["test_one.py::test_one"], tmp_path, 0) == "ImportError while loading conftest"
