"""The copies of exports that wait for a decision, an undo or a load: who can read them, and when they go."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.app import create_console
from roster_service.db.tables import feeds
from roster_service.feeds import export_previews
from roster_service.feeds.export_previews import FOLDER as PREVIEWS
from roster_service.feeds.export_previews import KEPT_SECONDS, ExportPreview, load_preview
from roster_service.feeds.held_runs import FOLDER as HELD
from roster_service.feeds.held_runs import is_there, keep_export
from roster_service.feeds.sync_lock import FEED_CLASS
from roster_service.feeds.undo import FOLDER as COPIES
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import begin_run
from sync_scripts.retention import delete_expired
from tests.actors import TESTER
from tests.contract.conftest import SECRET_KEY
from tests.postgres.loaded import EXPORTS
from tests.sync.conftest import SPRINGFIELD


def test_a_copy_of_an_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    export = tmp_path / "export"
    (export / "more").mkdir(parents=True)
    files = [export / "users.csv", export / "more/orgs.csv"]
    for file in files:
        file.write_text("sourcedId\n")
        file.chmod(0o644)
        os.utime(file, (1, 2))
    zipped = tmp_path / "export.zip"
    zipped.write_bytes(b"PK")
    home = tmp_path / "home"
    for number, path in enumerate((export, zipped)):
        kept = keep_export(path, home, number)
        found = [kept.parent, kept, *kept.rglob("*")]
        assert {it.name for it in found[1:]} == {path.name, *(it.name for it in path.rglob("*"))}
        for each in found:
            assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600), each
    copied = home / "held/0/export/users.csv"
    assert (copied.read_text(), copied.stat().st_mtime) == ("sourcedId\n", 2)


def test_a_copy_takes_the_place_of_what_a_run_with_its_number_has_left(tmp_path: Path) -> None:
    """A backup that was restored gives the numbers of later runs again."""
    for text in ("before", "after"):
        export = tmp_path / text / "export.zip"
        export.parent.mkdir()
        export.write_text(text)
        assert keep_export(export, tmp_path, 7).read_text() == text


def test_a_copy_that_cannot_be_looked_at_is_not_there(tmp_path: Path) -> None:
    assert (is_there(tmp_path), is_there(tmp_path / ("x" * 300))) == (True, False)


def start_console(engine: sa.Engine, settings: Settings) -> None:
    """Starts a console, and ends it."""
    app = create_console(settings, engine.url.render_as_string(hide_password=False))
    for extension in app.extensions.values():
        if isinstance(extension, sa.Engine):
            extension.dispose()


@pytest.mark.parametrize("clean", [delete_expired, start_console])
def test_the_nightly_sync_and_a_console_delete_old_exports_in_their_data_folders(
    engine: sa.Engine, tmp_path: Path, clean: Callable[[sa.Engine, Settings], object]
) -> None:
    settings = Settings(home=tmp_path, secret_key=SECRET_KEY)
    load(engine, "feed", EXPORTS / SPRINGFIELD, options=Options(settings, keeps_copy=True))
    [known] = (tmp_path / COPIES).iterdir()
    for folder in (COPIES, HELD):
        (tmp_path / folder / "999").mkdir(parents=True)
    for name, age in (("old", KEPT_SECONDS + 60), ("new", KEPT_SECONDS - 60)):
        folder = tmp_path / PREVIEWS / name
        folder.mkdir(parents=True)
        (folder / "export.zip").write_bytes(b"PK")
        os.utime(folder, (time.time() - age,) * 2)
    clean(engine, settings)
    assert [path.name for path in (tmp_path / PREVIEWS).iterdir()] == ["new"]
    assert [*(tmp_path / COPIES).iterdir(), *(tmp_path / HELD).iterdir()] == [known]


@pytest.mark.parametrize("clean", [delete_expired, start_console])
def test_the_copy_of_a_run_that_is_under_way_stays(
    engine: sa.Engine, tmp_path: Path, clean: Callable[[sa.Engine, Settings], object]
) -> None:
    """Its row names the copy only when it is done. That of a run that was killed goes."""
    settings = Settings(home=tmp_path, secret_key=SECRET_KEY)
    load(engine, "feed", EXPORTS / SPRINGFIELD, options=Options(settings))
    with engine.begin() as connection:
        feed = connection.execute(sa.select(feeds.c.id)).scalar_one()
        run = begin_run(connection, feed, "oneroster", "x.zip", TESTER)
    copy = tmp_path / COPIES / str(run)
    copy.mkdir(parents=True)
    with engine.connect() as other:
        # The lock that the process of a run has.
        with other.begin():
            taken = sa.select(sa.func.pg_try_advisory_lock(FEED_CLASS, sa.func.hashtext("feed")))
            assert other.scalar(taken)
        clean(engine, settings)
        assert copy.exists()
        other.invalidate()
    clean(engine, settings)
    assert not copy.exists()


def test_a_preview_that_is_being_loaded_is_not_old(
    engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / PREVIEWS / "old"
    folder.mkdir(parents=True)
    os.utime(folder, (time.time() - KEPT_SECONDS - 60,) * 2)
    monkeypatch.setattr(export_previews, "start_load", lambda *_given, **_named: None)
    facts = ExportPreview("old", "ann", "feed", "oneroster", True, str(folder / "export.zip"), True, "export.zip")
    with engine.connect() as connection:
        load_preview(connection, TESTER, tmp_path, facts)
    export_previews.drop_old_previews(tmp_path)
    assert folder.exists()
