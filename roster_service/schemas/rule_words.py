"""The words for the filter of a rule: "grades 6 to 8" for `grades~'06,07,08'`. A filter without words says itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from oneroster_filter import Clause, FilterError, Operator, Or, clauses, parse
from oneroster_filter.nodes import ExtraOperator

# The field and the operator of a clause.
_Key = tuple[str, Operator | ExtraOperator]
# The codes of CEDS that are no numbers. `UG` is ungraded.
_GRADES = {
    "IT": "infants",
    "PR": "preschool",
    "PK": "prekindergarten",
    "TK": "transitional kindergarten",
    "KG": "kindergarten",
    "PS": "after grade 12",
    "UG": "no grade",
}


def name_students(filter_: str) -> str:
    """Returns the words for a filter of students."""
    return _name(filter_, _OF_STUDENTS) or f"students with {filter_}"


def name_classes(filter_: str) -> str:
    """Returns the words for a filter of classes."""
    return _name(filter_, _OF_CLASSES) or f"classes with {filter_}"


def list_items(filter_: str | None, field: str) -> Sequence[str] | None:
    """Returns the items of a filter that asks for one of a list, `FIELD~'a,b'`, and for nothing else; None for another
    filter."""
    try:
        made = None if filter_ is None else parse(filter_)
    except FilterError:
        return None
    return _split(made.value) if isinstance(made, Clause) and _key(made) == (field, Operator.CONTAINS) else None


def name_grades(codes: Sequence[str]) -> str:
    """Returns the words for grades: "kindergarten, grades 1 to 3 and 5"."""
    numbers = sorted({int(code) for code in codes if code.isdecimal()})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    named = [_GRADES.get(code, f"grade {code}") for code in dict.fromkeys(codes) if not code.isdecimal()]
    if said:
        named.append(f"{'grade' if len(numbers) == 1 else 'grades'} {_join(said, 'and')}")
    return ", ".join(named)


def _name(filter_: str, words: Mapping[_Key, Callable[[str], str]]) -> str | None:
    made = parse(filter_)
    parts = clauses(made)
    if any(_key(part) not in words for part in parts):
        return None
    return (" or " if isinstance(made, Or) else ", ").join(words[_key(part)](part.value) for part in parts)


def _key(clause: Clause) -> _Key:
    return clause.subject, clause.operator


def _split(value: str) -> Sequence[str]:
    return [item.strip() for item in value.split(",")]


def _join(parts: Sequence[str], word: str) -> str:
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _name_subjects(value: str) -> str:
    return _join([name if name.isupper() else name.lower() for name in _split(value)], "or")


# The words of a clause, from its value.
_OF_STUDENTS: Mapping[_Key, Callable[[str], str]] = {
    ("grades", Operator.CONTAINS): lambda value: name_grades(_split(value)),
}
_OF_CLASSES: Mapping[_Key, Callable[[str], str]] = {
    ("grades", Operator.CONTAINS): lambda value: f"classes of {name_grades(_split(value))}",
    ("subjects", Operator.CONTAINS): _name_subjects,
    ("title", Operator.CONTAINS): "classes with “{}” in the title".format,
    ("title", Operator.EQUAL): "classes “{}”".format,
    ("classCode", Operator.EQUAL): "the class code {}".format,
    ("classType", Operator.EQUAL): "{} classes".format,
    ("sourcedId", Operator.EQUAL): "the class {}".format,
}
