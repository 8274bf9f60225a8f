"""Reads a query string into `Params`: typed values that are not yet checked against any schema.

Each parameter is a row: its name, its reader, and its part of the OpenAPI document. The service refuses unknown and
repeated parameters; only `fields` may be repeated, because generated clients do so. A parameter without a text, or with
spaces alone, is refused, whichever it is: nobody can tell what its sender meant to ask.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roster_service.errors import Problem, RefusedRequestError

# In characters. A sort may name a key of `metadata`; the names of all fields of a record take less than 500.
LONGEST_SORT = 512
LONGEST_FIELDS = 4096
# A query string of it fits into the 64 KB of the longest request line, also if each character takes four bytes, and so
# twelve characters there.
LONGEST_FILTER = 4096
# The standard's.
DEFAULT_LIMIT = 100


@dataclass(frozen=True)
class Limits:
    """The bounds of a request: largest page size, longest filter in characters."""

    max_limit: int
    filter_length: int = LONGEST_FILTER

    @property
    def default_limit(self) -> int:
        """The page size when a request names none."""
        return min(DEFAULT_LIMIT, self.max_limit)


@dataclass(frozen=True)
class Params:
    """The query parameters of a request, with defaults filled in.

    `limit` and `offset` count records. `fields`: the names as the caller wrote them, blank ones too, or None for all
    fields. `revision`: of the pull that the page belongs to, or None.
    """

    limit: int
    offset: int
    filter: str | None
    sort: str | None
    descending: bool
    fields: tuple[str, ...] | None
    revision: int | None = None


def refuse(name: str, reason: str) -> RefusedRequestError:
    """Makes the error for a parameter's value; `reason` continues the sentence "the parameter `name`"."""
    return RefusedRequestError(Problem.PARAMETER, f"the parameter `{name}` {reason}")


def _read_number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise refuse(name, f"must be a whole number of ASCII digits, not {text[:40]!r}")
    number = int(text) if len(text) < 20 else most + 1
    if number > most:
        raise refuse(name, f"is at most {most}; {text[:20]} is more")
    return number


# The largest offset that PostgreSQL accepts.
MAX_OFFSET = 2**63 - 1


# The largest revision, likewise.
MAX_REVISION = 2**63 - 1


def _require_length(name: str, texts: Sequence[str], longest: int) -> None:
    """Raises RefusedRequestError where the texts together have more than `longest` characters."""
    length = sum(map(len, texts))
    if length > longest:
        raise refuse(name, f"has {length} characters; at most {longest} are allowed")


def _read_limit(texts: Sequence[str], limits: Limits) -> int:
    return _read_number("limit", texts[0], limits.max_limit)


def _read_offset(texts: Sequence[str], _limits: Limits) -> int:
    return _read_number("offset", texts[0], MAX_OFFSET)


def _read_revision(texts: Sequence[str], _limits: Limits) -> int:
    return _read_number("revision", texts[0], MAX_REVISION)


def _read_filter(texts: Sequence[str], limits: Limits) -> str:
    if len(texts[0]) > limits.filter_length:
        raise RefusedRequestError(
            Problem.FILTER, f"the filter has {len(texts[0])} characters; at most {limits.filter_length} are allowed"
        )
    return texts[0]


def _read_sort(texts: Sequence[str], _limits: Limits) -> str:
    _require_length("sort", texts, LONGEST_SORT)
    return texts[0]


def _read_order(texts: Sequence[str], _limits: Limits) -> bool:
    if texts[0] not in ("asc", "desc"):
        raise refuse("orderBy", f"is `asc` or `desc`, not {texts[0][:40]!r}")
    return texts[0] == "desc"


def _read_fields(texts: Sequence[str], _limits: Limits) -> tuple[str, ...]:
    _require_length("fields", texts, LONGEST_FIELDS)
    names = tuple(name.strip(" ") for text in texts for name in text.split(","))
    if not any(names):
        raise RefusedRequestError(Problem.BLANK_SELECTION, "the parameter `fields` has no name")
    return names


@dataclass(frozen=True)
class Parameter:
    """One query parameter: the function that reads its texts, and its description in the OpenAPI document.

    `read` takes all texts given for the parameter, and raises RefusedRequestError. `examples`: texts by name. `blank`:
    the problem of a parameter without a text.
    """

    name: str
    read: Callable[[Sequence[str], Limits], Any]
    schema: Mapping[str, Any]
    explanation: str
    repeatable: bool = False
    examples: Mapping[str, str] = field(default_factory=dict)
    blank: Problem = Problem.PARAMETER


