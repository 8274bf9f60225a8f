"""Requests that are signed with OAuth 1.0a: they read what a token reads, and count once, for a client that may."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.signed_requests import KEPT_SECONDS, WINDOW_SECONDS, take_nonce
from roster_service.db import engine as engines
from roster_service.db.tables import audit, last_uses, oauth1_nonces
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER

from .client import FULL, ROOTS, Answer
from .conftest import SECRET_KEY, Served
from .signatures import HASHES, make_header, make_protocol, sign

EMAIL = "signing@vendors.example"
ROOT = "http://localhost" + ROOTS["v1p1"]
CORE_AND_GUARDIANS = [Scope("v1p1", ScopeName.CORE), Scope("v1p1", ScopeName.GUARDIANS), Scope("v1p2", ScopeName.FULL)]


@dataclass(frozen=True)
class Consumer:
    """A consumer that can sign and nothing else, of a served application."""

    served: Served
    client_id: str
    secret: str

    def ask(self, path: str, query: str = "", method: str = "HMAC-SHA1", **changed: str | None) -> Answer:
        """A signed request of OneRoster 1.1."""
        protocol = make_protocol(self.client_id, method, **changed)
        return self.send(path, query, make_header(protocol, sign(self.secret, "GET", ROOT + path, query, protocol)))

    def send(self, path: str, query: str, header: str, version: str = "v1p1") -> Answer:
        """A request with an `Authorization` header."""
        return self.served.client.call(version, path, query, bearer=None, headers={"Authorization": header})

    def change(self, action: Callable[[sa.Connection], Any]) -> Any:
        """Does what an operator does."""
        with self.served.engine.begin() as connection:
            return action(connection)


@pytest.fixture(scope="module")
def signing(make_served: Callable[..., Served]) -> Served:
    """An application that takes signed requests."""
    return make_served(oauth1=True)


def add_consumer(served: Served, email: str, *scopes: Scope, secret_key: str | None = SECRET_KEY) -> Consumer:
    """Another client of a vendor, who sees Springfield."""
    with served.engine.begin() as connection:
        if email not in {vendor.email for vendor in vendors.list_vendors(connection)}:
            vendors.add_vendor(connection, TESTER, email, "signs")
            vendor_rights.grant(connection, TESTER, email, "spr-district", [], [PermissionFlag.CONTACTS])
        made = clients.add_client(
            connection, TESTER, email, "signs", scopes or CORE_AND_GUARDIANS, secret_key=secret_key
        )
    return Consumer(served, made.client_id, made.client_secret)


@pytest.fixture
def consumer(signing: Served) -> Consumer:
    """A consumer with two scopes of 1.1."""
    return add_consumer(signing, EMAIL)


def assert_refused(answer: Answer, *said: str) -> None:
    """The request is answered as the standard documents it."""
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")
    assert answer.headers["WWW-Authenticate"] == 'OAuth realm="roster"'
    assert all(word in answer.description for word in said), answer.description


@pytest.mark.parametrize("method", HASHES)
def test_a_signed_request_reads_what_a_token_of_the_same_scopes_reads(consumer: Consumer, method: str) -> None:
    form = {"grant_type": "client_credentials", "client_id": consumer.client_id, "client_secret": consumer.secret}
    form["scope"] = "v1p1/roster-core.readonly v1p1/guardians.readonly"
    token = consumer.served.client.ask_token(form).json["access_token"]
    for path in ("/orgs", "/users", "/users/spr-student-1", "/users/shv-student-1", "/demographics", "/schools"):
        signed, borne = consumer.ask(path, method=method), consumer.served.client.call("v1p1", path, bearer=token)
        assert (signed.status, signed.body) == (borne.status, borne.body)
    # A scope that the client was not registered for.
    assert consumer.ask("/schools/spr-high/classes").status == 403


QUERIES = {
    "apostrophes as they are": "filter=familyName='O''Brien'",
    "apostrophes encoded": "filter=familyName%3D%27O%27%27Brien%27",
    "both": "filter=familyName~'O%27%27Brien'",
    "spaces as plus": "filter=status='active'+AND+role='student'",
    "spaces encoded": "filter=status=%27active%27%20AND%20role%3D%27student%27",
    "hex digits in lower case": "filter=status%3d%27active%27%20OR%20role%21%3d%27student%27",
    "a plus": "filter=dateLastModified>'2020-01-01T00:00:00%2B01:00'",
    "a tilde encoded": "filter=givenName%7E'a'",
    "other scripts": "filter=givenName!=%27%C3%A9%E2%82%AC%F0%9F%8E%93%27",
    "sub-delimiters": "filter=givenName!='!*()$@,;:/?'",
    "an ampersand and a percent sign": "filter=givenName!='%26%25%3D'",
    "a name twice": "fields=status&fields=sourcedId",
    "an encoded name": "%6Cimit=2&offset=1",
    "no text": "sort=&limit=1",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_every_encoding_of_the_query_verifies(consumer: Consumer, query: str) -> None:
    token = consumer.served.client.token("v1p1", [ScopeName.CORE, ScopeName.GUARDIANS], "springfield")
    borne = consumer.served.client.call("v1p1", "/users", query, bearer=token)
    signed = consumer.ask("/users", query)
    assert (signed.status, signed.body) == (borne.status, borne.body)


@pytest.mark.parametrize("path", ["/users/", "/users/a%2Fb", "/users/a%20b", "/users/a,b"])
def test_the_path_is_signed_as_it_is_sent(consumer: Consumer, path: str) -> None:
    protocol = make_protocol(consumer.client_id)
    header = make_header(protocol, sign(consumer.secret, "GET", ROOT + path, "", protocol))
    with consumer.served.app.test_client().get(ROOTS["v1p1"] + path, headers={"Authorization": header}) as answer:
        assert answer.status_code == (200 if path == "/users/" else 404)


Sent = tuple[str, str, str]


def alter(**changed: str | None) -> Callable[[Consumer], Sent]:
    """A request that is signed with other protocol parameters."""

    def make(consumer: Consumer) -> Sent:
        protocol = make_protocol(consumer.client_id, **changed)
        return "/users", "", make_header(protocol, sign(consumer.secret, "GET", f"{ROOT}/users", "", protocol))

    return make


def sign_other(
    method: str = "GET", url: str = f"{ROOT}/users", query: str = "limit=1", form: str = "", secret: str | None = None
) -> Callable[[Consumer], Sent]:
    """A request whose signature is of another one, or by another secret."""

    def make(consumer: Consumer) -> Sent:
        protocol = make_protocol(consumer.client_id)
        key = consumer.secret if secret is None else secret
        return "/users", "limit=1", make_header(protocol, sign(key, method, url, query, protocol, form))

    return make


def send_header(make: Callable[[dict[str, str]], str], query: str = "") -> Callable[[Consumer], Sent]:
    """A request whose header is made of the protocol parameters in another way."""
    return lambda consumer: ("/users", query, make(make_protocol(consumer.client_id)))


def sign_plain(consumer: Consumer) -> Sent:
    """What the method PLAINTEXT sends: the secret itself."""
    return "/users", "", make_header(make_protocol(consumer.client_id, "PLAINTEXT"), consumer.secret + "&")


def sign_twice(consumer: Consumer) -> Sent:
    """Protocol parameters in the query beside those in the header."""
    protocol = make_protocol(consumer.client_id)
    query = "oauth_nonce=other"
    return "/users", query, make_header(protocol, sign(consumer.secret, "GET", f"{ROOT}/users", query, protocol))


def shift(seconds: int) -> str:
    """A timestamp so far from now."""
    return str(int(time.time()) + seconds)


NO_FIT = "is not that of a client that may sign"
HOSTILE: Mapping[str, tuple[Callable[[Consumer], Sent], str]] = {
    "a wrong signature": (send_header(lambda it: make_header(it, "c2lnbmF0dXJl")), NO_FIT),
    "a signature that is no ASCII": (send_header(lambda it: make_header(it, "é€")), "oauth_signature"),
    "a secret of somebody else": (sign_other(secret="secret-" + "a" * 43), NO_FIT),
    "no secret": (sign_other(secret=""), NO_FIT),
    "another method": (sign_other("POST"), NO_FIT),
    "another path": (sign_other(url=f"{ROOT}/orgs"), NO_FIT),
    "another host": (sign_other(url="http://other" + ROOTS["v1p1"] + "/users"), NO_FIT),
    "another scheme": (sign_other(url=f"{ROOT}/users".replace("http:", "https:")), NO_FIT),
    "another query": (sign_other(query="limit=2"), NO_FIT),
    "without the query": (sign_other(query=""), NO_FIT),
    "with a form": (sign_other(form="a=b"), NO_FIT),
    "an unknown client": (alter(oauth_consumer_key="client-0123456789abcdef"), NO_FIT),
    "a client with a NUL": (alter(oauth_consumer_key="client\0"), "oauth_consumer_key"),
    "a token": (alter(oauth_token="token"), "oauth_token"),
    "another version": (alter(oauth_version="2.0"), "oauth_version"),
    "PLAINTEXT": (sign_plain, "HMAC-SHA1 or HMAC-SHA256"),
    "RSA-SHA1": (alter(oauth_signature_method="RSA-SHA1"), "HMAC-SHA1 or HMAC-SHA256"),
    "no method": (alter(oauth_signature_method=None), "oauth_signature_method"),
    "no client": (alter(oauth_consumer_key=None), "oauth_consumer_key"),
    "no timestamp": (alter(oauth_timestamp=None), "oauth_timestamp"),
    "no nonce": (alter(oauth_nonce=None), "oauth_nonce"),
    "no signature": (send_header(lambda it: make_header(it, None)), "oauth_signature"),
    "nothing": (lambda _: ("/users", "", "OAuth"), "cannot be read"),
    "no pairs": (lambda _: ("/users", "", "OAuth a b, c"), "cannot be read"),
    "an empty nonce": (alter(oauth_nonce=""), "oauth_nonce"),
    "a nonce that is too long": (alter(oauth_nonce="n" * 129), "oauth_nonce"),
    "a nonce of other characters": (alter(oauth_nonce="ñ\0"), "oauth_nonce"),
    "an old timestamp": (lambda it: alter(oauth_timestamp=shift(-WINDOW_SECONDS - 5))(it), "300 seconds"),
    "a future timestamp": (lambda it: alter(oauth_timestamp=shift(WINDOW_SECONDS + 5))(it), "300 seconds"),
    "a timestamp that is no number": (alter(oauth_timestamp="-1"), "oauth_timestamp"),
    "a timestamp of other digits": (alter(oauth_timestamp="١٢٣"), "oauth_timestamp"),
    "a timestamp that is too long": (alter(oauth_timestamp="9" * 100), "oauth_timestamp"),
    "protocol parameters in two places": (sign_twice, "cannot be read"),
    "too many parameters": (send_header(lambda it: make_header(it, "x"), "&".join("a" * 101)), "cannot be read"),
}


@pytest.mark.shows(
    "Credentials",
    "A request is signed (OAuth 1.0a) only where that is on, by a client added for it, over the whole address.",
)
@pytest.mark.parametrize(("make", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_request_that_is_not_signed_as_it_must_be_is_refused(
    consumer: Consumer, make: Callable[[Consumer], Sent], said: str
) -> None:
    answer = consumer.send(*make(consumer))
    assert_refused(answer, said)
    assert consumer.secret not in answer.description
    # A request that was refused uses no nonce up.
    with consumer.served.engine.connect() as connection:
        assert connection.scalars(sa.select(oauth1_nonces.c.nonce).filter_by(client_id=consumer.client_id)).all() == []


@pytest.mark.parametrize("seconds", [-WINDOW_SECONDS + 20, WINDOW_SECONDS - 20])
def test_a_clock_may_be_some_minutes_off(consumer: Consumer, seconds: int) -> None:
    assert consumer.ask("/orgs", oauth_timestamp=shift(seconds)).status == 200


# Notes, as a transaction with a nonce is about to commit, whether it waits for the disk.
_NOTE_COMMITS = """
CREATE TABLE commits (waits text);
CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN INSERT INTO commits VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON oauth1_nonces DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION note_commit();
"""


def test_a_nonce_is_on_the_disk_before_its_request_is_answered(engine: sa.Engine) -> None:
    """Else it would count again after a crash of the database. The counters of the session wait for no disk still."""
    with engine.begin() as connection:
        connection.execute(sa.text(_NOTE_COMMITS))
    counting = engines.make_counting_engine(engine.url.render_as_string(hide_password=False))
    assert [take_nonce(counting, "c", stamp, "n") for stamp in (1, 2, 1)] == [True, True, False]
    with counting.connect() as connection:
        assert connection.scalars(sa.text("SELECT waits FROM commits")).all() == ["on", "on"]
        assert connection.scalar(sa.text("SELECT current_setting('synchronous_commit')")) == "off"
    counting.dispose()


@pytest.mark.shows(
    "Credentials",
    "A signed request counts once on all workers and machines; if its nonce cannot be stored, it is not answered.",
)
def test_a_request_counts_once_on_all_workers(consumer: Consumer, make_served: Callable[..., Served]) -> None:
    """Of one database: the second worker refuses what the first has answered. The same nonce at another time, or of
    another client, is another request."""
    other = make_served(consumer.served.url, oauth1=True)
    protocol = make_protocol(consumer.client_id)
    header = make_header(protocol, sign(consumer.secret, "GET", f"{ROOT}/orgs", "", protocol))
    assert consumer.send("/orgs", "", header).status == 200
    for served in (consumer.served, other):
        again = Consumer(served, consumer.client_id, consumer.secret)
        assert_refused(again.send("/orgs", "", header), "received this request before")
    nonce = protocol["oauth_nonce"]
    assert consumer.ask("/orgs", oauth_nonce=nonce, oauth_timestamp=shift(-7)).status == 200
    same_time = {"oauth_nonce": nonce, "oauth_timestamp": protocol["oauth_timestamp"]}
    assert add_consumer(consumer.served, EMAIL).ask("/orgs", **same_time).status == 200


@pytest.mark.shows(
    "Credentials",
    "A signed request counts once on all workers and machines; if its nonce cannot be stored, it is not answered.",
)
def test_where_a_nonce_cannot_be_stored_the_request_is_not_answered(
    make_served: Callable[..., Served], consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "COUNTING_SECONDS", 0.1)
    other = Consumer(make_served(consumer.served.url, oauth1=True), consumer.client_id, consumer.secret)
    with consumer.served.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE oauth1_nonces IN ACCESS EXCLUSIVE MODE"))
        answer = other.ask("/orgs")
    assert (answer.status, answer.minor) == (503, "server_busy")


def test_nonces_that_no_machine_accepts_any_more_are_deleted(make_served: Callable[..., Served]) -> None:
    served = make_served(oauth1=True)
    consumer = add_consumer(served, EMAIL)
    old = [{"client_id": "x", "nonce": "x", "stamp": int(shift(-KEPT_SECONDS + far))} for far in (-5, 60)]
    consumer.change(lambda on: on.execute(oauth1_nonces.insert(), old))
    assert consumer.ask("/orgs").status == 200
    served.app.extensions["roster_access_log"].flush()
    with served.engine.connect() as connection:
        kept = connection.scalars(sa.select(oauth1_nonces.c.client_id).order_by("stamp")).all()
    assert kept == ["x", consumer.client_id]


def remove_client(consumer: Consumer, connection: sa.Connection) -> None:
    """Deletes the client's row."""
    connection.execute(sa.text("DELETE FROM oauth_clients WHERE client_id = :id"), {"id": consumer.client_id})


