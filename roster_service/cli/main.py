"""The root of the command line: its commands, and the handling of errors."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from roster_service import __version__
from roster_service.errors import RosterServiceError

# The module and the name of each command.
COMMANDS = {
    "db": "database.db",
    "run": "server.run",
    "settings": "database.settings_list",
    "demo": "demo.demo",
    "feed": "feeds.feed",
    "sync": "sync.sync",
    "district": "orgs.district",
    "school": "orgs.school",
    "vendor": "vendors.vendor",
    "client": "clients.client",
    "credential": "credentials.credential",
    "keys": "credentials.keys",
    "operator": "operators.operator",
    "person": "people.person",
    "usage": "access_log.usage",
    "audit": "access_log.audit",
    "access": "vendor_views.access",
    "show": "vendor_views.record_show",
    "delivery": "deliveries.delivery",
    "export": "vendor_views.export",
    "console": "server.console",
    "changes": "access_log.changes",
}


class LazyCommands(Mapping[str, click.Command]):
    """The commands by name. A command is imported when it is looked up: all of them take a second."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places`: as `COMMANDS`."""
        self._places = places

    def __getitem__(self, name: str) -> click.Command:
        module, _, own = self._places[name].partition(".")
        command: click.Command = getattr(importlib.import_module(f"roster_service.cli.{module}"), own)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class RootGroup(click.Group):
    """A group that reports the service's own errors as one sentence, with its exit code and without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RosterServiceError as error:
            click.echo(f"roster: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=RootGroup, commands=LazyCommands(COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="roster")
def main() -> None:
    """Run and operate the Roster Service."""
