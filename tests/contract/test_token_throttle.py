"""How often a token may be asked for: per client, and per address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from roster_service.auth.throttling.limits import Rates

from .client import RosterClient
from .conftest import Served


def ask(served: Served, form: dict[str, str], address: str, **headers: str) -> int:
    """The status of a token request over https from an address."""
    http, sender = served.app.test_client(), {"REMOTE_ADDR": address}
    with http.post("/oauth/token", "https://localhost", data=form, headers=headers, environ_overrides=sender) as answer:
        return answer.status_code


@pytest.fixture(scope="module")
def slow(make_served: Callable[..., Served]) -> Served:
    """Three tokens a client, six requests an address."""
    return make_served(rates=Rates(tokens=3, token_requests=6))


@pytest.mark.shows("Credentials", "The token endpoint counts requests per address and tokens per client.")
def test_a_client_has_its_own_number_from_wherever_it_asks(slow: Served, client: RosterClient) -> None:
    own, other = client.form("both"), client.form("north")
    wrong = own | {"client_secret": "a guess"}
    # Nobody without the secret uses up the client's share.
    assert [ask(slow, wrong, "192.0.2.1") for _ in range(4)] == [401] * 4
    assert [ask(slow, own, f"192.0.2.{number}") for number in range(2, 6)] == [200, 200, 200, 429]
    assert ask(slow, other, "192.0.2.6") == 200


@pytest.mark.shows("Credentials", "The token endpoint counts requests per address and tokens per client.")
def test_an_address_has_its_own_number_whatever_it_asks(slow: Served, client: RosterClient) -> None:
    wrong = client.form("nobody") | {"client_secret": "a guess"}
    forms = [client.form("nobody"), {}, wrong, wrong, wrong, wrong]
    assert [ask(slow, form, "198.51.100.1") for form in forms] == [200, 400, 401, 401, 401, 401]
    assert ask(slow, client.form("south"), "198.51.100.1") == 429
    assert ask(slow, client.form("south"), "198.51.100.2") == 200


def test_a_throttled_client_gets_the_words_of_the_endpoint(
    make_served: Callable[..., Served], client: RosterClient
) -> None:
    served = make_served(rates=Rates(tokens=1, token_requests=5))
    served.client.token("v1p1", vendor="elementary")
    answer = served.client.ask_token(client.form("elementary"))
    assert (answer.status, answer.json["error"]) == (429, "too_many_requests")
    assert set(answer.json) == {"error", "error_description"}
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.shows("Load", "`X-Forwarded-For` counts only behind the number of trusted proxies of the settings.")
def test_an_address_behind_proxies_is_the_one_that_the_last_trusted_one_saw(
    make_served: Callable[..., Served], client: RosterClient
) -> None:
    """What a caller writes into the header itself counts for nothing."""
    served = make_served(rates=Rates(token_requests=1), trusted_proxies=1)
    form, proxy, header = client.form("north"), "127.0.0.1", "X-Forwarded-For"
    assert ask(served, form, proxy, **{header: "203.0.113.1"}) == 200
    assert ask(served, form, proxy, **{header: "203.0.113.9, 203.0.113.1"}) == 429
    assert ask(served, form, proxy, **{header: "203.0.113.2"}) == 200


@pytest.mark.shows("Load", "`X-Forwarded-For` counts only behind the number of trusted proxies of the settings.")
def test_without_trusted_proxies_the_header_counts_for_nothing(
    make_served: Callable[..., Served], client: RosterClient
) -> None:
    served = make_served(rates=Rates(token_requests=1))
    statuses = [ask(served, client.form("north"), "192.0.2.9", **{"X-Forwarded-For": f"203.0.113.{n}"}) for n in (1, 2)]
    assert statuses == [200, 429]
