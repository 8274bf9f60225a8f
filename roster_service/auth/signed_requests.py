"""Requests that a client signs (OAuth 1.0a), and their nonces.

Authlib reads the header, makes the signature base string and computes HMAC-SHA1. A valid signature gives the same value
as an access token, with the scopes of the client's registration, so no later stage knows the difference.

A signature counts once, on all workers and machines of a database, and for a few minutes. The nonces are in a table of
their own, not among the throttle counters: the service refuses a replay after a crash of the database too, which
empties unlogged tables. If it cannot write the table, the request fails.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

import sqlalchemy as sa
from authlib.oauth1.rfc5849.errors import OAuth1Error
from authlib.oauth1.rfc5849.signature import generate_signature_base_string, hmac_sha1_signature
from authlib.oauth1.rfc5849.util import escape
from authlib.oauth1.rfc5849.wrapper import OAuth1Request
from sqlalchemy.dialects.postgresql import insert

from roster_service.auth.agreed_rights import NO_SCOPE_AGREED
from roster_service.auth.credentials.secrets import derive_secret, verify_secret
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.credentials.transport import Guarded
from roster_service.auth.registered_client import RegisteredClient, find_client
from roster_service.db.tables import oauth1_nonces
from roster_service.errors import NotAgreedError, Problem, RefusedRequestError

# A request is accepted if its timestamp is so near to the clock of the service.
WINDOW_SECONDS = 300
# Twice the window, because the clocks of two machines differ: one must not forget a nonce that another would accept.
KEPT_SECONDS = 2 * WINDOW_SECONDS
SCHEME = "oauth"
# To read and sort the parameters costs time before the caller is known. No request may have more.
MAX_QUERY_FIELDS = 100
log = logging.getLogger(__name__)


def take_nonce(engine: sa.Engine, client_id: str, timestamp: int, nonce: str) -> bool:
    """Stores a nonce. Returns False if the client has used it before with this timestamp, in seconds since 1970.

    `engine`: of `make_counting_engine`, whose commits do not wait for the disk. This one does, set in the same
    statement: a crash of the database would open the way for a replay. Raises SQLAlchemyError if the database cannot
    store it.
    """
    row = {"stamp": timestamp, "client_id": client_id, "nonce": nonce}
    waits = sa.func.set_config("synchronous_commit", "on", True) == "on"
    values = sa.select(*(sa.literal(value, oauth1_nonces.c[name].type) for name, value in row.items())).where(waits)
    with engine.connect() as connection:
        stored = connection.execute(insert(oauth1_nonces).from_select(list(row), values).on_conflict_do_nothing())
        return stored.rowcount == 1


def delete_old_nonces(connection: sa.Connection) -> None:
    """Deletes the nonces of timestamps that no machine accepts any more."""
    connection.execute(sa.delete(oauth1_nonces).where(oauth1_nonces.c.stamp < time.time() - KEPT_SECONDS))


def _sign_sha1(base_string: str, secret: str) -> str:
    return str(hmac_sha1_signature(base_string, secret, None))


def _sign_sha256(base_string: str, secret: str) -> str:
    """The same with SHA-256, which RFC 5849 and Authlib lack and OneRoster 1.1 names."""
    return b64encode(hmac.digest(f"{escape(secret)}&".encode(), base_string.encode(), "sha256")).decode()


METHODS: Mapping[str, Callable[[str, str], str]] = {"HMAC-SHA1": _sign_sha1, "HMAC-SHA256": _sign_sha256}
# Protocol parameter -> the texts that it may have ('' if it is missing), and the same in words.
FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "oauth_consumer_key": (re.compile(r"[!-~]{1,64}"), "the client id"),
    "oauth_signature_method": (re.compile("|".join(METHODS)), " or ".join(METHODS)),
    "oauth_signature": (re.compile(r"[!-~]{1,64}"), "the signature in base64"),
    "oauth_timestamp": (re.compile(r"[0-9]{1,12}"), "the seconds since 1970"),
    "oauth_nonce": (re.compile(r"[!-~]{1,128}"), "1 to 128 visible ASCII characters"),
    "oauth_version": (re.compile(r"(1\.0)?"), "1.0, or absent"),
    "oauth_token": (re.compile(""), "absent or empty: the client signs for itself"),
}


@dataclass(frozen=True)
class SentRequest:
    """A request as its client sent it. `root_url`: the scheme and host that the client uses; `path`: percent-encoded;
    `query`: decoded as Latin-1; `peer`: the network address that it comes from."""

    method: str
    root_url: str
    path: str
    query: str
    authorization: str
    peer: str | None

    @property
    def is_signed(self) -> bool:
        """Whether the `Authorization` header has the scheme of OAuth 1.0a."""
        return self.authorization.partition(" ")[0].lower() == SCHEME


class SignedRequests:
    """Verifies signed requests. Threads may share it."""

    def __init__(self, accounts: sa.Engine, counting: sa.Engine, secret_key: str) -> None:
        """`accounts`: of the role that may read accounts. `counting`: of `make_counting_engine`. `secret_key`: of the
        service, from which it derives the secrets of clients."""
        self._accounts = accounts
        self._counting = counting
        self._secret_key = secret_key

    def read(self, sent: SentRequest, version: str) -> AccessToken:
        """Returns what an access token of the client would say, with its scopes of `version`.

        Raises RefusedRequestError (BAD_SIGNATURE) for a request over http, a header that cannot be read, a timestamp
        too far from the clock, a signature that does not fit, and a request that was received before; SQLAlchemyError
        if the database fails.
        """
        signed = _read_signed(sent)
        timestamp = _require_fresh(signed.timestamp)
        client = self._verify(signed)
        if client is not None and not client.scopes:
            raise NotAgreedError(client.not_agreed or NO_SCOPE_AGREED)
        scopes = tuple(scope for scope in client.scopes if scope.version == version) if client else ()
        if client is None or not scopes:
            raise _refuse(
                "the signature is not that of a client that may sign requests. The service computes it for "
                f"{sent.method} {sent.root_url}{sent.path}, with every parameter of the query"
            )
        if not take_nonce(self._counting, client.client_id, timestamp, signed.oauth_params["oauth_nonce"]):
            raise _refuse("the service has received this request before; sign each request with a nonce of its own")
        return client.make_token(scopes, timestamp + WINDOW_SECONDS)

    def _verify(self, signed: OAuth1Request) -> RegisteredClient | None:
        """Returns the client that has signed the request; None if the signature is that of no client."""
        with self._accounts.connect() as connection:
            client = find_client(connection, signed.client_id)
        base_string = generate_signature_base_string(signed)
        sign = METHODS[signed.signature_method]
        fits = [
            hmac.compare_digest(sign(base_string, secret), signed.signature)
            # An unknown client costs a signature, too, so that the time tells nothing.
            for secret in self._derive_secrets(client) or [""]
        ]
        return client if client and client.salts and any(fits) else None

    def _derive_secrets(self, client: RegisteredClient | None) -> list[str]:
        if client is None:
            return []
        derived = [derive_secret(self._secret_key, client.client_id, salt) for salt in client.salts]
        if not all(map(verify_secret, derived, client.secret_hashes)):
            log.warning(
                "%s: its secret was derived from another ROSTER_SECRET_KEY; give it a new one with "
                "`roster client rotate-secret`",
                client.client_id,
            )
        return derived


def _read_signed(sent: SentRequest) -> OAuth1Request:
    address = sent.root_url + sent.path
    insecure = Guarded.SIGNATURE.explain_insecure(address, sent.peer)
    if insecure is not None:
        raise _refuse(insecure)
    try:
        # Encoded anew, because Authlib refuses characters that a query may have as they are, such as an apostrophe.
        pairs = parse_qsl(sent.query, keep_blank_values=True, encoding="latin-1", max_num_fields=MAX_QUERY_FIELDS)
        headers = {"Authorization": sent.authorization}
        signed = OAuth1Request(sent.method, f"{address}?{urlencode(pairs, encoding='latin-1')}", headers=headers)
    except (OAuth1Error, ValueError):
        raise _refuse("the `Authorization: OAuth` header or the query cannot be read") from None
    for name, (form, words) in FORMS.items():
        if not form.fullmatch(signed.oauth_params.get(name, "")):
            raise _refuse(f"{name} must be {words}")
    return signed


def _require_fresh(text: str) -> int:
    timestamp, now = int(text), int(time.time())
    if abs(now - timestamp) > WINDOW_SECONDS:
        raise _refuse(
            f"oauth_timestamp is more than {WINDOW_SECONDS} seconds from the clock of the service, which is at {now}"
        )
    return timestamp


def _refuse(description: str) -> RefusedRequestError:
    return RefusedRequestError(Problem.BAD_SIGNATURE, description)
