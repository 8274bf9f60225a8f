"""An export that may be incomplete waits: by its age, or by its marker file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sync_scripts.reading import completeness
from sync_scripts.reading.completeness import CompletenessRule, IncompleteExportError, take_snapshot

NOW = 1_800_000_000.0
MINUTE = 60.0


@pytest.fixture(params=["folder", "zip"])
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An export that was written an hour ago."""
    path = tmp_path / "export"
    if request.param == "folder":
        path.mkdir()
        for name in ("orgs.csv", "users.csv"):
            touch(path / name, 60)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("orgs.csv", "x")
    touch(path, 60) if path.is_file() else None
    return path


def touch(path: Path, minutes_ago: float) -> None:
    """Writes to a file, as if it were some minutes ago."""
    if not path.exists():
        path.write_text("x")
    os.utime(path, times=(NOW, NOW - minutes_ago * MINUTE))


def last_file(export: Path) -> Path:
    """The file of an export that is written to."""
    return export if export.is_file() else export / "users.csv"


def read_wait(rule: CompletenessRule, export: Path) -> float:
    """The seconds that a rule waits for an export; 0 if it is settled."""
    try:
        rule.require_complete(export, NOW)
    except IncompleteExportError as error:
        return error.seconds
    return 0


@pytest.mark.parametrize(
    ("minutes", "ago", "wait"),
    [(5, 60, 0), (5, 5, 0), (5, 2, 180), (5, 0, 300), (0, 0, 0), (5, -1, 300), (5, -2_628_000, 300)],
)
def test_an_export_waits_until_nobody_wrote_to_it_for_some_minutes(
    export: Path, minutes: int, ago: float, wait: float
) -> None:
    touch(last_file(export), ago)
    assert read_wait(CompletenessRule(minutes), export) == wait


def test_a_date_in_the_future_is_called_so(export: Path) -> None:
    """The message of an export that somebody writes to would send its reader to the SIS, and not to a clock."""
    touch(last_file(export), -2_628_000)
    with pytest.raises(IncompleteExportError, match="export has a date that lies in the future"):
        CompletenessRule(5).require_complete(export, NOW)


def test_an_export_in_a_folder_of_the_folder_waits_too(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    touch(tmp_path / "top" / "users.csv", 2)
    touch(tmp_path / "top", 60)
    before = take_snapshot(tmp_path)
    assert read_wait(CompletenessRule(5), tmp_path) == 180
    touch(tmp_path / "top" / "users.csv", 1)
    touch(tmp_path / "top", 60)
    assert take_snapshot(tmp_path) != before


def add_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Emacs does: a link to nothing."""
    (folder / ".#users.csv").symlink_to("me@host.123:456")
    os.utime(folder / ".#users.csv", times=(NOW, NOW - 60 * MINUTE), follow_symlinks=False)


def add_vanishing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is gone after the folder was read."""
    listed = completeness.list_entries
    monkeypatch.setattr(completeness, "list_entries", lambda path: [folder / ".part", *listed(path)])


@pytest.mark.parametrize("add", [add_lock, add_vanishing])
def test_an_entry_without_a_file_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, add: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    """Neither from the age, nor from the marker, nor from what sees changes."""
    for name in ("orgs.csv", "users.csv", "DONE"):
        touch(tmp_path / name, 60)
    add(tmp_path, monkeypatch)
    before = take_snapshot(tmp_path)
    assert read_wait(CompletenessRule(5), tmp_path) == read_wait(CompletenessRule(5, "DONE"), tmp_path) == 0
    touch(tmp_path / "users.csv", 2)
    assert read_wait(CompletenessRule(5), tmp_path) == 180
    assert read_wait(CompletenessRule(5, "DONE"), tmp_path) == 300
    assert take_snapshot(tmp_path) != before


def test_an_entry_that_the_machine_does_not_give_makes_an_export_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "users.csv", 60)
    monkeypatch.setattr(completeness, "list_entries", lambda path: [path / ("x" * 300), path / "users.csv"])
    with pytest.raises(IncompleteExportError, match=r"a file of .* cannot be read: File name too long"):
        CompletenessRule(5).require_complete(tmp_path, NOW)


def beside(export: Path) -> Path:
    """A marker beside the export."""
    return export.parent / "DONE"


def inside(export: Path) -> Path:
    """A marker in the folder of the export."""
    return export / "DONE"


@pytest.mark.parametrize("place", [beside, inside])
@pytest.mark.parametrize(("ago", "complete"), [(1, True), (2, True), (3, False), (None, False)])
def test_a_marker_decides_whatever_the_age(
    export: Path, place: Callable[[Path], Path], ago: float | None, complete: bool
) -> None:
    if export.is_file() and place is inside:
        pytest.skip("a zip has no file beside its entries")
    touch(last_file(export), 2)
    if ago is not None:
        touch(place(export), ago)
    assert (read_wait(CompletenessRule(5, "DONE"), export) == 0) is complete


def test_a_missing_export_does_not_wait(tmp_path: Path) -> None:
    for rule in (CompletenessRule(5), CompletenessRule(5, "DONE")):
        rule.require_complete(tmp_path / "nowhere", NOW)


def test_snapshots_differ_if_a_file_changes_comes_or_goes(tmp_path: Path) -> None:
    export = tmp_path / "export"
    export.mkdir()
    seen = {take_snapshot(export)}
    touch(export / "a", 9)
    seen.add(take_snapshot(export))
    touch(export / "a", 8)
    seen.add(take_snapshot(export))
    (export / "a").write_text("xy")
    touch(export / "a", 8)
    seen.add(take_snapshot(export))
    touch(export / "b", 8)
    seen.add(take_snapshot(export))
    assert len(seen) == 5
    assert take_snapshot(export) == take_snapshot(export)
    assert take_snapshot(tmp_path / "nowhere") == frozenset()
