"""Which tests `make test` asks, and which CI alone: decided by measurement, and kept in `places.txt`.

`make places` runs every test of `make test` once, and notes what it takes and which lines of the product it reaches.
A test keeps its place if

- it found a fault of `make mutants` that no other test of `make test` finds, or asks one layer alone (a row `kept`),
- it is the cheapest that reaches some line, or
- it is the cheapest case of its function, and there is time.

The time that is left goes to all others, the cheapest first. Whoever gets none is a row `long`: CI asks it. A test that
keeps its place and takes more than two seconds is a row `slow`, which says why. A new test has a place at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parent.parent
FILE = Path(__file__).with_name("places.txt")
PRODUCT = ("roster_service", "sync_scripts")
# The library has a run of its own, and needs all of its tests: they take half a minute.
LEFT_OUT = ("--ignore=tests/grammar", "--ignore=tests/faults", "--ignore=tests/conformance")
SLOW = 2.0
# What the tests of `make test` may take together, as a part of what all take.
SHARE = 0.19
PHASES = ("setup", "call", "teardown")
# Why a test stays that no line needs.
CHEAPEST, IN_TIME = "the cheapest case of its function", "there is time for it"


@dataclass(frozen=True)
class Measured:
    """A test. `name`: its node id; `own`: its seconds; `shared`: its part of what the fixtures of its file take, in
    seconds; `lines`: a bit for each line of the product that it reaches."""

    name: str
    own: float
    shared: float
    lines: int

    @property
    def seconds(self) -> float:
        """What it takes."""
        return self.own + self.shared

    @property
    def function(self) -> str:
        """The function that it is a case of."""
        return self.name.partition("[")[0]


@dataclass(frozen=True)
class Places:
    """The rows of `places.txt`. `long`: what CI alone asks; `slow` and `kept`: by test, why it has its place."""

    long: frozenset[str]
    slow: Mapping[str, str]
    kept: Mapping[str, str]

    def write(self) -> str:
        """Returns the text of the file."""
        # No name has a tab: pytest writes it as two characters.
        rows = [f"kept {name}\t{why}" for name, why in sorted(self.kept.items())]
        rows += [f"slow {name}\t{why}" for name, why in sorted(self.slow.items())]
        return "".join(f"{row}\n" for row in [*rows, *(f"long {name}" for name in sorted(self.long))])


def read_places(text: str) -> Places:
    """Reads the text of the file."""
    rows: dict[str, dict[str, str]] = {"long": {}, "slow": {}, "kept": {}}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, why = rest.partition("\t")
        rows[kind][name] = why
    return Places(frozenset(rows["long"]), rows["slow"], rows["kept"])


PLACES = read_places(FILE.read_text() if FILE.exists() else "")


def choose(tests: Iterable[Measured], kept: Mapping[str, str], seconds: float) -> Places:
    """Returns the places of the tests. `kept`: those that found a fault, and why they stay; `seconds`: what all that
    have a place may take together."""
    ordered = sorted(tests, key=lambda test: (test.seconds, test.name))
    known = {test.name for test in ordered}
    places = {name: why for name, why in kept.items() if name in known}
    functions = {test.function for test in ordered if test.name in places}
    reached = 0
    for test in ordered:
        new = (test.lines & ~reached).bit_count()
        reached |= test.lines
        if new and test.name not in places:
            places[test.name] = f"the cheapest test that reaches {new} {'line' if new == 1 else 'lines'} of the product"
            functions.add(test.function)
    taken = sum(test.seconds for test in ordered if test.name in places)
    for why in (CHEAPEST, IN_TIME):
        for test in ordered:
            is_wanted = test.name not in places and (why == IN_TIME or test.function not in functions)
            if is_wanted and taken + test.seconds <= seconds:
                places[test.name] = why
                functions.add(test.function)
                taken += test.seconds
    slow = {test.name: places[test.name] for test in ordered if test.name in places and test.own > SLOW}
    return Places(frozenset(known - places.keys()), slow, {name: why for name, why in kept.items() if name in known})


def join(phases: Mapping[str, Mapping[str, float]], lines: Mapping[str, int]) -> Iterator[Measured]:
    """Yields each test. `phases`: its seconds by phase; `lines`: the lines that it reaches. What the first test of a
    file takes beyond the median to be set up makes the fixtures of the file, which all of its tests share."""
    files = defaultdict(list)
    for name in phases:
        files[name.partition("::")[0]].append(name)
    for names in files.values():
        usual = statistics.median(phases[name].get("setup", 0.0) for name in names)
        beyond = sum(max(0.0, phases[name].get("setup", 0.0) - usual) for name in names)
        for name in names:
            own = min(usual, phases[name].get("setup", 0.0)) + sum(phases[name].get(it, 0.0) for it in PHASES[1:])
            yield Measured(name, own, beyond / len(names), lines.get(name, 0))


@dataclass(frozen=True)
class Reaching:
    """Which tests reach which lines. `names`: of the tests; `lines`: by file, from the root, and line, a bit for each
    of the names that reaches it."""

    names: Sequence[str]
    lines: Mapping[tuple[str, int], int]

    def list_tests(self, file: str, lines: Iterable[int]) -> Iterator[str]:
        """Yields the tests that reach one of some lines."""
        reaching = 0
        for line in lines:
            reaching |= self.lines.get((file, line), 0)
        yield from (name for place, name in enumerate(self.names) if reaching >> place & 1)

    def list_lines(self) -> dict[str, int]:
        """Returns a bit for each line that a test reaches, by test."""
        found = [bytearray(len(self.lines) // 8 + 1) for _ in self.names]
        for place, reaching in enumerate(self.lines.values()):
            while reaching:
                lowest = reaching & -reaching
                found[lowest.bit_length() - 1][place // 8] |= 1 << place % 8
                reaching ^= lowest
        return {name: int.from_bytes(bits, "little") for name, bits in zip(self.names, found, strict=True)}


def read_reaching(data_file: Path, names: Iterable[str]) -> Reaching:
    """Returns what coverage measured of some tests."""
    data = CoverageData(str(data_file))
    data.read()
    places = {name: place for place, name in enumerate(names)}
    lines: dict[tuple[str, int], int] = {}
    for file in sorted(data.measured_files()):
        path = next(file[file.rindex(f"/{name}/") + 1 :] for name in PRODUCT if f"/{name}/" in file)
        for line, contexts in data.contexts_by_lineno(file).items():
            known = {places[name] for name in (it.rpartition("|")[0] for it in contexts) if name in places}
            lines[path, line] = sum(1 << place for place in known)
    return Reaching(list(places), lines)


def list_slow(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yields a line for each test that took longer than two seconds and has no row that says why."""
    apart = tuple(option.removeprefix("--ignore=") for option in LEFT_OUT)
    for report in reports:
        is_known = report.nodeid in {**PLACES.slow, **PLACES.kept} or report.nodeid.startswith(apart)
        if report.when == "call" and report.duration > SLOW and not is_known:
            yield f"{report.nodeid} took {report.duration:.1f} seconds, and `places.txt` does not say why it stays"


