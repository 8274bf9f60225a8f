"""A made-up district as arithmetic: numbers determine the place of each person, so nothing has to be stored.

Student number i goes to school i modulo the number of schools. Students with neighbouring numbers are families, so
siblings go to schools of different levels. The students of a school fill its grades in turn, and the students of a
grade fill sections of 25. Every result is a function of the district and a number, so a district of a million students
takes no more memory than one of ten.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from tools.districts.dice import Dice, make_guid
from tools.districts.levels import CYCLE, Level

STUDENTS_PER_SCHOOL = 500
SECTION_SIZE = 25
# The number of sections that one teacher of a subject teaches.
LOAD, ITINERANT_LOAD = 5, 10
FEWEST_SCHOOLS = 3
# The ways to split six neighbouring students into families, as the sizes of the families.
FAMILIES = ((1, 1, 2, 2), (2, 3, 1), (1, 1, 1, 3), (3, 2, 1), (1, 2, 1, 2), (2, 2, 2), (1, 1, 1, 1, 1, 1))
NEIGHBOURS = 6
PARTS_OF_A_PERCENT = 100


@dataclass(frozen=True)
class Seat:
    """The place of a student: the school, the index of the grade there, and the number within the grade."""

    school: int
    grade: int
    number: int


@dataclass(frozen=True)
class Section:
    """A section of a grade. `order`: its number among all sections of the school, from 0."""

    school: int
    grade: int
    number: int
    order: int


@dataclass(frozen=True)
class Teacher:
    """A teacher. `kind` and `key` identify the teacher; `schools`: the schools where the teacher teaches."""

    kind: str
    key: tuple[int, ...]
    schools: tuple[int, ...]


@dataclass(frozen=True)
class District:
    """A district with `students` students. `school_year`: the year in which the school year ends; `guardians_percent`:
    the percentage of families whose guardians are in the export."""

    name: str
    students: int
    seed: int
    school_year: int
    guardians_percent: float

    def make_id(self, *name: object) -> str:
        """The sourcedId of the object with this name."""
        return make_guid(self.seed, self.name, *name)

    def make_dice(self, *name: object) -> Dice:
        """The random numbers of the object with this name."""
        return Dice(self.seed, self.name, *name)

    @functools.cached_property
    def schools(self) -> int:
        """The number of schools."""
        return max(FEWEST_SCHOOLS, self.students // STUDENTS_PER_SCHOOL)

    def find_level(self, school: int) -> Level:
        """The level of a school."""
        return CYCLE[school % len(CYCLE)]

    def find_seat(self, student: int) -> Seat:
        """The place of a student."""
        school, member = student % self.schools, student // self.schools
        grades = len(self.find_level(school).grades)
        return Seat(school, member % grades, member // grades)

    def count_sections(self, school: int, grade: int) -> int:
        """The number of sections of a grade of a school; 0 for a grade without students."""
        members = (self.students - school + self.schools - 1) // self.schools
        grades = len(self.find_level(school).grades)
        size = (members - grade + grades - 1) // grades
        return max(0, (size + SECTION_SIZE - 1) // SECTION_SIZE)

    def list_sections(self, school: int) -> Iterator[Section]:
        """The sections of a school."""
        order = 0
        for grade in range(len(self.find_level(school).grades)):
            for number in range(self.count_sections(school, grade)):
                yield Section(school, grade, number, order)
                order += 1

    def find_section(self, seat: Seat, subject: int) -> int:
        """The section in which a student takes a subject. The classmates are the same in every subject at an elementary
        school, and differ by subject at other schools."""
        sections = self.count_sections(seat.school, seat.grade)
        shift = 0 if self.find_level(seat.school).together else seat.number // sections * subject
        return (seat.number + shift) % sections

    # --- teachers ---------------------------------------------------------------------------------------------------

    def find_teacher(self, section: Section, subject: int) -> Teacher:
        """The teacher of a subject in a section."""
        level = self.find_level(section.school)
        if level.subjects[subject].itinerant:
            return self._make_itinerant(section.school // 2, subject, section.order // ITINERANT_LOAD)
        if level.together:
            return Teacher("class teacher", (section.school, section.order), (section.school,))
        return Teacher("subject teacher", (section.school, subject, section.order // LOAD), (section.school,))

    def list_teachers(self) -> Iterator[Teacher]:
        """Every teacher once."""
        for school in range(self.schools):
            level, sections = self.find_level(school), self._count_all_sections(school)
            if level.together:
                yield from (Teacher("class teacher", (school, order), (school,)) for order in range(sections))
                continue
            for subject in (number for number, taught in enumerate(level.subjects) if not taught.itinerant):
                for turn in range(-(-sections // LOAD)):
                    yield Teacher("subject teacher", (school, subject, turn), (school,))
        for pair in range(-(-self.schools // 2)):
            most = max(self._count_all_sections(school) for school in self._list_pair(pair))
            # The itinerant subjects are the same at every level.
            for subject in (number for number, taught in enumerate(CYCLE[0].subjects) if taught.itinerant):
                for turn in range(-(-most // ITINERANT_LOAD)):
                    yield self._make_itinerant(pair, subject, turn)

    def _make_itinerant(self, pair: int, subject: int, turn: int) -> Teacher:
        schools = (
            school for school in self._list_pair(pair) if self._count_all_sections(school) > turn * ITINERANT_LOAD
        )
        return Teacher("itinerant teacher", (pair, subject, turn), tuple(schools))

    def _list_pair(self, pair: int) -> range:
        return range(2 * pair, min(2 * pair + 2, self.schools))

    def _count_all_sections(self, school: int) -> int:
        return sum(self.count_sections(school, grade) for grade in range(len(self.find_level(school).grades)))

    # --- families ---------------------------------------------------------------------------------------------------

    def list_families(self) -> Iterator[range]:
        """The students of every family."""
        for first in range(0, self.students, NEIGHBOURS):
            yield from self._list_families_at(first)

    def _list_families_at(self, first: int) -> Iterator[range]:
        for size in self.make_dice("families", first).pick(FAMILIES):
            if first < self.students:
                yield range(first, min(first + size, self.students))
            first += size

    def count_guardians(self, family: range) -> int:
        """The number of guardians of a family in the export; some families have none."""
        known = self.make_dice("guardians known", family.start).roll(100 * PARTS_OF_A_PERCENT)
        if known >= self.guardians_percent * PARTS_OF_A_PERCENT:
            return 0
        return self.make_dice("guardians", family.start).pick((0, 1, 1, 1, 2, 2, 2, 2, 2, 2))
