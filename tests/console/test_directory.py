"""The login with a directory, against a provider of OpenID Connect that the tests make."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from roster_service.app import create_console
from roster_service.change_log.actors import OperatorRole
from roster_service.errors import SettingError
from roster_service.settings import Settings
from tests.console.conftest import ROOT, SECRET, Browser, Console, add_operator
from tests.contract.conftest import SETTINGS, Served

CLIENT_ID, CLIENT_SECRET = "the console", "the secret of the console"
EMAIL = "ann@directory.example"


@dataclass
class Provider:
    """A directory. `issuer`: where it is; `named`: what it says that it is, if that is something else; `claims`: change
    those of the next ID token; `key`: signs it; `beside`: keys that it publishes beside its own; `codes`: those given,
    with what the authorization request carried."""

    issuer: str = ""
    named: str | None = None
    claims: dict[str, Any] = field(default_factory=dict)
    published: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    key: RSAKey | None = None
    beside: list[dict[str, Any]] = field(default_factory=list)
    odd: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    is_away: bool = False

    @property
    def url(self) -> str:
        """The setting that names it."""
        return self.issuer.replace("://", f"://{quote(CLIENT_ID)}@")

    def authorize(self, address: str) -> str:
        """What the user of the directory does: the address that the browser is led back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def give_token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The answer to a token request; None for one that a directory refuses."""
        asked = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or authorization != f"Basic {pair}" or challenge != asked["code_challenge"]:
            return None
        now = int(time.time())
        claims = {
            "iss": self.named or self.issuer,
            "aud": CLIENT_ID,
            "sub": "subject-of-ann",
            "email": EMAIL,
            "email_verified": True,
            "nonce": asked["nonce"],
            "iat": now,
            "exp": now + 300,
        }
        claims = {name: value for name, value in {**claims, **self.claims}.items() if value is not None}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key or self.published)
        return {"access_token": "unused", "token_type": "Bearer", "expires_in": 300, "id_token": token}


class Handler(BaseHTTPRequestHandler):
    """Answers as the provider of its server."""

    def do_GET(self) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        if provider.is_away:
            self.answer({}, 500)
        elif self.path in provider.odd:
            self.answer(provider.odd[self.path])
        elif self.path == "/.well-known/openid-configuration":
            paths = {f"{name}_endpoint": f"{provider.issuer}/{name}" for name in ("authorization", "token")}
            self.answer({"issuer": provider.named or provider.issuer, "jwks_uri": f"{provider.issuer}/keys", **paths})
        else:
            own = KeySet([provider.published]).as_dict(private=False)["keys"]
            self.answer({"keys": [*provider.beside, *own]})

    def do_POST(self) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text).items()}
        found = provider.odd.get(self.path) or provider.give_token(form, self.headers.get("Authorization", ""))
        self.answer(found or {"error": "invalid_grant"}, 200 if found else 400)

    def answer(self, members: Any, status: int = 200) -> None:
        """A JSON response; of bytes, as they are."""
        body = members if isinstance(members, bytes) else json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    """The provider, on a port of its own."""
    provider = Provider()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.provider = provider  # type: ignore[attr-defined]
        provider.issuer = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield provider
        listening.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def console(make_console: Callable[..., Console], server: Provider) -> Console:
    """A console whose operators may log in with the directory."""
    own = make_console(oidc_url=server.url, oidc_secret=CLIENT_SECRET)
    add_operator(own.engine, EMAIL, OperatorRole.EDITOR, SECRET)
    return own


@pytest.fixture
def provider(server: Provider) -> Iterator[Provider]:
    """The provider, as it should be."""
    yield server
    server.named, server.claims, server.key, server.beside, server.odd, server.is_away = None, {}, None, [], {}, False


def lead(browser: Browser, provider: Provider) -> str:
    """The path to which the directory leads the browser back."""
    assert "Log in with your directory" in browser.get("/login").text
    led = browser.get("/directory")
    assert led.status_code == 303
    back = urlsplit(provider.authorize(led.headers["Location"]))
    assert back.path == f"{ROOT}/directory/return"
    return f"/directory/return?{back.query}"


def test_an_operator_logs_in_with_the_directory(console: Console, provider: Provider) -> None:
    browser = console.open()
    answered = browser.get(lead(browser, provider))
    assert answered.status_code == 200
    assert 'content="0;url=/console"' in answered.text
    assert EMAIL in browser.get("/account").text


def test_an_issuer_may_end_with_a_slash(console: Console, provider: Provider) -> None:
    add_operator(console.engine, f"slash-{EMAIL}", OperatorRole.EDITOR, SECRET)
    provider.named, provider.claims = f"{provider.issuer}/", {"email": f"slash-{EMAIL}", "sub": "slash"}
    browser = console.open()
    assert browser.get(lead(browser, provider)).status_code == 200


BESIDE: dict[str, dict[str, Any]] = {
    "of an unknown curve": {"kty": "EC", "crv": "brainpoolP256r1", "kid": "two", "x": "AAAA", "y": "AAAA"},
    "of an unknown curve of another type": {"kty": "OKP", "crv": "Ed1", "kid": "two", "x": "AAAA"},
    "of an unknown type": {"kty": "AKP", "alg": "ML-DSA-65", "kid": "two", "pub": "AAAA"},
    "of no point of its curve": {"kty": "EC", "crv": "P-256", "kid": "two", "x": "AAAA", "y": "AAAA"},
    "without its numbers": {"kty": "RSA", "kid": "two"},
    "without a type": {"kid": "two"},
    "of a list of types": {"kty": ["RSA"], "kid": "two"},
}


@pytest.mark.parametrize("key", BESIDE.values(), ids=BESIDE)
def test_a_published_key_that_nobody_can_use_spoils_no_other(
    console: Console, provider: Provider, key: dict[str, Any]
) -> None:
    provider.beside = [key]
    browser = console.open()
    assert browser.get(lead(browser, provider)).status_code == 200


TOKEN = {"access_token": "unused", "token_type": "Bearer"}
ODD: dict[str, tuple[str, Any]] = {
    "metadata in a list": ("/.well-known/openid-configuration", [{"issuer": "x"}]),
    "metadata nested without end": ("/.well-known/openid-configuration", b"[" * 100_000),
    "metadata that are a number": ("/.well-known/openid-configuration", 1),
    "an address that is a number": ("/.well-known/openid-configuration", {"jwks_uri": 1}),
    "keys in a list": ("/keys", ["x"]),
    "keys that are none": ("/keys", {"keys": None}),
    "keys that are texts": ("/keys", {"keys": ["x", 1, None]}),
    "a token in a list": ("/token", [TOKEN]),
    "an ID token that is a number": ("/token", {**TOKEN, "id_token": 1}),
    "an ID token in a list": ("/token", {**TOKEN, "id_token": ["x"]}),
    "no ID token": ("/token", TOKEN),
}


@pytest.mark.parametrize(("path", "answer"), ODD.values(), ids=ODD)
def test_json_of_another_shape_is_no_failure_of_the_console(
    console: Console, provider: Provider, path: str, answer: Any
) -> None:
    browser = console.open()
    back = lead(browser, provider)
    if "jwks_uri" in (answer if isinstance(answer, dict) else ()):
        answer = {"issuer": provider.issuer, "token_endpoint": f"{provider.issuer}/token", **answer}
    provider.odd = {path: answer}
    answered = browser.get(back)
    assert answered.status_code in (401, 503)
    assert "Not logged in" in answered.text


FAILED: dict[str, tuple[dict[str, Any], str, str]] = {
    "is away": ({"is_away": True}, "The directory does not answer", "HTTPError"),
    "is another one": ({"named": "https://evil.example"}, "The directory has another issuer", "OtherIssuerError"),
}


@pytest.mark.parametrize(("change", "words", "kind"), FAILED.values(), ids=FAILED)
def test_a_directory_that_fails_is_said_and_logged_by_the_type_of_the_failure(
    console: Console,
    provider: Provider,
    caplog: pytest.LogCaptureFixture,
    change: dict[str, Any],
    words: str,
    kind: str,
) -> None:
    for name, value in change.items():
        setattr(provider, name, value)
    answered = console.open().get("/directory")
    assert answered.status_code == 503
    assert words in answered.text
    assert [it.getMessage() for it in caplog.records] == [f"console: a login with the directory failed ({kind})"]


def test_the_cookie_of_the_way_is_sent_when_another_site_leads_back(console: Console) -> None:
    cookie = console.open().get("/directory").headers["Set-Cookie"]
    assert all(word in cookie for word in ("roster_directory=", "SameSite=Lax", "HttpOnly", "Path=/console/directory"))


@pytest.mark.shows(
    "Console",
    "A login of a directory is checked whole, belongs to one browser, and is bound to one account.",
)
def test_the_setting_takes_an_e_mail_that_the_directory_says_nothing_of(
    make_console: Callable[..., Console], provider: Provider
) -> None:
    console = make_console(oidc_url=provider.url, oidc_secret=CLIENT_SECRET, oidc_trust_email=True)
    add_operator(console.engine, EMAIL, OperatorRole.EDITOR, SECRET)
    for verified, subject, status in ((False, "ann", 403), (None, "ann", 200), (None, "another", 403)):
        provider.claims = {"email_verified": verified, "sub": subject}
        browser = console.open()
        assert browser.get(lead(browser, provider)).status_code == status, (verified, subject)


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "an account that no operator has": ({"email": "nobody@directory.example", "sub": "another"}, 403),
    "another account with the e-mail of an operator": ({"sub": "somebody-else"}, 403),
    "an e-mail that is not verified": ({"email_verified": False}, 403),
    "an e-mail of which the directory does not say that it is verified": ({"email_verified": None}, 403),
    "an e-mail that is verified in words": ({"email_verified": "false"}, 403),
    "no e-mail": ({"email": None}, 403),
    "a token for another program": ({"aud": "another"}, 401),
    "a token of another directory": ({"iss": "https://evil.example"}, 401),
    "a token of another attempt": ({"nonce": "another"}, 401),
    "a token that has ended": ({"exp": 1}, 401),
    "a token without an account": ({"sub": None}, 401),
}


def test_who_has_another_account_than_before_is_sent_to_an_owner_for_a_reset(
    console: Console, provider: Provider
) -> None:
    for subject, is_known in (("subject-of-ann", True), ("a later one", False)):
        provider.claims = {"sub": subject}
        browser = console.open()
        answered = browser.get(lead(browser, provider)).text
        assert ("or, if the directory has made the account anew, reset" in answered) is not is_known


@pytest.mark.shows(
    "Console",
    "A login of a directory is checked whole, belongs to one browser, and is bound to one account.",
)
@pytest.mark.parametrize(("claims", "status"), REFUSED.values(), ids=REFUSED)
def test_a_login_is_refused(console: Console, provider: Provider, claims: dict[str, Any], status: int) -> None:
    first = console.open()
    first.get(lead(first, provider))
    provider.claims = claims
    browser = console.open()
    answered = browser.get(lead(browser, provider))
    assert answered.status_code == status, answered.text
    assert browser.get("/account").status_code == 303


def test_a_token_that_another_key_signed_is_refused(
    console: Console, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    browser = console.open()
    assert browser.get(lead(browser, provider)).status_code == 401
    assert "(BadSignatureError)" in caplog.text


@pytest.mark.shows(
    "Console",
    "A login of a directory is checked whole, belongs to one browser, and is bound to one account.",
)
def test_an_answer_counts_in_the_browser_that_asked_and_once(console: Console, provider: Provider) -> None:
    browser, other = console.open(), console.open()
    path = lead(browser, provider)
    assert other.get(path).status_code == 401
    other.get("/directory")
    assert other.get(path).status_code == 401, "the state of another attempt"
    path = lead(browser, provider)
    assert browser.get(path).status_code == 200
    assert browser.get(path).status_code == 401


@pytest.mark.parametrize("word", ["access_denied", "<script>", "x" * 100])
def test_a_refusal_of_the_directory_is_said_without_its_words(console: Console, provider: Provider, word: str) -> None:
    browser = console.open()
    lead(browser, provider)
    answered = browser.get(f"/directory/return?{urlencode({'error': word, 'state': 'x'})}")
    assert answered.status_code == 401
    assert (word in answered.text) is (word == "access_denied")


def test_without_the_directory_a_password_still_counts(console: Console, provider: Provider) -> None:
    provider.is_away = True
    browser = console.open()
    assert browser.get("/directory").status_code == 503
    assert browser.log_in(EMAIL).status_code == 303


def test_a_part_of_the_settings_is_refused(served: Served, server: Provider) -> None:
    with pytest.raises(SettingError, match="belong together"):
        create_console(Settings(**{**SETTINGS, "oidc_url": server.url}), served.url)
