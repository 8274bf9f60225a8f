"""Run by `alone.sh` where nothing but the wheels is installed: serves the demo and makes one call of each interface."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen


def find_free_port() -> int:
    """A port that nobody listens on, nor on the next one, which the console takes. It is below those that systems give
    to outgoing connections, of which others make many before it is listened on."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000, 2)
        try:
            for number in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port


def ask(url: str, headers: dict[str, str], body: bytes | None = None) -> Any:
    """The JSON of an answer."""
    with urlopen(Request(url, body, headers)) as answer:
        return json.load(answer)


def check(root: str, console: str, demo: dict[str, str]) -> None:
    """Asks for a token and with it for the schools, logs in as the vendor, and reads a guide, the reference, and the
    login of the console."""
    login = b64encode(f"{demo['client_id']}:{demo['client_secret']}".encode()).decode()
    form = {"grant_type": "client_credentials", "scope": "v1p2/roster.readonly"}
    token = ask(f"{root}/oauth/token", {"Authorization": f"Basic {login}"}, urlencode(form).encode())["access_token"]
    schools = ask(f"{root}/ims/oneroster/rostering/v1p2/schools", {"Authorization": f"Bearer {token}"})
    assert schools["orgs"], schools
    account = json.dumps({"email": demo["email"], "password": demo["password"]}).encode()
    headers = {"x-api-key": demo["api_key"], "Content-Type": "application/json"}
    assert ask(f"{root}/v1/login", headers, account)["token"]
    for address in (f"{root}/docs/guide", f"{root}/docs/reference", f"{console}/login"):
        with urlopen(address) as page:
            assert b"<h1" in page.read()


def main(roster: str) -> None:
    """Runs the command `roster` in the current folder, calls it, and stops it."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
    environment = {**others, "ROSTER_PORT": str(find_free_port()), "ROSTER_WORKERS": "1"}
    with subprocess.Popen([roster, "run", "--json"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, "`roster run` did not start; the lines above say why"
            known = json.loads(line)
            check(known["url"], known["console"], known["demo"])
        finally:
            # A background job of a shell ignores SIGINT.
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    assert process.returncode == 0, process.returncode
    assert not Path("var/postgres/postmaster.pid").exists()


if __name__ == "__main__":
    main(sys.argv[1])
