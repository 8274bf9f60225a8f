"""`roster run` behind nginx, with a vendor who sees more than 10,000 enrollments."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.cli.test_serve import PROJECT, environment_of, serving
from tests.deploy.proxy import NAME, Proxy, find_free_ports, proxying


@dataclass(frozen=True)
class Behind:
    """nginx, the service behind it, and the header of a vendor who sees 10,000 enrollments and more."""

    proxy: Proxy
    environment: dict[str, str]
    service_port: int
    bearer: dict[str, str]


def run_module(environment: dict[str, str], *arguments: str) -> str:
    """What a module of this project prints."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def run_roster(environment: dict[str, str], *arguments: str) -> Any:
    """What a `roster` command says in JSON."""
    command = [sys.executable, "-c", "from roster_service.cli import main; main()", *arguments, "--json"]
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ask_token(proxy: Proxy, client: dict[str, str]) -> dict[str, str]:
    """The header of a token with the scope for everything but demographics."""
    basic = b64encode(f"{client['client_id']}:{client['client_secret']}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
    form = urlencode({"grant_type": "client_credentials", "scope": "v1p2/roster.readonly"})
    reply = proxy.ask("POST", "/oauth/token", headers, form.encode())
    assert reply.status == 200, reply
    return {"Authorization": f"Bearer {json.loads(reply.body)['access_token']}"}


def read_districts(environment: dict[str, str]) -> list[str]:
    """The ids of the districts."""
    program = (
        "import os; from sqlalchemy import text; from roster_service.db.embedded_server import open_database\n"
        "from roster_service.db.engine import make_engine; from roster_service.settings import Settings\n"
        "with open_database(Settings.from_environ(os.environ)) as url, make_engine(url).connect() as connection:\n"
        "    print(*connection.scalars(text(\"SELECT sourced_id FROM orgs WHERE type = 'district'\")), sep='\\n')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.split()


@contextmanager
def serve_behind(home: Path) -> Iterator[Behind]:
    """`roster run` with the demo and a second district in a data folder, behind nginx."""
    service_port, port, plain_port = find_free_ports(3)
    root = f"https://{NAME}:{port}"
    environment = environment_of(
        home=str(home), port=str(service_port), workers="2", trusted_proxies="1", public_url=root
    )
    with serving(environment, "--json"), proxying(service_port, port, plain_port) as proxy:
        export = str(home / "export")
        run_module(environment, "tools.generate_district", "--out", export, "--students", "500", "--seed", "7")
        run_module(environment, "sync_scripts.load_oneroster", "--feed", "second", "--now", export)
        run_roster(environment, "vendor", "add", "both@example.com", "--name", "Both")
        for district in read_districts(environment):
            run_roster(environment, "vendor", "grant", "both@example.com", "--district", district)
        added = ("client", "add", "--vendor", "both@example.com", "--name", "tests", "--scope", "roster.readonly")
        yield Behind(proxy, environment, service_port, ask_token(proxy, run_roster(environment, *added)))
