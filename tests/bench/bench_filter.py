"""How fast filters are parsed, beside odata-query on equivalent texts: prints ratios, in one run, and asserts nothing.

    python tests/bench/bench_filter.py

odata-query is needed for this script alone. Both parse uncached, in turns, and the best turn of each counts.
"""

import platform
import sys
import timeit
from collections.abc import Callable

from odata_query.grammar import ODataLexer, ODataParser
from oneroster_filter import parse
from oneroster_filter.parser import MAX_CLAUSES, MAX_LENGTH, parse_uncached

TURNS = 15
CALLS = 1_000
TARGET = 1.5

PAIRS = (
    (
        "status='active' AND role='teacher'",
        "status eq 'active' and role eq 'teacher'",
    ),
    (
        "familyName='O''Brien' OR givenName='Sinéad'",
        "familyName eq 'O''Brien' or givenName eq 'Sinéad'",
    ),
    (
        "familyName~'bri' AND status='active'",
        "contains(familyName,'bri') and status eq 'active'",
    ),
    (
        "status='active' AND dateLastModified>'2026-11-21T02:00:00.000Z'",
        "status eq 'active' and dateLastModified gt 2026-11-21T02:00:00.000Z",
    ),
)


def parse_odata(text: str) -> object:
    """Parse the way odata-query's own documentation does."""
    return ODataParser().parse(ODataLexer().tokenize(text))


def best(run: Callable[[], object], calls: int) -> float:
    """The microseconds of one call, of one turn."""
    return timeit.timeit(run, number=calls) / calls * 1e6


def main() -> int:
    """Print a line for each pair, and one for a repeated text."""
    print(f"Python {platform.python_version()}, microseconds for one filter of two clauses, uncached\n")
    print(f"{'oneroster-filter':>16} {'odata-query':>12} {'times as fast':>14}  filter")
    ratios = []
    for ours, theirs in PAIRS:
        own, other = [], []
        for _ in range(TURNS):
            own.append(best(lambda: parse_uncached(ours, MAX_LENGTH, MAX_CLAUSES), CALLS))  # noqa: B023
            other.append(best(lambda: parse_odata(theirs), CALLS))  # noqa: B023
        ratios.append(min(other) / min(own))
        print(f"{min(own):16.1f} {min(other):12.1f} {ratios[-1]:14.2f}  {ours}")
    repeated = min(best(lambda: parse(PAIRS[0][0]), 100_000) for _ in range(TURNS))
    print(f"\nleast: {min(ratios):.2f} times as fast (target {TARGET})")
    print(f"a repeated text: {repeated:.2f} microseconds (target 1)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
