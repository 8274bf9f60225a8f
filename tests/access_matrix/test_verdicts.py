"""What the service says that vendors see, beside what it serves: the verdicts on each record, over the vendors of the
matrix with other scopes and withheld fields.

A run asks some of these, and every STEP-th record; `make check-long` asks more.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.explore.who_sees import VendorVerdict, explain
from roster_service.schemas.versions import V1P2
from tests.conftest import Tally
from tests.contract.client import ROOTS, VERSIONS
from tests.extent import examples
from tests.vendor.test_disclosed_parts import find_parts

from .cells import SCOPE_SETS, WITHHELD_SETS, Caller
from .conftest import Questioner, World
from .layers import Layers
from .path_collections import COLLECTIONS
from .roster import ROSTER
from .visible_records import GUARDIAN_ROLES, KEPT_AT

STEP = examples(5, 4, 2)
KINDS = [*dict.fromkeys(it.table for it in COLLECTIONS.values())]
# Each set of scopes with one of the versions, and some fields; the others take turns.
PAIRS = [
    (version, scopes, withheld)
    for (version, scopes), withheld in zip(
        itertools.product(VERSIONS, SCOPE_SETS), itertools.cycle([*WITHHELD_SETS, "nothing"]), strict=False
    )
]


def list_roles(sourced_id: str) -> set[str]:
    """The roles of a user of the matrix."""
    return {row["role"] for row in ROSTER["user_roles"] if row["user_id"] == sourced_id}


def get(questioner: Questioner, caller: Caller, path: str) -> tuple[int, Any]:
    """The status of an answer, and its JSON."""
    headers = {"Authorization": f"Bearer {questioner.token(caller)}"}
    with questioner.http.get(ROOTS[caller.version] + path, headers=headers) as answer:
        return answer.status_code, json.loads(answer.data)


def is_departure(record: Mapping[str, Any]) -> bool:
    """Whether it stands for a record that the caller sees no more: it has no more than an id."""
    return record["status"] == "tobedeleted" and str(record["dateLastModified"]).startswith(str(KEPT_AT.year))


def find_served(questioner: Questioner, caller: Caller, sourced_id: str) -> set[str]:
    """The parts of a person that answers show: of the person's record, demographics, and enrollments."""
    # The metadata of a user is that of all roles; this asks whose it may be.
    kind = "student" if "student" in list_roles(sourced_id) else "guardian"
    found = set[str]()
    for path, key in ((f"/users/{sourced_id}", "user"), (f"/demographics/{sourced_id}", "demographics")):
        status, body = get(questioner, caller, path)
        found |= {*find_parts(key, body[key], {sourced_id: kind})} if status == 200 else set()
    status, body = get(questioner, caller, f"/enrollments?filter=user.sourcedId%3D'{sourced_id}'")
    shown = [it for it in body.get("enrollments", ()) if not is_departure(it)]
    return found | ({"classes"} if shown else set())


def find_differences(
    questioner: Questioner, caller: Caller, sourced_id: str, explained: VendorVerdict
) -> Iterator[str]:
    """Where a verdict is another than what is served."""
    for verdict in explained.records:
        resource = next(it for it in V1P2.records if it.singular == verdict.kind)
        status, body = get(questioner, caller, f"/{resource.plural}/{quote(sourced_id, safe='')}")
        is_served = status == 200 and not is_departure(body[resource.singular])
        if verdict.shown != is_served or (status == 403) != verdict.reason.startswith("the client lacks roster"):
            yield f"{verdict}, served {status} {body}"
    if explained.parts:
        served = find_served(questioner, caller, sourced_id)
        said = {str(part) for part, verdict in explained.parts.items() if verdict.by}
        # Of a guardian, it says whether those are seen whose guardian it is.
        for part in (said ^ served) - ({"guardians"} if list_roles(sourced_id) & GUARDIAN_ROLES else set()):
            yield f"{sourced_id}: {part} is {'said' if part in said else 'served'}, {explained.parts[part]}"


def test_a_verdict_is_what_is_served(
    world: World, make_questioner: Callable[[Layers], Questioner], tally: Tally
) -> None:
    questioner, compared, failed = make_questioner(Layers.BOTH), 0, list[str]()
    ids = [*dict.fromkeys(row["sourced_id"] for kind in KINDS for row in ROSTER[kind])]
    for turn, (version, scopes, withheld) in enumerate(PAIRS[:: examples(11, 8, 2)]):
        with world.engine.connect() as connection:
            held = [f"{version}/{name}" for name in SCOPE_SETS[scopes]]
            connection.execute(sa.delete(tables.api_keys))
            connection.execute(sa.update(tables.oauth_clients).values(scopes=held))
            connection.execute(sa.update(tables.vendors).values(withheld=list(WITHHELD_SETS[withheld])))
            for sourced_id in ids[turn % STEP :: STEP]:
                for explained in explain(connection, sourced_id):
                    grants = explained.vendor.name
                    caller = Caller(version, scopes, grants, withheld)
                    found = find_differences(questioner, caller, sourced_id, explained)
                    failed += [f"{caller}: {it}" for it in found]
                    compared += 1
            connection.rollback()
    tally(f"verdicts: {compared:,} of a vendor on a record, {len(failed)} differ from what is served")
    assert not failed, f"{len(failed)}\n" + "\n".join(failed[:12])
