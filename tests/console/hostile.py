"""A roster whose texts try to break a page: markup, right-to-left letters, long words, percent signs, quotes."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables import feeds, user_roles, users
from tests.postgres.labels import label_unlabelled

SCRIPT = "<script>alert('x')</script>"
TEXTS = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "שלום עולם",
    "\u202egnp.exe",
    "x" * 300,
    "50%_'off\\",
    "{{ 7 * 7 }}",
    "=HYPERLINK(1)",
)
SCHOOL = "spr-high"


def add_people(engine: sa.Engine, names: list[tuple[str, str]], prefix: str = "hostile") -> list[str]:
    """Adds students of a school with these given and family names; returns their ids, which have the names inside."""
    with engine.begin() as connection:
        feed = connection.scalar(sa.select(feeds.c.id).where(feeds.c.name == "springfield"))
        made = []
        for number, (given, family) in enumerate(names):
            made.append(f"{prefix}-{number}/{given[:40]}?#&%")
            common = {"feed_id": feed, "status": "active", "date_last_modified": "2026-11-01"}
            connection.execute(
                sa.insert(users).values(
                    sourced_id=made[-1],
                    enabled_user=True,
                    given_name=given,
                    family_name=family,
                    email=f"{prefix.upper()}.{number}@Example.ORG",
                    identifier=f"{prefix}N{number}",
                    username=f"{prefix}U{number}",
                    grades=["09"],
                    **common,
                )
            )
            connection.execute(
                sa.insert(user_roles).values(
                    user_id=made[-1],
                    ordinal=1,
                    org_id=SCHOOL,
                    role="student",
                    role_type="primary",
                    origin="export",
                )
            )
        label_unlabelled(connection)
    return made
