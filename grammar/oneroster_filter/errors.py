"""The exceptions of the library: one class tree, with facts as attributes and without knowledge of HTTP.

The class of an error tells a program how to handle it; `code` identifies the exact refusal (a row of `refusals.py`).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any

CARET_WINDOW = 72
"""The number of characters of a long text that `caret` shows around the error."""


@dataclass(eq=False, repr=False)
class FilterError(Exception):
    """A refused filter, with all known facts about the reason.

    Args:
        code: The refusal: the code of a row of `refusals.REFUSALS` or `syntax_refusals.SYNTAX_REFUSALS`.
        message: One line that says what is wrong.
        text: The filter's text, where there is one.
        column: The position of the error in the text: an offset, counted from 0.
        expected: What the text could have at this position, in words.
        hint: How to correct the filter.
        field: The field concerned, as written.
        operator: The operator concerned, as written.
        value: The value concerned, without its quotes.
        suggestion: The nearest known field name.
    """

    code: str
    message: str
    _: KW_ONLY
    text: str | None = None
    column: int | None = None
    expected: tuple[str, ...] = ()
    hint: str | None = None
    field: str | None = None
    operator: str | None = None
    value: str | None = None
    suggestion: str | None = None

    @property
    def caret(self) -> str | None:
        """Two lines: the text (an excerpt of it, if it is long), and a caret below the error. None without a column."""
        if self.text is None or self.column is None:
            return None
        start = max(0, self.column - CARET_WINDOW // 2)
        end = start + CARET_WINDOW
        before = "..." if start else ""
        after = "..." if end < len(self.text) else ""
        # A control character would shift the caret or control the reader's terminal.
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in self.text[start:end])
        return f"{before}{shown}{after}\n{' ' * (len(before) + self.column - start)}^"

    def as_dict(self) -> dict[str, Any]:
        """The known facts as plain values, for logs and responses."""
        return {name: value for name, value in self.__dict__.items() if value not in (None, ())}

    def __str__(self) -> str:
        lines = [self.message if self.column is None else f"{self.message} (column {self.column + 1})"]
        if self.caret is not None:
            lines += [f"  {line}" for line in self.caret.split("\n")]
        if self.expected:
            lines.append(f"expected: {', '.join(self.expected)}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class FilterSyntaxError(FilterError):
    """The text is not in the language."""


class LimitError(FilterError):
    """The text is longer, or has more clauses, than the caller of `parse` allows."""


class UnknownFieldError(FilterError):
    """The filter names an unknown field; `suggestion` is the nearest known name."""


class OperatorError(FilterError):
    """The kind of the field does not have the operator; `expected` lists the operators that it has."""


class FilterValueError(FilterError):
    """The value cannot be read as the kind of the field."""


class ExpressionError(FilterError):
    """An expression built in code that no text of the language can express."""


class FieldTypesError(TypeError):
    """The declaration of the fields is none: an error in the program, never in the filter. The text says what to
    give."""


@dataclass(eq=False, repr=False)
class ColumnError(LookupError):
    """The columns do not fit the field types: an error in the program, never in the filter.

    Args:
        field: The name of the field, as in the filter.
        message: What does not fit.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(eq=False, repr=False)
class RecordError(ValueError):
    """A record has a value that cannot be read as the declared kind of its field.

    Args:
        field: The name of the field, as in the filter.
        message: What is wrong with the value.
        value: The value found.
    """

    field: str
    message: str
    value: object

    def __str__(self) -> str:
        return f"{self.field}: {self.message}: {self.value!r}"
