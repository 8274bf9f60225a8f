"""OneRoster filter expressions: parse them, check them against types, and run them as SQL or on plain records.

All public names are in this package. It imports the names of `SQLALCHEMY` when they are first used, so that it works
without SQLAlchemy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneroster_filter.builder import F
from oneroster_filter.check import TypedClause, TypedExpr, check
from oneroster_filter.declared_types import TypesSource, field_types
from oneroster_filter.dialect import Dialect
from oneroster_filter.errors import (
    ColumnError,
    ExpressionError,
    FilterError,
    FilterSyntaxError,
    FilterValueError,
    LimitError,
    OperatorError,
    RecordError,
    UnknownFieldError,
)
from oneroster_filter.extensions import Expansion, ExtraOperator, Function
from oneroster_filter.field_types import FieldType, FieldTypes, Kind
from oneroster_filter.folding import fold
from oneroster_filter.nodes import And, Clause, Expr, Operator, Or, Position, all_of, any_of, clauses, fold_tree
from oneroster_filter.operators import OPERATORS
from oneroster_filter.parser import MAX_CLAUSES, MAX_LENGTH, parse
from oneroster_filter.predicate import predicate
from oneroster_filter.text import to_query, to_text
from oneroster_filter.values import Span, Value
from oneroster_filter.version import __version__

if TYPE_CHECKING:
    from oneroster_filter.sql_constructs import add_sqlite_functions as add_sqlite_functions
    from oneroster_filter.sql_constructs import folded as folded
    from oneroster_filter.sql_where import Columns as Columns
    from oneroster_filter.sql_where import FilterValue as FilterValue
    from oneroster_filter.sql_where import Source as Source
    from oneroster_filter.sql_where import Through as Through
    from oneroster_filter.sql_where import sqlalchemy_where as sqlalchemy_where

SQLALCHEMY = {
    "Columns": "sql_where",
    "FilterValue": "sql_where",
    "Source": "sql_where",
    "Through": "sql_where",
    "add_sqlite_functions": "sql_constructs",
    "folded": "sql_constructs",
    "sqlalchemy_where": "sql_where",
}
"""The names that need SQLAlchemy, each with its module. They are not in `__all__`, so `import *` works without it."""


def __getattr__(name: str) -> Any:
    if name not in SQLALCHEMY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{SQLALCHEMY[name]}")
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs SQLAlchemy: pip install 'oneroster-filter[sqlalchemy]'") from error
    return getattr(module, name)


__all__ = [
    "MAX_CLAUSES",
    "MAX_LENGTH",
    "OPERATORS",
    "And",
    "Clause",
    "ColumnError",
    "Dialect",
    "Expansion",
    "Expr",
    "ExpressionError",
    "ExtraOperator",
    "F",
    "FieldType",
    "FieldTypes",
    "FilterError",
    "FilterSyntaxError",
    "FilterValueError",
    "Function",
    "Kind",
    "LimitError",
    "Operator",
    "OperatorError",
    "Or",
    "Position",
    "RecordError",
    "Span",
    "TypedClause",
    "TypedExpr",
    "TypesSource",
    "UnknownFieldError",
    "Value",
    "__version__",
    "all_of",
    "any_of",
    "check",
    "clauses",
    "field_types",
    "fold",
    "fold_tree",
    "parse",
    "predicate",
    "to_query",
    "to_text",
]
