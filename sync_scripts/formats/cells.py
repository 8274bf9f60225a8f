"""The kinds of cell: which texts each kind accepts, and how it converts a text to a value, both as SQL.

The SQL reads a staged column. Staged text has passed the byte checks of `reading/lines.py`, so no cell holds a line
break or another control character. An empty cell is NULL; checks and conversions need not handle it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from roster_service.db.tables import CText, CTexts
from roster_service.roster.vocabulary import Vocabulary
from sync_scripts.formats import tolerated
from sync_scripts.formats.tolerated import Deviation, SQLText, Tolerance


@dataclass(frozen=True)
class CellKind:
    """A kind of cell. `wants`: the reason for which the check rejects a bad cell. `check`: the condition of a good cell
    (None: every text is good). `convert`: the stored value of the text. Staging drops a `secret` column as soon as
    COPY has read it. Normalization corrects the deviations that `tolerates` lists, before the check. `few_values`: the
    same few values repeat from row to row, so the checks look at the distinct ones."""

    wants: str
    check: Callable[[SQLText], sa.ColumnElement[bool]] | None
    convert: Callable[[SQLText], sa.ColumnElement[Any]]
    secret: bool = False
    tolerates: tuple[Tolerance, ...] = ()
    few_values: bool = False


# Bytes; the ids of the standard are ASCII. It is also the largest count in a pattern of PostgreSQL.
ID_LENGTH = 255
# Characters of indexed text: a family name and an id together must fit into an index entry of 2,700 bytes.
NAME_LENGTH = 255
TEXT_LENGTH = 4000

# Every calendar day of the years 1000 to 2999: long months, short months, February, leap days.
DAY_PATTERN = (
    "^[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))$"
    "|^([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29$"
)
DAY_LENGTH = 10
PAIR_PATTERN = "{([^{}:]+):([^{}]+)}"
SLASHES_PATTERN = "^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$"
PAIRS_PATTERN = f"^ *{PAIR_PATTERN}( *, *{PAIR_PATTERN})* *$"


def _is_day(cell: SQLText) -> sa.ColumnElement[bool]:
    # Nearly every day is one of the 28 that each month has, and a pattern costs five times as much as this comparison.
    month, day = sa.func.substr(cell, 6, 2, type_=CText), sa.func.substr(cell, 9, 2, type_=CText)
    plain = sa.and_(
        sa.func.length(cell) == DAY_LENGTH,
        sa.func.translate(cell, "0123456789", "") == "--",
        cell >= "1000-",
        cell < "3000-",
        sa.func.substr(cell, 5, 1) == "-",
        sa.func.substr(cell, 8, 1) == "-",
        month.between("01", "12"),
        day.between("01", "28"),
    )
    return sa.or_(plain, cell.regexp_match(DAY_PATTERN))


def _trim(cell: SQLText) -> SQLText:
    return sa.func.nullif(sa.func.btrim(cell), "")


def _is_id(cell: SQLText) -> sa.ColumnElement[bool]:
    return sa.func.octet_length(cell) <= ID_LENGTH


def _fits(length: int) -> Callable[[SQLText], sa.ColumnElement[bool]]:
    return lambda cell: sa.func.char_length(cell) <= length


def to_list(cell: SQLText) -> sa.ColumnElement[Any]:
    """The items of a comma list; spaces around an item are not part of it."""
    split = sa.func.regexp_split_to_array(sa.func.btrim(cell), " *, *")
    # Most lists have one item, and splitting by a pattern is the expensive part.
    return sa.type_coerce(
        sa.case((cell.contains(","), split), else_=sa.func.string_to_array(sa.func.btrim(cell), ",")), CTexts
    )


def is_blank(cell: SQLText) -> sa.ColumnElement[bool]:
    """The condition that a cell is empty or holds only spaces."""
    return sa.or_(cell.is_(None), _has_only_spaces(cell))


def _has_only_spaces(cell: SQLText) -> sa.ColumnElement[bool]:
    # Hardly any cell begins with a space, and trimming costs three times as much as LIKE.
    return sa.and_(cell.like(" %"), sa.func.btrim(cell) == "")


def _has_empty_item(cell: SQLText) -> sa.ColumnElement[bool]:
    # Most lists have one item, and need no pattern.
    return sa.or_(_has_only_spaces(cell), sa.and_(cell.contains(","), cell.regexp_match("^ *,|, *(,|$)")))


def _drop_empty_items(cell: SQLText) -> SQLText:
    inner = sa.func.regexp_replace(sa.func.btrim(cell, " ,"), "( *,){2,}", ",", "g", type_=CText)
    return sa.func.nullif(inner, "", type_=CText)


def _has_all_items(cell: SQLText) -> sa.ColumnElement[bool]:
    return ~_has_empty_item(cell)


def _are_ids(cell: SQLText) -> sa.ColumnElement[bool]:
    # A short list has no item that is too long, and the pattern costs a hundred times as much as the length.
    short = sa.or_(sa.func.octet_length(cell) <= ID_LENGTH, ~cell.regexp_match(f"[^,]{{{ID_LENGTH}}}[^,]"))
    return sa.and_(_has_all_items(cell), short)


def _has_empty_pair(cell: SQLText) -> sa.ColumnElement[bool]:
    # Nearly every list has one pair. An identifier may have commas, so those between braces alone count.
    several = sa.or_(cell.contains(","), cell.like(" %"))
    return sa.and_(several, cell.regexp_match("^ *,|, *$|} *,[ ,]*, *{|^ +$"))


def _drop_empty_pairs(cell: SQLText) -> SQLText:
    inner = sa.func.regexp_replace(sa.func.btrim(cell, " ,"), "} *,[ ,]*{", "},{", "g", type_=CText)
    return sa.func.nullif(inner, "", type_=CText)


def _to_pairs(cell: SQLText) -> sa.ColumnElement[Any]:
    escaped = sa.func.replace(sa.func.replace(cell, "\\", "\\\\"), '"', '\\"', type_=CText)
    objects = sa.func.regexp_replace(escaped, PAIR_PATTERN, r'{"type": "\1", "identifier": "\2"}', "g", type_=CText)
    # Nearly every list has no spaces and a single colon in each pair, and the pattern costs ten times as much.
    plain = sa.and_(
        ~cell.contains(" "),
        sa.func.length(sa.func.replace(cell, ":", "")) == sa.func.length(sa.func.replace(cell, "{", "")),
    )
    for mark, spelt in ((":", '", "identifier": "'), ("{", '{"type": "'), ("}", '"}')):
        escaped = sa.func.replace(escaped, mark, spelt, type_=CText)
    # The operator `||`, because it keeps a missing list NULL.
    return sa.cast(sa.literal("[", CText).concat(sa.case((plain, escaped), else_=objects)).concat("]"), JSONB)


def _has_list_spaces(cell: SQLText) -> sa.ColumnElement[bool]:
    return sa.and_(cell.contains(","), sa.or_(cell.contains(", "), cell.contains(" ,")))


def _read_slashes(month: int, day: int) -> Callable[[SQLText], SQLText]:
    """A function that reads a day with slashes, with the month and the day at these places."""

    def read(cell: SQLText) -> SQLText:
        parts = (sa.func.lpad(sa.func.split_part(cell, "/", place), 2, "0") for place in (month, day))
        return sa.func.concat(sa.func.split_part(cell, "/", 3), "-", next(parts), "-", next(parts), type_=CText)

    return read


_read_month_first, _read_day_first = _read_slashes(1, 2), _read_slashes(2, 1)


def _has_slashes(read: Callable[[SQLText], SQLText]) -> Callable[[SQLText], sa.ColumnElement[bool]]:
    """The condition that a cell is a day with slashes as `read` reads it."""
    return lambda cell: sa.and_(
        cell.contains("/"), cell.regexp_match(SLASHES_PATTERN), read(cell).regexp_match(DAY_PATTERN)
    )


_is_month_first, _is_day_first = _has_slashes(_read_month_first), _has_slashes(_read_day_first)


def may_have_slashes(cell: SQLText) -> sa.ColumnElement[bool]:
    """The condition that a cell is a day whose order depends on the other cells of its column."""
    return _is_month_first(cell) | _is_day_first(cell)


def _is_midnight(cell: SQLText) -> sa.ColumnElement[bool]:
    return sa.and_(cell.contains("T"), cell.regexp_match("^.{10}T00:00(:00([.]0+)?)?Z?$"))


def _read_word(cell: SQLText, words: Mapping[str, str]) -> SQLText:
    """The text that `words` has for a text; another text stays as it is."""
    return sa.case({spelling: sa.literal(word, CText) for spelling, word in words.items()}, value=cell, else_=cell)


def map_items(cell: SQLText, read: Callable[[SQLText], SQLText]) -> SQLText:
    """The comma list of what `read` makes of each item of a list, without empty ones."""
    items = sa.func.unnest(to_list(cell)).table_valued("item", with_ordinality="number").render_derived()
    joined = sa.func.string_agg(
        read(items.c.item), aggregate_order_by(sa.literal(",", CText), items.c.number), type_=CText
    )
    return sa.select(joined).select_from(items).where(items.c.item != "").scalar_subquery()


def _list_once(cell: SQLText) -> sa.ColumnElement[Any]:
    """The items of a comma list, each once."""
    items = sa.func.unnest(to_list(cell)).table_valued("item", with_ordinality="number").render_derived()
    first = sa.select(items.c.item, sa.func.min(items.c.number).label("number")).group_by(items.c.item).subquery()
    several = sa.select(sa.func.array_agg(aggregate_order_by(first.c.item, first.c.number))).scalar_subquery()
    # Nearly every list has one item.
    return sa.case((cell.contains(","), several), else_=to_list(cell))


def _read_grades(cell: SQLText) -> SQLText:
    return map_items(
        cell,
        lambda item: sa.case(
            {low: sa.literal(code, CText) for low, code in tolerated.GRADE_SPELLINGS.items()},
            value=sa.func.lower(item),
            else_=item,
        ),
    )


def _has_spelt_grade(cell: SQLText) -> sa.ColumnElement[bool]:
    # Most lists have one item, and need no list to be compared.
    single, spelt = sa.func.btrim(cell), sa.func.lower(sa.func.btrim(cell)).in_(tuple(tolerated.GRADE_SPELLINGS))
    several = sa.and_(cell.contains(","), to_list(_read_grades(cell)) != to_list(cell))
    return sa.or_(sa.and_(single.not_in(tolerated.GRADE_CODES), spelt), several)


def _has_unknown_grade(cell: SQLText) -> sa.ColumnElement[bool]:
    known: sa.ColumnElement[bool] = to_list(sa.func.lower(cell)).contained_by(
        sa.literal(list(tolerated.GRADE_SPELLINGS), CTexts)
    )
    return ~known


def _has_spaces_around(cell: SQLText) -> sa.ColumnElement[bool]:
    # Hardly any id or word has a space, so one pattern answers for nearly all cells.
    return sa.and_(cell.contains(" "), sa.or_(cell.like(" %"), cell.like("% ")))


def _is_plain_day(cell: SQLText) -> sa.ColumnElement[bool]:
    # Nearly every day has hyphens, and the pattern costs more than this comparison.
    shape = cell.regexp_match("^[12][0-9]{3}(/[0-9]{2}/[0-9]{2}|[0-9]{4})$")
    return sa.and_(~cell.contains("-"), shape, _from_plain_day(cell).regexp_match(DAY_PATTERN))


def _from_plain_day(cell: SQLText) -> SQLText:
    digits = sa.func.replace(cell, "/", "", type_=CText)
    year, month, day = (sa.func.substr(digits, start, size, type_=CText) for start, size in ((1, 4), (5, 2), (7, 2)))
    return sa.func.concat(year, "-", month, "-", day, type_=CText)


def _is_two_years(cell: SQLText) -> sa.ColumnElement[bool]:
    shape = cell.regexp_match("^[12][0-9]{3}[-/]([12][0-9])?[0-9]{2}$")
    return sa.and_(shape, sa.func.right(_get_next_year(cell), 2) == sa.func.right(cell, 2))


def _get_next_year(cell: SQLText) -> SQLText:
    # A text without four digits at its start has no number, and no next year.
    year = sa.case((cell.regexp_match("^[0-9]{4}"), sa.func.left(cell, 4)), else_="0")
    return sa.func.to_char(sa.func.to_number(year, "9999") + 1, "FM9999", type_=CText)


AROUND = Tolerance(tolerated.CELL_SPACES, _has_spaces_around, _trim, early=True)
ITEMS = (
    # Early, because the list may also have spaces or words in another spelling.
    Tolerance(tolerated.EMPTY_ITEM, _has_empty_item, _drop_empty_items, early=True),
    Tolerance(tolerated.LIST_SPACES, _has_list_spaces),
)


def _shows_month_first(cell: SQLText) -> sa.ColumnElement[bool]:
    return _is_month_first(cell) & ~_is_day_first(cell)


def _shows_day_first(cell: SQLText) -> sa.ColumnElement[bool]:
    return _is_day_first(cell) & ~_is_month_first(cell)


# A column has one order. Where every cell may have both, it is the one of the US, whose SIS write slashes.
SLASHES = (
    Tolerance(tolerated.US_DAY, _is_month_first, _read_month_first, excluded_by=_shows_day_first),
    Tolerance(
        tolerated.DAY_FIRST,
        _is_day_first,
        _read_day_first,
        needs=_shows_day_first,
        excluded_by=_shows_month_first,
        clash="has days with the month first and days with the day first, so no day with slashes is read; "
        "write days as YYYY-MM-DD",
    ),
)
# A delta has a part of the column: where none of its cells shows the order, it is that of the days before.
SLASHES_AFTER_DAY_FIRST = (
    replace(SLASHES[0], needs=_shows_month_first),
    SLASHES[1],
    Tolerance(
        tolerated.SAME_DAY_FIRST,
        _is_day_first,
        _read_day_first,
        excluded_by=lambda it: _shows_month_first(it) | _shows_day_first(it),
    ),
)
# Whether a deviation is a day with the day first.
ORDERS: Mapping[Deviation, bool] = {tolerated.US_DAY: False, tolerated.DAY_FIRST: True, tolerated.SAME_DAY_FIRST: True}

UNREAD = CellKind("anything", None, lambda cell: cell)
SECRET = CellKind("anything", None, lambda cell: cell, secret=True)
ID = CellKind(f"must be an id of at most {ID_LENGTH} bytes", _is_id, lambda cell: cell, tolerates=(AROUND,))
IDS = CellKind(
    f"must be a comma list of ids of at most {ID_LENGTH} bytes, without an empty one",
    _are_ids,
    _list_once,
    tolerates=ITEMS,
)
FIRST_OF_IDS = CellKind(
    IDS.wants, IDS.check, lambda cell: sa.func.btrim(sa.func.split_part(cell, ",", 1)), tolerates=ITEMS
)
NAME = CellKind(f"must have at most {NAME_LENGTH} characters", _fits(NAME_LENGTH), _trim)
TEXT = CellKind(f"must have at most {TEXT_LENGTH} characters", _fits(TEXT_LENGTH), _trim)
TEXTS = CellKind("must be a comma list without an empty item", _has_all_items, to_list, tolerates=ITEMS)
GRADES = CellKind(
    TEXTS.wants,
    TEXTS.check,
    TEXTS.convert,
    tolerates=(
        *ITEMS,
        Tolerance(tolerated.GRADE_SPELLING, _has_spelt_grade, _read_grades),
        Tolerance(tolerated.UNKNOWN_GRADE, _has_unknown_grade),
    ),
)
PAIRS = CellKind(
    "must be a comma list of {type:identifier}",
    lambda cell: cell.regexp_match(PAIRS_PATTERN),
    _to_pairs,
    tolerates=(
        Tolerance(tolerated.EMPTY_ITEM, _has_empty_pair, _drop_empty_pairs, early=True),
        Tolerance(tolerated.LIST_SPACES, lambda cell: cell.contains("}, {")),
    ),
)
FLAG = CellKind(
    "must be true or false",
    lambda cell: cell.in_(("true", "false")),
    lambda cell: cell == "true",
    tolerates=(
        Tolerance(
            tolerated.FLAG_SPELLING,
            lambda cell: cell.in_(tuple(tolerated.FLAG_SPELLINGS)),
            lambda cell: _read_word(cell, tolerated.FLAG_SPELLINGS),
        ),
        AROUND,
    ),
    few_values=True,
)
DAY = CellKind(
    "must be a day of the calendar, YYYY-MM-DD",
    _is_day,
    lambda cell: sa.cast(cell, sa.Date),
    tolerates=(
        *SLASHES,
        Tolerance(tolerated.MIDNIGHT, _is_midnight, lambda cell: sa.func.left(cell, 10)),
        Tolerance(tolerated.PLAIN_DAY, _is_plain_day, _from_plain_day),
        AROUND,
    ),
    few_values=True,
)
YEAR = CellKind(
    "must be a year, YYYY",
    lambda cell: cell.regexp_match("^[12][0-9]{3}$"),
    lambda cell: cell,
    tolerates=(Tolerance(tolerated.SCHOOL_YEAR, _is_two_years, _get_next_year), AROUND),
    few_values=True,
)


def is_list(kind: CellKind) -> bool:
    """Whether the cells of a kind are comma lists of texts."""
    return kind.convert is to_list and kind is not IDS


def make_word_kind(
    vocabulary: Vocabulary, renamed: Mapping[str, str] | None = None, spellings: Mapping[str, str] | None = None
) -> CellKind:
    """The kind of a cell that accepts a word of `vocabulary`. `renamed`: further accepted words, and the words that
    the roster stores for them. `spellings`: tolerated words in lower case, and the word that each means."""
    renamed = renamed or {}
    words = (*vocabulary.words, *renamed)
    wants = f"must be one of {', '.join(sorted(words))}" + (" or ext: and a name" if vocabulary.extensible else "")

    def check(cell: SQLText) -> sa.ColumnElement[bool]:
        known = cell.in_(words)
        return known | cell.regexp_match(vocabulary.pattern) if vocabulary.extensible else known

    def convert(cell: SQLText) -> sa.ColumnElement[Any]:
        whens = [(cell == word, sa.literal(stored, CText)) for word, stored in renamed.items()]
        return sa.case(*whens, else_=cell) if whens else cell

    # This needs words that differ in more than their case; every vocabulary has only such words.
    lowered = {word.lower(): word for word in words}

    def is_in_another_case(cell: SQLText) -> sa.ColumnElement[bool]:
        return sa.and_(cell.not_in(words), sa.func.lower(cell).in_(tuple(lowered)))

    def read_words(meant: Mapping[str, str]) -> Callable[[SQLText], SQLText]:
        return lambda cell: sa.case(
            {low: sa.literal(word, CText) for low, word in meant.items()}, value=sa.func.lower(cell), else_=cell
        )

    tolerances = [Tolerance(tolerated.WORD_CASE, is_in_another_case, read_words(lowered)), AROUND]
    if spellings:
        spelt = tuple(spellings)
        tolerances.append(
            Tolerance(tolerated.WORD_SPELLING, lambda cell: sa.func.lower(cell).in_(spelt), read_words(spellings))
        )
    return CellKind(wants, check, convert, tolerates=tuple(tolerances), few_values=True)
