"""The tolerated deviations: mistakes that exports make so often that the sync accepts, counts and reports them.

Each entry of the table names what the sync accepts, how it reads it, and the remedy. `formats/cells.py` binds the
deviations of cells to kinds of cells. The modules that read packages, headers, bytes, file names, the manifest and
references bind the others. A run that is strict refuses an export with any deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa

SQLText = sa.ColumnElement[str]


@dataclass(frozen=True)
class Deviation:
    """A tolerated deviation. `taken` names it in a report, after "in N rows, "; `example`: a text of an export, and
    the text that the sync reads instead; `remedy`: how to avoid it. `allowed`: the standard allows it, so that a strict
    run accepts it too."""

    taken: str
    example: tuple[str, str]
    remedy: str
    allowed: bool = False


@dataclass(frozen=True)
class Tolerated:
    """An occurrence of a deviation in an export. `column`: the header, where it concerns one; `count`: the number of
    rows; `found`: the text of the export, where the report may quote it; `line`: the first of the rows' lines."""

    file: str
    deviation: Deviation
    column: str | None = None
    count: int | None = None
    found: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.column is None else f"{self.file}, column {self.column}"
        return f"{place}: {self.describe()}"

    def describe(self) -> str:
        """The deviation and its remedy, in words, without the place."""
        found = f" ({self.found})" if self.found else ""
        return f"{self._count_rows()}{self.deviation.taken}{found}; {self.deviation.remedy}"

    def _count_rows(self) -> str:
        if self.count is None:
            return ""
        rows, first = ("row", "") if self.count == 1 else ("rows", "first: ")
        line = "" if self.line is None else f" ({first}line {self.line:,})"
        return f"in {self.count:,} {rows}{line}, "


# A notice of a report: a tolerated deviation, or a sentence.
Notice = Tolerated | str
# A deviation in more places than these is one line of a report.
MOST_LINES = 3


def list_lines(notices: Iterable[Notice]) -> Iterator[str]:
    """The notices as lines of a report. Many exporters make one mistake in every file and column, so a deviation has
    one line for all of its places, if there are many."""
    places: dict[Deviation, list[Tolerated]] = {}
    notices = list(notices)
    for notice in notices:
        if isinstance(notice, Tolerated):
            places.setdefault(notice.deviation, []).append(notice)
    for notice in notices:
        found = [] if isinstance(notice, str) else places[notice.deviation]
        if len(found) <= MOST_LINES:
            yield str(notice)
        elif notice is found[0]:
            yield _join_places(found)


def _join_places(found: list[Tolerated]) -> str:
    files: dict[str, list[Tolerated]] = {}
    for notice in found:
        files.setdefault(notice.file, []).append(notice)
    lines = []
    for file, notices in files.items():
        count, first = sum(notice.count or 0 for notice in notices), notices[0].found
        # A row with the deviation in two columns counts twice.
        unit = "row" if len(notices) == 1 else "cell"
        more = f" and {len(notices) - 1:,} more" if first and len(notices) > 1 else ""
        details = ", ".join(
            [*([f"{count:,} {unit}{'' if count == 1 else 's'}"] if count else []), *([first + more] if first else [])]
        )
        lines.append(f"{file} ({details})" if details else file)
    return f"{', '.join(lines)}: {found[0].deviation.taken}; {found[0].deviation.remedy}"


