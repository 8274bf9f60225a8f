"""`roster feed check`: the mapping of words and the export of a feed, before the next run reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from roster_service.cli.sync_preview import preview_run
from roster_service.cli.terminal import as_json, make_table, open_connection, show
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import find_feed


@dataclass(frozen=True)
class FeedCheck:
    """What the next run would say: its notices, and the causes for which it would reject rows."""

    feed: str
    notices: list[str]
    causes: list[dict[str, Any]]


@click.command("check")
@click.argument("name")
@as_json
def feed_check(name: str, as_json: bool) -> None:
    """Check the mapping of words and the export of the feed NAME, and change nothing: the tolerated deviations, mapped
    words among them, and the causes of rejected rows, such as words that no mapping explains."""
    with open_connection() as connection:
        found = find_feed(connection, name)
        if found.path is None:
            raise CommandError(f"the feed {name} has no path; `roster feed set {name} --path PATH` gives it one")
        report = preview_run(connection, found.format, name, found.path)
    show(FeedCheck(name, report["notices"], report["causes"]), as_json, _describe)


def _describe(check: FeedCheck) -> str:
    causes = [
        {key: str(cause[key] or "-") for key in ("file", "column", "line", "rows", "reason")} for cause in check.causes
    ]
    return "\n".join((*check.notices, make_table(causes, "no row would be rejected")))
