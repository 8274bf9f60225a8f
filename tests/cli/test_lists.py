"""The commands that list: a program that reads one from a pipe gets a line for each row, with whole cells."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.cli import main
from sync_scripts.engine.load import load
from tests.cli.conftest import make_environment
from tests.deliveries.test_sending import HOST_KEY
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import cell_of

LONG = " ".join(["with a long name"] * 10)
FEED = "a-feed-" + "with-a-long-name" * 2
EMAIL = "reading-app@vendor-with-a-long-name.example"
# What stands before the lists.
ADDED = (
    ("vendor", "add", EMAIL, "--name", f"Vendor {LONG}"),
    ("client", "add", "--vendor", EMAIL, "--name", f"Client {LONG}", "--scope", "roster.readonly"),
    ("operator", "add", "owner@district-with-a-long-name.example", "--name", f"Owner {LONG}", "--role", "owner"),
    # Its first file fails, because the vendor has no grant.
    (
        *("delivery", "add", "files", EMAIL, "--preset", "st-math", "--host", "sftp.example.org", "--user", "us"),
        *("--host-key", HOST_KEY, "--key-file", __file__),
    ),
    ("keys", "rotate"),
    ("deletion", "ask", "--yes", "spr-student-2", "--vendor", EMAIL, "--due", "2999-01-01"),
    ("person", "hide", "spr-student-1", "--yes", "--reason", f"Parents {LONG}"),
)
# A list -> a text that one of its lines has.
LISTS: dict[tuple[str, ...], str] = {
    ("feed", "list"): FEED,
    ("sync", "list"): FEED,
    ("district", "list"): f"District {LONG}",
    ("school", "list"): f"District {LONG}",
    ("agreement", "list"): EMAIL,
    ("deletion", "list"): EMAIL,
    ("vendor", "list"): f"Vendor {LONG}",
    ("client", "list"): f"Client {LONG}",
    ("credential", "list"): EMAIL,
    ("delivery", "list"): "no district or school is granted",
    ("keys", "list"): "verifies",
    ("operator", "list"): f"Owner {LONG}",
    ("person", "list"): "spr-student-1",
    ("changes",): f"Parents {LONG}",
}


def list_commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The commands that are called `list`."""
    for name, command in group.commands.items() if isinstance(group, click.Group) else ():
        yield from list_commands(command, (*path, name))
        if name == "list":
            yield (*path, name)


def test_a_pipe_gets_whole_cells_however_narrow_the_terminal_is(
    engine: sa.Engine, database_url: str, tmp_path: Path
) -> None:
    export = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / "export"))
    cell_of("orgs", "spr-district", "name", f"District {LONG}")(export)
    load(engine, FEED, export)
    environment = make_environment(database_url=database_url, home=str(tmp_path)) | {"COLUMNS": "40", "LINES": "5"}

    def read(*arguments: str) -> str:
        done = CliRunner().invoke(main, arguments, env=environment)
        assert done.exit_code == 0, (arguments, done.output)
        return done.stdout

    for command in ADDED:
        read(*command)
    assert set(list_commands(main)) <= set(LISTS)
    for command, text in LISTS.items():
        _heading, *lines = read(*command).splitlines()
        assert not [line for line in lines if re.search(r"(?<!\")\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d", line)], command
        assert len(lines) == len(json.loads(read(*command, "--json"))), command
        assert any(text in line for line in lines), (command, lines)