# At least one character that is no space, and no NUL.
_NOT_BLANK = r"^[^\u0000]*[^ \u0000][^\u0000]*$"
LIMIT = Parameter(
    "limit",
    _read_limit,
    {"type": "integer", "minimum": 0},
    "Page size. 0 returns no records, only the count in `X-Total-Count`.",
)
OFFSET = Parameter(
    "offset",
    _read_offset,
    {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0},
    "How many records to skip. Past the end, the page is empty and `X-Total-Count` is still correct.",
)
FILTER = Parameter(
    "filter",
    _read_filter,
    {"type": "string", "pattern": _NOT_BLANK},
    "Up to two clauses, `field op 'value'`, joined by `AND` or `OR`; op is one of `= != > >= < <= ~`. "
    "A quote inside a value is doubled.",
    examples={"active": "status='active'", "delta": "dateLastModified>'2026-11-21T02:00:00.000Z'"},
    blank=Problem.FILTER,
)
SORT = Parameter(
    "sort",
    _read_sort,
    {"type": "string", "maxLength": LONGEST_SORT, "pattern": _NOT_BLANK},
    "The field to sort by; `sourcedId` breaks ties. Without `sort`, the order is by `sourcedId`, in a whole collection "
    "of several feeds by feed first. The service ignores an unknown field, with a warning.",
)
ORDER_BY = Parameter("orderBy", _read_order, {"type": "string", "enum": ["asc", "desc"]}, "The direction of the sort.")
FIELDS = Parameter(
    "fields",
    _read_fields,
    {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": r"^[^\u0000]*[^, \u0000][^\u0000]*$"}},
    f"The fields to return, comma-separated, at most {LONGEST_FIELDS} characters. The service ignores unknown and "
    "blank names, with a warning.",
    repeatable=True,
    blank=Problem.BLANK_SELECTION,
)
REVISION = Parameter(
    "revision",
    _read_revision,
    {"type": "integer", "minimum": 0, "maximum": MAX_REVISION},
    "The revision of the roster (`X-Roster-Revision`) that a later page is of, as the URLs in `Link` name it. Without "
    "it, a page belongs to the pull that the client began last. A first page begins a pull, whatever it says.",
)

# As PHP, Ruby and others write a list in a query.
LISTED_FIELDS = f"{FIELDS.name}[]"
# Libraries send these with every request. Where there are no pages they mean nothing, and are ignored.
PAGING = (LIMIT.name, OFFSET.name)

COLLECTION_PARAMETERS = (LIMIT, OFFSET, FILTER, SORT, ORDER_BY, FIELDS, REVISION)
SINGLE_PARAMETERS = (FIELDS,)


def read_params(pairs: Sequence[tuple[str, str]], parameters: Sequence[Parameter], limits: Limits) -> Params:
    """Reads the decoded (name, text) pairs of a query string.

    `parameters`: those that the endpoint takes. Raises RefusedRequestError for an unknown or repeated parameter, for a
    value that its parameter does not take, and for a NUL, which PostgreSQL cannot store.
    """
    known = {parameter.name: parameter for parameter in parameters}
    given: dict[str, list[str]] = {}
    for sent, text in pairs:
        name = FIELDS.name if sent == LISTED_FIELDS else sent
        if name in PAGING and name not in known:
            continue
        if name not in known:
            raise _refuse_unknown(name, list(known))
        _refuse_bad_text(name, text)
        given.setdefault(name, []).append(text)
    values: dict[str, Any] = {}
    for name, texts in given.items():
        if len(texts) > 1 and not known[name].repeatable:
            raise refuse(name, f"occurs {len(texts)} times; it may occur once")
        if not any(text.strip(" ") for text in texts):
            raise RefusedRequestError(
                known[name].blank, f"the parameter `{name}` is empty; give it a value, or leave it out"
            )
        values[name] = known[name].read(texts, limits)
    return Params(
        limit=values.get("limit", limits.default_limit),
        offset=values.get("offset", 0),
        filter=values.get("filter"),
        sort=values.get("sort"),
        descending=values.get("orderBy", False),
        fields=values.get("fields"),
        revision=values.get("revision"),
    )


def _refuse_unknown(name: str, known: Sequence[str]) -> RefusedRequestError:
    near = difflib.get_close_matches(name, known, 1)
    taken = ", ".join(f"`{item}`" for item in known) or "none"
    hint = f"did you mean `{near[0]}`?" if near else f"this path takes {taken}"
    return RefusedRequestError(Problem.PARAMETER, f"there is no parameter `{name[:80]}`; {hint}")


def _refuse_bad_text(name: str, text: str) -> None:
    if "\x00" in text:
        problem = Problem.FILTER if name == FILTER.name else Problem.PARAMETER
        raise RefusedRequestError(problem, f"the parameter `{name}` contains a NUL, which no value can hold")