FLAG_SPELLING = Deviation(
    "a flag that is spelt otherwise than true or false (TRUE, False, 1, 0, Y, no)",
    ("TRUE", "true"),
    "write true or false",
)
WORD_CASE = Deviation("a word in another letter case", ("Scheduled", "scheduled"), "write it as the standard does")
MAPPED_WORD = Deviation("a word of the mapping of the feed", ("pupil", "student"), "write the word of the standard")
WORD_SPELLING = Deviation("a word in another spelling (M, F)", ("F", "female"), "write the word of the standard")
GRADE_SPELLING = Deviation(
    "a grade in another spelling (9, K)", ("9,K", "09,KG"), "write grades as CEDS does: KG, 01 to 12"
)
UNKNOWN_GRADE = Deviation(
    "a grade that is no code of CEDS",
    ("9th", "9th"),
    "write KG, 01 to 12, or map the word with roster feed set NAME --words FILE",
)
US_DAY = Deviation("a day written M/D/YYYY, the month first", ("1/05/2023", "2023-01-05"), "write days as YYYY-MM-DD")
DAY_FIRST = Deviation(
    "a day written D/M/YYYY, the day first, as 13/05/2023 in this column shows",
    ("13/05/2023", "2023-05-13"),
    "write days as YYYY-MM-DD",
)
SAME_DAY_FIRST = Deviation(
    "a day of a delta, the day first as in this column before",
    ("3/04/2023", "2023-04-03"),
    "write days as YYYY-MM-DD",
)
PLAIN_DAY = Deviation("a day written YYYYMMDD or YYYY/MM/DD", ("20230105", "2023-01-05"), "write days as YYYY-MM-DD")
MIDNIGHT = Deviation(
    "a day written as its midnight", ("2023-01-05T00:00:00.000Z", "2023-01-05"), "write days as YYYY-MM-DD"
)
SCHOOL_YEAR = Deviation("a school year written as two years", ("2025-2026", "2026"), "write the year in which it ends")
LIST_SPACES = Deviation("spaces around the commas of a list", ("09, 10", "09,10"), "write lists without spaces")
EMPTY_ITEM = Deviation("an empty item in a list", ("g1,,g2,", "g1,g2"), "write no comma without an item")
CELL_SPACES = Deviation("spaces around an id or a word", (" school", "school"), "write it without spaces around it")
STATUS_IN_BULK = Deviation(
    "a status in a bulk file, which needs none", ("active", "active"), "leave the status empty in bulk files"
)
GONE_STATUS = Deviation(
    "a status that deletes: inactive, or tobedeleted in a bulk file",
    ("inactive", "tobedeleted"),
    "leave it empty if the record stays, else leave out the row; write tobedeleted in a delta",
)
HEADER_CASE = Deviation("a header in another letter case", ("GivenName", "givenName"), "write it as the standard does")
HEADER_SPACES = Deviation("spaces around a header", (" givenName", "givenName"), "write it without spaces around it")
HEADER_SPELLING = Deviation(
    "a header with a known misspelling", ("dataLastModified", "dateLastModified"), "write it as the standard does"
)
EXTRA_COLUMN = Deviation(
    "a column that the file should not have", ("homeroom", "nothing"), "name it metadata.NAME, or leave it out"
)
COLUMN_ORDER = Deviation(
    "columns in another order", ("status,sourcedId", "sourcedId,status"), "use the order of the standard"
)
MISSING_COLUMN = Deviation("a column is missing that may be empty", ("", "empty cells"), "add the column")
BYTE_ORDER_MARK = Deviation(
    "a byte order mark before the header", ("\ufeffsourcedId", "sourcedId"), "write UTF-8 without a mark"
)
UTF_16 = Deviation("the encoding UTF-16", ("UTF-16", "UTF-8"), "write UTF-8")
WINDOWS_1252 = Deviation("text in the encoding Windows-1252", ("Zo\\xeb", "Zoë"), "write UTF-8")
MAC_LINES = Deviation("line ends of old Macs", ("CR", "LF"), "end lines with CR LF or LF")
BLANK_LINE = Deviation("an empty line between rows", ("", "nothing"), "leave out empty lines")
QUOTED_NEWLINE = Deviation("a line break inside a cell", ("a line break", "a space"), "write cells in one line")
EXTRA_CELLS = Deviation("empty cells beyond the last column", ("a,b,,", "a,b"), "write one cell for each column")
DUPLICATE_ROW = Deviation("a row that repeats another one exactly", ("the row twice", "the row"), "write each row once")
NO_TARGET = Deviation(
    "a dispensable reference that leads nowhere, or where it may not",
    ("an agent who is in no row", "no agent"),
    "add the row, or leave it empty",
)
FILE_NAME_CASE = Deviation(
    "a file name in another letter case", ("userprofiles.csv", "userProfiles.csv"), "name it as the standard does"
)
LIKE_FILE = Deviation(
    "a file whose name is only like one that is read",
    ("users (1).csv", "nothing"),
    "name the one to load as the standard does",
)
OTHER_FILE = Deviation("a file or folder of another kind beside the files", ("README.txt", "nothing"), "leave it out")
FOLDER = Deviation("the files in a folder", ("export/users.csv", "users.csv"), "put the files at the root")
BACKSLASHES = Deviation(
    "paths with backslashes",
    ("export\\users.csv", "export/users.csv"),
    "write paths with slashes, as the zip format says",
)
NO_MANIFEST = Deviation(
    "no manifest",
    ("", "every file in bulk; version 1.2 if users have no orgs, else 1.1"),
    "add manifest.csv",
)
MANIFEST_VERSION = Deviation("the manifest version 1 for 1.0", ("1", "1.0"), "write 1.0")
MODE_CASE = Deviation("a mode in another letter case", ("Bulk", "bulk"), "write bulk, delta or absent")
PROPERTY_CASE = Deviation(
    "a manifest property in another letter case",
    ("OneRoster.Version", "oneroster.version"),
    "write it as the standard does",
)
OTHER_PROPERTY = Deviation("a manifest property that is none", ("source.vendor", "nothing"), "leave it out")
MISSING_PROPERTY = Deviation(
    "a required manifest property is missing",
    ("", "manifest version 1.0; version 1.2 if users have no orgs, else 1.1"),
    "add the property",
)
BLANK_MODE = Deviation("a blank mode in the manifest", ("", "absent"), "write absent")
UNDECLARED_FILE = Deviation("a file that the manifest does not declare", ("absent", "bulk"), "declare it bulk")
MISSING_FILE = Deviation(
    "a file that the manifest declares is missing", ("bulk", "absent"), "add it, or declare it absent"
)
NO_COURSES = Deviation(
    "no courses.csv", ("", "a course for each id that classes name, or for each class"), "export the courses"
)
KEPT_COURSE = Deviation(
    "no course, or one that is nowhere, without courses.csv",
    ("nowhere", "the stored course of the class"),
    "export the courses",
)
NO_DISTRICT = Deviation(
    "no org of the type district",
    ("", "the feed as a district, above the orgs without a parent"),
    "export the district, or grant the feed as one",
    allowed=True,
)
NO_PARENT = Deviation(
    "a school without a parent",
    ("", "the only district, or the former one"),
    "name the district of each school",
)
OTHER_SCHOOL = Deviation(
    "an enrollment at another school than its class",
    ("school S, class of N", "school N"),
    "give the enrollment the school of its class",
)

