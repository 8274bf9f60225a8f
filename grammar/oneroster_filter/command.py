"""The command `oneroster-filter`: parse a filter, explain it, or run it on a file of CSV or JSON lines."""

import argparse
import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

from oneroster_filter.check import TypedClause, TypedExpr, check
from oneroster_filter.errors import FilterError, RecordError
from oneroster_filter.field_types import FieldType, FieldTypes, Kind, is_writable
from oneroster_filter.nodes import And, Expr, Or, clauses
from oneroster_filter.operators import KIND_NAMES
from oneroster_filter.parser import MAX_CLAUSES, parse
from oneroster_filter.predicate import predicate
from oneroster_filter.sources import Through
from oneroster_filter.sql_templates import DATABASES
from oneroster_filter.sql_text import sql_text
from oneroster_filter.text import to_text
from oneroster_filter.values import Span

REFUSED = 2
"""The exit code for a refused filter, file or record. argparse uses the same code for wrong arguments."""

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


class InputError(Exception):
    """A file that cannot be read or has unexpected contents; the message says why."""


def run() -> NoReturn:
    """Run the command with the arguments and streams of the process, and exit. Its output is UTF-8, as files are."""
    # A pipe of Windows, or PYTHONIOENCODING, may have an encoding that cannot write every text of a file.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        code = main(sys.argv[1:], sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`). Without this, Python would report the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def main(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run the command."""
    options = _make_argument_parser().parse_args(arguments)
    try:
        _run(options, output, errors)
    except (FilterError, InputError) as error:
        errors.write(f"{error}\n")
        return REFUSED
    return 0


def _make_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oneroster-filter", description="Try a OneRoster filter, or run it on a file of CSV or JSON lines."
    )
    parser.add_argument("filter", help="the filter: \"status='active' AND role='teacher'\"")
    parser.add_argument(
        "--types",
        metavar="FILE",
        help='field types as JSON: {"grades": "texts", "roles.role": {"kind": "text", "many": true}}',
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--csv", metavar="FILE", help="print the rows of this file that match (- is the standard input)")
    files.add_argument("--jsonl", metavar="FILE", help="print the lines of this file, each a JSON object, that match")
    parser.add_argument("--explain", action="store_true", help="print the tree of the filter, and its SQL")
    parser.add_argument("--sql", action="store_true", help="print the SQL of the filter and its values")
    parser.add_argument("--dialect", choices=DATABASES, default=DATABASES[0], help="the database of the SQL")
    parser.add_argument("--max-clauses", type=_read_limit, default=MAX_CLAUSES, help="the most clauses to accept")
    return parser


def _read_limit(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _run(options: argparse.Namespace, output: TextIO, errors: TextIO) -> None:
    expr = parse(options.filter, max_clauses=options.max_clauses)
    types = read_types(options.types) if options.types else None
    typed = check(expr, _make_named_types(expr) if types is None else types)
    if options.explain or options.sql:
        write_lines = explain if options.explain else format_sql
        output.writelines(f"{line}\n" for line in write_lines(typed, options.dialect))
    if options.csv or options.jsonl:
        with open_input(options.csv or options.jsonl) as file:
            print_matching = print_matching_rows if options.csv else print_matching_lines
            matched, seen = print_matching(expr, types, file, output)
        errors.write(f"{matched} of {seen} {'rows' if options.csv else 'records'}\n")
    elif not options.explain and not options.sql:
        output.write(f"{to_text(expr)}\n")


def explain(typed: TypedExpr, database: str) -> Iterator[str]:
    """Yield the lines of an explanation: the tree of the expression, then its SQL."""
    yield from format_tree(typed, "")
    yield f"SQL ({database}):"
    yield from (f"  {line}" for line in format_sql(typed, database))


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


def format_sql(typed: TypedExpr, database: str) -> Iterator[str]:
    """Yield the lines of the SQL: the condition, then its values. Each field is a column, and each list a table."""
    columns = {clause.field: _make_source(clause, database) for clause in clauses(typed)}
    condition = sql_text(typed, columns, database=database, paramstyle="numeric")
    yield condition.text
    yield from (f":{number} = {value}" for number, value in enumerate(map(_format_value, condition.values), start=1))


def _format_value(value: object) -> str:
    return repr(value) if isinstance(value, (str, bool, list)) else repr(str(value))


def _make_source(clause: TypedClause, database: str) -> str | Through:
    if not clause.type.many:
        return _quote(clause.field, database)
    above, _, name = clause.field.rpartition(".")
    table = _quote(above or clause.field, database)
    # The name of a field has no character that would end the quotes.
    exists = f"EXISTS (SELECT 1 FROM {table} WHERE %s)"  # noqa: S608
    return Through(f"{table}.{_quote(name, database)}", lambda condition: exists % condition)


def _quote(name: str, database: str) -> str:
    quote = "`" if database in ("mysql", "mariadb") else '"'
    return name if _PLAIN_NAME.fullmatch(name) else f"{quote}{name}{quote}"


def _make_named_types(expr: Expr) -> FieldTypes:
    return make_text_types(clause.field for clause in clauses(expr))


def make_text_types(names: Iterable[str]) -> FieldTypes:
    """Return field types that make every named field a text, but for names that no filter can write."""
    return FieldTypes(dict.fromkeys(filter(is_writable, names), Kind.TEXT))


def read_types(path: str) -> FieldTypes:
    """Read a file of field types.

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


def print_matching_rows(expr: Expr, types: FieldTypes | None, file: TextIO, output: TextIO) -> tuple[int, int]:
    """Print the rows of a CSV file that satisfy a filter, below the file's own header.

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


def print_matching_lines(expr: Expr, types: FieldTypes | None, file: TextIO, output: TextIO) -> tuple[int, int]:
    """Print the lines of a file of JSON lines that satisfy a filter, as they are written.

    Raises:
        FilterError: The filter does not fit the types.
        InputError: A line is no JSON object, or a value is not of its field's kind.
    """
    test = predicate(check(expr, _make_named_types(expr) if types is None else types))
    matched = seen = 0
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        seen += 1
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise InputError(f"line {number}: not a JSON object")
            if test(record):
                matched += 1
                output.write(line.rstrip("\r\n") + "\n")
        except RecordError as error:
            raise InputError(f"line {number}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}: not JSON: {error}") from None
    return matched, seen


@contextmanager
def open_input(path: str) -> Iterator[TextIO]:
    """Open a text file for reading, in UTF-8 with or without a byte order mark; `-` is the standard input, read alike.
    Raises InputError where it cannot be read."""
    with ExitStack() as stack:
        try:
            if path != "-":
                file: TextIO = stack.enter_context(Path(path).open(encoding="utf-8-sig", newline=""))
            elif isinstance(sys.stdin, io.TextIOWrapper):
                file = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
                # Else the standard input would be closed with it.
                stack.callback(file.detach)
            else:
                file = sys.stdin
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        try:
            yield file
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: {error}") from None
