"""`python -m sync_scripts.remove_feed`: removes a feed; `roster feed remove` calls it."""

from __future__ import annotations

import json
import os

import click

from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import HELP, exit_on_error
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.loader_command import WAIT, read_actor
from sync_scripts.engine.progress import survive_lost_output


@click.command(epilog=HELP)
@click.option("--now", is_flag=True, help="Delete its records at once, not after the retention.")
@click.option("--actor", "actor_text", hidden=True)
@click.option("--dry-run", is_flag=True, help="Report the removal without applying it.")
@WAIT
@click.argument("name")
def main(name: str, now: bool, wait: bool, actor_text: str | None, dry_run: bool) -> None:
    """Remove the feed NAME without a question, and print the report of the run as one JSON object."""
    with exit_on_error(as_json=False):
        actor = read_actor(actor_text)
        settings = Settings.read(os.environ)
        with open_roster_engine(settings) as engine:
            report = remove_feed(engine, actor, name, settings, at_once=now, dry_run=dry_run, wait=wait)
    with survive_lost_output():
        click.echo(json.dumps(report.to_json(), ensure_ascii=False))


if __name__ == "__main__":
    main()
