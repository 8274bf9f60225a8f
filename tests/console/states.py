"""Exports for the states of the console that a good day does not show: hostile names, runs that fail."""

from __future__ import annotations

import csv
import itertools
import shutil
from pathlib import Path

from tests.postgres.loaded import EXPORTS

SAMPLE = EXPORTS / "springfield-1.1"
SCRIPT = "<script>alert(1)</script>"
# Names that break a page that trusts them: markup, text from right to left, a formula, one that is too long, and one
# that a template would evaluate.
HOSTILE = (
    SCRIPT,
    "\"><img src=x onerror=alert(1)>'",
    "\u202eعائشة محمود\u202c العربية",
    '=HYPERLINK("https://evil.example")',
    "N" * 300,
    "{{ config }} {% raw %} </textarea>",
)
# The columns of names and titles, which people type.
NAMED = {
    "orgs": ("name",),
    "courses": ("title",),
    "classes": ("title", "location"),
    "academicSessions": ("title",),
    "users": ("givenName", "familyName", "middleName", "identifier"),
}


def make_sample(folder: Path) -> Path:
    """The sample as it is."""
    return shutil.copytree(SAMPLE, folder)


def make_hostile(folder: Path) -> Path:
    """The sample with a hostile text in place of every name."""
    make_sample(folder)
    texts = itertools.cycle(HOSTILE)
    for name, columns in NAMED.items():
        header, *rows = read_rows(folder / f"{name}.csv")
        for row in rows:
            for column in columns:
                if row[header.index(column)]:
                    row[header.index(column)] = next(texts)
        write_rows(folder / f"{name}.csv", [header, *rows])
    return folder


def make_twins(folder: Path) -> Path:
    """The sample with two pupils of the same identifier."""
    make_sample(folder)
    header, *rows = read_rows(folder / "users.csv")
    pupils = [row for row in rows if row[header.index("role")] == "student"]
    pupils[1][header.index("identifier")] = pupils[0][header.index("identifier")]
    write_rows(folder / "users.csv", [header, *rows])
    return folder


def make_shrunk(folder: Path) -> Path:
    """The sample without most of its people: a run of it is held."""
    make_sample(folder)
    header, *rows = read_rows(folder / "users.csv")
    write_rows(folder / "users.csv", [header, *(row for row in rows if row[header.index("role")] != "student")])
    return folder


def make_broken(folder: Path) -> Path:
    """The sample without a file that its manifest names: it is refused."""
    make_sample(folder)
    (folder / "classes.csv").unlink()
    return folder


def make_rejected(folder: Path) -> Path:
    """The sample with a school of a class that is nowhere: rows are rejected, and others because of them."""
    make_sample(folder)
    header, *rows = read_rows(folder / "classes.csv")
    rows[0][header.index("schoolSourcedId")] = "nowhere"
    write_rows(folder / "classes.csv", [header, *rows])
    return folder


def read_rows(path: Path) -> list[list[str]]:
    """The rows of a file, the header first."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def write_rows(path: Path, rows: list[list[str]]) -> None:
    """Writes the rows of a file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
