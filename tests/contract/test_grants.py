"""Narrowing takes effect at once: what an administrator changes ends the tokens that were made before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.app import create_app
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.conftest import close_app

from .client import VERSIONS, Answer, RosterClient
from .conftest import SECRET_KEY, Served

NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Account:
    """A vendor of a test's own, who may see Springfield; `other` is a second one, whom no change may touch."""

    served: Served
    client: RosterClient
    email: str

    @property
    def client_id(self) -> str:
        """The id of the vendor's client."""
        return self.client.form("own")["client_id"]


@pytest.fixture(scope="module")
def changing(make_served: Callable[..., Served]) -> Served:
    """The application whose accounts these tests change."""
    return make_served()


@pytest.fixture
def account(changing: Served) -> Account:
    """Two new vendors."""
    credentials = {}
    number = next(NUMBERS)
    scopes = [Scope(version, name) for version in VERSIONS for name in ScopeName]
    with changing.engine.begin() as connection:
        for name in ("own", "other"):
            email = f"{name}-{number}@vendors.example"
            vendors.add_vendor(connection, TESTER, email, name)
            vendor_rights.grant(connection, TESTER, email, "spr-district", [])
            added = clients.add_client(connection, TESTER, email, "tests", scopes)
            credentials[name] = (added.client_id, added.client_secret)
    client = RosterClient(changing.app, credentials, changing.client.documents)
    return Account(changing, client, f"own-{number}@vendors.example")


Change = Callable[[sa.Connection, Account], object]


def change(account: Account, action: Change) -> None:
    """Does what an administrator does."""
    with account.served.engine.begin() as connection:
        action(connection, account)


def assert_ended(answer: Answer) -> None:
    """The token is refused, and says so in a way that makes a client ask for another."""
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def remove_client(connection: sa.Connection, account: Account) -> None:
    """Deletes the client's row."""
    connection.execute(sa.text("DELETE FROM oauth_clients WHERE client_id = :id"), {"id": account.client_id})


def remove_vendor(connection: sa.Connection, account: Account) -> None:
    """Deletes the vendor's row, and with it grants and clients."""
    connection.execute(sa.text("DELETE FROM vendors WHERE email = :email"), {"email": account.email})


def switch_off_vendor(connection: sa.Connection, account: Account) -> None:
    """By hand in the database, without the version that a command would have raised."""
    connection.execute(sa.text("UPDATE vendors SET enabled = false WHERE email = :email"), {"email": account.email})


def switch_off_client(connection: sa.Connection, account: Account) -> None:
    """The same for one client."""
    off = sa.text("UPDATE oauth_clients SET enabled = false WHERE client_id = :id")
    connection.execute(off, {"id": account.client_id})


CHANGES = [
    pytest.param(
        lambda on, own: vendor_rights.grant(on, TESTER, own.email, "shv-district", []), True, id="a-grant-more"
    ),
    pytest.param(lambda on, own: vendor_rights.revoke(on, TESTER, own.email, "spr-district"), True, id="a-grant-less"),
    pytest.param(
        lambda on, own: clients.rotate_secret(on, TESTER, own.client_id, timedelta()), False, id="another-secret"
    ),
    pytest.param(lambda on, own: clients.disable_client(on, TESTER, own.client_id), False, id="client-disabled"),
    pytest.param(
        lambda on, own: vendors.set_vendor_enabled(on, TESTER, own.email, enabled=False), False, id="vendor-disabled"
    ),
    pytest.param(switch_off_vendor, False, id="vendor-disabled-by-hand"),
    pytest.param(switch_off_client, False, id="client-disabled-by-hand"),
    pytest.param(remove_client, False, id="client-removed"),
    pytest.param(remove_vendor, False, id="vendor-removed"),
]


@pytest.mark.shows(
    "Credentials",
    "Changed rights, a disabled vendor or client, and a new secret or signing key without a grace end tokens at once.",
)
@pytest.mark.parametrize(("action", "credentials_stay"), CHANGES)
def test_a_change_ends_the_tokens_made_before(account: Account, action: Change, credentials_stay: bool) -> None:
    """Of this vendor, in both versions, at once; and a new token is had only where the credentials still count."""
    client = account.client
    for version in VERSIONS:
        assert client.call(version, "/orgs", vendor="own").total == 4
        assert client.call(version, "/orgs", vendor="other").total == 4
    change(account, action)
    for version in VERSIONS:
        assert_ended(client.call(version, "/orgs", vendor="own"))
        assert_ended(client.call(version, "/users/spr-student-1", vendor="own"))
        assert client.call(version, "/orgs", vendor="other").status == 200
    assert client.ask_token(client.form("own")).status == (200 if credentials_stay else 401)


