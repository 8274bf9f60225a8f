"""The link of a new operator: whose address it has, and which setting gives it another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from roster_service.cli import main
from tests.cli.conftest import make_environment

ADA = "ada@district.example"
PUBLIC = "https://roster.district.example"
# The settings, the address that a `roster run` of the data folder has written -> the address of the link, and its host
# if the command says that it is that of the machine.
CASES: dict[str, tuple[dict[str, str], str | None, str, str | None]] = {
    "no setting": ({}, None, "http://127.0.0.1:8000", "127.0.0.1"),
    "every address of the machine": ({"host": "0.0.0.0"}, None, "http://0.0.0.0:8000", "0.0.0.0"),
    "an IPv6 address": ({"host": "::1"}, None, "http://[::1]:8000", "::1"),
    "a console of its own": ({"console": "127.0.0.1:8001"}, None, "http://127.0.0.1:8001", "127.0.0.1"),
    "a server at another port": ({}, "http://127.0.0.1:8002", "http://127.0.0.1:8002", "127.0.0.1"),
    "an address of the network": ({"host": "192.0.2.5"}, None, "http://192.0.2.5:8000", None),
    "a public URL": ({"public_url": PUBLIC}, None, PUBLIC, None),
    "a public URL that the server does not know yet": ({"public_url": PUBLIC}, "http://127.0.0.1:8002", PUBLIC, None),
}


@pytest.mark.parametrize(("settings", "served", "address", "host"), CASES.values(), ids=CASES)
def test_a_link_to_the_machine_itself_names_the_setting(
    database_url: str, tmp_path: Path, settings: dict[str, str], served: str | None, address: str, host: str | None
) -> None:
    if served is not None:
        (tmp_path / "console_url").write_text(served)
    environment = make_environment(database_url=database_url, home=str(tmp_path), **settings)
    add = ("operator", "add", ADA, "--name", "Ada", "--role", "owner")
    for command in (add, ("operator", "reset", ADA)):
        done = CliRunner().invoke(main, command, env=environment)
        link, _, *more = done.stdout.splitlines()
        assert link.startswith(f"{address}/console/")
        # An own database without a setting, and without a server that runs, has no console.
        lacks = served is None and "console" not in settings
        assert [line.partition(" ROSTER_CONSOLE")[0] for line in more[-1:] if lacks] == (
            ["These settings have no console for this link: set"] if lacks else []
        )
        of_address = more[:-1] if lacks else more
        assert [line.partition(" is the machine of the service")[0] for line in of_address] == (
            [] if host is None else [host]
        )
        assert all("ROSTER_PUBLIC_URL" in line for line in of_address)
