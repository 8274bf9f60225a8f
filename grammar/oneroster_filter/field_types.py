"""Field types: the kind of each field, by which `check` gives a parsed filter its meaning."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final, TypeAlias

from oneroster_filter.errors import FieldTypesError
from oneroster_filter.nodes import FIELD_NAME

ANY_KEY: Final = "*"
"""The last name of an open prefix: `metadata.*` is any name below `metadata`."""

MAX_CLASS_REPEATS: Final = 2
"""How often one class may occur on the path to a field: a class that contains itself is read one level deep."""

LONGEST_MISSPELLING: Final = 64
"""Longer names, in characters, get no suggestion: they are no misspellings, and the search takes time."""


class Kind(Enum):
    """The kind of a field's values. The value of each member is its name in type files.

    There is no number kind, because the rostering resources have no numbers: a school year or a grade is text.
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
        kind: The kind of one value.
        many: Whether the path to the field goes through a list (`roles.role`). A record then has any number of values,
            and a comparison is true if it is true for any of them.
    """

    kind: Kind
    many: bool = False


def is_writable(name: str) -> bool:
    """Whether a filter can write a name, or for an open prefix (`metadata.*`) the names below it."""
    return FIELD_NAME.fullmatch(name.removesuffix(f".{ANY_KEY}")) is not None


class FieldTypes(Mapping[str, FieldType]):
    """The fields that a filter may name: an immutable, hashable mapping. Make it once and keep it.

    Args:
        types: Types by field name. A name ending in `.*` is an open prefix: it allows any name below it. A bare `Kind`
            means `FieldType(kind)`.

    Raises:
        FieldTypesError: A type is neither a `FieldType` nor a `Kind`. `field_types` also takes types of Python.
        ValueError: A filter cannot write a name.
    """

    __slots__ = ("_deepest", "_hash", "_types")

    def __init__(self, types: Mapping[str, FieldType | Kind]) -> None:
        self._types = {
            name: type_ if isinstance(type_, FieldType) else FieldType(type_) for name, type_ in types.items()
        }
        wrong = next((name for name, type_ in self._types.items() if not isinstance(type_.kind, Kind)), None)
        if wrong is not None:
            raise FieldTypesError(f"{wrong}: a FieldType or a Kind is allowed, not {types[wrong]!r}")
        unwritable = next((name for name in types if not is_writable(name)), None)
        if unwritable is not None:
            raise ValueError(f"the name {unwritable!r} cannot be written in a filter")
        self._hash = hash(frozenset(self._types.items()))
        # The number of names in the longest open prefix. `path` tries no longer ones: the author of a filter
        # decides the number of names, and each try joins all names before it, so trying all would take quadratic time.
        self._deepest = max((name.count(".") for name in self._types if name.endswith(f".{ANY_KEY}")), default=0)

    def __getitem__(self, name: str) -> FieldType:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["FieldTypes"], tuple[dict[str, FieldType]]]:
        # The hash of a text differs between processes, so a copy computes its own.
        return FieldTypes, (self._types,)

    def __repr__(self) -> str:
        return f"FieldTypes({self._types!r})"

    def find(self, field: str) -> FieldType | None:
        """Find the type of a field.

        Args:
            field: The field, with its dots.

        Returns:
            Its type, by its own name or by an open prefix; None for an unknown field.
        """
        return self._types.get(field) or self._types.get(".".join((*self.path(field)[:-1], ANY_KEY)))

    def path(self, field: str) -> tuple[str, ...]:
        """Split a field into the names that lead to it.

        Args:
            field: The field, with its dots.

        Returns:
            The names between the dots. The rest below an open prefix is one name, because keys of free-form objects may
            have dots of their own (`metadata.lunch.plan` is the key `lunch.plan` of `metadata`).
        """
        names = tuple(field.split("."))
        if field not in self._types:
            for depth in range(1, min(len(names), self._deepest + 1)):
                if ".".join((*names[:depth], ANY_KEY)) in self._types:
                    return (*names[:depth], ".".join(names[depth:]))
        return names

    def nearest(self, field: str) -> str | None:
        """Find the known name that the author of an unknown name probably meant.

        Args:
            field: An unknown field.

        Returns:
            A known name: the same in another letter case, else one that ends with the unknown name (`roles.role` for
            `role`), else a similar one, with the key of the field below an open prefix. None where there is none.
        """
        if len(field) > LONGEST_MISSPELLING:
            return None
        wanted = field.lower()
        known = {name.lower(): name for name in self._types if not name.endswith(f".{ANY_KEY}")}
        for prefix in (name.removesuffix(f".{ANY_KEY}") for name in self._types.keys() - known.values()):
            names = wanted.split(".")
            depth = prefix.count(".") + 1
            if get_close_matches(".".join(names[:depth]), [prefix.lower()]) and names[depth:]:
                suggestion = ".".join((prefix, *field.split(".")[depth:]))
                known[suggestion.lower()] = suggestion
        if wanted in known:
            return known[wanted]
        ending = [name for name in known if name.endswith(f".{wanted}")]
        near = ending or get_close_matches(wanted, known, n=1)
        return known[near[0]] if near else None

    def below(self, field: str) -> list[str]:
        """Find the known names below a field: `class.sourcedId` for `class`.

        Args:
            field: A field, with its dots.

        Returns:
            The names, in the order of the types.
        """
        return [name for name in self._types if name.startswith(f"{field}.")]


RelativeTypes: TypeAlias = Mapping[str, FieldType]
"""The types of one declaration, by names relative to it. The empty name is the declaration itself."""


def prefix_names(name: str, types: RelativeTypes) -> dict[str, FieldType]:
    """Prefix the names of types with the name of the field that contains them."""
    return {f"{name}.{relative}" if relative else name: type_ for relative, type_ in types.items()}


def make_list_types(types: RelativeTypes) -> dict[str, FieldType]:
    """Make the types of a list. A list of texts is one value of kind TEXTS; any other list has many values."""
    if types.get("") == FieldType(Kind.TEXT):
        return {"": FieldType(Kind.TEXTS)}
    return {relative: FieldType(type_.kind, many=True) for relative, type_ in types.items()}
