"""Files that the sync does not read, because their names are only like those of the files of an export, as
`users (1).csv` or `users.xlsx`. A missing file names those that lie beside it, with the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sync_scripts.reading.rejections import cut_value

WORKBOOK = r"\.(xls|xlsx|xlsm|xlsb|ods|numbers)"
PACKED = r"\.(zip|gz|tgz|bz2|xz|7z|rar|tar)"
DATE = r"(\d{6,14}|\d{1,4}[-_. ]\d{1,2}[-_. ]\d{1,4})"
# How much alike two names must be to be spellings of one, from 0 to 1.
LIKENESS = 0.75
# No file has a longer name, but an entry of a zip may; a pattern would take seconds for one.
LONGEST_NAME = 255
# How many lookalikes of a file its refusal names.
MOST_NAMED = 3


def _match(pattern: str) -> Callable[[str, str], bool]:
    """Whether a name in lower case has a pattern, in which NAME stands for the other name without its .csv."""
    return lambda name, stem: re.fullmatch(pattern.replace("NAME", re.escape(stem)), name) is not None


def _is_alike(name: str, stem: str) -> bool:
    """Whether a name may be a spelling of the other one."""
    one, other = ("".join(filter(str.isalnum, text.removesuffix(".csv"))) for text in (name, stem))
    return name.endswith(".csv") and difflib.SequenceMatcher(None, one, other).ratio() >= LIKENESS


@dataclass(frozen=True)
class Likeness:
    """A way in which the name of a file is like another one. `words`: how the file differs; `fits`: whether a name has
    it, both names in lower case and the other one without its .csv; `remedy`: where NAME stands for the other one."""

    words: str
    fits: Callable[[str, str], bool]
    remedy: str = "name the one to load NAME.csv"


# The first one that fits counts.
LIKENESSES = (
    Likeness("as an Excel workbook", _match(rf"NAME(\.csv)?{WORKBOOK}"), "save it as NAME.csv, in UTF-8"),
    Likeness("in a packed file", _match(rf"NAME(\.csv)?{PACKED}"), "unpack it"),
    Likeness("not copied to its end", _match(r"NAME\.csv\.(part|filepart|tmp|crdownload)"), "copy NAME.csv again"),
    Likeness("in another letter case", _match(r"NAME\.csv")),
    Likeness("with another ending", _match(r"NAME|NAME(\.csv)?\.(txt|tsv|bak|old)|NAME\.csv\.csv")),
    Likeness(
        "with the mark of a copy",
        _match(r"copy of NAME\.csv|NAME *(\(\d+\)|[-_ ]+copy.*|~)\.csv|NAME\.csv *(\(\d+\)|~)"),
    ),
    Likeness("with a date in its name", _match(rf"(?=.*{DATE})(.*[^a-z])?NAME([^a-z].*)?\.csv")),
    Likeness("in another spelling", _is_alike),
    Likeness("with more in its name", _match(r"(.*[^a-z])?NAME([^a-z].*)?\.csv")),
)


@dataclass(frozen=True)
class Lookalike:
    """A file whose `name` is like the name `meant` of a file of the format."""

    name: str
    meant: str
    likeness: Likeness

    @property
    def remedy(self) -> str:
        """What to do so that the sync reads the file."""
        return self.likeness.remedy.replace("NAME", self.meant.removesuffix(".csv"))

    def __str__(self) -> str:
        return f"{self.meant} {self.likeness.words}"


def find_lookalike(name: str, files: Iterable[str]) -> Lookalike | None:
    """What a file is a lookalike of. `files`: the names of the files of the format."""
    if len(name) > LONGEST_NAME:
        return None
    # `teacher` is a part of `teacher roster`.
    longest = sorted(files, key=len, reverse=True)
    for likeness in LIKENESSES:
        for meant in longest:
            if likeness.fits(name.lower(), meant.lower().removesuffix(".csv")):
                return Lookalike(name, meant, likeness)
    return None


def name_lookalikes(meant: str, lookalikes: Iterable[Lookalike]) -> str:
    """The end of the reason for which the file `meant` is missing: what lies beside it, and the remedy."""
    found = [
        f"{cut_value(lookalike.name)}, {lookalike.likeness.words} ({lookalike.remedy})"
        for lookalike in lookalikes
        if lookalike.meant == meant
    ]
    more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"; beside it lies {', '.join(found[:MOST_NAMED])}{more}" if found else ""
