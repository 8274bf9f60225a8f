"""`roster console`: the operator's console in a process of its own, at the address that ROSTER_CONSOLE names."""

from __future__ import annotations

import dataclasses

import click

from roster_service.cli.run_signals import RunSignals
from roster_service.cli.server import require_free_port, serve
from roster_service.cli.terminal import read_settings
from roster_service.console.login import ROOT
from roster_service.db.embedded_server import open_database
from roster_service.errors import CommandError
from roster_service.settings import Settings

APPLICATION = "roster_service.server.console_entry:open_console()"


@click.command("console")
def console() -> None:
    """Serve the console alone, at the address and port of ROSTER_CONSOLE, until Ctrl-C.

    The workers of the service then never have the rights of the owner of the tables, which the console needs.
    """
    settings = read_settings()
    own = make_own_settings(settings)
    require_free_port(own)
    signals = RunSignals()
    signals.register()
    with open_database(settings) as url:
        serve(own, url, signals, lambda _: click.echo(f"The console: {settings.console_url}{ROOT}"), APPLICATION)


def make_own_settings(settings: Settings) -> Settings:
    """Returns the settings of the process: one worker at the address of the console. Raises CommandError if the
    settings name none."""
    if settings.console_address is None:
        raise CommandError("set ROSTER_CONSOLE to an address and a port, such as 127.0.0.1:8001")
    host, _, port = settings.console_address.rpartition(":")
    return dataclasses.replace(settings, host=host.strip("[]"), port=int(port), workers=1)
