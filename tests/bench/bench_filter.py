"""How fast filters are, beside odata-query and scim2-filter-parser on equivalent texts: prints ratios, asserts nothing.

    python tests/bench/bench_filter.py

Both packages are needed for this script alone. All take turns, none has a cache, and the best turn of each counts.
"""

import logging
import platform
import sys
import time
import timeit
from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa
from odata_query.grammar import ODataLexer, ODataParser
from odata_query.sqlalchemy.core import AstToSqlAlchemyCoreVisitor
from oneroster_filter import check, field_types, parse, predicate, sql_text
from oneroster_filter.sqlalchemy import sqlalchemy_where
from scim2_filter_parser.lexer import SCIMLexer
from scim2_filter_parser.parser import SCIMParser
from scim2_filter_parser.transpilers.sql import Transpiler

TURNS = 15
CALLS = 500
RECORDS = 30_000

TEXTS = (
    # OneRoster, OData, SCIM
    (
        "status='active' AND role='teacher'",
        "status eq 'active' and role eq 'teacher'",
        'status eq "active" and role eq "teacher"',
    ),
    (
        "familyName='O''Brien' OR givenName='Sinéad'",
        "familyName eq 'O''Brien' or givenName eq 'Sinéad'",
        'familyName eq "O\'Brien" or givenName eq "Sinéad"',
    ),
    (
        "familyName~'bri' AND status='active'",
        "contains(familyName,'bri') and status eq 'active'",
        'familyName co "bri" and status eq "active"',
    ),
    (
        "status='active' AND dateLastModified>'2026-11-21T02:00:00.000Z'",
        "status eq 'active' and dateLastModified gt 2026-11-21T02:00:00.000Z",
        'status eq "active" and dateLastModified gt "2026-11-21T02:00:00.000Z"',
    ),
)
NAMES = ("status", "role", "familyName", "givenName")
TABLE = sa.Table(
    "users",
    sa.MetaData(),
    *(sa.Column(name, sa.Text) for name in NAMES),
    sa.Column("dateLastModified", sa.DateTime(timezone=True)),
)
COLUMNS = {column.name: f"users.{column.name}" for column in TABLE.c}
TYPES = field_types({**dict.fromkeys(NAMES, str), "dateLastModified": datetime})
ATTRIBUTES = {(name, None, None): column for name, column in COLUMNS.items()}


def make_where(text: str) -> object:
    """From text to a condition of SQLAlchemy."""
    return sqlalchemy_where(check(parse(text), TYPES), TABLE.c.__getitem__)


def make_text(text: str) -> object:
    """From text to text of SQL."""
    return sql_text(check(parse(text), TYPES), COLUMNS)


def parse_odata(text: str) -> object:
    """Parse the way odata-query's own documentation does."""
    return ODataParser().parse(ODataLexer().tokenize(text))


def make_odata_where(text: str) -> object:
    """From text to a condition of SQLAlchemy, the way odata-query's `apply_odata_core` does."""
    return AstToSqlAlchemyCoreVisitor(TABLE).visit(parse_odata(text))


def make_scim_text(text: str) -> object:
    """From text to text of SQL, the way scim2-filter-parser's own `SQLQuery` does."""
    return Transpiler(ATTRIBUTES).transpile(SCIMParser().parse(SCIMLexer().tokenize(text)))


def measure(*runs: Callable[[], object], calls: int = CALLS) -> list[float]:
    """The microseconds of processor time of one call of each, in the best of its turns."""
    turns = [[timeit.timeit(run, timer=time.process_time, number=calls) for run in runs] for _ in range(TURNS)]
    return [min(times) / calls * 1e6 for times in zip(*turns, strict=True)]


def main() -> int:
    """Print a line for each text and stage, then records."""
    # odata-query warns of each name whose type it does not know.
    logging.disable(logging.WARNING)
    print(f"Python {platform.python_version()}, SQLAlchemy {sa.__version__}; microseconds of processor time\n")
    print(f"{'':28} {'this library':>12} {'odata-query':>12} {'ratio':>6}")
    for own, odata, _ in TEXTS:
        ours, theirs = measure(lambda own=own: parse(own), lambda odata=odata: parse_odata(odata))
        print(f"{'text to tree':28} {ours:12.1f} {theirs:12.1f} {theirs / ours:6.2f}  {own}")
    for own, odata, _ in TEXTS:
        ours, theirs = measure(lambda own=own: make_where(own), lambda odata=odata: make_odata_where(odata))
        print(f"{'text to SQLAlchemy WHERE':28} {ours:12.1f} {theirs:12.1f} {theirs / ours:6.2f}  {own}")
    print(f"\n{'':28} {'this library':>12} {'scim2':>12} {'ratio':>6}")
    for own, _, scim in TEXTS:
        ours, theirs = measure(lambda own=own: make_text(own), lambda scim=scim: make_scim_text(scim))
        print(f"{'text to text of SQL':28} {ours:12.1f} {theirs:12.1f} {theirs / ours:6.2f}  {own}")
    print()
    records = [
        {"status": "active", "familyName": f"O'Brien {number}", "dateLastModified": "2026-11-21T02:00:00.000Z"}
        for number in range(RECORDS)
    ]
    for own, _, _ in (TEXTS[0], TEXTS[2], TEXTS[3]):
        test = predicate(check(parse(own), TYPES))
        [all_of_them] = measure(lambda test=test: sum(map(test, records)), calls=1)
        print(f"{RECORDS} records: {all_of_them / 1000:.0f} ms  {own}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
