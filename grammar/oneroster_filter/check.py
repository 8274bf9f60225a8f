"""Checks an expression against field types: every field exists and has the operator, and every value is readable."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from oneroster_filter.declared_types import TypesSource, field_types
from oneroster_filter.errors import ExpressionError, FilterError
from oneroster_filter.field_types import ANY_KEY, FieldType, FieldTypes
from oneroster_filter.nodes import (
    And,
    Clause,
    Expr,
    ExtraOperator,
    F,
    Node,
    Operator,
    Or,
    all_of,
    any_of,
    fold_tree,
    require_clauses,
)
from oneroster_filter.operators import KIND_NAMES, OPERATORS
from oneroster_filter.refusals import refuse
from oneroster_filter.text import find_position
from oneroster_filter.values import UnreadableError, Value, read_value


@dataclass(frozen=True, slots=True)
class TypedClause(Node):
    """One comparison whose field, operator and value fit together.

    Args:
        field: The field, with its dots.
        type: The type of the field.
        operator: The operator of the comparison.
        value: The value to compare with: a str, a bool, a `Span`, a date or a tuple of str, depending on `type.kind`.
        path: The names that lead to the field. The key below an open prefix is one name, including its dots.
    """

    field: str
    type: FieldType
    operator: Operator
    value: Value
    path: tuple[str, ...]


TypedExpr: TypeAlias = TypedClause | And[TypedClause] | Or[TypedClause]
"""What `check` returns."""


def check(expr: Expr, types: TypesSource) -> TypedExpr:
    """Check an expression against the field types of a kind of record.

    Args:
        expr: What `parse` returned, or what was built with `F`.
        types: The fields of a record: a mapping from dotted name to `FieldType` or `Kind`, a marshmallow schema (class
            or instance), a dataclass, or a TypedDict. For repeated use, pass the `FieldTypes` that `field_types` makes
            of it.

    Returns:
        The same tree, with a `TypedClause` for each clause: frozen, hashable, comparable. In place of a clause with an
        extra operator or a function, it has the expression that the clause stands for.

    Raises:
        UnknownFieldError: A field is not among the types.
        OperatorError: The kind of a field does not have the operator.
        FilterValueError: A value cannot be read as the kind of its field, or an extra operator refuses it.
        TypeError: The expression is not what `parse` returned.
    """
    require_clauses(expr, Clause, "parse")
    known = types if isinstance(types, FieldTypes) else field_types(types)

    def check_clause(clause: Clause) -> TypedExpr:
        if clause.function is None and isinstance(clause.operator, Operator):
            return _check_clause(clause, clause.operator, known)
        # Errors refer to the clause as it is written.
        position = clause.position or find_position(clause)

        def check_made(made: Clause) -> TypedExpr:
            return check_clause(replace(made, position=position))

        try:
            meaning = _expand(clause)
        except (ValueError, ExpressionError) as error:
            why = error.message if isinstance(error, ExpressionError) else str(error)
            raise _refuse(clause, "value-refused", "value", why=why) from error
        return fold_tree(meaning, check_made, _join_all, _join_any)

    return fold_tree(expr, check_clause, _join_all, _join_any)


def _join_all(operands: Sequence[TypedExpr]) -> TypedExpr:
    return all_of(*operands)


def _join_any(operands: Sequence[TypedExpr]) -> TypedExpr:
    return any_of(*operands)


def _expand(clause: Clause) -> Expr:
    """Return what a clause with an extra operator or a function stands for."""
    if isinstance(clause.operator, ExtraOperator):
        return clause.operator.expand(F(clause.field, clause.function), clause.value)
    expansions = clause.function.expansions if clause.function else {}
    if clause.operator not in expansions:
        allowed = tuple(operator.value for operator in expansions)
        raise _refuse(clause, "operator-not-taken", "operator", kind="a function", expected=allowed)
    return expansions[clause.operator](F(clause.field), clause.value)


def _check_clause(clause: Clause, operator: Operator, types: FieldTypes) -> TypedClause:
    type_ = types.find(clause.field)
    if type_ is None:
        below = types.below(clause.field)
        suggestion = below[0] if below else types.nearest(clause.field)
        hint = f"did you mean {suggestion}?" if suggestion else f"the fields are {', '.join(types)}"
        if below and suggestion == f"{clause.field}.{ANY_KEY}":
            suggestion, hint = None, f"write a key below it: {clause.field}.KEY"
        elif len(below) > 1:
            suggestion, hint = None, f"write a field below it: {', '.join(below)}"
        raise _refuse(clause, "unknown-field", "field", hint=hint, suggestion=suggestion)
    allowed = OPERATORS[type_.kind]
    kind = KIND_NAMES[type_.kind]
    if operator not in allowed:
        raise _refuse(clause, "operator-not-taken", "operator", kind=kind, expected=tuple(o.value for o in allowed))
    try:
        value = read_value(type_.kind, operator, clause.value)
    except UnreadableError as error:
        raise _refuse(clause, error.code, "value", expected=(kind,), why=error.why) from None
    return TypedClause(clause.field, type_, operator, value, types.path(clause.field))


def _refuse(clause: Clause, code: str, part: str, **facts: Any) -> FilterError:
    """Make the error of a clause. Its column refers to the parsed text, or to the clause's own text if it was built."""
    position = clause.position or find_position(clause)
    return refuse(
        code,
        text=position.text,
        column=getattr(position, part),
        **{"field": clause.subject, "operator": clause.operator.value, "value": clause.value} | facts,
    )
