"""What row-level security costs: the same requests with it and without it, side by side in one run.

A district of `$STUDENTS` (20,000) and a smaller one beside it, which the client may not see. The application without
row-level security differs in one thing: it reads as the owner of the tables, whom no policy holds. Each request is made
by turns on both, inside this process, and the medians are compared.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import sqlalchemy as sa
from flask.testing import FlaskClient

from roster_service import app as service
from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.app import create_app, make_serving_engine
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.tables import orgs
from roster_service.roster.upgrades import upgrade
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tools.generate_district import main as generate

STUDENTS = int(os.environ.get("STUDENTS", "20000"))
ROUNDS = 9
ROOT = "/ims/oneroster/rostering/v1p2"
SCOPES = " ".join(str(Scope("v1p2", name)) for name in ScopeName)
REQUESTS = {
    "users, page of 100": "/users?limit=100",
    "users, page of 10,000": "/users?limit=10000",
    "users, ~ on a name, page of 100": "/users?limit=100&filter=familyName~'son'",
    "users, ~ on what nobody has": "/users?limit=100&filter=familyName~'xqxq'",
    "users, the count": "/users?limit=0",
    "students, page of 10,000": "/students?limit=10000",
    "enrollments, page of 100": "/enrollments?limit=100",
    "enrollments, page of 10,000": "/enrollments?limit=10000",
    "classes, page of 100": "/classes?limit=100",
    "orgs, page of 100": "/orgs?limit=100",
}


def main() -> None:
    """Loads, asks by turns, and prints a line a request."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        url = stack.enter_context(open_embedded(folder))
        credentials = fill(url, folder)
        settings = Settings(secret_key="a secret key of the benchmark, long enough", home=folder)
        with_policies = make_questioner(create_app(settings, url).test_client(), credentials)

        def make_owner_engine(_url: str, _settings: Settings) -> sa.Engine:
            return make_serving_engine(url, settings)

        with mock.patch.object(service, "make_serving_engine", make_owner_engine):
            without = make_questioner(create_app(settings, url).test_client(), credentials)
        print(f"{'':36}{'without':>12}{'with':>12}{'ratio':>8}")
        for label, path in REQUESTS.items():
            alone, both = compare(lambda path=path: without(path), lambda path=path: with_policies(path))  # type: ignore[misc]
            print(f"{label:36}{alone * 1000:9.2f} ms{both * 1000:9.2f} ms{both / alone:8.2f}")


def fill(url: str, folder: Path) -> tuple[str, str]:
    """Two districts, and a client of a vendor that may see the first."""
    engine = make_engine(url)
    upgrade(engine)
    for number, students in enumerate((STUDENTS, STUDENTS // 4), 1):
        export = folder / f"{number}.zip"
        arguments = ["--out", str(export), "--students", str(students), "--seed", str(number), "--name", f"D{number}"]
        generate(arguments, standalone_mode=False)
        load(engine, f"feed-{number}", export)
    with engine.begin() as connection:
        district = connection.scalars(sa.select(orgs.c.sourced_id).where(orgs.c.name == "D1")).one()
        vendors.add_vendor(connection, TESTER, "bench@example.org", "bench")
        vendor_rights.grant(connection, TESTER, "bench@example.org", district, ())
        scopes = [Scope("v1p2", name) for name in ScopeName]
        made = clients.add_client(connection, TESTER, "bench@example.org", "bench", scopes)
    engine.dispose()
    return made.client_id, made.client_secret


def make_questioner(client: FlaskClient, credentials: tuple[str, str]) -> Callable[[str], bytes]:
    """Asks for a path with a token, and returns the body."""
    answer = client.post("/oauth/token", data={"grant_type": "client_credentials", "scope": SCOPES}, auth=credentials)
    headers = {"Authorization": f"Bearer {answer.get_json()['access_token']}"}

    def ask(path: str) -> bytes:
        answer = client.get(ROOT + path, headers=headers)
        if answer.status_code != 200:
            raise RuntimeError(answer.get_data(as_text=True))
        return answer.get_data()

    return ask


def compare(first: Callable[[], bytes], second: Callable[[], bytes]) -> tuple[float, float]:
    """The medians of two ways to one answer, by turns."""
    if first() != second():
        raise RuntimeError("the two answers differ")
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for ask, taken in zip((first, second), times, strict=True):
            start = time.perf_counter()
            ask()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


if __name__ == "__main__":
    main()
