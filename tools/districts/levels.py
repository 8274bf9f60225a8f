"""The levels of schools, their grades, and the seven subjects that every student takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SchoolSubject:
    """A subject. Its title and a grade make the title of a course; `code` is its SCED code. `itinerant`: one teacher
    gives it at two neighbouring schools; `class_type`: of its classes, a homeroom has its own."""

    title: str
    code: str
    itinerant: bool = False
    class_type: str = "scheduled"


@dataclass(frozen=True)
class Level:
    """A level of schools. `together`: the children of a section take every subject together, and one teacher gives all
    their subjects except the itinerant ones."""

    name: str
    grades: tuple[str, ...]
    subjects: tuple[SchoolSubject, ...]
    together: bool = False


_ARTS = (
    SchoolSubject("Art & Design", "05154", itinerant=True),
    SchoolSubject("Physical Education", "08001", itinerant=True),
)

ELEMENTARY = Level(
    "Elementary School",
    ("KG", "01", "02", "03", "04", "05"),
    (
        SchoolSubject("Homeroom", "22106", class_type="homeroom"),
        SchoolSubject("Mathematics", "02038"),
        SchoolSubject('Reading: "100%" Club', "01038"),
        SchoolSubject("Science", "03238"),
        SchoolSubject("Social Studies", "04438"),
        *_ARTS,
    ),
    together=True,
)
MIDDLE = Level(
    "Middle School",
    ("06", "07", "08"),
    (
        SchoolSubject("Homeroom", "22106", class_type="homeroom"),
        SchoolSubject("Pre_Algebra", "02051"),
        SchoolSubject("English/Language Arts", "01036"),
        SchoolSubject("Earth Science", "03008"),
        SchoolSubject("World' AND 'History", "04064"),
        *_ARTS,
    ),
)
HIGH = Level(
    "High School",
    ("09", "10", "11", "12"),
    (
        SchoolSubject("Homeroom", "22106", class_type="homeroom"),
        SchoolSubject("Algebra & 50% Statistics", "02052"),
        SchoolSubject("English Literature", "01056"),
        SchoolSubject("Biology", "03051"),
        SchoolSubject("U.S. History", "04101"),
        *_ARTS,
    ),
)
LEVELS = (ELEMENTARY, MIDDLE, HIGH)
# The levels of consecutive schools; half of all schools are elementary.
CYCLE = (ELEMENTARY, MIDDLE, HIGH, ELEMENTARY)