ENDS: Mapping[str, Callable[[Consumer, sa.Connection], object]] = {
    "client disabled": lambda it, on: clients.disable_client(on, TESTER, it.client_id),
    "vendor disabled": lambda it, on: vendors.set_vendor_enabled(on, TESTER, EMAIL, enabled=False),
    "client removed": remove_client,
    "secret replaced at once": lambda it, on: clients.rotate_secret(
        on, TESTER, it.client_id, timedelta(), secret_key=SECRET_KEY
    ),
    "signatures taken back": lambda it, on: on.execute(
        sa.text("UPDATE oauth_clients SET secret_salt = NULL WHERE client_id = :id"), {"id": it.client_id}
    ),
}


@pytest.mark.shows(
    "Credentials",
    "A client that ends, or a secret replaced without a grace, ends signed requests at once.",
)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_client_that_ends_is_refused_at_once(
    consumer: Consumer, end: Callable[[Consumer, sa.Connection], object]
) -> None:
    assert consumer.ask("/orgs").status == 200
    consumer.change(lambda on: end(consumer, on))
    assert_refused(consumer.ask("/orgs"), NO_FIT)
    consumer.change(lambda on: vendors.set_vendor_enabled(on, TESTER, EMAIL, enabled=True))


def test_a_change_of_grants_holds_for_the_next_request(consumer: Consumer) -> None:
    assert consumer.ask("/orgs").total == 4
    consumer.change(lambda on: vendor_rights.grant(on, TESTER, EMAIL, "shv-district", ["shv-south"]))
    assert consumer.ask("/orgs").total == 6
    consumer.change(lambda on: vendor_rights.revoke(on, TESTER, EMAIL, "shv-district"))
    assert consumer.ask("/orgs").total == 4


