"""OneRoster filter expressions: parse them, check them against types, and run them as SQL or on plain records.

`oneroster_filter.sqlalchemy`, `.django`, `.pandas` and `.polars` need the package of their name, `.typing` has the
names for annotations, and `.dialect` the provisional extensions of the language.
"""

from oneroster_filter.check import check
from oneroster_filter.declared_types import field_types
from oneroster_filter.errors import (
    ColumnError,
    ExpressionError,
    FieldTypesError,
    FilterError,
    FilterSyntaxError,
    FilterValueError,
    LimitError,
    OperatorError,
    RecordError,
    UnknownFieldError,
)
from oneroster_filter.field_types import FieldType, FieldTypes, Kind
from oneroster_filter.folding import fold
from oneroster_filter.nodes import And, Clause, F, Operator, Or, all_of, any_of, clauses, fold_tree
from oneroster_filter.operators import OPERATORS
from oneroster_filter.parser import parse
from oneroster_filter.predicate import predicate
from oneroster_filter.sources import Through
from oneroster_filter.sql_templates import add_sqlite_functions
from oneroster_filter.sql_text import sql_text
from oneroster_filter.text import to_query, to_text
from oneroster_filter.version import __version__

__all__ = [
    "OPERATORS",
    "And",
    "Clause",
    "ColumnError",
    "ExpressionError",
    "F",
    "FieldType",
    "FieldTypes",
    "FieldTypesError",
    "FilterError",
    "FilterSyntaxError",
    "FilterValueError",
    "Kind",
    "LimitError",
    "Operator",
    "OperatorError",
    "Or",
    "RecordError",
    "Through",
    "UnknownFieldError",
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
