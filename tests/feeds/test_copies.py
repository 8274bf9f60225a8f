"""The copies of exports that wait for a decision or an undo."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from roster_service.feeds.held_runs import keep_export


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
