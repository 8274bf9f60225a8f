"""The preview of an export: the report of a dry run, and the decision to load it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import to_segment
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.errors import CommandError
from roster_service.feeds.export_previews import (
    ExportPreview,
    add_previewed_feed,
    drop_preview,
    find_preview,
    load_preview,
    preview_again,
    read_dry_run,
)
from roster_service.feeds.scripts import Background


@dataclass(frozen=True)
class PreviewPage:
    """A preview. `dry_run`: its process; `report`: what the run would do, None if the export would not be loaded or the
    dry run has not ended; `rejections`: the first reasons of a refused export; `other_format`: the format that it has
    in place of that of the preview, None if it is not known to have another one."""

    preview: ExportPreview
    dry_run: Background
    report: Mapping[str, Any] | None
    rejections: Sequence[Mapping[str, Any]]
    other_format: str | None


def read_preview(visit: Visit) -> PreviewPage:
    """Reads a preview."""
    preview = find_preview(visit.settings.home, str(visit.place["preview"]))
    dry_run = read_dry_run(visit.settings.home, preview)
    found = dry_run.report or {}
    report = found if found.get("dry_run") else None
    return PreviewPage(
        preview, dry_run, report, () if report else found.get("rejections", ()), found.get("other_format")
    )


def load(sent: Submission) -> Outcome:
    """Adds the feed if it is new, and starts the load."""
    preview = _find(sent)
    with sent.change() as connection:
        add_previewed_feed(connection, sent.actor, sent.settings.home, preview)
    with sent.change() as connection:
        load_preview(connection, sent.actor, sent.settings.home, preview)
    return Moved(f"/feeds/{to_segment(preview.feed)}", "The load has begun. This page shows when it ends.")


def add(sent: Submission) -> Outcome:
    """Adds the feed, and leaves the load to the nightly sync."""
    preview = _find(sent)
    with sent.change() as connection:
        add_previewed_feed(connection, sent.actor, sent.settings.home, preview)
    drop_preview(sent.settings.home, preview)
    return Moved(f"/feeds/{to_segment(preview.feed)}", "The feed is added. The nightly sync loads its export.")


def change_format(sent: Submission) -> Outcome:
    """Starts the dry run of the export as one of the format that it has."""
    preview = _find(sent)
    format_ = (read_dry_run(sent.settings.home, preview).report or {}).get("other_format")
    if format_ is None:
        raise CommandError("the export is not known to have another format")
    with sent.change() as connection:
        feed = sent.get("feed") or ""
        made = preview_again(connection, sent.actor, sent.settings.home, preview, feed, format_)
    return Moved(f"/previews/{made.id}", None)


def drop(sent: Submission) -> Outcome:
    """Deletes the preview, and the export if it was uploaded."""
    drop_preview(sent.settings.home, _find(sent))
    return Moved("/feeds", "The preview is discarded. Nothing was changed.")


def _find(sent: Submission) -> ExportPreview:
    return find_preview(sent.settings.home, str(sent.place["preview"]))


SCREENS = (Screen("export_preview", "/previews/<preview>", "Preview", OperatorRole.EDITOR, read_preview, None, None),)
FORMS = (
    Form("export_preview", "load", Verb.SYNC_RUN, load, None),
    Form("export_preview", "add", Verb.FEED_ADD, add, None),
    Form("export_preview", "format", Verb.FEED_ADD, change_format, None),
    Form("export_preview", "drop", Verb.FEED_ADD, drop, None),
)
