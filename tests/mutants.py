"""Mutants: copies of the project with one small fault each, and whether the tests find it.

`make mutants` makes some, chosen by a seed, and asks for each first the tests that are near to it, which find most of
them, and of those that live then the whole of `make test`. Whoever moves or removes tests runs it before and after: no
more may live. A fault that changes nothing that anybody can see lives, too; the list of those that live is read by a
person.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What decides what somebody sees, and what a load writes; by beginning of the path, the tests near to it.
NEAR: Mapping[str, tuple[str, ...]] = {
    "grammar/oneroster_filter/": ("tests/grammar",),
    "roster_service/roster/visibility.py": ("tests/roster", "tests/serving", "tests/db", "tests/access_matrix"),
    "roster_service/serving/": ("tests/serving", "tests/contract"),
    "roster_service/feeds/sharing": ("tests/accounts", "tests/db", "tests/deltas/test_rules.py"),
    "sync_scripts/applying/": ("tests/sync/applying",),
    "sync_scripts/checking/": ("tests/sync",),
}
# `make test`, but for what asks the style of a file.
WHOLE = ("tests", "--ignore=tests/faults", "--ignore=tests/conformance", "--ignore=tests/style")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "var", ".*_cache")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--dist", "worksteal")

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


@dataclass(frozen=True)
class Mutant:
    """A fault. `file`: from the root; `original`: the text of the file without it; `node`: what it replaces, and
    `changed`: by what."""

    file: str
    original: str
    node: ast.expr
    changed: ast.expr

    @property
    def before(self) -> str:
        """The text that it replaces."""
        return ast.get_source_segment(self.original, self.node) or ""

    @property
    def after(self) -> str:
        """The text in its place."""
        return ast.unparse(self.changed)

    @property
    def source(self) -> str:
        """The text of the file with the fault."""
        return _replace(self.original, self.node, f"({self.after})")


@dataclass(frozen=True)
class Outcome:
    """Whether the tests found a mutant. `killed_by`: the first test that failed, or what ended the run; None where it
    lives. `seconds`: that it took."""

    mutant: Mutant
    killed_by: str | None
    seconds: float


def list_mutants(file: str, source: str) -> Iterator[Mutant]:
    """Yields every mutant of a file. Annotations and docstrings have none."""
    for node in _list_expressions(ast.parse(source)):
        yield from (Mutant(file, source, node, changed) for changed in _change(node))


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


def _replace(source: str, node: ast.expr, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], head, text.encode(), tail, *lines[last + 1 :]]).decode()


def choose(root: Path, number: int, seed: int) -> list[Mutant]:
    """Returns some mutants of the files of `NEAR`, as many of each of its rows."""
    dice, chosen = random.Random(seed), list[Mutant]()
    for place, prefix in enumerate(NEAR):
        # The beginning of a name, such as `sharing`, is no folder.
        folder, _, _name = prefix.rpartition("/")
        files = sorted(path for path in (root / folder).rglob("*.py") if str(path.relative_to(root)).startswith(prefix))
        found = [it for path in files for it in list_mutants(str(path.relative_to(root)), path.read_text())]
        share = number // len(NEAR) + (place < number % len(NEAR))
        chosen += dice.sample(found, min(share, len(found)))
    return chosen


def try_mutant(mutant: Mutant, folder: Path, processes: int, *, whole: bool) -> Outcome:
    """Asks the tests in a copy of the project. `whole`: also all of `make test`, where those near to it find nothing.
    The copy is as before at the end."""
    began, path = time.monotonic(), folder / mutant.file
    before = path.read_text()
    path.write_text(mutant.source)
    near = next(tests for prefix, tests in NEAR.items() if mutant.file.startswith(prefix))
    try:
        killed_by = _run(near, folder, processes)
        if killed_by is None and whole:
            killed_by = _run(WHOLE, folder, processes)
    finally:
        path.write_text(before)
    return Outcome(mutant, killed_by, time.monotonic() - began)


def require_green(folder: Path, processes: int, chosen: Sequence[Mutant], *, whole: bool) -> None:
    """Ends the program if a test fails without a fault: it would seem to find every mutant."""
    near = [tests for prefix, tests in NEAR.items() if any(mutant.file.startswith(prefix) for mutant in chosen)]
    asked = [WHOLE] if whole else near
    failed = next(filter(None, (_run(tests, folder, processes) for tests in asked)), None)
    if failed is not None:
        sys.exit(f"without a fault: {failed}")


def _run(tests: Sequence[str], folder: Path, processes: int) -> str | None:
    """The first test that fails; None if none does."""
    known = {name: text for name, text in os.environ.items() if name != "TESTS"}
    found = f"{folder}{os.pathsep}{folder / 'grammar'}"
    command = (*PYTEST, "--numprocesses", str(processes), *tests)
    done = subprocess.run(
        command, cwd=folder, env={**known, "PYTHONPATH": found}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else f"pytest ended with {done.returncode}"


def main(say: Callable[[str], None] = print) -> None:
    """Tries the mutants, says each, and at the end those that live."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--near", action="store_true", help="ask only the tests that are near to each")
    parser.add_argument("--only", default="", help="the beginning of the paths of files")
    parser.add_argument("--out", type=Path, help="a file for the outcomes, as JSON")
    given = parser.parse_args()
    chosen = [it for it in choose(ROOT, given.number, given.seed) if it.file.startswith(given.only)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="roster-mutants-") as name:
        folder = Path(shutil.copytree(ROOT, Path(name) / "project", ignore=LEFT_OUT))
        require_green(folder, given.processes, chosen, whole=not given.near)
        for number, mutant in enumerate(chosen, 1):
            outcomes.append(try_mutant(mutant, folder, given.processes, whole=not given.near))
            say(f"{number}/{len(chosen)} {describe(outcomes[-1])}")
            if given.out is not None:
                given.out.write_text(json.dumps([describe(outcome) for outcome in outcomes], indent=1))
    living = [outcome for outcome in outcomes if outcome.killed_by is None]
    say(f"{len(living)} of {len(outcomes)} live:")
    for outcome in living:
        say(f"  {describe(outcome)}")


def describe(outcome: Outcome) -> str:
    """Returns a line for an outcome."""
    it = outcome.mutant
    change = f"{' '.join(it.before.split())[:70]} -> {' '.join(it.after.split())[:70]}"
    end = "LIVES" if outcome.killed_by is None else outcome.killed_by[:110]
    return f"{it.file}:{it.node.lineno}: {change}: {end} ({outcome.seconds:.0f} s)"


if __name__ == "__main__":
    main()
