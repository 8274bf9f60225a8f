"""What the library refuses with: one tree, errors that carry facts and know nothing of HTTP.

A class says what to do about an error; `code` says exactly which refusal it is (the rows of `refusals.py`).
"""

from typing import Any

CARET_WINDOW = 72
"""The caret line shows this much of a long text around the place that is wrong."""


class FilterError(Exception):
    """A filter that cannot be taken, with everything known about why.

    Args:
        code: Which refusal this is: the code of a row of `refusals.REFUSALS`.
        message: One line that says what is wrong.
        text: The filter's text, where there is one.
        column: Where in the text it is wrong: an offset, counted from 0.
        expected: What could have stood there, in words.
        hint: How to mend it.
        field: The field concerned, as written.
        operator: The operator concerned, as written.
        value: The value concerned, without its quotes.
        suggestion: The nearest known field name.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        text: str | None = None,
        column: int | None = None,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
        field: str | None = None,
        operator: str | None = None,
        value: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.text = text
        self.column = column
        self.expected = expected
        self.hint = hint
        self.field = field
        self.operator = operator
        self.value = value
        self.suggestion = suggestion

    @property
    def caret(self) -> str | None:
        """Two lines: the text (cut to a window when long), and a caret below the place that is wrong."""
        if self.text is None or self.column is None:
            return None
        start = max(0, self.column - CARET_WINDOW // 2)
        end = start + CARET_WINDOW
        before = "..." if start else ""
        after = "..." if end < len(self.text) else ""
        # A control character would move the caret, or the reader's terminal.
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in self.text[start:end])
        return f"{before}{shown}{after}\n{' ' * (len(before) + self.column - start)}^"

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for logs and for answers; what is not known is left out."""
        facts = {"code": self.code, "message": self.message} | self.__dict__
        return {name: value for name, value in facts.items() if value not in (None, ())}

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
    """The text is longer, or has more clauses, than the caller allows."""


class UnknownFieldError(FilterError):
    """The filter names a field that there is not; `suggestion` is the nearest there is."""


class OperatorError(FilterError):
    """The operator is not one that the kind of the field takes; `expected` lists those it takes."""


class FilterValueError(FilterError):
    """The value cannot be read as the kind of the field."""


class ExpressionError(FilterError):
    """An expression built in code that the language has no text for."""


class ColumnError(LookupError):
    """The caller's columns do not fit the caller's types: a fault of the program, never of the filter's author.

    Args:
        field: The field as the filter names it.
        message: What does not fit.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class RecordError(ValueError):
    """A record holds a value that cannot be read as the kind its field is declared to have.

    Args:
        field: The field as the filter names it.
        message: What is wrong with the value.
        value: The value found.
    """

    def __init__(self, field: str, message: str, value: object) -> None:
        super().__init__(field, message, value)
        self.field = field
        self.message = message
        self.value = value

    def __str__(self) -> str:
        return f"{self.field}: {self.message}: {self.value!r}"
