"""Whose visible orgs, labels and feeds the conditions of visibility ask for."""

from __future__ import annotations

import pytest

from roster_service.db.tables import ROSTER_TABLES, demographics, users
from roster_service.feeds.sharing_members import MEMBERS
from roster_service.roster.references import PERSONS
from roster_service.roster.visibility import ContentRights, Opened, Viewer, label_is_open, row_is_visible

# What a condition names: the bound vendor, the vendors of the enclosing query, the rows of what vendors see.
NAMES = (":vendor_id", "vendors.id", "visible_")
GROUPED = (*MEMBERS, demographics)


def make_rights(viewer: Viewer, *, guardians: bool) -> ContentRights:
    return ContentRights(viewer, guardians, metadata=frozenset(), metadata_keys=None, withheld=frozenset())


@pytest.mark.parametrize(
    ("viewer", "named"),
    [
        (Viewer.ONE_VENDOR, {":vendor_id", "visible_"}),
        (Viewer.EVERY_VENDOR, {"vendors.id", "visible_"}),
        (Viewer.ALL_ORGS, set()),
    ],
)
def test_a_condition_asks_for_its_viewer_alone(viewer: Viewer, named: set[str]) -> None:
    for table in ROSTER_TABLES:
        text = str(row_is_visible(table, table, make_rights(viewer, guardians=True)).compile())
        assert {name for name in NAMES if name in text} == named, table.name


@pytest.mark.parametrize(
    ("viewer", "asked"),
    [
        (Viewer.ONE_VENDOR, False),
        (Viewer.RULED_VENDOR, True),
        (Viewer.EVERY_VENDOR, True),
        (Viewer.ALL_ORGS, False),
    ],
)
def test_groups_and_kept_people_are_asked_for_where_a_viewer_may_have_them(viewer: Viewer, asked: bool) -> None:
    for table in ROSTER_TABLES:
        text = str(row_is_visible(table, table, make_rights(viewer, guardians=True)).compile())
        assert ("visible_groups" in text) is (asked and table in GROUPED), table.name
        assert ("kept_people" in text) is (asked and table in PERSONS), table.name


@pytest.mark.parametrize(("guardians", "opened"), [(False, None), (True, Opened.STUDENT)])
def test_a_viewer_of_all_orgs_has_no_label_left_out(guardians: bool, opened: Opened | None) -> None:
    with pytest.raises(ValueError, match="sees guardians, and asks for no role"):
        label_is_open(users.c.label_id, make_rights(Viewer.ALL_ORGS, guardians=guardians), opened)
