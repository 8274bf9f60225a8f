"""Small random districts as their student information systems have them, and what happens there over night.

The rows are those of a OneRoster 1.2 export, by file and id. Feed `a` has two districts, `b` and `c` have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.sync.roster_model import ABSENT, BULK, FILES, Export, Row
from tests.sync.small_exports import write_export

FEEDS = ("a", "b", "c")
PEOPLE, CLASSES = 10, 5
GUARDIANS = ("guardian", "parent", "relative")
NEXT_WORD = {"student": "teacher", "teacher": "student", "guardian": "aide", "aide": "guardian"}


class District:
    """The student information system of a feed. `left`: the rows of people who left, by id."""

    def __init__(self, feed: str, dice: Random) -> None:
        self.feed, self.dice, self.numbers = feed, dice, 0
        self.rows: dict[str, dict[str, Row]] = {name: {} for name in (*FILES["1.2"][:7], "roles")}
        self.left: dict[str, list[tuple[str, str, Row]]] = {}
        for key in ("d", "e") if feed == "a" else ("d",):
            self.add("orgs", f"{feed}-{key}", name=f"District {key}", type="district", identifier=f"{feed}-{key}")
        for key in ("s1", "s2", "s3"):
            above = f"{feed}-e" if (feed, key) == ("a", "s3") else f"{feed}-d"
            self.add("orgs", f"{feed}-{key}", name=f"School {key}", type="school", parentSourcedId=above)
        for key, kind in (("y", "schoolYear"), ("t1", "semester"), ("t2", "semester")):
            above = "" if key == "y" else f"{feed}-y"
            self.add("academicSessions", f"{feed}-{key}", title=key, type=kind, parentSourcedId=above)
        for key in ("d", "s1", "s2"):
            self.add("courses", f"{feed}-c-{key}", title=f"Course {key}", orgSourcedId=f"{feed}-{key}")
        for _ in range(CLASSES):
            add_class(self)
        for _ in range(PEOPLE):
            add_person(self)
        add_enrollment(self, next(iter(self.rows["users"])), "student")

    def name(self, kind: str) -> str:
        """A new id."""
        self.numbers += 1
        return f"{self.feed}-{kind}{self.numbers}"

    def add(self, file: str, key: str, **cells: str) -> str:
        """Adds a row, and returns its id."""
        self.rows[file][key] = Row({"sourcedId": key} | {name: cell for name, cell in cells.items() if cell})
        return key

    def find(self, file: str, **cells: str) -> list[Row]:
        """The rows with these cells."""
        return [row for row in self.rows[file].values() if all(row[name] == cell for name, cell in cells.items())]

    def pick(self, file: str, condition: Callable[[Row], bool] = bool) -> Row | None:
        """One of the rows for which a condition holds; None where there is none."""
        found = [row for row in self.rows[file].values() if condition(row)]
        return self.dice.choice(found) if found else None

    def pick_school(self, other_than: str = "") -> str:
        """The id of a school."""
        found = self.pick("orgs", lambda row: row["type"] == "school" and row["sourcedId"] != other_than)
        assert found is not None
        return found["sourcedId"]

    def remove(self, *rows: tuple[str, str, Row]) -> None:
        """Removes rows (file, id, row)."""
        for file, key, _ in rows:
            del self.rows[file][key]

    def write(self, folder: Path) -> Path:
        """Writes the export."""
        modes = {name: BULK if self.rows.get(name) else ABSENT for name in FILES["1.2"]}
        rows = {name: tuple(rows.values()) for name, rows in self.rows.items() if rows}
        return write_export(Export("1.2", modes, rows), folder)


# --- what there is ---


def add_class(district: District) -> None:
    """A class begins; often of another school's course."""
    course = district.pick("courses")
    assert course is not None
    district.add(
        "classes",
        district.name("k"),
        title=f"Class {district.numbers}",
        courseSourcedId=course["sourcedId"],
        schoolSourcedId=district.pick_school(),
        termSourcedIds=district.dice.choice(["t1", "t2", "t1,t2"]).replace("t", f"{district.feed}-t"),
        classType="scheduled",
        subjects=district.dice.choice(["Math", "Art", "Math,Art", ""]),
    )


