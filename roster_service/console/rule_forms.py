"""The part of a form that has the rules of grants: boxes and words, and the filter itself for those who write one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from roster_service.accounts.districts import list_subjects
from roster_service.accounts.vendor_rights import preview_grants
from roster_service.accounts.vendors import Grant, Vendor
from roster_service.console.visit import Tools
from roster_service.errors import CommandError
from roster_service.feeds.sharing_previews import SharingPreview
from roster_service.schemas.rule_words import make_filter, name_grades, read_parts, split_items
from roster_service.schemas.sharing_rules import Rules, Staff, check_rules

# The subjects that have a box.
MOST_SUBJECTS = 40
EVERYTHING = Rules(None, None, Staff.ALL, guardians=True)


class Values(Protocol):
    """The values of a form or of a query string."""

    @property
    def lists(self) -> Callable[[str], list[str]]: ...

    def get(self, name: str) -> str | None: ...


@dataclass(frozen=True)
class Box:
    """A box to check."""

    value: str
    words: str
    checked: bool


@dataclass(frozen=True)
class RuleForm:
    """The rules as the form has them. `title`: in the titles of classes; `students`, `classes`: filters; `narrows`:
    whether anything is chosen."""

    grades: Sequence[Box]
    subjects: Sequence[Box]
    title: str
    students: str
    classes: str
    staff: str
    guardians: bool
    narrows: bool


def read_rules(given: Values) -> Rules | None:
    """Returns the rules of a form; None if it narrows nothing. Raises CommandError for boxes beside a filter, for a
    filter that means nothing, and for a form without this part."""
    staff = given.get("staff")
    if staff is None or staff not in list(Staff):
        raise CommandError("choose which staff the vendor may see")
    of_students = _choose(given, "students", {"grades": ",".join(given.lists("grade"))})
    of_classes = {"subjects": ",".join(given.lists("subject")), "title": given.get("title") or ""}
    guardians = given.get("guardians") == "yes"
    rules = Rules(of_students, _choose(given, "classes", of_classes), Staff(staff), guardians=guardians)
    check_rules(rules)
    return None if rules == EVERYTHING else rules


def _choose(given: Values, name: str, parts: Mapping[str, str]) -> str | None:
    made, written = make_filter(parts), given.get(name)
    if made and written:
        raise CommandError(f"{name} are chosen by boxes or words, and by a filter; use one of them")
    return made or written


def make_rule_form(
    connection: sa.Connection,
    given: Values,
    present: Rules | None,
    known: Sequence[str],
    district_id: str | None,
    schools: Sequence[str],
) -> RuleForm:
    """Returns the form: with the values that are given, else those of the present rules. The boxes are of the grades
    `known`, of the subjects of these schools of a district, as `list_subjects` takes them, and of what is checked."""
    if given.get("staff") is None:
        rules = present or EVERYTHING
        of_students, of_classes = read_parts(rules.students), read_parts(rules.classes)
        # What boxes and words cannot say is a filter.
        of_students = of_students if set(of_students) <= {"grades"} else {}
        of_classes = of_classes if set(of_classes) <= {"subjects", "title"} else {}
        grades, subjects = (
            split_items(parts[name]) if name in parts else []
            for parts, name in ((of_students, "grades"), (of_classes, "subjects"))
        )
        title = of_classes.get("title", "")
        students = "" if of_students else rules.students or ""
        shared = "" if of_classes else rules.classes or ""
        staff, guardians = rules.staff.value, rules.guardians
    else:
        grades, subjects, title = given.lists("grade"), given.lists("subject"), given.get("title") or ""
        students, shared = given.get("students") or "", given.get("classes") or ""
        staff, guardians = given.get("staff") or "", given.get("guardians") == "yes"
    narrows = bool(grades or subjects or title or students or shared or staff != Staff.ALL or not guardians)
    taught = list_subjects(connection, district_id, schools, MOST_SUBJECTS)
    return RuleForm(
        _make_boxes(known, grades, lambda code: name_grades([code])),
        _make_boxes(taught, subjects, str),
        *(title, students, shared, staff),
        guardians=guardians,
        narrows=narrows,
    )


def _make_boxes(known: Sequence[str], checked: Sequence[str], name: Callable[[str], str]) -> list[Box]:
    # A comma ends an item of a filter.
    values = dict.fromkeys(value for value in (*known, *checked) if "," not in value)
    return [Box(value, name(value), value in checked) for value in values]


def read_preview(
    tools: Tools, vendor: Vendor | None, now: Sequence[Grant], then: Sequence[Grant], *, guardians: bool
) -> SharingPreview:
    """Reads what grants open beside those of now. `vendor`, `guardians`: as `preview_grants` takes them. Raises
    CommandError for a filter that means nothing."""
    # It makes temporary tables, which the connection of a visit cannot, and ends without a commit.
    with tools.owner.connect() as connection:
        return preview_grants(connection, vendor, now, then, guardians=guardians)
