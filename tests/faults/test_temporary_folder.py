"""A temporary folder without room: the run fails and says so, and nothing is changed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from sync_scripts.exits import Exit
from sync_scripts.loading import load
from tests.sync.bending import rows_of

from .conftest import read_roster

# What is known of 9,000 lines takes more than 65,536 bytes.
LINES, ROOM = 9_000, 65_536


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    allowed = os.geteuid() == 0 and shutil.which("mount") is not None
    if not allowed or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk takes a mount, which is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def tiny_files(tmp_path: Path) -> Path:
    """A folder, for a process whose files may have 64 KiB."""
    return tmp_path


def limit_files() -> None:
    """Keeps the files of this process small."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


# The folder, what is done to the process, and the words of the operating system.
FULL: dict[str, tuple[str, Callable[[], None] | None, str]] = {
    "disk": ("tiny_disk", None, "No space left on device"),
    "limit": ("tiny_files", limit_files, "File too large"),
}


@pytest.mark.parametrize("night", ["first", "next"])
@pytest.mark.parametrize(("folder", "limit", "words"), FULL.values(), ids=FULL)
def test_a_full_temporary_folder_fails_the_run(
    engine: Engine,
    nights: tuple[Path, Path],
    request: pytest.FixtureRequest,
    night: str,
    folder: str,
    limit: Callable[[], None] | None,
    words: str,
) -> None:
    def add_users(rows: list[list[str]]) -> None:
        model = dict(zip(rows[0], rows[1], strict=True))
        rows += [list({**model, "sourcedId": f"more-{n}", "agentSourcedIds": ""}.values()) for n in range(LINES)]

    for path in nights:
        rows_of("users", add_users)(path)
    if night == "next":
        load(engine, "feed", nights[0])
    before = read_roster(engine)
    room = request.getfixturevalue(folder)
    done = subprocess.run(
        [sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "feed", "--json", str(nights[1])],
        env={**os.environ, "ROSTER_DATABASE_URL": engine.url.render_as_string(hide_password=False), "TMPDIR": room},
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )
    assert done.returncode == Exit.FAILED, done.stderr
    assert json.loads(done.stdout) == {
        "outcome": "failed",
        "message": f"the temporary folder {room} cannot be written ({words}); make room, or name another in TMPDIR",
    }
    assert read_roster(engine) == before
