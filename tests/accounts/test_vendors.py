"""Vendors, grants and clients, as an administrator changes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, operators, vendor_rights, vendors
from roster_service.accounts.vendors import Grant
from roster_service.auth import registered_client
from roster_service.auth.credentials.secrets import (
    derive_secret,
    hash_secret,
    make_client_id,
    make_secret,
    set_password,
    verify_secret,
)
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import oauth_clients
from roster_service.errors import CommandError
from tests.actors import TESTER
from tests.postgres.loaded import load_districts

EXPORTS = Path(__file__).parent.parent / "exports"
EMAIL = "vendor@example.org"
SCOPES = [Scope("v1p2", ScopeName.CORE), Scope("v1p1", ScopeName.FULL)]
SECRET_KEY = "a secret key of the tests, long enough to be one"


@pytest.fixture(scope="module")
def roster(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A roster of two districts."""
    engine = make_engine(make_database())
    load_districts(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(roster: sa.Engine) -> Iterator[sa.Connection]:
    """A connection to that roster, with one vendor; what a test does there is rolled back."""
    with roster.connect() as opened:
        vendors.add_vendor(opened, TESTER, EMAIL, "A vendor")
        yield opened


@pytest.mark.parametrize("name", ["", " \t", "N" * 201], ids=["empty", "blank", "too long"])
def test_a_name_that_no_screen_can_show_is_refused(connection: sa.Connection, name: str) -> None:
    added: Sequence[Callable[[], object]] = (
        lambda: vendors.add_vendor(connection, TESTER, "named@example.org", name),
        lambda: clients.add_client(connection, TESTER, EMAIL, name, SCOPES),
        lambda: operators.add_operator(connection, TESTER, "o@example.org", name, OperatorRole.OWNER, SECRET_KEY),
    )
    for add in added:
        with pytest.raises(CommandError, match="a name has 1 to 200 characters"):
            add()


def test_a_vendor_begins_with_nothing(connection: sa.Connection) -> None:
    vendor = vendors.find_vendor(connection, EMAIL)
    assert (vendor.email, vendor.name, vendor.enabled, vendor.grants) == (EMAIL, "A vendor", True, ())


def test_an_e_mail_is_known_in_any_case_and_only_once(connection: sa.Connection) -> None:
    assert vendors.find_vendor(connection, "  Vendor@Example.ORG ").email == EMAIL
    with pytest.raises(CommandError, match="already"):
        vendors.add_vendor(connection, TESTER, "VENDOR@example.org", "Another")


@pytest.mark.parametrize("email", ["", "vendor", "@example.org", "vendor@", "a@b@c", " @ "])
def test_what_is_no_e_mail_is_refused(connection: sa.Connection, email: str) -> None:
    with pytest.raises(CommandError, match="no e-mail"):
        vendors.add_vendor(connection, TESTER, email, "Nobody")


GRANTED = [
    pytest.param("spr-district", [], [Grant("spr-district")], id="district"),
    pytest.param("17-0042", [], [Grant("spr-district")], id="district-by-identifier"),
    pytest.param("spr-district", ["spr-high"], [Grant("spr-district", "spr-high")], id="school"),
    pytest.param("17-0042", ["17-0042-02"], [Grant("spr-district", "spr-high")], id="school-by-identifier"),
    pytest.param(
        "spr-district",
        ["spr-high", "spr-elementary", "17-0042-02"],
        [Grant("spr-district", "spr-elementary"), Grant("spr-district", "spr-high")],
        id="schools-once-each",
    ),
    pytest.param("shv-district", ["shv-south"], [Grant("shv-district", "shv-south")], id="school-below-a-campus"),
]


@pytest.mark.parametrize(("district", "schools", "grants"), GRANTED)
def test_a_grant_is_added_once(
    connection: sa.Connection, district: str, schools: list[str], grants: list[Grant]
) -> None:
    for _ in range(2):
        assert list(vendor_rights.grant(connection, TESTER, EMAIL, district, schools).grants) == grants


REFUSED = [
    pytest.param("spr-nowhere", [], "no district", id="unknown-district"),
    pytest.param("spr-high", [], "no district", id="a-school-is-no-district"),
    pytest.param("spr-district", ["spr-nowhere"], "no school", id="unknown-school"),
    pytest.param("spr-district", ["spr-district"], "no school", id="a-district-is-no-school"),
    pytest.param("spr-district", ["spr-high-science"], "no school", id="a-department-is-no-school"),
    pytest.param("spr-district", ["shv-north"], "no school", id="a-school-of-another-district"),
    pytest.param("spr-district", ["spr-high", "spr-nowhere"], "no school", id="one-of-several"),
]


@pytest.mark.shows("Operators", "A grant of a district that does not exist is refused.")
@pytest.mark.parametrize(("district", "schools", "said"), REFUSED)
def test_a_grant_of_what_is_not_there_changes_nothing(
    connection: sa.Connection, district: str, schools: list[str], said: str
) -> None:
    before = vendors.find_vendor(connection, EMAIL)
    with pytest.raises(CommandError, match=said):
        vendor_rights.grant(connection, TESTER, EMAIL, district, schools)
    assert vendors.find_vendor(connection, EMAIL) == before


def test_a_sourced_id_that_is_the_identifier_of_another_org_is_granted_by_the_console(
    connection: sa.Connection,
) -> None:
    """A command, where a person writes what may be either, refuses it."""
    orgs = tables.orgs
    renamed = sa.update(orgs).where(orgs.c.sourced_id == "shv-district").values(identifier="spr-district")
    connection.execute(renamed)
    granted = vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", None)
    assert [it.district_id for it in granted.grants] == ["spr-district"]
    with pytest.raises(CommandError, match="more than one district"):
        vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", ())


def test_revoking_a_district_takes_its_schools_too(connection: sa.Connection) -> None:
    vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", [])
    vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", ["spr-high"])
    vendor_rights.grant(connection, TESTER, EMAIL, "shv-district", ["shv-north"])
    assert vendor_rights.revoke(connection, TESTER, EMAIL, "17-0042").grants == (Grant("shv-district", "shv-north"),)
    with pytest.raises(CommandError, match="no grant"):
        vendor_rights.revoke(connection, TESTER, EMAIL, "spr-district")


def test_a_district_that_left_the_roster_can_still_be_revoked(connection: sa.Connection) -> None:
    vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", [])
    connection.exec_driver_sql("DELETE FROM orgs WHERE sourced_id = 'spr-district'")
    assert vendor_rights.revoke(connection, TESTER, EMAIL, "spr-district").grants == ()


CHANGES = [
    pytest.param(lambda on: vendor_rights.grant(on, TESTER, EMAIL, "spr-district", []), id="grant"),
    pytest.param(lambda on: vendors.set_vendor_enabled(on, TESTER, EMAIL, enabled=False), id="disable"),
    pytest.param(lambda on: vendors.set_vendor_enabled(on, TESTER, EMAIL, enabled=True), id="enable"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_makes_a_new_grant_version(
    connection: sa.Connection, change: Callable[[sa.Connection], object]
) -> None:
    before = vendors.find_vendor(connection, EMAIL).grant_version
    change(connection)
    assert vendors.find_vendor(connection, EMAIL).grant_version > before


UNKNOWN = [
    pytest.param(lambda on: vendors.find_vendor(on, "nobody@example.org"), id="find"),
    pytest.param(lambda on: vendor_rights.grant(on, TESTER, "nobody@example.org", "spr-district", []), id="grant"),
    pytest.param(lambda on: vendor_rights.revoke(on, TESTER, "nobody@example.org", "spr-district"), id="revoke"),
    pytest.param(lambda on: vendors.set_vendor_enabled(on, TESTER, "nobody@example.org", enabled=False), id="disable"),
    pytest.param(lambda on: clients.add_client(on, TESTER, "nobody@example.org", "x", SCOPES), id="client"),
    pytest.param(lambda on: clients.rotate_secret(on, TESTER, "client-nobody", timedelta()), id="rotate"),
    pytest.param(lambda on: clients.disable_client(on, TESTER, "client-nobody"), id="disable-client"),
]


@pytest.mark.parametrize("action", UNKNOWN)
def test_an_unknown_vendor_or_client_is_reported(
    connection: sa.Connection, action: Callable[[sa.Connection], object]
) -> None:
    with pytest.raises(CommandError, match=r"no (vendor|client)"):
        action(connection)


@pytest.mark.shows("Credentials", "Client secrets and API keys are stored as SHA-256, passwords as argon2id.")
def test_a_password_is_stored_as_argon2id(connection: sa.Connection) -> None:
    password = "correct horse battery"
    set_password(connection, vendors.find_vendor(connection, EMAIL).id, password)
    [stored] = connection.scalars(sa.select(tables.vendors.c.password_hash).where(tables.vendors.c.email == EMAIL))
    assert stored.startswith("$argon2id$")
    assert password not in stored


# --- clients -----------------------------------------------------------------------------------------------------


@pytest.mark.shows("Credentials", "Client secrets and API keys are stored as SHA-256, passwords as argon2id.")
def test_a_client_s_secret_is_shown_once_and_stored_as_its_hash(connection: sa.Connection) -> None:
    made = clients.add_client(connection, TESTER, EMAIL, "nightly", [*SCOPES, SCOPES[0]])
    assert made.scopes == ("v1p2/roster-core.readonly", "v1p1/roster.readonly")
    (stored,) = connection.execute(sa.select(oauth_clients)).mappings()
    assert made.client_secret not in str(dict(stored))
    assert verify_secret(made.client_secret, bytes(stored["secret_hash"]))
    (listed,) = clients.list_clients(connection)
    assert (listed.client_id, listed.vendor, listed.name, listed.enabled) == (made.client_id, EMAIL, "nightly", True)
    assert not hasattr(listed, "client_secret")


def test_a_client_without_scopes_is_refused(connection: sa.Connection) -> None:
    with pytest.raises(CommandError, match="scope"):
        clients.add_client(connection, TESTER, EMAIL, "none", [])


def test_a_new_secret_replaces_the_old_one_and_ends_its_tokens(connection: sa.Connection) -> None:
    made = clients.add_client(connection, TESTER, EMAIL, "nightly", SCOPES)
    before = registered_client.find_client(connection, made.client_id)
    again = clients.rotate_secret(connection, TESTER, made.client_id, timedelta())
    after = registered_client.find_client(connection, made.client_id)
    assert before is not None
    assert after is not None
    assert after.client_version > before.client_version
    [stored] = after.secret_hashes
    assert verify_secret(again.client_secret, stored)
    assert not verify_secret(made.client_secret, stored)
    assert again.scopes == made.scopes


@pytest.mark.shows(
    "Credentials",
    "A signing client's secret follows from `ROSTER_SECRET_KEY`, its id and a salt; the database has salt and hash.",
)
def test_the_secret_of_a_client_that_signs_follows_from_the_secret_key_alone(connection: sa.Connection) -> None:
    """Not from the row of the database: with another key, or for another client, the same salt gives another secret."""
    made = clients.add_client(connection, TESTER, EMAIL, "signs", SCOPES, secret_key=SECRET_KEY)
    (stored,) = connection.execute(sa.select(oauth_clients)).mappings()
    assert made.client_secret not in str(dict(stored))
    assert verify_secret(made.client_secret, bytes(stored["secret_hash"]))
    salt = bytes(stored["secret_salt"])
    assert derive_secret(SECRET_KEY, made.client_id, salt) == made.client_secret
    own = (SECRET_KEY, made.client_id, salt)
    others = [("another " + SECRET_KEY, *own[1:]), (SECRET_KEY, "client-0", salt), (*own[:2], b"another")]
    assert [derive_secret(*one) == made.client_secret for one in (own, *others)] == [True, False, False, False]
    again = clients.rotate_secret(connection, TESTER, made.client_id, timedelta(hours=1), secret_key=SECRET_KEY)
    found = registered_client.find_client(connection, made.client_id)
    assert found is not None
    assert [derive_secret(SECRET_KEY, made.client_id, one) for one in found.salts] == [
        again.client_secret,
        made.client_secret,
    ]
    with pytest.raises(ValueError, match="derived"):
        clients.rotate_secret(connection, TESTER, made.client_id, timedelta())


def test_a_client_that_signs_needs_a_scope_of_a_version_that_allows_it(connection: sa.Connection) -> None:
    with pytest.raises(CommandError, match=r"OneRoster 1\.1"):
        clients.add_client(connection, TESTER, EMAIL, "signs", SCOPES[:1], secret_key=SECRET_KEY)


def test_a_disabled_client_or_vendor_has_no_client(connection: sa.Connection) -> None:
    first = clients.add_client(connection, TESTER, EMAIL, "first", SCOPES)
    second = clients.add_client(connection, TESTER, EMAIL, "second", SCOPES)
    clients.disable_client(connection, TESTER, first.client_id)
    assert registered_client.find_client(connection, first.client_id) is None
    assert registered_client.find_client(connection, second.client_id) is not None
    vendors.set_vendor_enabled(connection, TESTER, EMAIL, enabled=False)
    assert registered_client.find_client(connection, second.client_id) is None
    assert [client.enabled for client in clients.list_clients(connection)] == [False, True]


# --- secrets -----------------------------------------------------------------------------------------------------


@pytest.mark.shows("Credentials", "Client secrets and API keys are 43 random characters behind a readable prefix.")
def test_ids_and_secrets_are_unreserved_characters_behind_a_readable_prefix() -> None:
    """So that no encoding of Basic credentials changes them, and a scanner recognises a leaked one."""
    assert re.fullmatch("client-[0-9a-f]{16}", make_client_id())
    assert re.fullmatch("secret-[A-Za-z0-9_-]{43}", make_secret("secret-"))
    assert len({make_secret("secret-") for _ in range(100)}) == 100


@pytest.mark.parametrize("wrong", ["", "secret-", "secret-y", "Secret-x", "secret-x ", "secret-х"])
def test_only_the_secret_itself_matches(wrong: str) -> None:
    stored = hash_secret("secret-x")
    assert verify_secret("secret-x", stored)
    assert not verify_secret(wrong, stored)
    assert b"secret-x" not in stored
