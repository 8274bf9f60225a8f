"""The words for the filter of a rule: "grades 6 to 8" for `grades~'06,07,08'`. A filter without words says itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from oneroster_filter import Clause, F, Operator, Or, all_of, any_of, clauses, fold_tree, parse, to_text
from oneroster_filter.typing import Expr

# The field and the operator of a clause.
_Key = tuple[str, object]
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


def read_parts(filter_: str | None) -> Mapping[str, str]:
    """Returns the values of a filter by field, if each clause asks for `FIELD~'VALUE'`, all must hold, and no field
    comes twice; none for another filter, and without one."""
    made = None if filter_ is None else parse(filter_)
    parts = () if made is None or isinstance(made, Or) else clauses(made)
    found = {part.subject: part.value for part in parts if part.operator is Operator.CONTAINS}
    return found if len(found) == len(parts) else {}


def make_filter(parts: Mapping[str, str]) -> str | None:
    """Returns the filter of which `read_parts` returns these values; None for no values."""
    made = [F(field).contains(value) for field, value in parts.items() if value]
    return to_text(all_of(*made)) if made else None


def replace_values(filter_: str, fields: Collection[str], values: Collection[str], other: str) -> str:
    """Returns a filter with another text in place of the values, or of the items of lists, that these fields are
    compared with; the filter as it is if it has none of them. `values`: in case folding."""

    def replace_one(clause: Clause) -> Expr:
        items = [clause.value] if clause.value.casefold() in values else clause.value.split(",")
        left = [other if item.strip().casefold() in values else item for item in items]
        return replace(clause, value=",".join(left)) if clause.subject in fields and left != items else clause

    made = parse(filter_)
    found = fold_tree(made, replace_one, _join_all, _join_any)
    return filter_ if found == made else to_text(found)


def _join_all(parts: Sequence[Expr]) -> Expr:
    return all_of(*parts)


def _join_any(parts: Sequence[Expr]) -> Expr:
    return any_of(*parts)


def list_grades_of(filter_: str | None) -> list[str]:
    """Returns the grades that a filter asks for, each once."""
    if filter_ is None:
        return []

    def list_of_one(clause: Clause) -> Iterable[str]:
        asks = clause.subject == "grades" and clause.operator in (Operator.CONTAINS, Operator.EQUAL)
        return split_items(clause.value) if asks else []

    return list(dict.fromkeys(fold_tree(parse(filter_), list_of_one, _chain, _chain)))


def _chain(parts: Sequence[Iterable[str]]) -> Iterable[str]:
    return itertools.chain.from_iterable(parts)


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


def split_items(value: str) -> Sequence[str]:
    """Returns the items of a list in a filter."""
    return [item.strip() for item in value.split(",")]


def _join(parts: Sequence[str], word: str) -> str:
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _name_subjects(value: str) -> str:
    return _join([name if name.isupper() else name.lower() for name in split_items(value)], "or")


# The words of a clause, from its value.
_OF_STUDENTS: Mapping[_Key, Callable[[str], str]] = {
    ("grades", Operator.CONTAINS): lambda value: name_grades(split_items(value)),
}
_OF_CLASSES: Mapping[_Key, Callable[[str], str]] = {
    ("grades", Operator.CONTAINS): lambda value: f"classes of {name_grades(split_items(value))}",
    ("subjects", Operator.CONTAINS): _name_subjects,
    ("title", Operator.CONTAINS): "classes with “{}” in the title".format,
    ("title", Operator.EQUAL): "classes “{}”".format,
    ("classCode", Operator.EQUAL): "the class code {}".format,
    ("classType", Operator.EQUAL): "{} classes".format,
    ("sourcedId", Operator.EQUAL): "the class {}".format,
}
