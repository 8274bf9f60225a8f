"""Mutants: copies of the project with one small fault each, and whether the tests find it.

`make mutants` makes some, chosen by a seed, and asks of each the tests of `make test` that reach its line, as
`make places` measured them, the cheapest first; of those that live then the tests that CI alone asks. What one of
these finds becomes a row `kept` of `places.txt`: that test is part of `make test` from then on. Whoever moves or
removes tests runs it before and after: no more may live. A fault that changes nothing that anybody can see lives, too;
the list of those that live is read by a person.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import places

ROOT = Path(__file__).parent.parent
# What decides what somebody sees, and what a load writes; by beginning of the path, the tests near to it. They are
# asked of what runs where no line is measured: SQL, and what an import runs.
NEAR: Mapping[str, tuple[str, ...]] = {
    "grammar/oneroster_filter/": ("tests/grammar/",),
    "roster_service/roster/visibility.py": ("tests/roster/", "tests/serving/", "tests/db/", "tests/access_matrix/"),
    "roster_service/serving/": ("tests/serving/", "tests/contract/"),
    "roster_service/feeds/sharing": ("tests/accounts/", "tests/db/", "tests/deltas/test_rules.py"),
    "roster_service/db/sql/policies/": (
        "tests/db/",
        "tests/vendor/",
        "tests/serving/",
        "tests/deltas/",
        "tests/access_matrix/",
    ),
    "roster_service/db/sql/functions/refresh_": ("tests/db/", "tests/accounts/", "tests/deltas/", "tests/contract/"),
    "sync_scripts/applying/": ("tests/sync/applying/", "tests/deltas/"),
    "sync_scripts/checking/": ("tests/sync/",),
}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "var", "build", ".*_cache")
# A fault may make a loop without an end.
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--dist", "worksteal", "--timeout", "120")
# What pytest says of a fault that no test can be imported with.
_UNUSABLE = "ImportError while loading conftest"
# It compares the text of every function and policy, so it finds any fault of one, and says nothing of the others.
_OF_TEXTS = "tests/db/test_schema.py::test_a_fresh_upgrade_makes_the_schema_of_the_snapshot"
# So many of the cheapest tests are asked before all others.
FIRST = 60

OPERATORS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
_PAIRS = (
    ("true", "false"), ("and_", "or_"), ("in_", "not_in"), ("is_", "is_not"), ("asc", "desc"), ("min", "max"),
    ("any", "all"), ("union", "intersection"),
)  # fmt: skip
NAMES: Mapping[str, str] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


# In SQL, outside of comments and texts.
SQL_FAULTS: Sequence[tuple[str, str]] = (
    (r"\bAND\b", "OR"), (r"\bOR\b", "AND"), (r"\bNOT (?=EXISTS|IN\b|\w+\.\w+)", ""),
    (r"(?<!NOT )\bEXISTS(?= ?\()", "NOT EXISTS"),
    (r"<>", "="), (r"<=", "<"), (r">=", ">"), (r" < ", " <= "), (r" > ", " >= "), (r" = (?!ANY)", " <> "),
    (r"\bIS NULL\b", "IS NOT NULL"), (r"\bIS NOT NULL\b", "IS NULL"),
)  # fmt: skip
_SQL_ASIDE = re.compile(r"--[^\n]*|'[^']*'|\bBETWEEN\s+\S+\s+AND\b|\bSET\s+\w+ = |\bCASE WHEN\s*$|END <> 0")


@dataclass(frozen=True)
class Mutant:
    """A fault. `file`: from the root; `original`: the text of the file without it; `start` and `end`: the part of that
    which `after` replaces."""

    file: str
    original: str
    start: int
    end: int
    after: str

    @property
    def before(self) -> str:
        """The text that it replaces."""
        return self.original[self.start : self.end]

    @property
    def line(self) -> int:
        """Where it is."""
        return self.original.count("\n", 0, self.start) + 1

    @property
    def lines(self) -> range:
        """The lines of the innermost statement around it; of one that has others in it, those before them. None of SQL:
        no line of it is measured."""
        if self.file.endswith(".sql"):
            return range(0)
        first, last = self.line, self.original.count("\n", 0, self.end) + 1
        statements = [node for node in ast.walk(ast.parse(self.original)) if isinstance(node, ast.stmt)]
        around = [it for it in statements if it.lineno <= first and last <= (it.end_lineno or it.lineno)]
        inner = max(around, key=lambda it: (it.lineno, -(it.end_lineno or 0)))
        body = getattr(inner, "body", None)
        return range(inner.lineno, max(body[0].lineno if body else (inner.end_lineno or inner.lineno) + 1, last + 1))

    @property
    def source(self) -> str:
        """The text of the file with the fault."""
        return self.original[: self.start] + self.after + self.original[self.end :]

    @property
    def change(self) -> str:
        """The fault in a line."""
        return f"{self.file}:{self.line}: {_shorten(self.before)} -> {_shorten(self.after)}"


@dataclass(frozen=True)
class Outcome:
    """Whether the tests found a mutant. `killed_by`: the first test that failed, or what ended the run; None where it
    lives; `by_long`: whether CI alone asks that test. `asked`: how many tests may find it; `seconds`: that it took."""

    mutant: Mutant
    killed_by: str | None
    by_long: bool
    asked: int
    seconds: float


def list_mutants(file: str, source: str) -> Iterator[Mutant]:
    """Yields every mutant of a file. Annotations, docstrings and comments have none."""
    if file.endswith(".sql"):
        yield from _list_sql_mutants(file, source)
        return
    ends = _Offsets(source)
    for node in _list_expressions(ast.parse(source)):
        start, end = ends.find(node.lineno, node.col_offset), ends.find(node.end_lineno or 0, node.end_col_offset or 0)
        for changed in _change(node):
            yield Mutant(file, source, start, end, f"({ast.unparse(changed)})")


def _list_sql_mutants(file: str, source: str) -> Iterator[Mutant]:
    plain = _SQL_ASIDE.sub(lambda found: " " * len(found[0]), source)
    for pattern, after in SQL_FAULTS:
        for found in re.finditer(pattern, plain):
            yield Mutant(file, source, found.start(), found.end(), after)


class _Offsets:
    """The places of a text, by line and byte."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def find(self, line: int, column: int) -> int:
        """Returns the place of a byte of a line."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _list_expressions(node: ast.AST) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        # The name of a type, such as `Statement = Select | TextClause`.
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and _names_type(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from _list_expressions(child)


def _names_type(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) and target.id[:1].isupper() for target in node.targets)


def _change(node: ast.expr) -> Iterator[ast.expr]:
    """Yields the node with each fault that it can have."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        yield _copy(node, ops=[OPERATORS[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OPERATORS:
        yield _copy(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield _copy(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
            yield _copy(node, func=_copy(node.func, attr=NAMES[node.func.attr]))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "where" and len(node.args) > 1:
            yield _copy(node, args=node.args[:-1])


def _copy(node: ast.expr, **fields: object) -> ast.expr:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def choose(root: Path, number: int, seed: int) -> list[Mutant]:
    """Returns some mutants of the files of `NEAR`, as many of each of its rows."""
    dice, chosen = random.Random(seed), list[Mutant]()
    for place, prefix in enumerate(NEAR):
        # The beginning of a name, such as `sharing`, is no folder.
        folder, _, _name = prefix.rpartition("/")
        files = sorted(it for kind in ("*.py", "*.sql") for it in (root / folder).rglob(kind))
        named = [(str(path.relative_to(root)), path) for path in files]
        found = [it for name, path in named if name.startswith(prefix) for it in list_mutants(name, path.read_text())]
        share = number // len(NEAR) + (place < number % len(NEAR))
        chosen += dice.sample(found, min(share, len(found)))
    return chosen


class Tests:
    """The tests of `make test` and of CI, and which of them reach a mutant."""

    def __init__(self, folder: Path) -> None:
        phases = json.loads((folder / "times.json").read_text())
        self._seconds = {test.name: test.seconds for test in places.join(phases, {})}
        self._reaching = places.read_reaching(folder / "coverage", phases)

    def find(self, mutant: Mutant, *, long: bool) -> list[str]:
        """Returns those that may find a mutant, the cheapest first. `long`: of those that CI alone asks."""
        near = next(tests for prefix, tests in NEAR.items() if mutant.file.startswith(prefix))
        found = list(self._reaching.list_tests(mutant.file, mutant.lines))
        found = found or [name for name in self._seconds if name.startswith(near) and name != _OF_TEXTS]
        if not found:
            # What has a run of its own.
            return [] if long else list(near)
        return sorted((it for it in found if (it in places.PLACES.long) is long), key=self._seconds.__getitem__)


def try_mutant(mutant: Mutant, folder: Path, tests: Tests, processes: int) -> Outcome:
    """Asks the tests in a copy of the project, which is as before at the end."""
    began, path, asked = time.monotonic(), folder / mutant.file, 0
    before = path.read_text()
    for long in (False, True):
        names = tests.find(mutant, long=long)
        asked += len(names)
        for some in (names[:FIRST], names[FIRST:]):
            path.write_text(mutant.source)
            try:
                killed_by = find_failing(some, folder, processes)
            finally:
                path.write_text(before)
            if killed_by is not None:
                if killed_by in some and find_failing([killed_by], folder, 0) is not None:
                    sys.exit(f"without a fault: {killed_by}")
                return Outcome(mutant, killed_by, long, asked, time.monotonic() - began)
    return Outcome(mutant, None, False, asked, time.monotonic() - began)


def find_failing(tests: Sequence[str], folder: Path, processes: int) -> str | None:
    """The first test that fails; None if none does."""
    if not tests:
        return None
    # Tests of a file stand together: their fixtures are made once.
    files = defaultdict(list)
    for name in tests:
        files[name.partition("::")[0]].append(name)
    listed = folder / "asked.txt"
    listed.write_text("".join(f"{name}\n" for names in files.values() for name in names))
    found = f"{folder}{os.pathsep}{folder / 'grammar'}"
    command = (*PYTEST, "--numprocesses", str(min(processes, len(tests))), f"@{listed}")
    known = {**os.environ, "PYTHONPATH": found, "TESTS": "places"}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    if done.returncode == pytest.ExitCode.OK:
        return None
    if _UNUSABLE in done.stdout + done.stderr:
        return _UNUSABLE
    if done.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(
            f"`make places` measured tests that are gone; measure anew\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[0] if failed else f"pytest ended with {done.returncode}"


def main(say: Callable[[str], None] = print) -> None:
    """Tries the mutants, says each, and at the end those that live and those that CI alone finds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what `make places` measured")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="the beginning of the paths of files")
    parser.add_argument("--begin", type=int, default=1, help="the number of the first: goes on with a run that ended")
    given = parser.parse_args()
    chosen = [it for it in choose(ROOT, given.number, given.seed) if it.file.startswith(given.only)]
    tests, outcomes = Tests(given.folder), list[Outcome]()
    with tempfile.TemporaryDirectory(prefix="roster-mutants-") as name:
        folder = Path(shutil.copytree(ROOT, Path(name) / "project", ignore=LEFT_OUT))
        for number, mutant in enumerate(chosen[given.begin - 1 :], given.begin):
            outcomes.append(try_mutant(mutant, folder, tests, given.processes))
            say(f"{number}/{len(chosen)} {describe(outcomes[-1])}")
    for title, group in (
        ("live", [it for it in outcomes if it.killed_by is None]),
        ("are found in CI alone, and keep a test in `make test`", [it for it in outcomes if it.by_long]),
    ):
        say(f"{len(group)} of {len(outcomes)} {title}:")
        for outcome in group:
            say(f"  {describe(outcome)}")
    places.keep({it.killed_by: f"finds {it.mutant.change}" for it in outcomes if it.by_long and it.killed_by})


def describe(outcome: Outcome) -> str:
    """Returns a line for an outcome."""
    end = "LIVES" if outcome.killed_by is None else outcome.killed_by
    where = ", in CI" if outcome.by_long else ""
    return f"{outcome.mutant.change}: {end}{where} ({outcome.asked} tests, {outcome.seconds:.0f} s)"


def _shorten(text: str) -> str:
    return " ".join(text.split())[:70]


if __name__ == "__main__":
    main()
