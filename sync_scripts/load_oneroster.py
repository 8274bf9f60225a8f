"""`python -m sync_scripts.load_oneroster --feed NAME PATH`: a OneRoster CSV export, 1.1 or 1.2, into the roster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.console import Console

from roster_service.db.embedded import open_database
from roster_service.db.engine import make_engine, require_reachable
from roster_service.db.migrate import require_current
from roster_service.settings import Settings
from sync_scripts.exits import HELP, exit_on_refusal
from sync_scripts.loading import load


@click.command(epilog=HELP)
@click.option("--feed", "feed_name", required=True, metavar="NAME", help="The feed that the export belongs to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("path", type=click.Path(path_type=Path))
def main(feed_name: str, as_json: bool, path: Path) -> None:
    """Load the OneRoster CSV export at PATH, a folder or a zip, in bulk.

    All of it is loaded, or nothing. What the feed brought before and the export no longer has is marked
    `tobedeleted`. A feed that does not exist yet is made.
    """
    with exit_on_refusal(as_json=as_json), open_database(Settings.from_environ(os.environ)) as url:
        engine = make_engine(url)
        try:
            require_reachable(engine)
            require_current(engine)
            report = load(engine, feed_name, path)
        finally:
            engine.dispose()
        if as_json:
            click.echo(json.dumps(report.to_json(), ensure_ascii=False))
            return
        console = Console()
        console.print(report.to_grid())
        for notice in report.notices:
            click.echo(notice)


if __name__ == "__main__":
    main()
