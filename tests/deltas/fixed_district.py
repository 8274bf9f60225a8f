"""A small district that is the same in every test, and edits of it."""

from __future__ import annotations

from tests.sync.roster_model import Row

from .world import World

# A district of two schools, and a school of another district of the same feed; file -> id -> its cells.
BASE: dict[str, dict[str, str]] = {
    "orgs": {
        "a-d": "name=D type=district identifier=a-d",
        "a-e": "name=E type=district identifier=a-e",
        "a-s1": "name=1 type=school parentSourcedId=a-d",
        "a-s2": "name=2 type=school parentSourcedId=a-d",
        "a-s3": "name=3 type=school parentSourcedId=a-e",
    },
    "academicSessions": {"a-y": "title=Y type=schoolYear", "a-t1": "title=T type=semester parentSourcedId=a-y"},
    "courses": {f"a-c{key}": f"title=C orgSourcedId=a-{org}" for key, org in {"0": "d", "2": "s2", "3": "s3"}.items()},
    "classes": {
        "a-k1": "title=K classType=scheduled courseSourcedId=a-c3 schoolSourcedId=a-s1 termSourcedIds=a-t1",
        "a-k2": "title=K classType=scheduled courseSourcedId=a-c2 schoolSourcedId=a-s2 termSourcedIds=a-t1",
    },
    "users": {
        f"a-{key}": f"givenName=N email={key}@example.org agentSourcedIds={agents}"
        for key, agents in {
            "p1": "a-g1", "p2": "a-g2", "p3": "", "p4": "", "t1": "", "t2": "", "g1": "a-p1", "g2": "", "g3": ""
        }.items()
    },
    "roles": {
        f"a-r-{key}": f"userSourcedId=a-{key[:2]} roleType={kind} role={word} orgSourcedId=a-{org}"
        for key, kind, word, org in (
            ("p1", "primary", "student", "s1"),
            ("p2", "primary", "student", "s2"),
            ("p3", "primary", "student", "s2"),
            ("p3-2", "secondary", "student", "s1"),
            ("p4", "primary", "student", "s2"),
            ("t1", "primary", "teacher", "s1"),
            ("t2", "primary", "teacher", "s2"),
            ("g1", "primary", "guardian", "s1"),
            ("g2", "primary", "guardian", "s2"),
            ("g3", "primary", "guardian", "s3"),
        )
    },
    "enrollments": {
        f"a-n-{user}": f"classSourcedId=a-{taught} schoolSourcedId=a-s{taught[1]} userSourcedId=a-{user} role={role}"
        for user, taught, role in (
            ("p1", "k1", "student"),
            ("p2", "k2", "student"),
            ("p4", "k1", "student"),
            ("t1", "k1", "teacher"),
            ("t2", "k2", "teacher"),
        )
    },
    "demographics": {f"a-{key}": "sex=male birthDate=2015-03-10" for key in ("p1", "p2", "p3")},
}  # fmt: skip

# An edit: (file, id, cells). The cells replace those of a row that is there; without cells, the row goes.
Edits = tuple[tuple[str, str, str], ...]


def read_cells(said: str) -> dict[str, str]:
    """The cells of a row of these tables."""
    return {name: cell for name, _, cell in (item.partition("=") for item in said.split())}


def edit(world: World, edits: Edits) -> None:
    """Changes rows, and loads them."""
    rows = world.districts["a"].rows
    for file, key, said in edits:
        if said:
            rows[file][key] = Row({**rows[file].get(key, {"sourcedId": key}), **read_cells(said)})
        else:
            del rows[file][key]
    world.load("a")


def reset(world: World) -> None:
    """Makes feed `a` this district again, without tombstones and departures."""
    world.districts["a"].rows = {
        file: {key: Row({"sourcedId": key} | read_cells(said)) for key, said in rows.items()}
        for file, rows in BASE.items()
    }
    world.load("a")
    world.purge()
