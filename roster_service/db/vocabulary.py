"""The words of OneRoster's enumerations, and how 1.2's words are said in 1.1.

The roster stores the words of 1.2 whatever the export's version. 1.1 has fewer words and no extensions, so each of
its vocabularies says what stands for a word that it lacks: another word, or nothing where the field is optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, case, literal, null

EXTENSION = r"ext:[a-zA-Z0-9.\-_]+"


@dataclass(frozen=True)
class Vocabulary:
    """The closed list of words of one field; an extensible one also takes `ext:` and a name (1.2 only)."""

    words: tuple[str, ...]
    extensible: bool = False

    @property
    def pattern(self) -> str:
        """A regular expression that a word of this vocabulary matches in full."""
        words = "|".join(self.words)
        return f"^({words}|{EXTENSION})$" if self.extensible else f"^({words})$"


@dataclass(frozen=True)
class Narrowing:
    """How stored words are said in a vocabulary that lacks some: `stand_ins`, else `otherwise`, else left out."""

    vocabulary: Vocabulary
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    otherwise: str | None = None

    def narrow(self, stored: ColumnElement[str]) -> ColumnElement[str]:
        """The SQL expression of the word that is shown for the `stored` one."""
        whens: list[tuple[ColumnElement[bool], ColumnElement[str]]] = [(stored.in_(self.vocabulary.words), stored)]
        whens += [(stored == word, literal(shown, literal_execute=False)) for word, shown in self.stand_ins.items()]
        otherwise = null() if self.otherwise is None else literal(self.otherwise)
        return case(*whens, (stored.is_(None), null()), else_=otherwise)


STATUS = Vocabulary(("active", "tobedeleted"))

ORG_TYPES_1_1 = Vocabulary(("department", "district", "local", "national", "school", "state"))
ORG_TYPES = Vocabulary(ORG_TYPES_1_1.words, extensible=True)

SESSION_TYPES_1_1 = Vocabulary(("gradingPeriod", "schoolYear", "semester", "term"))
SESSION_TYPES = Vocabulary(SESSION_TYPES_1_1.words, extensible=True)
# What the specification calls terms.
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

SEXES_1_1 = Vocabulary(("female", "male"))
SEXES = Vocabulary(("female", "male", "other", "unspecified"), extensible=True)

NARROW_ORG_TYPE = Narrowing(ORG_TYPES_1_1, otherwise="local")
NARROW_SESSION_TYPE = Narrowing(SESSION_TYPES_1_1, otherwise="term")
NARROW_CLASS_TYPE = Narrowing(CLASS_TYPES_1_1)
NARROW_SEX = Narrowing(SEXES_1_1)
NARROW_ENROLLMENT_ROLE = Narrowing(ENROLLMENT_ROLES_1_1, otherwise="proctor")
# A role that 1.1 has no word for becomes `aide`, the staff role with the least say.
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
