"""Each layer of visibility, alone, shows a departure to those whose former label it has, and to nobody else."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.db import tables
from roster_service.db.engine import make_reading_engine
from roster_service.db.roles import DatabaseRole, find_role, make_role_url
from roster_service.roster.stamps import make_next_stamp
from roster_service.roster.visible_orgs import refresh_vendors_of
from roster_service.schemas.versions import V1P2
from roster_service.serving.departures import select_departures
from roster_service.serving.path_filters import everything, users_with_role
from roster_service.serving.plan import make_plan
from tests.postgres.loaded import load_first
from tests.serving.conftest import SECRET_KEY, add_vendor
from tests.serving.test_statements import params

EXPORT = Path(__file__).parent.parent / "exports" / "springfield-1.1"
USERS = next(record for resource, record in V1P2.records.items() if resource.plural == "users")
# A user who left, by the lists of the label with which the user was opened.
LEFT = {
    "student": {"any_orgs": ["spr-elementary"], "student_orgs": ["spr-elementary"]},
    "aide": {"any_orgs": ["spr-elementary"]},
    "both": {"any_orgs": ["spr-high"], "all_orgs": ["spr-elementary", "spr-high"]},
    "guardian": {"guardian_orgs": ["spr-elementary"]},
    # Kept from the vendor of both schools, by the days from the departure to the beginning and to the end.
    "kept": {"any_orgs": ["spr-elementary"]},
    "kept later": {"any_orgs": ["spr-elementary"]},
    "back before": {"any_orgs": ["spr-elementary"]},
    "back later": {"any_orgs": ["spr-elementary"]},
    # For the vendor of both schools alone, from which the person is kept.
    "alone": {"any_orgs": ["spr-elementary"]},
}
KEPT = {
    "kept": (-1, None),
    "kept later": (1, None),
    "back before": (-2, -1),
    "back later": (-1, 1),
    "alone": (-1, None),
}
LISTS = ("all_orgs", "any_orgs", "guardian_orgs", "listed_orgs", "student_orgs", "teacher_orgs")


def add_departures(connection: sa.Connection, keeping: int) -> None:
    """Lets the users of LEFT depart now. `keeping`: the vendor from which those of KEPT are kept."""
    stamp = make_next_stamp(connection)
    for number, (name, lists) in enumerate(LEFT.items(), 1000):
        label = {"id": number, "feed_id": 1, "digest": name.encode(), **{it: lists.get(it, []) for it in LISTS}}
        connection.execute(sa.insert(tables.visibility_labels).values(label))
        row = {"type": "users", "sourced_id": name, "label_id": number, "feed_id": 1, "departed_at": stamp}
        row |= {"person_id": name, "vendor_id": keeping if name == "alone" else 0}
        connection.execute(sa.insert(tables.departures).values(row))
    key = sa.select(tables.vendors.c.visibility_key).where(tables.vendors.c.id == keeping).scalar_subquery()
    for name, (since, until) in KEPT.items():
        at = [None if days is None else stamp + timedelta(days=days) for days in (since, until)]
        kept = {"vendor_id": keeping, "user_id": name, "since": at[0], "until": at[1], "key": key}
        connection.execute(sa.insert(tables.kept_people).values(kept))
    refresh_vendors_of(connection, [1])


@pytest.fixture
def tokens(engine: sa.Engine) -> dict[str, AccessToken]:
    """A vendor of each shape of grants; the last one was granted after the departures."""
    load_first(engine, "springfield", EXPORT)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        before = {
            "elementary": ["spr-elementary"],
            "high": ["spr-high"],
            "schools": ["spr-elementary", "spr-high"],
            "nothing": [],
        }
        made = {name: add_vendor(connection, name, orgs) for name, orgs in before.items()}
        add_departures(connection, made["schools"].vendor_id)
        # Who is kept from one vendor is not kept from another, which has such people, too.
        other = {"vendor_id": made["elementary"].vendor_id, "user_id": "nobody", "since": datetime.now(UTC)}
        connection.execute(sa.insert(tables.kept_people).values(other | {"key": sa.func.gen_random_uuid()}))
        refresh_vendors_of(connection, [1])
        made = {name: dataclasses.replace(token, has_rules=name in RULED) for name, token in made.items()}
        return made | {"late": add_vendor(connection, "late", ["spr-elementary"])}


# The vendors from which a person is kept: the tokens of these say so.
RULED = ("elementary", "schools")
EVERYBODY = {
    "elementary": {"student", "aide", "guardian", "kept", "kept later", "back before", "back later"},
    "high": set(),
    "schools": {"student", "aide", "guardian", "both", "kept later", "back before", "alone"},
    "nothing": set(),
    "late": set(),
}


def test_the_policies_alone(engine: sa.Engine, database_url: str, tokens: dict[str, AccessToken]) -> None:
    with engine.connect() as connection:
        name = find_role(connection, DatabaseRole.SERVING)
    serving = make_reading_engine(
        make_role_url(database_url, str(name), None), statement_seconds=5, pool_size=1, own_sessions=True
    )
    seen = {}
    for vendor, token in tokens.items():
        with serving.connect() as connection:
            connection.execute(token.admission.statement, token.admission.values)
            seen[vendor] = set(connection.scalars(sa.select(tables.departures.c.sourced_id)))
    with serving.connect() as connection:
        seen["nobody is admitted"] = set(connection.scalars(sa.select(tables.departures.c.sourced_id)))
    serving.dispose()
    assert seen == EVERYBODY | {"nobody is admitted": set()}


@pytest.mark.parametrize("path", ["/users", "/students"])
def test_the_query_filter_alone(engine: sa.Engine, tokens: dict[str, AccessToken], path: str) -> None:
    seen = {}
    for vendor, token in tokens.items():
        listed = everything if path == "/users" else users_with_role("student")
        shape = make_plan(params(), USERS, token.rights, listed, {}).shape
        with engine.connect() as connection:
            connection.execute(token.admission.statement, token.admission.values)
            found = connection.execute(select_departures(shape), {"vendor_id": token.vendor_id})
            seen[vendor] = {row.sourced_id for row in found}
    wanted = EVERYBODY if path == "/users" else {name: ids & {"student"} for name, ids in EVERYBODY.items()}
    assert seen == wanted