@pytest.mark.shows(
    "Credentials",
    "A client that ends, or a secret replaced without a grace, ends signed requests at once.",
)
def test_in_its_grace_the_old_secret_signs_beside_the_new_one(consumer: Consumer) -> None:
    secrets = [consumer.secret]
    for _ in range(2):
        made = consumer.change(
            lambda on: clients.rotate_secret(on, TESTER, consumer.client_id, timedelta(hours=1), secret_key=SECRET_KEY)
        )
        secrets.append(made.client_secret)
        holders = [Consumer(consumer.served, consumer.client_id, secret) for secret in secrets]
        statuses = [holder.ask("/orgs").status for holder in holders]
        assert statuses == [401] * (len(secrets) - 2) + [200, 200]


@pytest.mark.shows(
    "Credentials",
    "A request is signed (OAuth 1.0a) only where that is on, by a client added for it, over the whole address.",
)
def test_a_client_that_was_not_added_for_it_may_not_sign(signing: Served) -> None:
    """Its secret is right: it gets a token."""
    consumer = add_consumer(signing, EMAIL, secret_key=None)
    assert_refused(consumer.ask("/orgs"), NO_FIT)
    form = {"grant_type": "client_credentials", "client_id": consumer.client_id, "client_secret": consumer.secret}
    assert signing.client.ask_token(form).status == 200


