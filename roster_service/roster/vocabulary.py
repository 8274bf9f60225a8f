"""The words of OneRoster's enumerations, and the translation of 1.2's words to 1.1.

The roster stores the words of 1.2, whatever the version of the export. 1.1 has fewer words and no extensions. For a
word that 1.1 does not have, it shows another word, or leaves the field out if the field is optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

EXTENSION = r"ext:[a-zA-Z0-9.\-_]+"


@dataclass(frozen=True)
class Vocabulary:
    """The list of words of one field. An extensible vocabulary also accepts `ext:` and a name (1.2 only)."""

    words: tuple[str, ...]
    extensible: bool = False

    @property
    def pattern(self) -> str:
        """A regular expression that matches the words of this vocabulary, from their beginning to their end."""
        words = "|".join(self.words)
        return f"^({words}|{EXTENSION})$" if self.extensible else f"^({words})$"

    @property
    def sentence(self) -> str:
        """The words of this vocabulary, for people."""
        words = ", ".join(f"`{word}`" for word in self.words)
        return f"{words}, or `ext:` and a name" if self.extensible else words


@dataclass(frozen=True)
class Narrowing:
    """The translation of stored words to a vocabulary that lacks some of them: to the word in `stand_ins`, else to
    `otherwise`; if that is None, the field is left out."""

    vocabulary: Vocabulary
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    otherwise: str | None = None

    def narrow(self, stored: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """Returns the SQL expression of the word that is shown for the `stored` one; NULL to leave the field out."""
        whens: list[tuple[sa.ColumnElement[bool], sa.ColumnElement[str]]] = [
            (stored.in_(self.vocabulary.words), stored)
        ]
        whens += [(stored == word, sa.literal(shown, literal_execute=False)) for word, shown in self.stand_ins.items()]
        otherwise = sa.null() if self.otherwise is None else sa.literal(self.otherwise)
        return sa.case(*whens, (stored.is_(None), sa.null()), else_=otherwise)

    def list_others(self, shown: str) -> list[str]:
        """Returns the words that, stored, are shown as another one than `shown`, of those that this names."""
        named = {**dict.fromkeys(self.vocabulary.words), **self.stand_ins}
        return sorted(word for word, stand_in in named.items() if (stand_in or word) != shown)


STATUS = Vocabulary(("active", "tobedeleted"))

ORG_TYPES_1_1 = Vocabulary(("department", "district", "local", "national", "school", "state"))
ORG_TYPES = Vocabulary(ORG_TYPES_1_1.words, extensible=True)

SESSION_TYPES_1_1 = Vocabulary(("gradingPeriod", "schoolYear", "semester", "term"))
SESSION_TYPES = Vocabulary(SESSION_TYPES_1_1.words, extensible=True)
# The types of session that the endpoint `/terms` has.
TERM_TYPES = ("term", "semester")

CLASS_TYPES_1_1 = Vocabulary(("homeroom", "scheduled"))
CLASS_TYPES = Vocabulary(CLASS_TYPES_1_1.words, extensible=True)

GUARDIAN_ROLES = ("guardian", "parent", "relative")
USER_ROLES_1_1 = Vocabulary(
    ("administrator", "aide", "guardian", "parent", "proctor", "relative", "student", "teacher")
)
USER_ROLES = Vocabulary(
    (
        "aide",
        "counselor",
        "districtAdministrator",
        "guardian",
        "parent",
        "principal",
        "proctor",
        "relative",
        "siteAdministrator",
        "student",
        "systemAdministrator",
        "teacher",
    ),
    extensible=True,
)
ROLE_TYPES = Vocabulary(("primary", "secondary"))

ENROLLMENT_ROLES_1_1 = Vocabulary(("administrator", "proctor", "student", "teacher"))
ENROLLMENT_ROLES = Vocabulary(ENROLLMENT_ROLES_1_1.words, extensible=True)

# The codes of CEDS, which the standard has for grades. Exports have other texts, too.
GRADES = Vocabulary(
    ("IT", "PR", "PK", "TK", "KG", *(f"{number:02}" for number in range(1, 14)), "PS", "UG", "Other"),
)

SEXES_1_1 = Vocabulary(("female", "male"))
SEXES = Vocabulary(("female", "male", "other", "unspecified"), extensible=True)

NARROW_ORG_TYPE = Narrowing(ORG_TYPES_1_1, otherwise="local")
NARROW_SESSION_TYPE = Narrowing(SESSION_TYPES_1_1, otherwise="term")
NARROW_CLASS_TYPE = Narrowing(CLASS_TYPES_1_1)
NARROW_SEX = Narrowing(SEXES_1_1)
NARROW_ENROLLMENT_ROLE = Narrowing(ENROLLMENT_ROLES_1_1, otherwise="proctor")
# A role that 1.1 does not have becomes `aide`, the staff role with the fewest rights.
NARROW_USER_ROLE = Narrowing(
    USER_ROLES_1_1,
    {
        "principal": "administrator",
        "siteAdministrator": "administrator",
        "districtAdministrator": "administrator",
        "systemAdministrator": "administrator",
        "counselor": "aide",
    },
    otherwise="aide",
)
