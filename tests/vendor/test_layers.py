"""The vendor interface with either layer of visibility taken away: every answer stays as it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.app import create_app
from roster_service.db import tables
from roster_service.schemas.flags import PermissionFlag
from roster_service.settings import Settings
from tests.access_matrix.layers import Layers, forget_statements, open_query_filter, open_row_level_security
from tests.conftest import close_app
from tests.contract.conftest import SECRET_KEY
from tests.extent import EXTENT, Extent
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served
from tests.vendor.test_grants import ALL_FLAGS, SHAPES, SHELBYVILLE, SPRINGFIELD

# Every choice of schools with all that a record can have; what is included, and a later page, of some.
EVERYTHING = tuple(flag.value for flag in PermissionFlag)
WHOLE, LATER = {"limit": 100}, {"limit": 2, "offset": 2}


@pytest.fixture(scope="module")
def accounts(served: Served) -> list[Account]:
    """A vendor for each shape of grants, with all flags."""
    return [served.add(grants=shape.values[0], flags=ALL_FLAGS) for shape in SHAPES]


@pytest.fixture(scope="module")
def bodies(served: Served) -> list[dict[str, Any]]:
    """What is asked: each district, all of its schools or each school of the roster, with everything; and without, and
    a later page, of all of them. A run of all asks each with each."""
    with served.engine.connect() as connection:
        schools = connection.scalars(sa.select(tables.orgs.c.sourced_id).where(tables.orgs.c.type == "school")).all()
    chosen = [{}, *({"schools": [school]} for school in schools), {"schools": list(schools)}]
    parts = [(chosen, EVERYTHING, WHOLE), (chosen[::5], (), WHOLE), (chosen[::5], EVERYTHING, LATER)]
    if EXTENT is Extent.ALL:
        parts = [(chosen, *part) for part in itertools.product((EVERYTHING, ()), (WHOLE, LATER))]
    return [
        {"districtlea": lea, "include": list(include), **choice, **window}
        for lea in (SPRINGFIELD, SHELBYVILLE)
        for choices, include, window in parts
        for choice in choices
    ]


@contextmanager
def serve_with(served: Served, layers: Layers) -> Iterator[VendorClient]:
    """A client of an application on the same database, with these layers on."""
    with pytest.MonkeyPatch.context() as patch:
        if not layers.has_query_filter:
            open_query_filter(patch)
        if not layers.has_policies:
            open_row_level_security(patch)
        forget_statements()
        app = create_app(Settings(secret_key=SECRET_KEY), served.url)
        yield VendorClient(app)
        close_app(app)
    forget_statements()


Answers = Mapping[tuple[int, int], Any]


def ask(client: VendorClient, accounts: list[Account], bodies: list[dict[str, Any]]) -> Answers:
    """What each vendor is answered; ids of requests, which differ, left out."""
    found = {}
    for number, account in enumerate(accounts):
        token = client.token(account)
        for place, body in enumerate(bodies):
            answer = client.students(account, token, body)
            found[number, place] = answer.status, {**answer.json, "requestId": None}
    return found


@pytest.fixture(scope="module")
def expected(client: VendorClient, accounts: list[Account], bodies: list[dict[str, Any]]) -> Answers:
    """The answers with both layers."""
    return ask(client, accounts, bodies)


@pytest.mark.shows("Visibility", "On the vendor interface, either layer alone gives the same answers.")
@pytest.mark.parametrize("layers", [Layers.QUERY_FILTER_ALONE, Layers.POLICIES_ALONE], ids=lambda layers: layers.value)
def test_without_the_other_layer_every_answer_is_the_same(
    served: Served, accounts: list[Account], bodies: list[dict[str, Any]], expected: Answers, layers: Layers
) -> None:
    assert {status for status, _ in expected.values()} == {200, 403}
    with serve_with(served, layers) as client:
        found = ask(client, accounts, bodies)
    assert [(bodies[key[1]], expected[key], found[key]) for key in expected if found[key] != expected[key]] == []


def test_without_both_layers_more_is_shown(
    served: Served, accounts: list[Account], bodies: list[dict[str, Any]], expected: Answers
) -> None:
    """So the test above takes a layer away indeed."""
    with serve_with(served, Layers.NONE) as client:
        found = ask(client, accounts, bodies[:1])
    differing = [key for key in found if found[key] != expected[key]]
    assert len(differing) > len(found) / 4