COURSE_NAMES = Deviation(
    "a course number that has several names",
    ("MA-9 Algebra, MA-9 Art", "a course for each school, number and name"),
    "give each course a number of its own",
    allowed=True,
)
MADE_NAME = Deviation(
    "a person without a given or family name",
    ("", "the user name, or the one name twice"),
    "export both names",
    allowed=True,
)
DIFFERENT_ROWS = Deviation(
    "rows of one person that contradict each other",
    ("Ann, Anna", "one row: as stored, else the least"),
    "write the same in each row of a person",
    allowed=True,
)
NO_CONTACT = Deviation(
    "a contact without an id or a name", ("", "nothing"), "export the id and the name of each contact", allowed=True
)
COMMA_ID = Deviation(
    "a guardian or pupil whose id has a comma",
    ("a@x.org,b@x.org", "no agent"),
    "write one id",
    allowed=True,
)
NO_TEACHER = Deviation(
    "a section without a teacher",
    ("", "a class without a teacher"),
    "name the teacher, or the substitute",
    allowed=True,
)
NO_TERM = Deviation(
    "a term without its name or one of its days", ("Fall", "no term"), "export name, start and end", allowed=True
)
NO_CLASS_TERM = Deviation("a class without a term", ("", "no term"), "name the term", allowed=True)
OWN_COURSE = Deviation(
    "a class without a course",
    ("", "a course of its own, with its title"),
    "name the course",
    allowed=True,
)
MADE_RECORDS = Deviation(
    "courses or terms that only sections name",
    ("MA-9, Algebra", "a course"),
    "keep their names, numbers and days",
    allowed=True,
)
MADE_IDS = Deviation(
    "ids that are unique in one file alone, or none",
    ("1", "NAME:student:1"),
    "keep the name of the feed",
    allowed=True,
)
UNKNOWN_RACE = Deviation(
    "a race for which OneRoster has no word", ("Unknown", "nothing"), "write the word of OneRoster", allowed=True
)
UNREAD_FILE = Deviation(
    "a file that is read beside another one alone",
    ("courses.csv", "nothing"),
    "add the other one",
    allowed=True,
)
NO_PLACE = Deviation(
    "columns that the roster has no place for", ("Home_language", "nothing"), "leave them out", allowed=True
)

