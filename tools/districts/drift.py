"""The changes of a made-up district from one day to the next: people who leave, people who come, changed records.

The id of a record alone decides whether it changes, so all files agree and nothing has to be stored. A person who
comes is a twin of an existing person: with the same orgs and classes, under other ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.districts.dice import Dice, make_guid

Row = Mapping[str, str]
# The column that names the person of a row. Rows of other files do not change.
OWNERS: Mapping[str, str] = {
    "users": "sourcedId",
    "demographics": "sourcedId",
    "roles": "userSourcedId",
    "userProfiles": "userSourcedId",
    "enrollments": "userSourcedId",
}
# The ids that differ in the row of a twin, besides the owner.
OWN_IDS = ("sourcedId", "userProfileSourcedId")
# The column that changes, and the two values between which it changes.
CHANGES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "users": ("sms", ("202-555-0198", "202-555-0199")),
    "demographics": ("cityOfBirth", ("Oakdale", "Riverside")),
    "enrollments": ("beginDate", ("", "2026-09-01")),
}
PARTS_OF_A_PERCENT = 100


@dataclass(frozen=True)
class Drift:
    """The changes of one day, in percent: how many of the people come (`adds`) and leave (`drops`), and how many of the
    users, demographics and enrollments change (`changes`)."""

    seed: int
    adds: float
    changes: float
    drops: float

    def _happens(self, event: str, identifier: str, percent: float) -> bool:
        dice = Dice(self.seed, "drift", event, identifier)
        return dice.roll(100 * PARTS_OF_A_PERCENT) < percent * PARTS_OF_A_PERCENT

    def leaves(self, person: str) -> bool:
        """Whether the person with this id leaves."""
        return self._happens("drop", person, self.drops)

    def apply(self, file: str, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows of a file on the next day, from its rows of today."""
        owner = OWNERS.get(file)
        for row in rows:
            if owner is None:
                yield row
            elif not self.leaves(row[owner]):
                kept = self._change(file, self._drop_agents(row))
                yield kept
                if self._happens("add", row[owner], self.adds):
                    yield _make_twin(kept, owner)

    def _drop_agents(self, row: Row) -> Row:
        """The row without the agents who leave."""
        agents = row.get("agentSourcedIds", "")
        if not agents:
            return row
        return {**row, "agentSourcedIds": ",".join(agent for agent in agents.split(",") if not self.leaves(agent))}

    def _change(self, file: str, row: Row) -> Row:
        if file not in CHANGES or not self._happens(file, row["sourcedId"], self.changes):
            return row
        column, (first, second) = CHANGES[file]
        return {**row, column: second if row.get(column, "") == first else first}


def _make_twin(row: Row, owner: str) -> Row:
    twin = {**row, owner: make_guid("twin", row[owner])}
    twin |= {header: make_guid("twin", row[header]) for header in OWN_IDS if row.get(header)}
    if "username" in row:
        twin["username"] = f"{row['username']}.2"
    return twin
