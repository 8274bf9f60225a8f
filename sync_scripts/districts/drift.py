"""What a night changes in a made-up district: who leaves, who comes, what is said otherwise.

Whether it happens to a record follows from its id alone, so that every file tells the same and nothing is kept. Who
comes is the twin of somebody: in the same places, under other ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sync_scripts.districts.dice import Dice, make_guid

Row = Mapping[str, str]
# Of which person a row tells; rows of other files stay.
OWNERS: Mapping[str, str] = {
    "users": "sourcedId",
    "demographics": "sourcedId",
    "roles": "userSourcedId",
    "userProfiles": "userSourcedId",
    "enrollments": "userSourcedId",
}
# What is another one in the row of a twin, beside the owner.
OWN_IDS = ("sourcedId", "userProfileSourcedId")
# The column that changes, and its values in turn.
CHANGES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "users": ("sms", ("202-555-0198", "202-555-0199")),
    "demographics": ("cityOfBirth", ("Oakdale", "Riverside")),
    "enrollments": ("beginDate", ("", "2026-09-01")),
}
PARTS_OF_A_PERCENT = 100


@dataclass(frozen=True)
class Drift:
    """What happens in a night, in percent: of the people, how many come (`adds`) and leave (`drops`); of the records
    of people, their demographics and enrollments, how many change."""

    seed: int
    adds: float
    changes: float
    drops: float

    def _happens(self, what: str, identifier: str, percent: float) -> bool:
        dice = Dice(self.seed, "drift", what, identifier)
        return dice.roll(100 * PARTS_OF_A_PERCENT) < percent * PARTS_OF_A_PERCENT

    def leaves(self, person: str) -> bool:
        """Whether the person with this id leaves."""
        return self._happens("drop", person, self.drops)

    def apply(self, file: str, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows of a file on the next day."""
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
        """Without the agents who leave."""
        agents = row.get("agentSourcedIds", "")
        if not agents:
            return row
        return {**row, "agentSourcedIds": ",".join(it for it in agents.split(",") if not self.leaves(it))}

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