def add_role(district: District, user: str, word: str, role_type: str = "primary") -> None:
    """A role at some school where the user has none of this type."""
    school = district.pick_school()
    if not district.find("roles", userSourcedId=user, orgSourcedId=school):
        key = district.name("r")
        district.add("roles", key, userSourcedId=user, roleType=role_type, role=word, orgSourcedId=school)


def add_enrollment(district: District, user: str, role: str) -> None:
    """An enrollment in some class, mostly at its school."""
    taught = district.pick("classes")
    if taught is not None:
        at = taught["schoolSourcedId"] if district.dice.random() < 0.8 else district.pick_school()
        key, other = district.name("n"), {"schoolSourcedId": at, "role": role}
        district.add("enrollments", key, classSourcedId=taught["sourcedId"], userSourcedId=user, **other)


def add_person(district: District) -> None:
    """A person joins: a student with demographics and enrollments, a teacher, or a guardian."""
    word = district.dice.choice(["student", "student", "student", "teacher", "guardian"])
    user = district.name("u")
    district.add("users", user, givenName=f"Given {user}", email=f"{user}@example.org", middleName=f"Middle {user}")
    district.rows["users"][user]["grades"] = district.dice.choice(["06", "07", "08"])
    add_role(district, user, word)
    if word == "student":
        district.add("demographics", user, sex="female", birthDate=f"2015-03-{district.dice.randint(10, 28)}")
        guardian = district.pick("roles", lambda row: row["role"] in GUARDIANS)
        district.rows["users"][user]["agentSourcedIds"] = guardian["userSourcedId"] if guardian else ""
    if word != "guardian":
        for _ in range(district.dice.randint(0, 2)):
            add_enrollment(district, user, word)


# --- what happens; a change that finds nothing to change does nothing ---


def move(word: str) -> Callable[[District], None]:
    """Somebody with this role goes to another school, with or without the enrollments."""

    def change(district: District) -> None:
        role = district.pick("roles", lambda row: row["role"] == word)
        if role is not None:
            user, role["orgSourcedId"] = role["userSourcedId"], district.pick_school(role["orgSourcedId"])
            others = [it for it in district.find("roles", userSourcedId=user) if it is not role]
            twins = [it for it in others if it["orgSourcedId"] == role["orgSourcedId"]]
            district.remove(*(("roles", it["sourcedId"], it) for it in twins))
            if district.dice.random() < 0.6:
                own = district.find("enrollments", userSourcedId=user)
                district.remove(*(("enrollments", it["sourcedId"], it) for it in own))
                if word != "guardian":
                    add_enrollment(district, user, word)

    return change


def begin_second_role(district: District) -> None:
    user = district.pick("users")
    if user is not None:
        add_role(district, user["sourcedId"], district.dice.choice(list(NEXT_WORD)), "secondary")


def end_second_role(district: District) -> None:
    role = district.pick("roles", lambda row: row["roleType"] == "secondary")
    if role is not None:
        district.remove(("roles", role["sourcedId"], role))


def begin_guest_enrollment(district: District) -> None:
    """Often as somebody else than at the other schools."""
    user = district.pick("roles", lambda row: row["role"] in ("student", "teacher"))
    if user is not None:
        add_enrollment(district, user["userSourcedId"], district.dice.choice([user["role"], NEXT_WORD[user["role"]]]))


def end_enrollment(district: District) -> None:
    row = district.pick("enrollments")
    if row is not None and len(district.rows["enrollments"]) > 1:
        district.remove(("enrollments", row["sourcedId"], row))


def change_enrollment(district: District) -> None:
    row, taught, user = district.pick("enrollments"), district.pick("classes"), district.pick("users")
    if row is not None and taught is not None and user is not None:
        what = district.dice.choice(["role", "class", "school", "user"])
        if what == "role":
            row["role"] = NEXT_WORD.get(row["role"], "teacher")
        elif what == "class":
            row["classSourcedId"] = taught["sourcedId"]
        elif what == "school":
            row["schoolSourcedId"] = district.pick_school(row["schoolSourcedId"])
        else:
            row["userSourcedId"] = user["sourcedId"]