@pytest.mark.shows(
    "Credentials",
    "A request is signed (OAuth 1.0a) only where that is on, by a client added for it, over the whole address.",
)
@pytest.mark.parametrize(("version", "settings"), [("v1p2", {"oauth1": True}), ("v1p1", {}), ("v1p2", {})])
def test_elsewhere_a_signed_request_is_one_without_a_token(
    make_served: Callable[..., Served], signing: Served, consumer: Consumer, version: str, settings: Mapping[str, bool]
) -> None:
    """In OneRoster 1.2, and where the setting is off; the document says so."""
    served = make_served(signing.url, **settings)
    protocol = make_protocol(consumer.client_id)
    url = f"http://localhost{ROOTS[version]}/orgs"
    header = make_header(protocol, sign(consumer.secret, "GET", url, "", protocol))
    answer = Consumer(served, consumer.client_id, consumer.secret).send("/orgs", "", header, version)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="roster"')
    document = served.client.fetch(f"{ROOTS[version]}/openapi.json").json
    assert list(document["components"]["securitySchemes"]) == ["OAuth2CC", "ClientLogin"]


def test_the_document_has_the_scheme_where_signatures_are_taken(signing: Served) -> None:
    document = signing.client.fetch(f"{ROOTS['v1p1']}/openapi.json").json
    assert document["components"]["securitySchemes"]["OAuth1"]["scheme"] == "OAuth"
    choices = [item["get"]["security"] for item in document["paths"].values() if "get" in item]
    assert [choice[-1] for choice in choices if choice] == [{"OAuth1": []}] * 42


