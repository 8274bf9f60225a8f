"""Who else may be meant in place of a person."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from roster_service.explore.known_people import MOST_CHOICES, Whereabouts, describe_cut, list_alike
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD

# Two pupils of a school who have the family name and the birth year in common; one of another family.
PUPIL, TWIN, OTHER = "spr-student-1", "spr-student-2", "spr-student-3"
NAMESAKE = "UPDATE users u SET given_name = o.given_name, family_name = o.family_name FROM users o "
NAMESAKE += f"WHERE u.sourced_id = '{OTHER}' AND o.sourced_id = '{PUPIL}'"
ELSEWHERE = f"UPDATE user_roles SET org_id = 'elsewhere' WHERE user_id = '{OTHER}'"
# Sisters, by their ids before those of the export.
SISTERS = (
    "INSERT INTO users SELECT (jsonb_populate_record(u, jsonb_build_object('sourced_id', 'sister-' || n, 'given_name', "
    f"n))).* FROM users u, generate_series(1, {MOST_CHOICES}) n WHERE sourced_id = '{PUPIL}'",
    "INSERT INTO user_roles SELECT (jsonb_populate_record(r, jsonb_build_object('user_id', 'sister-' || n))).* "
    f"FROM user_roles r, generate_series(1, {MOST_CHOICES}) n WHERE user_id = '{PUPIL}'",
)
CASES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "a twin": ((), {TWIN}),
    "no birth date of one": ((f"DELETE FROM demographics WHERE sourced_id = '{TWIN}'",), {TWIN}),
    "no birth date of both": (("DELETE FROM demographics",), {TWIN}),
    "another year": ((f"UPDATE demographics SET birth_date = '2001-01-01' WHERE sourced_id = '{TWIN}'",), set()),
    "another school": ((f"UPDATE user_roles SET org_id = 'elsewhere' WHERE user_id = '{TWIN}'",), set()),
    "another role": ((f"UPDATE user_roles SET role = 'teacher' WHERE user_id = '{TWIN}'",), set()),
    "a namesake at another school": ((NAMESAKE, ELSEWHERE), {TWIN, OTHER}),
    "a namesake who has left": (
        (NAMESAKE, f"UPDATE users SET status = 'tobedeleted' WHERE sourced_id = '{OTHER}'"),
        {TWIN, OTHER},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_be_meant(engine: sa.Engine, case: str) -> None:
    """In both directions."""
    changes, expected = CASES[case]
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.begin() as connection:
        for change in changes:
            connection.execute(sa.text(change))
        found = {person.sourcedId: person.whereabouts for person in list_alike(connection, PUPIL)}
        assert set(found) == expected
        assert (TWIN in expected) == (PUPIL in {person.sourcedId for person in list_alike(connection, TWIN)})
        assert list_alike(connection, "nobody") == []
    if "left" in case:
        assert found[OTHER] == Whereabouts.DELETED


def test_a_namesake_comes_before_a_large_family(engine: sa.Engine) -> None:
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.begin() as connection:
        for change in (*SISTERS, NAMESAKE):
            connection.execute(sa.text(change))
        found = list_alike(connection, PUPIL)
    assert (len(found), found[0].sourcedId) == (MOST_CHOICES, OTHER)
    assert (describe_cut(found), describe_cut(found[1:])) == ("At most 25 are named.", "")
