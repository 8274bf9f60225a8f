"""`python -m sync_scripts.announce`: sends a test announcement through every channel that the settings name."""

from __future__ import annotations

import os
import sys

import click

from roster_service.errors import SettingError
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import HELP, ExitCode, exit_on_error
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.notifications.channels import announce, list_channels


@click.command(epilog=HELP)
def main() -> None:
    """Send a test announcement by e-mail (ROSTER_SMTP_URL) and to the webhook (ROSTER_WEBHOOK_URL)."""
    with exit_on_error(as_json=False):
        settings = Settings.read(os.environ)
        names = [name for name, _ in list_channels(settings)]
        if not names:
            raise SettingError(
                "nothing is announced: set ROSTER_SMTP_URL and ROSTER_MAIL_TO, or ROSTER_WEBHOOK_URL, for the sync"
            )
        failures = announce(
            settings, Announcement(AnnouncementKind.TEST, "no feed", "The notifications of the sync arrive.")
        )
    for failure in failures.values():
        click.echo(failure, err=True)
    click.echo(f"sent to {len(names) - len(failures)} of {len(names)} channels")
    sys.exit(ExitCode.FAILED if failures else ExitCode.LOADED)


if __name__ == "__main__":
    main()
