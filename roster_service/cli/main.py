"""The root of the command line: its commands, and the handling of errors."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from roster_service import __version__
from roster_service.errors import RosterServiceError

# Each command: its module and its name there, and what the list of commands says of it. The list imports none of them.
COMMANDS = {
    "db": ("database.db", "The database."),
    "run": ("server.run", "Serve until Ctrl-C."),
    "settings": ("database.settings_list", "List every setting, and where its value comes from."),
    "demo": ("demo.demo", "The made-up district of the first `roster run`."),
    "feed": ("feeds.feed", "The SIS exports that the roster is loaded from."),
    "sync": ("sync.sync", "The runs of the nightly sync."),
    "district": ("orgs.district", "The districts of the roster."),
    "school": ("orgs.school", "The schools of the roster."),
    "vendor": ("vendors.vendor", "Vendors, and what they may see."),
    "agreement": ("agreements.agreement", "What the papers with vendors allow at most, and until when."),
    "deletion": ("deletions.deletion", "What vendors are asked to delete, and what they answer."),
    "client": ("clients.client", "OAuth clients of the rostering interface."),
    "credential": ("credentials.credential", "The ends and last uses of API keys and secrets."),
    "keys": ("credentials.keys", "The keys that sign tokens."),
    "operator": ("operators.operator", "The people who run the service."),
    "person": ("people.person", "People whom the roster, or one vendor, must not have."),
    "usage": ("access_log.usage", "Show how much each vendor has asked for."),
    "audit": ("access_log.audit", "Show the access log: who was shown what, and when."),
    "access": ("vendor_views.access", "Show which vendor sees which school."),
    "show": ("vendor_views.record_show", "Show a record as the clients of a vendor get it."),
    "delivery": ("deliveries.delivery", "The roster as files for vendors."),
    "export": ("vendor_views.export", "Write the active records of a collection."),
    "console": ("server.console", "Serve the console until Ctrl-C."),
    "changes": ("access_log.changes", "Show what operators have changed."),
}


class LazyCommands(Mapping[str, click.Command]):
    """The commands by name. A command is imported when it is looked up: all of them take a second."""

    def __init__(self, rows: Mapping[str, tuple[str, str]]) -> None:
        """`rows`: as `COMMANDS`."""
        self._rows = rows

    def __getitem__(self, name: str) -> click.Command:
        module, _, own = self._rows[name][0].partition(".")
        command: click.Command = getattr(importlib.import_module(f"roster_service.cli.{module}"), own)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class RootGroup(click.Group):
    """A group that reports the service's own errors as one sentence, with its exit code and without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RosterServiceError as error:
            click.echo(f"roster: {error}", err=True)
            ctx.exit(error.exit_code)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, says) for name, (_, says) in sorted(COMMANDS.items())])


@click.group(cls=RootGroup, commands=LazyCommands(COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="roster")
def main() -> None:
    """Run and operate the Roster Service."""
