"""The people of a made-up district: students, their guardians, teachers and staff."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from tools.districts.dice import Dice
from tools.districts.levels import HIGH
from tools.districts.model import District, Teacher
from tools.districts.names import PRONOUNS, Naming, make_phone, pick_naming

DOMAIN = "example.org"


@dataclass(frozen=True)
class Post:
    """A post of the staff, and its role in each version of OneRoster."""

    name: str
    role_1_1: str
    role_1_2: str


SCHOOL_STAFF = (
    Post("principal", "administrator", "principal"),
    Post("secretary", "administrator", "siteAdministrator"),
    Post("counselor", "aide", "counselor"),
    Post("aide", "aide", "aide"),
    Post("proctor", "proctor", "proctor"),
)
DISTRICT_STAFF = (
    Post("superintendent", "administrator", "districtAdministrator"),
    Post("technician", "administrator", "systemAdministrator"),
)
GUARDIAN_ROLES = ("parent", "parent", "parent", "guardian", "relative")


@dataclass(frozen=True)
class Person:
    """A user of the export. `orgs` and `agents` are ids; the role is the same at every org. `label`: a
    letter and a number, which make user names and e-mail addresses unique."""

    id: str
    role_1_1: str
    role_1_2: str
    orgs: tuple[str, ...]
    given: str
    family: str
    label: str
    dice: Dice
    agents: tuple[str, ...] = ()
    grade: str = ""
    child: bool = False

    @property
    def username(self) -> str:
        """The user name: the ASCII letters of the names, if they have any, and the label."""
        return ".".join(filter(None, (_fold(self.given), _fold(self.family), self.label)))

    @property
    def email(self) -> str:
        """An e-mail address under a domain that is reserved for examples."""
        return f"{self.username}@{'students.' if self.child else ''}{DOMAIN}"


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return "".join(letter for letter in plain.lower() if letter.isalnum())


def make_student_id(district: District, student: int) -> str:
    """The id of a student."""
    return district.make_id("student", student)


def _make_guardian_id(district: District, family: range, number: int) -> str:
    return district.make_id("guardian", family.start, number)


def _name_family(district: District, family: range) -> tuple[Naming, str]:
    dice = district.make_dice("family", family.start)
    naming = pick_naming(dice)
    return naming, dice.pick(naming.family)


def list_students(district: District) -> Iterator[Person]:
    """Every student, in the order of their numbers."""
    for family in district.list_families():
        naming, name = _name_family(district, family)
        guardians = tuple(
            _make_guardian_id(district, family, number) for number in range(district.count_guardians(family))
        )
        for student in family:
            seat = district.find_seat(student)
            dice = district.make_dice("student", student)
            yield Person(
                id=make_student_id(district, student),
                role_1_1="student",
                role_1_2="student",
                orgs=(district.make_id("school", seat.school),),
                given=dice.pick(naming.given),
                family=name,
                label=f"s{student}",
                dice=dice,
                agents=guardians,
                grade=district.find_level(seat.school).grades[seat.grade],
                child=True,
            )


def list_guardians(district: District) -> Iterator[Person]:
    """Every guardian, at all schools of the family's children."""
    for family in district.list_families():
        naming, name = _name_family(district, family)
        schools = dict.fromkeys(district.make_id("school", district.find_seat(student).school) for student in family)
        children = tuple(make_student_id(district, student) for student in family)
        for number in range(district.count_guardians(family)):
            dice = district.make_dice("guardian", family.start, number)
            role = dice.pick(GUARDIAN_ROLES)
            yield Person(
                id=_make_guardian_id(district, family, number),
                role_1_1=role,
                role_1_2=role,
                orgs=tuple(schools),
                given=dice.pick(naming.given),
                family=name,
                label=f"g{family.start}-{number}",
                dice=dice,
                agents=children,
            )


def make_teacher_id(district: District, teacher: Teacher) -> str:
    """The id of a teacher."""
    return district.make_id(teacher.kind, *teacher.key)


def list_staff(district: District) -> Iterator[Person]:
    """Teachers, the staff of the schools, the staff of the district."""
    number = 0
    for teacher in district.list_teachers():
        schools = tuple(district.make_id("school", school) for school in teacher.schools)
        yield _make_adult(district, make_teacher_id(district, teacher), "teacher", "teacher", schools, number)
        number += 1
    for school in range(district.schools):
        for post in SCHOOL_STAFF:
            person = make_staff_id(district, post, school)
            yield _make_adult(
                district, person, post.role_1_1, post.role_1_2, (district.make_id("school", school),), number
            )
            number += 1
    for post in DISTRICT_STAFF:
        person = district.make_id(post.name)
        yield _make_adult(district, person, post.role_1_1, post.role_1_2, (district.make_id("district"),), number)
        number += 1


def make_staff_id(district: District, post: Post, school: int) -> str:
    """The id of a member of a school's staff."""
    return district.make_id(post.name, school)


def _make_adult(
    district: District, identifier: str, role_1_1: str, role_1_2: str, orgs: tuple[str, ...], number: int
) -> Person:
    dice = district.make_dice("adult", identifier)
    naming = pick_naming(dice)
    return Person(
        id=identifier,
        role_1_1=role_1_1,
        role_1_2=role_1_2,
        orgs=orgs,
        given=dice.pick(naming.given),
        family=dice.pick(naming.family),
        label=f"t{number}",
        dice=dice,
    )


def list_people(district: District) -> Iterator[Person]:
    """Every user of the export, each once."""
    yield from list_students(district)
    yield from list_staff(district)
    yield from list_guardians(district)


def to_user_row(person: Person) -> dict[str, str]:
    """The cells of users.csv, of both versions."""
    dice = person.dice
    row = {
        "sourcedId": person.id,
        "enabledUser": "false" if dice.chance(2) else "true",
        "orgSourcedIds": ",".join(person.orgs),
        "primaryOrgSourcedId": person.orgs[0],
        "role": person.role_1_1,
        "username": person.username,
        "givenName": person.given,
        "familyName": person.family,
        "agentSourcedIds": ",".join(person.agents),
        "identifier": person.label.upper(),
        "grades": person.grade,
        "userMasterIdentifier": f"umi-{person.label}",
    }
    # Some cells are empty for some people.
    if dice.chance(30):
        row["middleName"] = dice.pick(("Lee", "María", "J.", "Ø"))
    if dice.chance(10):
        row["preferredGivenName"] = person.given[:2]
        row["preferredMiddleName"] = "J."
        row["preferredFamilyName"] = person.family
    if dice.chance(15):
        row["pronouns"] = dice.pick(PRONOUNS)
    if dice.chance(90):
        row["email"] = person.email
    if dice.chance(20 if person.child else 80):
        row["phone"] = make_phone(dice)
        row["sms"] = row["phone"] if dice.chance(50) else make_phone(dice)
    if person.child:
        row["userIds"] = f"{{SIS:{person.label}}}" + (f",{{LDAP:{person.username}}}" if dice.chance(50) else "")
        row["metadata.busRoute"] = str(dice.roll(40) + 1) if dice.chance(60) else ""
        row["metadata.lunch"] = dice.pick(("free", "reduced", "full"))
    elif person.agents:
        row["metadata.contactOrder"] = str(dice.roll(2) + 1)
    return row


def is_high_school(district: District, school: int) -> bool:
    """Whether a school is a high school; these have departments."""
    return district.find_level(school) is HIGH
