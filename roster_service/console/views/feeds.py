"""The feeds: the list, and one feed with its settings, its runs, and all that an operator does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import from_segment, to_segment
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.views.held import LIMITS, FeedLimit, list_limits, read_limit
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import find_today
from roster_service.errors import CommandError
from roster_service.feeds import feeds
from roster_service.feeds.export_previews import (
    ExportPreview,
    OpenPreview,
    UnderWayError,
    list_previews,
    preview_path,
    preview_upload,
)
from roster_service.feeds.feed_conditions import Condition, list_conditions
from roster_service.feeds.feed_states import FeedState, Pause, find_listed_feed, read_pause
from roster_service.feeds.feeds import FORMATS, Feed, Remains
from roster_service.feeds.run_history import FinishedRun, Run, list_latest_runs, list_run_page
from roster_service.feeds.runs import read_load, start_load
from roster_service.feeds.scripts import Background
from roster_service.roster.visible_orgs import list_feed_grants

# The runs that the page of a feed shows.
SHOWN_RUNS = 10
MOST_WORDS_BYTES = 2**20


@dataclass(frozen=True)
class FeedList:
    """The chosen feeds. `conditions`: what is said of each, by its name; `formats`, `words`: to choose from; `count`:
    of all feeds; `previews`: the open ones of feeds that are none of them: new ones, and those that were renamed
    meanwhile."""

    feeds: Paged
    conditions: Mapping[str, Sequence[Condition]]
    formats: Sequence[str]
    words: Sequence[str]
    count: int
    previews: Sequence[OpenPreview]


@dataclass(frozen=True)
class FeedPage:
    """A feed. `pause_reason`: of a pause, also one to come; `conditions`: what is said of it; `runs`: its latest ones;
    `words`: its mapping of words; `load`, `removal`: those that were started last from the console, if they are under
    way or did nothing since the latest run; `is_live`: whether the page changes by itself; `remains`: of a removed
    feed, what vendors still get of it; `previews`: the open ones of its exports."""

    feed: Feed
    pause_reason: str | None
    conditions: Sequence[Condition]
    runs: Sequence[Run]
    limits: Sequence[FeedLimit]
    words: str | None
    load: Background | None
    removal: Background | None
    today: str
    is_live: bool
    remains: Remains | None
    previews: Sequence[OpenPreview]


@dataclass(frozen=True)
class RemovalPage:
    """What the removal of a feed deletes. `last`: its last good run, with the live records by type, None also if a
    removal has deleted these since; `retention_days`: after which the purge deletes them; `remains`: of a removed feed,
    what vendors still get of it; `grants`: that end with the records, in words."""

    feed: Feed
    last: FinishedRun | None
    retention_days: int
    remains: Remains | None
    grants: Sequence[str]


def read_feeds(visit: Visit) -> FeedList:
    """Reads the list of feeds that the query string wants: with a text in the name, a word, or a need."""
    text, word = (visit.get("search") or "").casefold(), visit.get("word")
    settings = visit.settings
    listed = feeds.list_feeds(visit.connection, settings.time_zone)
    conditions = {feed: list_conditions(feed, settings) for feed in listed}
    chosen = [
        feed
        for feed, said in conditions.items()
        if text in feed.name.casefold()
        and (word is None or said[0].word == word)
        and (visit.get("needs") is None or said[0].needs)
    ]
    words, known = sorted({said[0].word for said in conditions.values()}), {feed.name for feed in conditions}
    shown = cut_page(visit, chosen)
    return FeedList(
        shown,
        {feed.name: conditions[feed] for feed in shown.rows},
        FORMATS,
        words,
        len(conditions),
        [found for found in _list_previews(visit) if found.preview.feed not in known],
    )


def read_feed(visit: Visit) -> FeedPage:
    """Reads a feed."""
    connection, home = visit.connection, visit.settings.home
    feed = _find_feed(connection, visit)
    pause = read_pause(connection, feed.name)
    runs = list_run_page(connection, feed.name, None, SHOWN_RUNS, 0)
    # A script that made a run, or that ended before the latest run, says nothing of how the feed is now.
    load, removal = (
        None if script is None or script.has_run or (runs and script.ended_before(runs[0].started)) else script
        for script in (read_load(home, feed.name), feeds.read_removal(home, feed.name))
    )
    is_live = feed.is_running or any(script is not None and script.is_running for script in (load, removal))
    return FeedPage(
        feed=feed,
        pause_reason=None if pause is None else pause.reason,
        conditions=list_conditions(feed, visit.settings),
        runs=runs,
        limits=list_limits(feed, visit.settings),
        words=find_listed_feed(connection, feed.name).words,
        load=load,
        removal=removal,
        today=str(find_today(visit.settings.time_zone)),
        is_live=is_live,
        remains=_find_remains(visit, feed),
        previews=[found for found in _list_previews(visit) if found.preview.feed == feed.name],
    )


def _list_previews(visit: Visit) -> Sequence[OpenPreview]:
    """The open previews, for an operator who may see them."""
    return list_previews(visit.settings.home) if visit.may(Verb.FEED_ADD) else ()


def read_removal(visit: Visit) -> RemovalPage:
    """Reads what the removal of a feed deletes."""
    feed = _find_feed(visit.connection, visit)
    good = list_latest_runs(visit.connection, 1, is_good=True).get(feed.name, ())
    days, zone = visit.settings.retention_days, visit.settings.time_zone
    number = find_listed_feed(visit.connection, feed.name).id
    grants = [grant.describe_end(days, zone) for grant in list_feed_grants(visit.connection, number)]
    last = good[-1] if good and not feed.is_emptied else None
    return RemovalPage(feed, last, days, _find_remains(visit, feed), grants)


def _find_remains(visit: Visit, feed: Feed) -> Remains | None:
    if feed.state != FeedState.REMOVED:
        return None
    return feeds.find_remains(visit.connection, feed.name, visit.settings)


def preview_given_path(sent: Submission) -> Outcome:
    """Starts the dry run of an export on the machine of the service."""
    feed, format_ = _read_new(sent)
    path = sent.get("path")
    if path is None:
        raise CommandError("the feed needs the path of its export")
    with sent.change() as connection:
        return _begin(lambda: preview_path(connection, sent.actor, sent.settings.home, feed, format_, path))


def preview_given_upload(sent: Submission) -> Outcome:
    """Stores an uploaded export, and starts its dry run."""
    feed, format_ = _read_new(sent)
    given = (feed, format_, sent.uploads("export"))
    with sent.change() as connection:
        return _begin(lambda: preview_upload(connection, sent.actor, sent.settings.home, *given))


def _begin(preview: Callable[[], ExportPreview]) -> Outcome:
    """Begins a dry run, and leads to its page; where one of the operator is under way, to that one."""
    try:
        return Moved(f"/previews/{preview().id}", None)
    except UnderWayError as error:
        words = "This preview of yours is under way, and the other one has not begun. Wait for its end, or discard it."
        return Moved(f"/previews/{error.preview.id}", words)


def sync_now(sent: Submission) -> Outcome:
    """Starts a load of the export at the path of the feed."""
    with sent.change() as connection:
        feed = _find_feed(connection, sent)
        if feed.path is None:
            raise CommandError("the feed has no path; upload its export, or give it a path")
        is_complete = sent.get("now") is not None
        start_load(
            connection,
            sent.actor,
            feed.name,
            feed.format,
            feed.path,
            sent.settings.home,
            is_complete=is_complete,
            drop=None,
        )
    return _show(sent, "The load has begun. This page shows when it ends.")


def set_settings(sent: Submission) -> Outcome:
    """Sets the settings that differ from those of the feed."""
    path = sent.get("path")
    if path is not None and not Path(path).is_absolute():
        raise CommandError(f"{path} is no absolute path on the machine of the service, as /exports/springfield")
    wanted: dict[str, Any] = {
        "path": None if path is None else str(Path(path).absolute()),
        "marker": sent.get("marker"),
        "strict": sent.get("strict") is not None,
        **{name: read_limit(sent.get(name)) for name in LIMITS},
    }
    with sent.change() as connection:
        feed = _find_feed(connection, sent)
        values = {name: value for name, value in wanted.items() if getattr(feed, name) != value}
        if values:
            feeds.change_feed(connection, sent.actor, feed.name, values)
    return _show(sent, "The settings are saved.")


def set_words(sent: Submission) -> Outcome:
    """Sets or removes the mapping of words."""
    uploads = sent.uploads("words")
    text = _read_words(uploads[0].stream.read(MOST_WORDS_BYTES + 1)) if uploads else None
    if text is None and sent.get("none") is None:
        raise CommandError("choose the file of the mapping")
    if text is not None:
        # A mapping that the next run would refuse must not take the place of a good one.
        with sent.tools.owner.connect() as connection:
            feeds.check_words(connection, _find_feed(connection, sent).format, text)
    with sent.change() as connection:
        feeds.change_feed(connection, sent.actor, _find_feed(connection, sent).name, {"words": text})
    return _show(
        sent, "The mapping is saved. Preview the next run to see its effect." if text else "The mapping is removed."
    )


def set_enabled(sent: Submission) -> Outcome:
    """Enables or disables a feed."""
    is_enabled = sent.get("enabled") == "yes"
    with sent.change() as connection:
        name = _find_feed(connection, sent).name
        feeds.change_feed(connection, sent.actor, name, {"enabled": is_enabled})
    return _show(
        sent, "The nightly sync leaves the feed out no more." if is_enabled else "The nightly sync leaves the feed out."
    )


def pause(sent: Submission) -> Outcome:
    """Pauses a feed."""
    reason = sent.get("reason")
    if reason is None:
        raise CommandError("a pause needs a reason; this page shows it")
    today = find_today(sent.settings.time_zone)
    made = Pause(_read_day(sent.get("first")) or today, _read_day(sent.get("last")) or date.min, reason)
    with sent.change() as connection:
        feeds.pause_feed(connection, sent.actor, _find_feed(connection, sent).name, made, today)
    return _show(sent, f"The feed is paused {made.describe()}.")


def resume(sent: Submission) -> Outcome:
    """Ends a pause."""
    with sent.change() as connection:
        feeds.resume_feed(connection, sent.actor, _find_feed(connection, sent).name)
    return _show(sent, "The feed has no pause any more.")


def take_back(sent: Submission) -> Outcome:
    """Takes a removed feed back."""
    with sent.change() as connection:
        feed = _find_feed(connection, sent)
        path = None if feed.path is None else Path(feed.path)
        feeds.add_feed(connection, sent.actor, feed.name, feed.format, path)
    return _show(sent, "The feed is back. Load its export to bring the records back.")


def remove(sent: Submission) -> Outcome:
    """Starts the removal."""
    with sent.change() as connection:
        name = _find_feed(connection, sent).name
        feeds.start_removal(connection, sent.actor, name, sent.settings.home, now=sent.get("now") is not None)
    return _show(sent, "The removal has begun. This page shows when it ends.")


def _find_feed(connection: sa.Connection, visit: Visit | Submission) -> Feed:
    """The feed of an address, also a removed one."""
    name = find_listed_feed(connection, _read_name(visit.place)).name
    return feeds.find_listed(connection, name, visit.settings.time_zone)


def _read_name(place: Mapping[str, Any]) -> str:
    return from_segment(str(place["feed"]))


def _read_new(sent: Submission) -> tuple[str, str]:
    """(name, format) of the feed of an export: of the page, or of the form."""
    if "feed" in sent.place:
        with sent.change() as connection:
            feed = _find_feed(connection, sent)
        return feed.name, feed.format
    name = sent.get("name")
    if name is None:
        raise CommandError("the feed needs a name")
    return name, sent.form.get("format", "")


def _read_day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text} is no day; write it as 2026-12-31") from None


def _read_words(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise CommandError("the mapping is not UTF-8") from None
    if len(data) > MOST_WORDS_BYTES or "\0" in text:
        raise CommandError("the file is no mapping of words")
    return text


def _show(sent: Submission, message: str) -> Moved:
    return Moved(f"/feeds/{to_segment(_read_name(sent.place))}", message)


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen("feeds", "/feeds", "Feeds", OperatorRole.OBSERVER, read_feeds, lambda it: it.feeds.rows, "Feeds"),
    Screen("feed", "/feeds/<feed>", "Feed", _VIEWER, read_feed, lambda it: it.runs, None),
    Screen("feed_removal", "/feeds/<feed>/removal", "Remove a feed", _VIEWER, read_removal, None, None),
)
FORMS = (
    Form("feeds", "path", Verb.FEED_ADD, preview_given_path, None),
    Form("feeds", "upload", Verb.FEED_ADD, preview_given_upload, None, takes_export=True),
    Form("feed", "path", Verb.SYNC_RUN, preview_given_path, None),
    Form("feed", "upload", Verb.SYNC_RUN, preview_given_upload, None, takes_export=True),
    Form("feed", "sync", Verb.SYNC_RUN, sync_now, None),
    Form("feed", "settings", Verb.FEED_SET, set_settings, None),
    Form("feed", "words", Verb.FEED_SET, set_words, None),
    Form("feed", "enable", Verb.FEED_SET, set_enabled, None),
    Form("feed", "pause", Verb.FEED_PAUSE, pause, None),
    Form("feed", "resume", Verb.FEED_RESUME, resume, None),
    Form("feed", "take-back", Verb.FEED_ADD, take_back, None),
    Form("feed_removal", "remove", Verb.FEED_REMOVE, remove, lambda sent: _read_name(sent.place)),
)
