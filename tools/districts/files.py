"""The rows of every file of a made-up district's export, by header, for both versions of OneRoster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tools.districts import people
from tools.districts.levels import LEVELS
from tools.districts.model import District, Section
from tools.districts.names import CITIES, COUNTRIES, LANGUAGES, SCHOOL_NAMES, STATES, STREETS, make_phone

Row = Mapping[str, str]
DEPARTMENTS = ("Mathematics", "Science", "Arts & Sports")
# (name, type, (month, day) of the start, (month, day) of the exclusive end, the parent session)
CALENDAR = (
    ("School Year", "schoolYear", (8, 17), (6, 12), None),
    ("Fall Semester", "semester", (8, 17), (1, 16), "School Year"),
    ("Spring Semester", "semester", (1, 19), (6, 12), "School Year"),
    ("Quarter 1", "gradingPeriod", (8, 17), (10, 24), "Fall Semester"),
    ("Quarter 2", "gradingPeriod", (10, 26), (1, 16), "Fall Semester"),
    ("Quarter 3", "gradingPeriod", (1, 19), (3, 27), "Spring Semester"),
    ("Quarter 4", "gradingPeriod", (3, 29), (6, 12), "Spring Semester"),
)
SEMESTERS = ("Fall Semester", "Spring Semester")
# From this month on, a day belongs to the calendar year before the one in which the school year ends.
FIRST_MONTH = 7


def list_orgs(district: District) -> Iterator[Row]:
    """The rows of orgs.csv: the district, its schools, and the departments of the high schools."""
    top = district.make_id("district")
    yield {
        "sourcedId": top,
        "name": district.name,
        "type": "district",
        "identifier": f"{district.seed % 100:02d}-0001",
        "metadata.city": district.make_dice("district").pick(CITIES),
    }
    for school in range(district.schools):
        dice = district.make_dice("school", school)
        round_of_names, name = divmod(school, len(SCHOOL_NAMES))
        title = SCHOOL_NAMES[name] + (f" {round_of_names + 1}" if round_of_names else "")
        yield {
            "sourcedId": district.make_id("school", school),
            "name": f"{title} {district.find_level(school).name}",
            "type": "school",
            "identifier": f"{district.seed % 100:02d}-{school + 1:04d}-S",
            "parentSourcedId": top,
            "metadata.address": f"{dice.roll(990) + 10} {dice.pick(STREETS)}",
            "metadata.city": dice.pick(CITIES),
            "metadata.phone": make_phone(dice),
        }
        if people.is_high_school(district, school):
            for number, department in enumerate(DEPARTMENTS, 1):
                yield {
                    "sourcedId": district.make_id("department", school, department),
                    "name": f"{title} {department}",
                    "type": "department",
                    "identifier": f"{district.seed % 100:02d}-{school + 1:04d}-D{number}",
                    "parentSourcedId": district.make_id("school", school),
                }


def list_sessions(district: District) -> Iterator[Row]:
    """The rows of academicSessions.csv: the school year, its semesters, and their grading periods."""
    for title, kind, first, end, above in CALENDAR:
        yield {
            "sourcedId": district.make_id("session", title),
            "title": f"{title} {district.school_year - 1}-{district.school_year}",
            "type": kind,
            "startDate": _format_day(district, *first),
            "endDate": _format_day(district, *end),
            "parentSourcedId": district.make_id("session", above) if above else "",
            "schoolYear": str(district.school_year),
        }


def _format_day(district: District, month: int, day: int) -> str:
    year = district.school_year - (1 if month >= FIRST_MONTH else 0)
    return f"{year}-{month:02d}-{day:02d}"


def list_courses(district: District) -> Iterator[Row]:
    """The rows of courses.csv: each subject of each grade, at the district."""
    for level in LEVELS:
        for grade in level.grades:
            for subject in level.subjects:
                yield {
                    "sourcedId": district.make_id("course", grade, subject.title),
                    "schoolYearSourcedId": district.make_id("session", "School Year"),
                    "title": f"{subject.title}, Grade {grade}",
                    "courseCode": f"{subject.code}-{grade}",
                    "grades": grade,
                    "orgSourcedId": district.make_id("district"),
                    "subjects": subject.title.replace(",", ""),
                    "subjectCodes": subject.code,
                }


def make_class_id(district: District, school: int, grade: int, number: int, subject: int) -> str:
    """The id of the class in which a section of a grade takes a subject."""
    return district.make_id("class", school, grade, number, subject)


def list_classes(district: District) -> Iterator[Row]:
    """The rows of classes.csv: each subject of each section of each school. Itinerant subjects take one semester, the
    others the whole year."""
    for section, subject in _list_lessons(district):
        level = district.find_level(section.school)
        taught, grade = level.subjects[subject], level.grades[section.grade]
        terms = (SEMESTERS[section.order % 2],) if taught.itinerant else SEMESTERS
        yield {
            "sourcedId": make_class_id(district, section.school, section.grade, section.number, subject),
            "title": f"{taught.title}, Grade {grade}, Section {section.number + 1}",
            "grades": grade,
            "courseSourcedId": district.make_id("course", grade, taught.title),
            "classCode": f"{taught.code}-{grade}-{section.number + 1}",
            "classType": taught.class_type,
            "location": f"Room {section.order + 101}",
            "schoolSourcedId": district.make_id("school", section.school),
            "termSourcedIds": ",".join(district.make_id("session", term) for term in terms),
            "subjects": taught.title.replace(",", ""),
            "subjectCodes": taught.code,
            "periods": str(subject + 1),
        }


def _list_lessons(district: District) -> Iterator[tuple[Section, int]]:
    for school in range(district.schools):
        subjects = range(len(district.find_level(school).subjects))
        for section in district.list_sections(school):
            yield from ((section, subject) for subject in subjects)


def list_users(district: District) -> Iterator[Row]:
    """The rows of users.csv: all people."""
    return map(people.to_user_row, people.list_people(district))


def list_roles(district: District) -> Iterator[Row]:
    """The rows of roles.csv (only 1.2): a primary role of each person at each of their orgs."""
    for person in people.list_people(district):
        for org in person.orgs:
            yield {
                "sourcedId": district.make_id("role", person.id, org),
                "userSourcedId": person.id,
                "roleType": "primary",
                "role": person.role_1_2,
                "beginDate": _format_day(district, *CALENDAR[0][2]) if person.child else "",
                "endDate": _format_day(district, *CALENDAR[0][3]) if person.child else "",
                "orgSourcedId": org,
                "userProfileSourcedId": _make_profile_id(district, person) if _has_profile(person) else "",
            }


def list_profiles(district: District) -> Iterator[Row]:
    """The rows of userProfiles.csv (only 1.2): the account of some students in a learning platform."""
    for person in filter(_has_profile, people.list_students(district)):
        yield {
            "sourcedId": _make_profile_id(district, person),
            "userSourcedId": person.id,
            "profileType": "learner",
            "vendorId": "lms.example.org",
            "applicationId": "lms",
            "description": 'The "learning" platform',
            "credentialType": "username",
            "username": person.username,
        }


def _has_profile(person: people.Person) -> bool:
    return person.child and int(person.label[1:]) % 3 == 0


def _make_profile_id(district: District, person: people.Person) -> str:
    return district.make_id("profile", person.id)


def list_enrollments(district: District) -> Iterator[Row]:
    """The rows of enrollments.csv: students in the classes of their sections, a teacher in each class, and a proctor in
    some."""
    begin, end = _format_day(district, *CALENDAR[0][2]), _format_day(district, *CALENDAR[0][3])
    for student in range(district.students):
        seat = district.find_seat(student)
        user, school = people.make_student_id(district, student), district.make_id("school", seat.school)
        for subject in range(len(district.find_level(seat.school).subjects)):
            number = district.find_section(seat, subject)
            yield {
                "sourcedId": district.make_id("enrollment", student, subject),
                "classSourcedId": make_class_id(district, seat.school, seat.grade, number, subject),
                "schoolSourcedId": school,
                "userSourcedId": user,
                "role": "student",
                "beginDate": begin,
                "endDate": end,
            }
    for section, subject in _list_lessons(district):
        taught = make_class_id(district, section.school, section.grade, section.number, subject)
        staff = [("teacher", people.make_teacher_id(district, district.find_teacher(section, subject)), "true")]
        if district.make_dice("proctor", taught).chance(5):
            staff.append(("proctor", people.make_staff_id(district, people.SCHOOL_STAFF[-1], section.school), "false"))
        for role, user, primary in staff:
            yield {
                "sourcedId": district.make_id("enrollment", role, taught),
                "classSourcedId": taught,
                "schoolSourcedId": district.make_id("school", section.school),
                "userSourcedId": user,
                "role": role,
                "primary": primary,
            }


def list_demographics(district: District) -> Iterator[Row]:
    """The rows of demographics.csv: one per student; some cells are empty for some students."""
    races = (
        "americanIndianOrAlaskaNative",
        "asian",
        "blackOrAfricanAmerican",
        "nativeHawaiianOrOtherPacificIslander",
        "white",
    )
    for student in range(district.students):
        seat, dice = district.find_seat(student), district.make_dice("demographics", student)
        grades = [grade for level in LEVELS for grade in level.grades]
        age = 5 + grades.index(district.find_level(seat.school).grades[seat.grade])
        of_races = {race: dice.chance(25) for race in races}
        yield {
            "sourcedId": people.make_student_id(district, student),
            "birthDate": f"{district.school_year - 1 - age}-{dice.roll(12) + 1:02d}-{dice.roll(28) + 1:02d}",
            "sex": dice.pick(("male", "female")),
            **{race: _format_flag(holds) for race, holds in of_races.items()},
            "demographicRaceTwoOrMoreRaces": _format_flag(sum(of_races.values()) > 1),
            "hispanicOrLatinoEthnicity": _format_flag(dice.chance(25)),
            "countryOfBirthCode": dice.pick(COUNTRIES),
            "stateOfBirthAbbreviation": dice.pick(STATES) if dice.chance(80) else "",
            "cityOfBirth": dice.pick(CITIES) if dice.chance(80) else "",
            "publicSchoolResidenceStatus": "01652" if dice.chance(50) else "",
            "metadata.languageAtHome": dice.pick(LANGUAGES),
        }


def _format_flag(holds: bool) -> str:
    return "true" if holds else "false"


# The rows of each file. An export has the files and columns of its version.
ROWS: Mapping[str, Callable[[District], Iterator[Row]]] = {
    "orgs": list_orgs,
    "academicSessions": list_sessions,
    "courses": list_courses,
    "classes": list_classes,
    "users": list_users,
    "roles": list_roles,
    "userProfiles": list_profiles,
    "enrollments": list_enrollments,
    "demographics": list_demographics,
}
METADATA: Mapping[str, tuple[str, ...]] = {
    "orgs": ("address", "city", "phone"),
    "users": ("busRoute", "lunch", "contactOrder"),
    "demographics": ("languageAtHome",),
}
