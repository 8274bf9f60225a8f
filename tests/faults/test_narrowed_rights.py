"""A change that narrows rights counts for every request that begins after it has ended, in every worker, under load."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.credentials import signing_keys
from roster_service.auth.credentials.api_keys import Allowance, rotate_key
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.roster.withheld import WithheldField
from tests.actors import TESTER
from tests.conditions import wait_for
from tests.contract.conftest import SECRET_KEY

from .services import Credentials, Service, fill, serving

pytestmark = pytest.mark.shows(
    "Credentials",
    "Changed rights, a disabled vendor or client, and a new secret or signing key without a grace end tokens at once.",
)

ASKING_THREADS = 4
# How many answers are seen on each side of the change.
ANSWERS = 30
PATHS = (
    "/users?limit=2",
    "/users/spr-student-1",
    "/users?limit=2&offset=2",
    "/orgs?limit=0",
    "/users?limit=2&offset=99",
)


@dataclass
class Load:
    """Threads that ask all the time; of each answer, when its request was sent, and its status."""

    ask: Callable[[], int]
    answers: list[tuple[float, int]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self.threads = [threading.Thread(target=self._run) for _ in range(ASKING_THREADS)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def _run(self) -> None:
        while not self.ended.is_set():
            begun = time.monotonic()
            self.answers.append((begun, self.ask()))

    def wait(self) -> None:
        """Until so many more requests have been answered."""
        seen = len(self.answers)
        wait_for(lambda: len(self.answers) >= seen + ANSWERS)


@pytest.fixture
def credentials(engine: sa.Engine) -> Credentials:
    """A loaded district, and a vendor who sees it."""
    return fill(engine)


@pytest.fixture
def service(engine: sa.Engine, credentials: Credentials, tmp_path: Path) -> Iterator[Service]:
    """Two workers, with no throttle that the load would meet."""
    url = engine.url.render_as_string(hide_password=False)
    with engine.begin() as connection:
        vendors.change_allowance(
            connection, TESTER, credentials.account.email, Allowance(10_000, 10_000, 10**9), ROSTERING_DEFAULTS
        )
    with serving(url, credentials, tmp_path) as running:
        running.get_tokens()
        yield running


# What an operator's command does, and whether it ends the access of the rostering interface, of the vendor interface.
CHANGES: dict[str, tuple[Callable[[sa.Connection, Credentials], object], bool, bool]] = {
    "a revoked grant": (
        lambda it, who: vendor_rights.revoke(it, TESTER, who.account.email, "spr-district"),
        True,
        True,
    ),
    "a wider grant": (
        lambda it, who: vendor_rights.grant(it, TESTER, who.account.email, "spr-district", ["spr-high"]),
        True,
        True,
    ),
    "more withheld fields": (
        lambda it, who: vendor_rights.change_withheld(it, TESTER, who.account.email, [WithheldField.EMAIL]),
        True,
        True,
    ),
    "a disabled vendor": (lambda it, who: vendors.set_vendor_enabled(it, TESTER, who.account.email, False), True, True),
    "a disabled client": (lambda it, who: clients.disable_client(it, TESTER, who.client[0]), True, False),
    "a secret replaced at once": (
        lambda it, who: clients.rotate_secret(it, TESTER, who.client[0], timedelta(0)),
        True,
        False,
    ),
    "an API key replaced at once": (
        lambda it, who: rotate_key(it, vendors.find_vendor(it, who.account.email).id, timedelta(0)),
        False,
        True,
    ),
    "a signing key replaced at once": (
        lambda it, _who: signing_keys.rotate_signing_key(it, TESTER, SECRET_KEY, timedelta(0), is_lost=False),
        True,
        True,
    ),
}


@pytest.mark.shows(
    "Visibility",
    "Narrowed rights hold for every request that begins after the change, in every worker, 304 included.",
)
@pytest.mark.parametrize("change", CHANGES)
def test_no_request_that_begins_after_the_change_is_answered_with_data(
    engine: sa.Engine, service: Service, credentials: Credentials, change: str
) -> None:
    narrow, ends_rostering, ends_students = CHANGES[change]
    with contextlib.ExitStack() as stack:
        loads = []
        if ends_rostering:
            paths = itertools.cycle(PATHS)
            loads.append(stack.enter_context(Load(lambda: service.ask("v1p2", next(paths)).status)))
        if ends_students:
            loads.append(stack.enter_context(Load(lambda: service.ask("students").status)))
        for load in loads:
            load.wait()
        with engine.begin() as connection:
            narrow(connection, credentials)
        ended_at = time.monotonic()
        for load in loads:
            load.wait()
    for load in loads:
        before = {status for begun, status in load.answers if begun < ended_at}
        after = {status for begun, status in load.answers if begun >= ended_at}
        assert 200 in before
        assert after in ({401}, {403})


@pytest.mark.shows(
    "Visibility",
    "Narrowed rights hold for every request that begins after the change, in every worker, 304 included.",
)
def test_a_tag_of_before_the_change_gets_no_304(engine: sa.Engine, service: Service, credentials: Credentials) -> None:
    tag = service.ask("v1p2").headers["ETag"]
    assert {service.ask("v1p2", more={"If-None-Match": tag}).status for _ in range(ANSWERS)} == {304}
    with engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, credentials.account.email, "spr-district")
    assert {service.ask("v1p2", more={"If-None-Match": tag}).status for _ in range(ANSWERS)} == {401}
