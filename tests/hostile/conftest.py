"""Both doors of one application on one database; nothing that these tests send may change a row of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.db import tables
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.contract.conftest import Served, client, make_served, roster, served
from tests.contract.test_bearer import sign
from tests.vendor.client import PLENTY, Account, VendorClient, add_account

__all__ = ["client", "make_served", "roster", "served", "sign"]


@pytest.fixture(scope="module")
def account(served: Served, request: pytest.FixtureRequest) -> Account:
    """A vendor of the vendor interface, with every right there is; another for each module, for some fail to log in."""
    made = add_account(
        served.engine,
        request.module.__name__.rpartition(".")[2],
        {"spr-district": (), "shv-district": ()},
        tuple(PermissionFlag),
    )
    with served.engine.begin() as connection:
        vendors.change_allowance(connection, TESTER, made.email, PLENTY, ROSTERING_DEFAULTS)
    return made


@pytest.fixture(scope="session")
def vendor(served: Served) -> VendorClient:
    """The client of that interface."""
    return VendorClient(served.app)


def count_rows(served: Served) -> dict[str, Any]:
    """How many rows each roster and account table has."""
    kept = [*tables.ROSTER_TABLES, tables.user_roles, tables.user_agents, tables.vendor_grants, tables.oauth_clients]
    counts = (sa.select(sa.func.count()).select_from(table).scalar_subquery().label(table.name) for table in kept)
    with served.engine.connect() as connection:
        return dict(connection.execute(sa.select(*counts)).mappings().one())


@pytest.fixture(autouse=True)
def nothing_changes(served: Served, account: Account) -> Iterator[None]:
    """Whatever is sent, the tables stay as they are."""
    before = count_rows(served)
    yield
    assert count_rows(served) == before
