"""What kind each field is of: the knowledge that turns a filter that reads well into one that means something."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final, TypeAlias

ANY_KEY: Final = "*"
"""The last name of an open prefix: `metadata.*` is any name below `metadata`."""

MAX_CLASS_REPEATS: Final = 2
"""How often one class may be on the path to a field: a class that contains itself is read one level deep."""

LONGEST_MISSPELLING: Final = 64
"""Longer names get no suggestion: nobody misspells so much, and looking for the nearest name takes time."""


class Kind(Enum):
    """What the values of a field are, each valued as the command and the type files name it.

    The rostering resources have no numbers: what looks like one (a school year, a grade) is text.
    """

    TEXT = "text"
    FLAG = "flag"
    INSTANT = "instant"
    DAY = "day"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field.

    Args:
        kind: What one value is.
        many: The field is reached through a list (`roles.role`): a record has any number of values, and a comparison
            holds where it holds for any of them.
    """

    kind: Kind
    many: bool = False


class FieldTypes(Mapping[str, FieldType]):
    """The fields that a filter may name: an immutable mapping, hashable, to be made once and kept.

    Args:
        types: Types by field name. A name ending in `.*` is an open prefix: any name below it. A bare `Kind` stands
            for `FieldType(kind)`.
    """

    __slots__ = ("_deepest", "_hash", "_types")

    def __init__(self, types: Mapping[str, FieldType | Kind]) -> None:
        self._types = {
            name: type_ if isinstance(type_, FieldType) else FieldType(type_) for name, type_ in types.items()
        }
        self._hash = hash(frozenset(self._types.items()))
        # How many names lead to the open prefix with the most of them. Further names of a field are not looked at: a
        # caller chooses how many there are, and each look joins all of those before it.
        self._deepest = max((name.count(".") for name in self._types if name.endswith(f".{ANY_KEY}")), default=0)

    def __getitem__(self, name: str) -> FieldType:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"FieldTypes({self._types!r})"

    def find(self, field: str) -> FieldType | None:
        """The type of a field as a filter names it.

        Args:
            field: The field, with its dots.

        Returns:
            Its type, by its own name or by an open prefix; None where there is no such field.
        """
        return self._types.get(field) or self._types.get(".".join((*self.path(field)[:-1], ANY_KEY)))

    def path(self, field: str) -> tuple[str, ...]:
        """The names that lead to a field.

        Args:
            field: The field, with its dots.

        Returns:
            One name for each dot and one more; but what stands below an open prefix is one name, dots and all, because
            keys of free-form objects have dots of their own (`metadata.lunch.plan` is the key `lunch.plan`).
        """
        names = tuple(field.split("."))
        if field not in self._types:
            for depth in range(1, min(len(names), self._deepest + 1)):
                if ".".join((*names[:depth], ANY_KEY)) in self._types:
                    return (*names[:depth], ".".join(names[depth:]))
        return names

    def nearest(self, field: str) -> str | None:
        """The known name that an unknown one was probably meant to be.

        Args:
            field: An unknown field.

        Returns:
            A known name, or None where none is near.
        """
        if len(field) > LONGEST_MISSPELLING:
            return None
        known = {name.lower(): name for name in self._types}
        near = get_close_matches(field.lower(), known, n=1)
        return known[near[0]] if near else None

    def below(self, field: str) -> list[str]:
        """The known names that reach into a field: `class.sourcedId` for `class`.

        Args:
            field: A field, with its dots.

        Returns:
            The names, in the order of the types.
        """
        return [name for name in self._types if name.startswith(f"{field}.")]


RelativeTypes: TypeAlias = Mapping[str, FieldType]
"""The types that one declaration gives, by names relative to it; the empty name is the declared thing itself."""


def prefix_names(name: str, types: RelativeTypes) -> dict[str, FieldType]:
    """The same types, seen from one level further up.

    Args:
        name: What the level above calls the declared thing.
        types: Its types.

    Returns:
        The types, by names that begin with `name`.
    """
    return {f"{name}.{relative}" if relative else name: type_ for relative, type_ in types.items()}


def make_list_types(types: RelativeTypes) -> dict[str, FieldType]:
    """The types of a list of such things: a list of texts is one value, of its own kind; of others there are many.

    Args:
        types: The types of one item.

    Returns:
        The types of the list.
    """
    if types.get("") == FieldType(Kind.TEXT):
        return {"": FieldType(Kind.TEXTS)}
    return {relative: FieldType(type_.kind, many=True) for relative, type_ in types.items()}