class Stopwatch:
    """A plugin of pytest that writes the seconds of each phase of each test to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._phases: dict[str, dict[str, float]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a phase, in the process that leads."""
        self._phases[report.nodeid][report.when] = report.duration

    def pytest_sessionfinish(self) -> None:
        """Writes what it noted."""
        self._path.write_text(json.dumps(self._phases))


def pytest_configure(config: pytest.Config) -> None:
    """Times the tests, where this module is loaded as a plugin; the environment names the file."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch(Path(os.environ["PLACES_TIMES"])))


def measure(folder: Path, processes: str) -> None:
    """Runs the tests, those without a place too, and leaves what it measures in the folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.places", "--numprocesses", processes]
    command += ["--dist", "worksteal", *LEFT_OUT, *(f"--cov={name}" for name in PRODUCT)]
    command += ["--cov-context=test", "--cov-report="]
    names = {"TESTS": "places", "PLACES_TIMES": str(folder / "times.json"), "COVERAGE_FILE": str(folder / "coverage")}
    subprocess.run(command, cwd=ROOT, env={**os.environ, **names}, check=True)


def keep(found: Mapping[str, str]) -> None:
    """Adds tests that found a fault to the file; the next choice keeps them."""
    FILE.write_text(Places(PLACES.long - found.keys(), PLACES.slow, {**PLACES.kept, **found}).write())


def main(say: Callable[[str], None] = print) -> None:
    """Measures the tests, chooses those of `make test`, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for what is measured; what it has is taken as it is")
    parser.add_argument("--share", type=float, default=SHARE)
    parser.add_argument("--processes", default="2")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not (given.folder / "times.json").exists():
        measure(given.folder, given.processes)
    phases = json.loads((given.folder / "times.json").read_text())
    tests = list(join(phases, read_reaching(given.folder / "coverage", phases).list_lines()))
    places = choose(tests, PLACES.kept, given.share * sum(test.seconds for test in tests))
    FILE.write_text(places.write())
    say(describe(tests, places))


def describe(tests: Sequence[Measured], places: Places) -> str:
    """Returns how many tests have a place, and what they take, in a line."""
    staying = [test for test in tests if test.name not in places.long]
    took, whole = (sum(test.seconds for test in group) for group in (staying, tests))
    return f"{len(staying)} of {len(tests)} tests have a place; they take {took:.0f} of {whole:.0f} seconds"


if __name__ == "__main__":
    main()