def move_class(district: District) -> None:
    row = district.pick("classes")
    if row is not None:
        row["schoolSourcedId"] = district.pick_school(row["schoolSourcedId"])
        if district.dice.random() < 0.5:
            for enrollment in district.find("enrollments", classSourcedId=row["sourcedId"]):
                enrollment["schoolSourcedId"] = row["schoolSourcedId"]


def change_course_of_class(district: District) -> None:
    row, course = district.pick("classes"), district.pick("courses")
    if row is not None and course is not None:
        row["courseSourcedId"] = course["sourcedId"]


def end_class(district: District) -> None:
    row = district.pick("classes")
    own = district.find("enrollments", classSourcedId=row["sourcedId"]) if row else []
    if row is not None and len(district.rows["classes"]) > 2 and len(own) < len(district.rows["enrollments"]):
        district.remove(("classes", row["sourcedId"], row), *(("enrollments", it["sourcedId"], it) for it in own))


def leave(district: District) -> None:
    """A person goes, with all rows that are theirs."""
    user = district.pick("users")
    if user is None or len(district.rows["users"]) < 6:
        return
    key = user["sourcedId"]
    rows = [
        (file, row["sourcedId"], row)
        for file in ("users", "demographics", "roles", "enrollments")
        for row in district.rows[file].values()
        if key in (row["sourcedId"], row["userSourcedId"])
    ]
    if sum(file == "enrollments" for file, *_ in rows) < len(district.rows["enrollments"]):
        district.remove(*rows)
        district.left[key] = rows


def come_back(district: District) -> None:
    """Somebody who left is there again, as far as what the rows name is."""
    if district.left:
        key = district.dice.choice(sorted(district.left))
        for file, identifier, row in district.left.pop(key):
            named = (("classSourcedId", "classes"), ("schoolSourcedId", "orgs"), ("orgSourcedId", "orgs"))
            if all(row[name] in ("", *district.rows[target]) for name, target in named):
                district.rows[file][identifier] = row


def change_word(district: District) -> None:
    role = district.pick("roles")
    if role is not None:
        role["role"] = NEXT_WORD[role["role"]]


def change_agents(district: District) -> None:
    user = district.pick("users")
    if user is not None:
        others = sorted(set(district.rows["users"]) - {user["sourcedId"]})
        user["agentSourcedIds"] = ",".join(district.dice.sample(others, district.dice.randint(0, 2)))


def change_cells(file: str, column: str) -> Callable[[District], None]:
    """A text of a row changes."""

    def change(district: District) -> None:
        row = district.pick(file)
        if row is not None:
            district.numbers += 1
            row[column] = f"Text {district.numbers}"

    return change


def choose_cell(file: str, column: str, *values: str) -> Callable[[District], None]:
    """A cell of a row is another one of some values."""

    def change(district: District) -> None:
        row = district.pick(file)
        if row is not None:
            row[column] = district.dice.choice([value for value in values if value != row[column]])

    return change


def change_primary_org(district: District) -> None:
    user = district.pick("users")
    if user is not None:
        user["primaryOrgSourcedId"] = district.dice.choice(["", district.pick_school()])


def change_demographics(district: District) -> None:
    user = district.pick("users")
    if user is not None:
        key = user["sourcedId"]
        if key in district.rows["demographics"] and district.dice.random() < 0.5:
            district.remove(("demographics", key, Row()))
        else:
            day = district.dice.randint(10, 28)
            district.add("demographics", key, sex=district.dice.choice(["male", "female"]), birthDate=f"2014-05-{day}")


def change_terms(district: District) -> None:
    row, term = district.pick("classes"), district.pick("academicSessions", lambda row: row["type"] == "semester")
    if row is not None and term is not None:
        row["termSourcedIds"] = term["sourcedId"]


