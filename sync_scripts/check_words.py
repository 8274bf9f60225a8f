"""`python -m sync_scripts.check_words FORMAT PATH`: reads a mapping of words as a run does. The console calls it before
it stores one."""

from __future__ import annotations

import os
from pathlib import Path

import click

from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import HELP, exit_on_error
from sync_scripts.reading.registry import FAMILIES
from sync_scripts.staging.normalize import require_words


@click.command(epilog=HELP)
@click.argument("format_", metavar="FORMAT", type=click.Choice(list(FAMILIES)))
@click.argument("path", type=click.Path(path_type=Path))
def main(format_: str, path: Path) -> None:
    """Read the mapping of words at PATH for exports of a format, and print why a run would refuse it, as one JSON
    object."""
    with (
        exit_on_error(as_json=True),
        open_roster_engine(Settings.read(os.environ)) as engine,
        engine.connect() as connection,
    ):
        require_words(connection, path.read_bytes().decode(), FAMILIES[format_].forms)


if __name__ == "__main__":
    main()
