"""`python -m tests.bench.bench_console`: the time and the size of each screen of the console, on a large roster.

STUDENTS (191,000: 200,000 users) sets the size of the district, BENCH_HOME a folder that keeps it for the next run. The
time is that of the whole request in this process, the median of ROUNDS (7), after one request that is not counted. A
screen of a single subject is that of the first link to one. Beside the district there are 200 feeds with made-up runs,
some held and some with rejected rows, and 20 vendors. The search box looks for each of `SEARCHES`.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from pathlib import Path
from urllib.parse import urlencode

from flask.testing import FlaskClient

from roster_service.accounts import operators, vendors
from roster_service.app import create_console
from roster_service.change_log.actors import OperatorRole
from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from roster_service.feeds.data_quality import store_counts
from roster_service.feeds.feeds import list_feeds
from tests.actors import TESTER
from tests.bench.place import Place, open_place
from tests.console.histories import add_feeds
from tests.console.links import find_addresses

STUDENTS = int(os.environ.get("STUDENTS", "191000"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
EMAIL, PASSWORD = "bench@operators.example", "a long sentence to log in with"
# The targets, which the table names.
MOST_MILLISECONDS, MOST_KILOBYTES = 150, 100
# How many pages the search for the screens of single subjects looks at.
SEARCHED = 200
FEEDS, VENDORS = 200, 20
# Two letters, two words, a hyphen, Arabic, a class, a school, and nothing.
SEARCHES = ("ma", "ava smith", "smith-jo", "محم", "math", "lincoln", "xqzzy")


def add_more(place: Place) -> None:
    """Adds the feeds and the vendors, unless an earlier run has."""
    with place.engine.begin() as connection:
        if len(list_feeds(connection, None)) < FEEDS:
            add_feeds(connection, FEEDS, seed=7)
        for number in range(len(vendors.list_vendors(connection)), VENDORS):
            vendors.add_vendor(connection, TESTER, f"vendor-{number}@example.org", f"Vendor {number}")


def log_in(place: Place, client: FlaskClient) -> None:
    """Adds an owner, if none of this name is there, and logs in."""
    key = place.settings.read_secret_key()
    with place.engine.begin() as connection:
        known = [it.email for it in operators.list_operators(connection)]
        token = (
            operators.reset_password(connection, TESTER, EMAIL, key)
            if EMAIL in known
            else operators.add_operator(connection, TESTER, EMAIL, "Bench", OperatorRole.OWNER, key)
        )
        operators.use_link(connection, token, PASSWORD, key)
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.get(f"{ROOT}/login").text)
    assert csrf is not None
    form = {"csrf": csrf[1], "email": EMAIL, "password": PASSWORD}
    assert client.post(f"{ROOT}/login", data=form).status_code == 303


def measure(client: FlaskClient, name: str, address: str) -> None:
    """Prints the row of a screen."""
    first = client.get(address)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        client.get(address)
        times.append((time.perf_counter() - begin) * 1000)
    median, size = statistics.median(times), len(first.data) / 1000
    missed = " missed" if median > MOST_MILLISECONDS or size > MOST_KILOBYTES else ""
    print(f"{name:<14} {first.status_code} {median:9.1f} ms {size:8.1f} kB{missed}", flush=True)


def run() -> None:
    """Measures every screen."""
    home = os.environ.get("BENCH_HOME")
    with open_place(STUDENTS, None if home is None else Path(home)) as place:
        # As the nightly sync does.
        store_counts(place.engine)
        add_more(place)
        app = create_console(place.settings, place.url)
        client = app.test_client()
        log_in(place, client)
        addresses = find_addresses(lambda address: client.get(address).text, SCREENS, SEARCHED)
        print(f"{STUDENTS:,} students; targets: {MOST_MILLISECONDS} ms, {MOST_KILOBYTES} kB; median of {ROUNDS}")
        for screen in SCREENS:
            if addresses[screen.name]:
                measure(client, screen.name, addresses[screen.name][0])
            else:
                print(f"{screen.name:<14} no link leads to it")
        for text in SEARCHES:
            measure(client, f"find {text}", f"{ROOT}/find?{urlencode({'q': text})}")


if __name__ == "__main__":
    run()