def test_a_signed_request_counts_for_its_vendor_as_any_other(signing: Served) -> None:
    """In the rate, the usage counters, the access log and the last uses."""
    consumer = add_consumer(signing, "counted@vendors.example", Scope("v1p1", ScopeName(FULL)))
    answer = consumer.ask("/schools", "filter=status%3D'active'")
    assert int(answer.headers["RateLimit-Remaining"]) < int(answer.headers["RateLimit-Limit"])
    signing.app.extensions["roster_access_log"].flush()
    with signing.engine.connect() as connection:
        [row] = connection.execute(sa.select(audit).where(audit.c.caller == consumer.client_id))
        [used] = connection.execute(sa.select(last_uses).where(last_uses.c.caller == consumer.client_id))
    assert (row.records, row.filter) == (len(answer.ids), "status='*'")
    assert row.path.endswith("/schools")
    assert (used.vendor_id, used.address) == (row.vendor_id, "127.0.0.1")


PUBLIC = "https://roster.district.test"
PROXIED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "roster.district.test", "X-Forwarded-For": "203.0.113.5"}
BEHIND: Mapping[str, tuple[dict[str, Any], dict[str, str], str, bool]] = {
    "a public URL": ({"public_url": PUBLIC}, {}, PUBLIC, True),
    "a public URL with a path": ({"public_url": f"{PUBLIC}/sis"}, {}, f"{PUBLIC}/sis", True),
    "a public URL that the client does not use": ({"public_url": PUBLIC}, {}, "http://localhost", False),
    "a trusted proxy": ({"trusted_proxies": 1}, PROXIED, PUBLIC, True),
    "a trusted proxy, over http": (
        {"trusted_proxies": 1},
        PROXIED | {"X-Forwarded-Proto": "http"},
        "http://roster.district.test",
        False,
    ),
    "a proxy that is not trusted": ({}, PROXIED, PUBLIC, False),
}


