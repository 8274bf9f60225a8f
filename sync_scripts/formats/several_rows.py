"""Which of several rows describes a person, in formats that have a row for each school or each contact of a person.

All single cells come from one row, so that nobody gets the name of one row and the birth date of another, and the order
of the rows says nothing. It is the row of the school that is stored as the person's primary one, where the format names
one; among these the one that says most of what is stored, else the least. So another row of a person changes nothing
while one still says what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats.cells import SECRET, UNREAD
from sync_scripts.formats.conversion import label_cells, make_id
from sync_scripts.formats.model import Remark, Rule, StagedFile
from sync_scripts.formats.oneroster import ONEROSTER_1_2
from sync_scripts.formats.tolerated import DIFFERENT_ROWS

# The headers in OneRoster of the columns of users that a file of people may have.
_HEADERS = {
    "username": "username",
    "given_name": "givenName",
    "family_name": "familyName",
    "middle_name": "middleName",
    "identifier": "identifier",
    "email": "email",
}


# (a stored column, what a row says of it)
Said = tuple[sa.Column[Any], sa.ColumnElement[Any]]


def rank_rows(
    stored: sa.FromClause, school_id: sa.ColumnElement[str], said: Iterable[Said]
) -> Iterator[sa.ColumnElement[Any]]:
    """What puts one row of a person before another. `stored`: the users, joined to the rows; `school_id`: of the
    school of a row; `said`: by the row, of columns that are joined to it."""
    yield (stored.c.primary_org_id == school_id).desc().nulls_last()
    # Of somebody new, a row without a cell says no more than one with it.
    is_known = stored.c.sourced_id.is_not(None)
    counted: list[sa.ColumnElement[int]] = [
        sa.case((sa.and_(is_known, column.is_not_distinct_from(cell)), 1), else_=0) for column, cell in said
    ]
    yield sum(counted, start=sa.literal(0)).desc()


def read_demographics(cells: Mapping[str, sa.ColumnElement[Any]]) -> Iterator[Said]:
    """What the cells of demographics say, which are given by their headers in OneRoster."""
    for cell in ONEROSTER_1_2.find_file("demographics").cells:
        if cell.column is not None and cell.column is not tables.demographics.c.sourced_id and cell.header in cells:
            text = cells[cell.header]
            # A rejected row may have a bad day, which cannot be converted.
            is_good = sa.true() if cell.kind.check is None else cell.kind.check(text)
            yield cell.column, sa.case((is_good, cell.kind.convert(text)))


@dataclass(frozen=True)
class PeopleFile:
    """A file with several rows of a person. `kind`: of the person, in the made ids; `school`: the header of the id of
    the school; `stored`: the headers of cells, by the columns of the users that have them; `birthday`: the header of
    the day of birth; None: the file has none; `others`: the headers of other cells that are stored, and `say` what all
    but those of `stored` say of users and demographics."""

    name: str
    kind: str
    school: str
    stored: Mapping[str, str]
    birthday: str | None = None
    others: tuple[str, ...] = ()
    say: Callable[[StagedFile], Iterable[Said]] = lambda _file: ()

    def list_cells(self, file: StagedFile, feed: str) -> dict[str, sa.ColumnElement[Any]]:
        """The cells of a row that a user has, by their headers in OneRoster; NULL for those that the file lacks."""
        own = {_HEADERS[name]: file[header] for name, header in self.stored.items()}
        identifier = make_id(feed, self.kind, file["sourcedId"])
        return {"sourcedId": identifier, **dict.fromkeys(_HEADERS.values(), sa.null()), **own}

    def choose_rows(
        self,
        file: StagedFile,
        feed: str,
        cells: Mapping[str, sa.ColumnElement[Any]],
        *,
        agents: sa.Subquery | None = None,
        filled: sa.ColumnElement[bool] | None = None,
    ) -> sa.Select[Any]:
        """One row for each id: `cells`, by their headers in OneRoster. `agents`: joined to the rows by `owner`;
        `filled`: a condition of the row that is chosen; None: none."""
        identifier = make_id(feed, self.kind, file["sourcedId"])
        users, demographics = tables.users.alias(), tables.demographics.alias()
        rows = file.table.outerjoin(users, users.c.sourced_id == identifier)
        rows = rows.outerjoin(demographics, demographics.c.sourced_id == identifier)
        if agents is not None:
            rows = rows.outerjoin(agents, agents.c.owner == identifier)
        joined = {tables.users: users, tables.demographics: demographics}
        said: list[Said] = [(users.c[name], file[header]) for name, header in self.stored.items()]
        said += ((joined[column.table].c[column.name], cell) for column, cell in self.say(file))
        read = (file[cell.header] for cell in file.file.cells if cell.kind not in (UNREAD, SECRET))
        is_filled = (sa.true() if filled is None else filled).label("is_filled")
        chosen = sa.select(*label_cells(cells), is_filled).select_from(rows).ext(distinct_on(file["sourcedId"]))
        ranks = rank_rows(users, make_id(feed, "school", file[self.school]), said)
        first = chosen.order_by(file["sourcedId"], *ranks, *read, sa.cast(file.metadata, CText)).subquery()
        return sa.select(*(first.c[header] for header in cells)).where(first.c.is_filled)

    def list_remarks(self) -> Iterator[Remark]:
        """Remarks on rows that contradict another one of the same person."""
        days = () if self.birthday is None else (self.birthday,)
        for header in (*self.stored.values(), *days, *self.others):
            yield Remark(self.name, header, DIFFERENT_ROWS, partial(_select_different, header))

    def list_rules(self) -> Iterator[Rule]:
        """The rule that two people have two ids. Only a file with days of birth can tell two people from one whom two
        rows name differently."""
        if self.birthday is not None:
            headers = (self.stored["given_name"], self.stored["family_name"], self.birthday)

            def breaks(file: StagedFile, _retained: StagedFile | None) -> sa.ColumnElement[bool]:
                other = file.alias()
                return sa.exists().where(
                    other["sourcedId"] == file["sourcedId"], *(other[header] != file[header] for header in headers)
                )

            key = headers[0]
            reason = "is another person than in another row of this id, by both names and the day of birth"
            yield Rule(self.name, key, reason, breaks)


def _select_different(header: str, file: StagedFile) -> sa.Select[Any]:
    """The rows of people of whom the cells under a header are not all the same."""
    rows = file.alias()
    cell = sa.func.coalesce(rows[header], "")
    named = sa.select(rows["sourcedId"]).group_by(rows["sourcedId"])
    return sa.select(file.line).where(file["sourcedId"].in_(named.having(sa.func.min(cell) != sa.func.max(cell))))
