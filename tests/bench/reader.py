"""A consumer of the rostering interface, in a process of its own: how many requests a second it gets answered.

`python -m tests.bench.reader URL CLIENT_ID CLIENT_SECRET SECRET_KEY SECONDS`: prints its rate over the seconds, reads a
line, goes on until its input ends, and prints the rate since then.
"""

from __future__ import annotations

import select
import sys
import tempfile
import time
from pathlib import Path

from flask.testing import FlaskClient

from roster_service.app import create_app
from roster_service.settings import Settings

PATH = "/ims/oneroster/rostering/v1p2/users?limit=100&offset=5000"


def ask(client: FlaskClient, token: str, path: str = PATH) -> None:
    """One page of users; a consumer that gets no answer stops here."""
    response = client.get(path, headers={"Authorization": f"Bearer {token}"})
    if response.status_code != 200:
        raise SystemExit(f"{response.status}: {response.get_data(as_text=True)[:200]}")


def run(url: str, client_id: str, client_secret: str, secret_key: str, seconds: float) -> None:
    """Reads for so long, and then for as long as its input is open."""
    settings = Settings(secret_key=secret_key, home=Path(tempfile.mkdtemp(prefix="roster-bench-")))
    client = create_app(settings, url).test_client()
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    token = client.post("/oauth/token", data=form).get_json()["access_token"]
    ask(client, token)
    count, begin = 0, time.monotonic()
    while time.monotonic() < begin + seconds:
        ask(client, token)
        count += 1
    print(count / (time.monotonic() - begin), flush=True)
    sys.stdin.readline()
    count, begin = 0, time.monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        ask(client, token)
        count += 1
    print(count / (time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    address, identifier, secret, key, duration = sys.argv[1:]
    run(address, identifier, secret, key, float(duration))
