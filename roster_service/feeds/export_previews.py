"""Exports that an operator may load: uploaded or at a path, with the report of a dry run first.

Each has a folder in the data folder that only its owner can read: what is proposed, the output of the dry run and, if
it was uploaded, the export.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import FeedState, read_added_feed, require_feed_name
from roster_service.feeds.feeds import FORMATS, add_feed
from roster_service.feeds.private_files import make_private
from roster_service.feeds.runs import read_load, start_load
from roster_service.feeds.scripts import Background, Bounds, end_script, read_background, start_script

FOLDER, FACTS, EXPORT = "previews", "preview.json", "export"
# The mark of a preview whose load has begun.
LOADED = "loaded"
# A preview that nobody has loaded is deleted after this time, by the nightly sync, the next one or the start of a
# console.
KEPT_SECONDS = 7 * 86_400
# The bounds of previews, so that an operator fills neither the disk nor the memory of the machine: the time and the
# memory of a dry run, of which each operator has one at a time, and how many previews are kept, the newest ones.
BOUNDS = Bounds(seconds=3600, memory_bytes=2 * 2**30)
MOST_KEPT = 20
# A file name of an export: nothing that another system takes for a folder, a hidden file or an option.
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,100}\.csv", re.IGNORECASE)
# The most signs of the name of an upload that a run shows.
MOST_NAME = 100
# What a zip begins with; the loader checks its contents.
ZIP = b"PK"


@dataclass(frozen=True)
class Upload:
    """A file that an operator sent. `name`: as the browser gave it, so it may be any text."""

    name: str
    stream: IO[bytes]


@dataclass(frozen=True)
class ExportPreview:
    """An export that is proposed. `feed`, `format`: for which it is; `is_new`: whether loading it adds the feed;
    `path`: of the export; `is_upload`: whether it is in the folder of the preview; `source`: what to call it;
    `operator`: who proposes it, by e-mail."""

    id: str
    operator: str
    feed: str
    format: str
    is_new: bool
    path: str
    is_upload: bool
    source: str


@dataclass(frozen=True)
class OpenPreview:
    """A preview that nobody has loaded or discarded yet. `since`: when it was begun, ISO 8601."""

    preview: ExportPreview
    since: str


class UnderWayError(CommandError):
    """Another dry run of the operator is under way. `preview`: whose."""

    def __init__(self, preview: ExportPreview) -> None:
        super().__init__(f"your preview for the feed {preview.feed} is under way: wait for its end, or discard it")
        self.preview = preview


def preview_path(
    connection: sa.Connection, actor: Actor, home: Path, feed: str, format_: str, path: str
) -> ExportPreview:
    """Starts the dry run of the export at an absolute path. Raises CommandError for a name, format or path that cannot
    be used, and UnderWayError while another dry run of the operator is under way."""
    if not Path(path).is_absolute():
        raise CommandError(f"{path} is no absolute path on the machine of the service, as /exports/springfield")
    is_new = _require_feed(connection, feed, format_)
    with _make_folder(home, actor) as folder:
        made = ExportPreview(folder.name, actor.name, feed, format_, is_new, path, is_upload=False, source=path)
        return _start(connection, home, folder, made)


def preview_upload(
    connection: sa.Connection, actor: Actor, home: Path, feed: str, format_: str, uploads: Sequence[Upload]
) -> ExportPreview:
    """Stores an uploaded export, a zip or CSV files, and starts its dry run. Raises CommandError for a name, format or
    files that cannot be used, and UnderWayError while another dry run of the operator is under way."""
    is_new = _require_feed(connection, feed, format_)
    with _make_folder(home, actor) as folder:
        path = str(_store(folder / EXPORT, uploads).resolve())
        named = _name_file(uploads[0].name) if len(uploads) == 1 else f"{len(uploads)} CSV files"
        source = f"{named}, uploaded"
        made = ExportPreview(folder.name, actor.name, feed, format_, is_new, path, is_upload=True, source=source)
        return _start(connection, home, folder, made)


def preview_again(
    connection: sa.Connection, actor: Actor, home: Path, preview: ExportPreview, feed: str, format_: str
) -> ExportPreview:
    """Starts a dry run of the export of a preview as one of another format, for a feed, and deletes the preview. Raises
    CommandError as the others; then the preview stays."""
    is_new = _require_feed(connection, feed, format_)
    with _make_folder(home, actor) as folder:
        path = Path(preview.path)
        if preview.is_upload:
            path = folder / path.name
            # Links: the files stay where they are if the dry run cannot begin.
            if Path(preview.path).is_dir():
                shutil.copytree(preview.path, path, copy_function=os.link)
            else:
                os.link(preview.path, path)
            path = path.resolve()
        made = replace(preview, id=folder.name, operator=actor.name, path=str(path))
        made = replace(made, feed=feed, format=format_, is_new=is_new)
        _start(connection, home, folder, made)
    drop_preview(home, preview)
    return made


def find_preview(home: Path, preview_id: str) -> ExportPreview:
    """Returns a preview. Raises CommandError if there is none, or no more."""
    if preview_id.isascii() and preview_id.isalnum():
        with contextlib.suppress(OSError, ValueError, TypeError):
            return ExportPreview(**json.loads((home / FOLDER / preview_id / FACTS).read_text(encoding="utf-8")))
    raise CommandError("there is no such preview; it was loaded or discarded, or is too old")


def list_previews(home: Path) -> list[OpenPreview]:
    """Lists the previews that nobody has loaded or discarded yet, the newest first."""
    found = []
    for folder in (home / FOLDER).glob("*"):
        # One that is discarded meanwhile is gone.
        with contextlib.suppress(OSError, CommandError):
            since = datetime.fromtimestamp((folder / FACTS).stat().st_mtime, UTC)
            preview = find_preview(home, folder.name)
            if not _is_being_loaded(home, preview):
                found.append(OpenPreview(preview, since.isoformat(timespec="seconds")))
    return sorted(found, key=lambda it: it.since, reverse=True)


def read_dry_run(home: Path, preview: ExportPreview) -> Background:
    """Returns the dry run of a preview."""
    found = read_background(home / FOLDER / preview.id)
    if found is None:
        return Background(False, None, "its dry run was not started")
    if found.is_running or found.report is not None:
        return found
    bounds = f"after {BOUNDS.seconds // 60} minutes and with {BOUNDS.memory_bytes / 2**30:g} GB of memory"
    return replace(found, text=f"the dry run ended without a report; it is ended {bounds}. {found.text[-500:]}".strip())


def _is_being_loaded(home: Path, preview: ExportPreview) -> bool:
    """Whether a load of a preview is under way. One that has changed nothing, because another command was under way or
    the export is refused, can begin again."""
    load = read_load(home, preview.feed) if _was_loaded(home, preview) else None
    return load is not None and load.is_running


def _was_loaded(home: Path, preview: ExportPreview) -> bool:
    """Whether a load of a preview has begun, however it ended."""
    return (home / FOLDER / preview.id / LOADED).exists()


def add_previewed_feed(connection: sa.Connection, actor: Actor, home: Path, preview: ExportPreview) -> None:
    """Adds the feed of a preview if it is new, with the path of the export unless that was uploaded. The caller commits
    before `load_preview`, because the loader reads the feed. Raises CommandError for a feed that was removed, changed
    or, by another one than this preview, added meanwhile."""
    if _require_feed(connection, preview.feed, preview.format):
        path = None if preview.is_upload else Path(preview.path)
        add_feed(connection, actor, preview.feed, preview.format, path)
    elif preview.is_new and not _was_loaded(home, preview):
        raise CommandError(f"there is a feed {preview.feed} already")


def load_preview(connection: sa.Connection, actor: Actor, home: Path, preview: ExportPreview) -> None:
    """Starts the load of the export of a preview, which is deleted after that. Raises CommandError if a load of the
    feed was started and has not ended."""
    folder = home / FOLDER / preview.id
    (folder / LOADED).touch(mode=0o600)
    # Its time begins anew: the nightly sync must not delete what is being loaded.
    os.utime(folder)
    given = (preview.feed, preview.format, preview.path)
    start_load(connection, actor, *given, home, is_complete=True, drop=folder, source=preview.source)


def drop_preview(home: Path, preview: ExportPreview) -> None:
    """Ends the dry run of a preview, and deletes it, and the export if it was uploaded. Raises CommandError while its
    load is under way, which reads that."""
    if _is_being_loaded(home, preview):
        raise CommandError("the export of this preview is being loaded already")
    _drop(home / FOLDER / preview.id)


def drop_old_previews(home: Path) -> None:
    """Deletes the previews that nobody has loaded in time. The dry run of none of them is under way."""
    for folder in (home / FOLDER).glob("*"):
        # One whose load has just ended is gone.
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime < time.time() - KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def drop_previews_with(home: Path, has_person: Callable[[Path], bool], names_person: Callable[[str], bool]) -> None:
    """Deletes the previews that have a person, in their facts and reports or in the exports that were uploaded, and
    those that are being made: nobody knows yet whom they have. `has_person`: tells it of a folder by the person's id;
    `names_person`: of a text, because a report names the person of an enrollment."""
    for folder in (home / FOLDER).glob("*"):
        made = read_background(folder)
        # The report has escapes for some letters.
        said = "" if made is None else f"{made.text} {json.dumps(made.report, ensure_ascii=False)}"
        with contextlib.suppress(CommandError):
            said += f" {find_preview(home, folder.name).source}"
        if (made is not None and made.is_running) or has_person(folder) or names_person(said):
            _drop(folder)


def _drop(folder: Path) -> None:
    end_script(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _require_feed(connection: sa.Connection, feed: str, format_: str) -> bool:
    """Returns whether a feed is new. Raises CommandError for a name or a format that cannot be used."""
    require_feed_name(feed)
    if format_ not in FORMATS:
        raise CommandError(f"choose a format: {', '.join(FORMATS)}")
    known = read_added_feed(connection, feed)
    if known is None:
        return True
    if known["state"] == FeedState.REMOVED:
        raise CommandError(f"the feed {feed} was removed; its page takes it back")
    if known["format"] != format_:
        raise CommandError(f"the feed {feed} takes {known['format']}, not {format_}")
    return False


def _name_file(name: str) -> str:
    """The name of a file as a browser gave it, without signs that are not printable."""
    return "".join(sign for sign in name if sign.isprintable())[:MOST_NAME] or "a file"


@contextlib.contextmanager
def _make_folder(home: Path, actor: Actor) -> Iterator[Path]:
    """Makes the folder of a preview, and deletes it if the block raises. Deletes those that nobody has loaded. One
    preview is begun at a time. Raises UnderWayError if a dry run of the operator is under way."""
    parent = home / FOLDER
    folder = parent / secrets.token_hex(16)
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(parent):
            _make_room(home, actor)
            folder.mkdir(mode=0o700)
            yield folder
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CommandError(f"the export cannot be stored: {error.strerror}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keeps other processes out of the block."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_room(home: Path, actor: Actor) -> None:
    """Deletes the previews that nobody has loaded in time, and the oldest ones beyond those that are kept."""
    drop_old_previews(home)
    folders = sorted((home / FOLDER).glob("*"), key=lambda it: -it.stat().st_mtime)
    for number, path in enumerate(folders):
        found = read_background(path)
        if found is not None and found.is_running:
            other = find_preview(home, path.name)
            if other.operator == actor.name:
                raise UnderWayError(other)
        elif number >= MOST_KEPT - 1:
            shutil.rmtree(path, ignore_errors=True)


def _start(connection: sa.Connection, home: Path, folder: Path, preview: ExportPreview) -> ExportPreview:
    _write(folder / FACTS, io.BytesIO(json.dumps(asdict(preview)).encode()))
    options = ("--feed", preview.feed, "--dry-run", "--json", "--", preview.path)
    start_script(connection, home, folder, f"load_{preview.format}", *options, bounds=BOUNDS)
    return preview


def _store(place: Path, uploads: Sequence[Upload]) -> Path:
    """Stores the files, and returns the path of the export. The names of a zip are not used: the loader reads it in
    place, and refuses paths that lead out of it."""
    named: Mapping[str, Upload] = {upload.name.lower(): upload for upload in uploads}
    if not uploads:
        raise CommandError("choose a zip, or the CSV files of the export")
    if len(uploads) == 1 and not uploads[0].name.lower().endswith(".csv"):
        path = place.with_suffix(".zip")
        if uploads[0].stream.read(len(ZIP)) != ZIP:
            raise CommandError("the file is neither a zip nor a CSV file")
        uploads[0].stream.seek(0)
        _write(path, uploads[0].stream)
        return path
    if len(named) < len(uploads):
        raise CommandError("two of the files have the same name")
    place.mkdir(mode=0o700)
    for upload in uploads:
        if FILE_NAME.fullmatch(upload.name) is None:
            raise CommandError(
                f"{upload.name[:80]!r} is no name of a CSV file; choose one zip, or files such as orgs.csv"
            )
        _write(place / upload.name, upload.stream)
    return place


def _write(path: Path, stream: IO[bytes]) -> None:
    with make_private(path) as file:
        shutil.copyfileobj(stream, file, 2**20)