def begin_session(district: District) -> None:
    year = f"{district.feed}-y"
    district.add("academicSessions", district.name("t"), title="New", type="semester", parentSourcedId=year)


def move_course(district: District) -> None:
    row, org = district.pick("courses"), district.pick("orgs")
    if row is not None and org is not None:
        row["orgSourcedId"] = org["sourcedId"]


def begin_course(district: District) -> None:
    district.add("courses", district.name("c"), title="New course", orgSourcedId=district.pick_school())


def open_school(district: District) -> None:
    above = district.pick("orgs", lambda row: row["type"] == "district")
    if above is not None:
        district.add("orgs", district.name("s"), name="New", type="school", parentSourcedId=above["sourcedId"])


def close_school(district: District) -> None:
    """A school that nothing names is no longer there."""
    named = {cell for rows in district.rows.values() for row in rows.values() for cell in list(row.values())[1:]}
    row = district.pick("orgs", lambda row: row["type"] == "school" and row["sourcedId"] not in named)
    schools = district.find("orgs", type="school")
    if row is not None and len(schools) > 3:
        district.remove(("orgs", row["sourcedId"], row))


def do_nothing(_district: District) -> None:
    """A quiet night."""


CHANGES: Mapping[str, Callable[[District], None]] = {
    "a student moves": move("student"),
    "a teacher moves": move("teacher"),
    "a guardian moves": move("guardian"),
    "a second role begins": begin_second_role,
    "a second role ends": end_second_role,
    "a guest enrollment begins": begin_guest_enrollment,
    "an enrollment ends": end_enrollment,
    "an enrollment changes": change_enrollment,
    "a class begins": add_class,
    "a class moves": move_class,
    "a class changes its course": change_course_of_class,
    "a class ends": end_class,
    "a person joins": add_person,
    "a person leaves": leave,
    "a person returns": come_back,
    "a role word changes": change_word,
    "agents change": change_agents,
    "grades change": choose_cell("users", "grades", "06", "07", "08"),
    "subjects change": choose_cell("classes", "subjects", "Math", "Art", "Math,Art", ""),
    "a name changes": change_cells("users", "givenName"),
    "a primary school changes": change_primary_org,
    "demographics change": change_demographics,
    "a session changes": change_cells("academicSessions", "title"),
    "a session begins": begin_session,
    "terms change": change_terms,
    "a course changes": change_cells("courses", "title"),
    "a course moves": move_course,
    "a course begins": begin_course,
    "a school changes": change_cells("orgs", "name"),
    "a school opens": open_school,
    "a school closes": close_school,
    "a quiet night": do_nothing,
}


def move_school(district: District) -> None:
    """A school goes to another district of the feed, which changes what districts and schools open."""
    row = district.pick("orgs", lambda row: row["type"] == "school")
    above = district.pick("orgs", lambda row: row["type"] == "district")
    if row is not None and above is not None:
        row["parentSourcedId"] = above["sourcedId"]


def pick_district(district: District) -> Row:
    """One of the districts."""
    found = district.pick("orgs", lambda row: row["type"] == "district")
    assert found is not None
    return found


def rename_district(district: District) -> None:
    """A district gets another id, and at times another identifier; all that names it follows."""
    row = pick_district(district)
    former, renamed = row["sourcedId"], district.name("d")
    cells = {name: cell for name, cell in row.items() if name != "sourcedId"}
    if district.dice.random() < 0.5:
        cells["identifier"] = renamed
    district.remove(("orgs", former, row))
    district.add("orgs", renamed, **cells)
    for file, column in (("orgs", "parentSourcedId"), ("courses", "orgSourcedId"), ("users", "primaryOrgSourcedId")):
        for named in district.find(file, **{column: former}):
            named[column] = renamed


def renumber_district(district: District) -> None:
    """A district gets another identifier: a new one, or that of another district, which gets its own, or none."""
    row, other = pick_district(district), pick_district(district)
    if row is other:
        row["identifier"] = district.dice.choice(["", district.name("i")])
    else:
        row["identifier"], other["identifier"] = other["identifier"], row["identifier"]