@pytest.mark.shows(
    "Credentials",
    "A signed request counts once on all workers and machines; if its nonce cannot be stored, it is not answered.",
)
@pytest.mark.parametrize(("settings", "headers", "root", "verifies"), BEHIND.values(), ids=BEHIND)
def test_behind_a_proxy_the_address_of_the_client_is_signed(
    make_served: Callable[..., Served],
    consumer: Consumer,
    settings: Mapping[str, Any],
    headers: Mapping[str, str],
    root: str,
    verifies: bool,
) -> None:
    served = make_served(consumer.served.url, oauth1=True, **settings)
    protocol = make_protocol(consumer.client_id)
    path = ROOTS["v1p1"] + "/orgs"
    header = make_header(protocol, sign(consumer.secret, "GET", root + path, "", protocol))
    with served.app.test_client().get(path, headers={**headers, "Authorization": header}) as answer:
        assert answer.status_code == (200 if verifies else 401)


def test_a_secret_of_another_secret_key_is_named_in_the_log(
    make_served: Callable[..., Served], consumer: Consumer, expected_faults: pytest.LogCaptureFixture
) -> None:
    """A service with another key would not start; here the key changed under the client."""
    consumer.change(
        lambda on: on.execute(
            sa.text("UPDATE oauth_clients SET secret_salt = 'another salt' WHERE client_id = :id"),
            {"id": consumer.client_id},
        )
    )
    assert_refused(consumer.ask("/orgs"), NO_FIT)
    assert f"{consumer.client_id}: its secret was derived from another ROSTER_SECRET_KEY" in expected_faults.text
