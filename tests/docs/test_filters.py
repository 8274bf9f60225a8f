"""The filters that the guide shows are filters of their paths, in both versions."""

from __future__ import annotations

import pytest
from oneroster_filter import check, parse

from roster_service.auth.scopes import ScopeName, make_content_rights
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.serving.plan import make_resource_view
from tests.docs.pages import list_rows, read_section

ROWS = [(path, text) for _, path, text in list_rows(read_section("docs/vendors.md", "Filters"), "to find")]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.prefix)
@pytest.mark.parametrize(("path", "text"), ROWS)
def test_a_shown_filter_is_one_of_its_path(version: Version, path: str, text: str) -> None:
    shown = [endpoint for endpoint in ENDPOINTS if not endpoint.ids and path in (f"`{endpoint.path}`", "every list")]
    assert shown
    for endpoint in shown:
        view = make_resource_view(
            version.records[endpoint.resource], make_content_rights(frozenset(ScopeName), frozenset(), None)
        )
        check(parse(text.strip("`")), view.filter_types)


def test_the_table_has_rows() -> None:
    assert len(ROWS) > 4
