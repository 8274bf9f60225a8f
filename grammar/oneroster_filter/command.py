"""The command `python -m oneroster_filter`: parse a filter, explain it, or run it on a CSV file."""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from oneroster_filter.check import TypedExpr, check
from oneroster_filter.errors import FilterError, RecordError
from oneroster_filter.field_types import FieldType, FieldTypes, Kind
from oneroster_filter.nodes import And, Expr, Or, clauses
from oneroster_filter.operators import KIND_NAMES
from oneroster_filter.parser import MAX_CLAUSES, parse
from oneroster_filter.predicate import predicate
from oneroster_filter.text import to_text
from oneroster_filter.values import Span

DIALECTS = ("postgresql", "sqlite", "mysql")
"""The names of `sql_explain.DIALECTS`, repeated because that module needs SQLAlchemy."""

REFUSED = 2
"""The exit code for a refused filter, file or record. argparse uses the same code for wrong arguments."""


class InputError(Exception):
    """A file that cannot be read or has unexpected contents; the message says why."""


def main(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run the command.

    Args:
        arguments: The arguments after the command's name.
        output: The stream for results.
        errors: The stream for error messages and for the count of the rows.

    Returns:
        The exit code: 0, or 2 where the filter, a file or a record was refused.
    """
    options = _make_argument_parser().parse_args(arguments)
    try:
        _run(options, output, errors)
    except (FilterError, InputError) as error:
        errors.write(f"{error}\n")
        return REFUSED
    return 0


def _make_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oneroster_filter", description="Try a OneRoster filter, or run it on a CSV file."
    )
    parser.add_argument("filter", help="the filter: \"status='active' AND role='teacher'\"")
    parser.add_argument(
        "--types",
        metavar="FILE",
        help='field types as JSON: {"grades": "texts", "roles.role": {"kind": "text", "many": true}}',
    )
    parser.add_argument(
        "--csv", metavar="FILE", help="print the rows of this file that match (- is the standard input)"
    )
    parser.add_argument("--explain", action="store_true", help="print the tree of the filter, and its SQL")
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="the SQL dialect to print")
    parser.add_argument("--max-clauses", type=int, default=MAX_CLAUSES, help="the most clauses to accept")
    return parser


def _run(options: argparse.Namespace, output: TextIO, errors: TextIO) -> None:
    expr = parse(options.filter, max_clauses=options.max_clauses)
    types = read_types(options.types) if options.types else None
    if options.explain:
        typed = check(expr, make_text_types(clause.field for clause in clauses(expr)) if types is None else types)
        output.writelines(f"{line}\n" for line in explain(typed, options.dialect))
    if options.csv:
        with open_input(options.csv) as file:
            matched, seen = print_matching(expr, types, file, output)
        errors.write(f"{matched} of {seen} rows\n")
    if not options.explain and not options.csv:
        output.write(f"{to_text(expr)}\n")


def explain(typed: TypedExpr, dialect: str) -> Iterator[str]:
    """Yield the lines of an explanation: the tree of the expression, then its SQL if SQLAlchemy is installed."""
    yield from format_tree(typed, "")
    try:
        from oneroster_filter.sql_explain import format_sql
    except ModuleNotFoundError:
        yield "SQL: needs SQLAlchemy (pip install 'oneroster-filter[sqlalchemy]')"
    else:
        yield f"SQL ({dialect}):"
        yield from format_sql(typed, dialect)


def format_tree(expr: TypedExpr, indent: str) -> Iterator[str]:
    """Yield the lines of a tree, one for each node."""
    if isinstance(expr, (And, Or)):
        yield f"{indent}{type(expr).__name__.upper()}"
        for operand in expr.operands:
            yield from format_tree(operand, f"{indent}  ")
    else:
        kind = KIND_NAMES[expr.type.kind] + (", any of many" if expr.type.many else "")
        value = expr.value if isinstance(expr.value, Span) else repr(expr.value)
        yield f"{indent}{expr.field} {expr.operator.value} {value}  ({kind})"


def make_text_types(names: Iterable[str]) -> FieldTypes:
    """Return field types that make every named field a text."""
    return FieldTypes(dict.fromkeys(names, Kind.TEXT))


def read_types(path: str) -> FieldTypes:
    """Read a file of field types.

    Args:
        path: A JSON file: an object from field name to the name of a kind, or to `{"kind": ..., "many": true}`.

    Returns:
        The types.

    Raises:
        InputError: The file cannot be read, or is not such an object.
    """
    with open_input(path) as file:
        try:
            return FieldTypes({name: _read_type(entry) for name, entry in json.load(file).items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            kinds = ", ".join(kind.value for kind in Kind)
            raise InputError(f"{path}: not an object of field types (kinds: {kinds}): {error}") from None


def _read_type(entry: str | Mapping[str, Any]) -> FieldType:
    if isinstance(entry, str):
        return FieldType(Kind(entry))
    return FieldType(Kind(entry["kind"]), many=entry.get("many", False) is True)


def print_matching(expr: Expr, types: FieldTypes | None, file: TextIO, output: TextIO) -> tuple[int, int]:
    """Print the rows of a CSV file that satisfy a filter, below the file's own header.

    Args:
        expr: The filter.
        types: The types of the columns; None where every column is text.
        file: The CSV file. An empty cell is an absent value. In a cell of a list or of a field with many values, commas
            separate the items.
        output: The stream for the rows.

    Returns:
        The number of matching rows, and the number of all rows.

    Raises:
        FilterError: The filter does not fit the types.
        InputError: A column is missing, or a cell is not of its kind.
    """
    rows = (row for row in csv.reader(file, strict=True) if row)
    header = next(rows, [])
    typed = check(expr, make_text_types(header) if types is None else types)
    lists = set()
    for clause in clauses(typed):
        if clause.field not in header:
            raise InputError(f"the file has no column {clause.field}")
        if clause.type.many or clause.type.kind is Kind.TEXTS:
            lists.add(clause.field)
    test = predicate(typed)
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(header)
    matched = seen = 0
    for seen, row in enumerate(rows, start=1):
        record = {name: _read_cell(cell, name in lists) for name, cell in zip(header, row, strict=False)}
        try:
            if test(record):
                matched += 1
                writer.writerow(row)
        except RecordError as error:
            raise InputError(f"row {seen}: {error}") from None
    return matched, seen


def _read_cell(cell: str, is_list: bool) -> str | list[str] | None:
    if not is_list:
        return cell or None
    return [item.strip() for item in cell.split(",")] if cell else None


@contextmanager
def open_input(path: str) -> Iterator[TextIO]:
    """Open a text file for reading; `-` is the standard input. Raises InputError where it cannot be read."""
    with ExitStack() as stack:
        try:
            file = sys.stdin if path == "-" else stack.enter_context(Path(path).open(encoding="utf-8-sig", newline=""))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        try:
            yield file
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: {error}") from None
