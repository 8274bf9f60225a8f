"""What means something to SQL, drivers, patterns or JSON is a plain text everywhere: in parameters, paths, headers."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.contract.client import VERSIONS, RosterClient
from tests.contract.paths import ENDPOINTS, OF_EACH_KIND, UNKNOWN, Endpoint
from tests.extent import pair
from tests.offenders import in_one_test
from tests.vendor.client import Account, VendorClient

pytestmark = pytest.mark.shows("Visibility", "The values of filters, paths and bodies are bound parameters of SQL.")

TEXTS = (
    "'",
    '"',
    "''",
    "\\",
    "\\'",
    "';--",
    "'; DROP TABLE users; --",
    "' OR '1'='1",
    "' OR 1=1 --",
    "') OR ('1'='1",
    "x' UNION SELECT secret_hash FROM oauth_clients --",
    "1; SELECT pg_sleep(9)",
    "$1",
    "$$",
    "%s",
    "%(caller_districts)s",
    ":caller_districts",
    "%",
    "_%_",
    "/*x*/",
    "{{7*7}}",
    "<script>",
    "a\r\nSet-Cookie: x=1",
    "\u2028\U0001f600",
)
each_text = pytest.mark.parametrize("text", TEXTS)
# What a request asks is read before its version counts.
each_text_in_a_version = pytest.mark.parametrize(("version", "text"), [*pair(TEXTS, VERSIONS)])
# A text at each path that has an id, and every text at one path of each kind.
WITH_ID = [endpoint for endpoint in ENDPOINTS if UNKNOWN in endpoint.unknown]


@in_one_test
@each_text_in_a_version
def test_a_parameter_is_a_text(client: RosterClient, version: str, text: str) -> None:
    whole = client.call(version, "/users")
    for name in ("limit", "offset", "orderBy", text):
        refused = client.call(version, "/users", [(name, text)])
        assert (refused.status, refused.minor) == (400, "invaliddata")
    assert client.call(version, "/users", {"filter": text}).minor == "invalid_filter_field"
    assert client.call(version, "/users", {"filter": f"{text}='x'"}).minor == "invalid_filter_field"
    for name in ("sort", "fields"):
        ignored = client.call(version, "/users", {name: text})
        assert (ignored.ids, ignored.total) == (whole.ids, whole.total)
        assert ignored.minor in ("invalid_sort_field", "invalid_selection_field")


@in_one_test
@each_text_in_a_version
def test_a_value_of_a_filter_is_a_text(client: RosterClient, version: str, text: str) -> None:
    value = text.replace("'", "''")
    names = [record["familyName"] for record in client.call(version, "/users").records]
    meanings = {"=": text.__eq__, "!=": text.__ne__, "~": lambda name: text in name}
    for sign, holds in meanings.items():
        found = client.call(version, "/users", {"filter": f"familyName{sign}'{value}'"}).records
        assert [record["familyName"] for record in found] == [name for name in names if holds(name)]
    for name in ("metadata.x", "agents.sourcedId"):
        assert client.call(version, "/users", {"filter": f"{name}='{value}'"}).total == 0


@in_one_test
@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        pytest.param(text, endpoint, id=f"{endpoint.template}-{text}")
        for text, endpoint in pair(WITH_ID, TEXTS, [it for it in WITH_ID if it.template in OF_EACH_KIND])
    ],
)
def test_an_id_in_a_path_is_a_text(client: RosterClient, text: str, endpoint: Endpoint) -> None:
    answer = client.call("v1p2", endpoint.unknown.replace(UNKNOWN, quote(text, safe="")))
    assert (answer.status, None if answer.status == 404 else answer.total) in ((404, None), (200, 0))


@each_text
def test_a_header_is_a_text(client: RosterClient, vendor: VendorClient, account: Account, text: str) -> None:
    sent = text.encode("utf-8").decode("latin-1").replace("\r\n", " ")
    assert client.call("v1p1", "/orgs", bearer=sent).status == 401
    assert client.call("v1p1", "/orgs", headers={"If-None-Match": sent}).status == 200
    assert client.call("v1p1", "/orgs", headers={"X-Forwarded-For": sent, "User-Agent": sent}).status == 200
    for key in (sent, account.api_key + sent):
        refused = vendor.send("/v1/students", {}, headers={"x-api-key": key})
        assert refused.outcome == (403, "Forbidden")
    token = vendor.students(account, sent, {"districtlea": "17-0042"})
    assert token.outcome == (401, "invalid-token")


@in_one_test
@each_text
def test_a_token_request_is_made_of_texts(client: RosterClient, text: str) -> None:
    for name in ("client_id", "client_secret", "grant_type", "scope"):
        refused = client.ask_token(client.form(**{name: text}))
        assert refused.status in (400, 401, 429)
        assert "access_token" not in refused.json


def test_a_body_for_vendors_is_made_of_texts(vendor: VendorClient, account: Account) -> None:
    token = vendor.token(account)
    for text in TEXTS:
        for body in ({"districtlea": text}, {"districtlea": "17-0042", "schools": [text]}):
            assert vendor.students(account, token, body).outcome == (403, "no-privilege")
        for key in ("include", "modifiedSince", text):
            refused = vendor.students(account, token, {"districtlea": "17-0042", key: [text]})
            assert refused.outcome == (400, "bad-request")
        # One account that fails often is slowed.
        assert vendor.login(account, email=f"{text}@x", password=text).status in (401, 429)
