"""OneRoster filter expressions: parse them, check them against types, and run them as SQL or on plain records.

All public names are in this package. It imports the names of `OPTIONAL` when they are first used, so that it works
without the packages that these need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneroster_filter.builder import F, Plain
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
from oneroster_filter.predicate import Record, Test, predicate
from oneroster_filter.sources import Through
from oneroster_filter.sql_templates import add_sqlite_functions
from oneroster_filter.sql_text import SqlText, TextColumns, sql_text
from oneroster_filter.text import to_query, to_text
from oneroster_filter.values import Span, Value
from oneroster_filter.version import __version__

if TYPE_CHECKING:
    from oneroster_filter.data_frames import pandas_mask as pandas_mask
    from oneroster_filter.data_frames import polars_mask as polars_mask
    from oneroster_filter.django_condition import DjangoColumns as DjangoColumns
    from oneroster_filter.django_condition import DjangoSource as DjangoSource
    from oneroster_filter.django_condition import django_q as django_q
    from oneroster_filter.sql_constructs import folded as folded
    from oneroster_filter.sql_where import Columns as Columns
    from oneroster_filter.sql_where import Condition as Condition
    from oneroster_filter.sql_where import FilterValue as FilterValue
    from oneroster_filter.sql_where import Source as Source
    from oneroster_filter.sql_where import sqlalchemy_where as sqlalchemy_where
    from oneroster_filter.sqlalchemy_model import ModelFields as ModelFields
    from oneroster_filter.sqlalchemy_model import sqlalchemy_fields as sqlalchemy_fields

OPTIONAL = {
    "Columns": ("sql_where", "sqlalchemy"),
    "Condition": ("sql_where", "sqlalchemy"),
    "DjangoColumns": ("django_condition", "django"),
    "DjangoSource": ("django_condition", "django"),
    "FilterValue": ("sql_where", "sqlalchemy"),
    "ModelFields": ("sqlalchemy_model", "sqlalchemy"),
    "Source": ("sql_where", "sqlalchemy"),
    "django_q": ("django_condition", "django"),
    "folded": ("sql_constructs", "sqlalchemy"),
    "pandas_mask": ("data_frames", "pandas"),
    "polars_mask": ("data_frames", "polars"),
    "sqlalchemy_fields": ("sqlalchemy_model", "sqlalchemy"),
    "sqlalchemy_where": ("sql_where", "sqlalchemy"),
}
"""The names that need another package, each with its module and the extra that installs the package. They are not in
`__all__`, so `import *` works without any of them."""


def __getattr__(name: str) -> Any:
    if name not in OPTIONAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = OPTIONAL[name]
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs another package: pip install 'oneroster-filter[{extra}]'") from error


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
    "Plain",
    "Position",
    "Record",
    "RecordError",
    "Span",
    "SqlText",
    "Test",
    "TextColumns",
    "Through",
    "TypedClause",
    "TypedExpr",
    "TypesSource",
    "UnknownFieldError",
    "Value",
    "__version__",
    "add_sqlite_functions",
    "all_of",
    "any_of",
    "check",
    "clauses",
    "field_types",
    "fold",
    "fold_tree",
    "parse",
    "predicate",
    "sql_text",
    "to_query",
    "to_text",
]