def test_the_next_token_sees_what_is_granted_now(account: Account) -> None:
    def totals() -> list[int | None]:
        form = account.client.form("own", scope="v1p1/roster.readonly")
        token = account.client.ask_token(form).json["access_token"]
        found = [account.client.call("v1p1", path, bearer=token) for path in ("/orgs", "/users", "/enrollments")]
        return [answer.total if answer.status == 200 else None for answer in found]

    assert totals() == [4, 12, 17]
    change(account, lambda on, own: vendor_rights.grant(on, TESTER, own.email, "shv-district", ["shv-south"]))
    assert totals() == [6, 16, 21]
    change(account, lambda on, own: vendor_rights.revoke(on, TESTER, own.email, "spr-district"))
    assert totals() == [2, 4, 4]
    change(account, lambda on, own: vendor_rights.revoke(on, TESTER, own.email, "shv-district"))
    assert totals() == [None, None, None]


def test_a_vendor_that_is_enabled_again_needs_a_new_token(account: Account) -> None:
    """The old one stays ended: it was made before the change."""
    old = account.client.token("v1p1", vendor="own")
    change(account, lambda on, own: vendors.set_vendor_enabled(on, TESTER, own.email, enabled=False))
    change(account, lambda on, own: vendors.set_vendor_enabled(on, TESTER, own.email, enabled=True))
    assert_ended(account.client.call("v1p1", "/orgs", bearer=old))
    new = account.client.ask_token(account.client.form("own")).json["access_token"]
    assert account.client.call("v1p1", "/orgs", bearer=new).total == 4


def test_the_new_secret_works_and_the_old_one_does_not(account: Account) -> None:
    form = account.client.form("own")
    with account.served.engine.begin() as connection:
        made = clients.rotate_secret(connection, TESTER, account.client_id, timedelta())
    assert account.client.ask_token(form).status == 401
    assert account.client.ask_token(form | {"client_secret": made.client_secret}).status == 200


@pytest.mark.shows("Credentials", "With a grace, the old client secret and its tokens stay valid until it ends.")
def test_in_its_grace_the_old_secret_works_beside_the_new_one(account: Account) -> None:
    """And the tokens that are out go on. A second rotation ends the first secret, the end of its grace the second."""
    first = account.client.form("own")
    token = account.client.token("v1p1", vendor="own")
    secrets = [first["client_secret"]]
    for _ in range(2):
        with account.served.engine.begin() as connection:
            secrets.append(
                clients.rotate_secret(connection, TESTER, account.client_id, timedelta(hours=1)).client_secret
            )
        statuses = [account.client.ask_token(first | {"client_secret": secret}).status for secret in secrets]
        assert statuses == [401] * (len(secrets) - 2) + [200, 200]
    assert account.client.call("v1p1", "/orgs", bearer=token).status == 200
    with account.served.engine.begin() as connection:
        over = sa.text("UPDATE oauth_clients SET previous_secret_ends_at = now() WHERE client_id = :id")
        connection.execute(over, {"id": account.client_id})
    statuses = [account.client.ask_token(first | {"client_secret": secret}).status for secret in secrets]
    assert statuses == [401, 401, 200]


def test_a_client_gets_no_more_than_it_is_registered_for(account: Account) -> None:
    with account.served.engine.begin() as connection:
        scopes = [Scope("v1p2", ScopeName.CORE), Scope("v1p1", ScopeName.FULL), Scope("v1p2", ScopeName.GUARDIANS)]
        added = clients.add_client(connection, TESTER, account.email, "narrow", scopes)
    form = {"grant_type": "client_credentials", "client_id": added.client_id, "client_secret": added.client_secret}

    def granted(asked: str | None) -> list[str] | None:
        answer = account.client.ask_token(form if asked is None else form | {"scope": asked})
        return sorted(answer.json["scope"].split()) if answer.status == 200 else None

    prefix = "https://purl.imsglobal.org/spec/or/v1p2/scope"
    assert granted(None) == [f"{prefix}/guardians.readonly", f"{prefix}/roster-core.readonly"]
    assert granted("v1p1/roster-core.readonly") is None
    assert granted("v1p1/roster-core.readonly v1p1/roster.readonly") == ["v1p1/roster.readonly"]
    assert granted("v1p2/roster.readonly v1p2/guardians.readonly") == ["v1p2/guardians.readonly"]
    assert granted("v1p1/roster.readonly v1p2/roster-core.readonly") is None


def test_two_applications_on_one_database_trust_each_other_s_tokens(account: Account) -> None:
    """So do the workers of one, and the same application after a restart."""
    second = create_app(Settings(secret_key=SECRET_KEY), account.served.url)
    try:
        token = account.client.token("v1p2", vendor="own")
        assert RosterClient(second, {}).call("v1p2", "/orgs", bearer=token).total == 4
    finally:
        close_app(second)