# All of them, in this order.
DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))

# The spellings of FLAG_SPELLING, and the flag that each means.
FLAG_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("TRUE", "True", "1", "Y", "y", "Yes", "yes", "YES", "T", "t"), "true"),
        **dict.fromkeys(("FALSE", "False", "0", "N", "n", "No", "no", "NO", "F", "f"), "false"),
    }
)
# The codes of CEDS for grades.
GRADE_CODES = ("IT", "PR", "PK", "TK", "KG", *(f"{grade:02}" for grade in range(1, 14)), "PS", "UG", "Other")
# The spellings of GRADE_SPELLING in lower case, and the code of CEDS that each means.
GRADE_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **{str(grade): f"{grade:02}" for grade in range(1, 10)},
        **{code.lower(): code for code in GRADE_CODES},
        **dict.fromkeys(("k", "kn", "kindergarten"), "KG"),
        **dict.fromkeys(("prek", "pre-k", "prekindergarten"), "PK"),
        # The other words of Clever.
        "infanttoddler": "IT",
        "preschool": "PR",
        "transitionalkindergarten": "TK",
        "postgraduate": "PS",
        "ungraded": "UG",
    }
)
# The misspellings of HEADER_SPELLING in lower case, and the header that each means. A misspelling counts only in files
# that declare the header it means.
HEADER_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        "datalastmodified": "dateLastModified",
        "datelastmodifed": "dateLastModified",
        "sourceid": "sourcedId",
        "prefferedgivenname": "preferredGivenName",
        "preferedgivenname": "preferredGivenName",
        "prefferedmiddlename": "preferredMiddleName",
        "preferedmiddlename": "preferredMiddleName",
        "prefferedfamilyname": "preferredFamilyName",
        "preferedfamilyname": "preferredFamilyName",
        "orgsourcedid": "orgSourcedIds",
        "agentsourcedid": "agentSourcedIds",
        "termsourcedid": "termSourcedIds",
        # The names of OneRoster 1.0, which exporters still write.
        "grade": "grades",
        "agents": "agentSourcedIds",
        "schoolyearid": "schoolYearSourcedId",
        # Its name of the user of demographics. A file that declares this header is never looked up here.
        "usersourcedid": "sourcedId",
    }
)


@dataclass(frozen=True)
class Tolerance:
    """A tolerated deviation of the cells of one kind. `holds`: the condition that a cell has it; `read`: the corrected
    text (None: the conversion of the kind reads the text as it is). `early`: it is corrected before the others are
    looked for, because a cell may have it and one of them. `needs`, `excluded_by`: the conditions that a cell of the
    same column must have, and must not have, for any cell of the column to be read so; where a column has both, the
    report has the words `clash`. The report says nothing of a deviation that is the `usual` form of the format."""

    deviation: Deviation
    holds: Callable[[SQLText], sa.ColumnElement[bool]]
    read: Callable[[SQLText], SQLText] | None = None
    early: bool = False
    needs: Callable[[SQLText], sa.ColumnElement[bool]] | None = None
    excluded_by: Callable[[SQLText], sa.ColumnElement[bool]] | None = None
    clash: str = ""
    usual: bool = False
