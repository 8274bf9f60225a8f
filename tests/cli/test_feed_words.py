"""`roster feed set --words` and `roster feed check`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Roster
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import cell

pytestmark = pytest.mark.usefixtures("scripts_in_process")
Answer = Callable[..., Any]
WORDS = "file,column,word,means\nusers,role,pupil,student\n"


@pytest.fixture
def export(answer: Answer, tmp_path: Path) -> Path:
    """The export of a feed, with a word of its SIS."""
    folder = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / SPRINGFIELD))
    cell("users", 2, "role", "Pupil")(folder)
    answer("feed", "add", "springfield", "--format", "oneroster", "--path", str(folder))
    return folder


@pytest.mark.usefixtures("export")
def test_a_mapping_is_checked_on_the_export_of_the_feed(answer: Answer, tmp_path: Path) -> None:
    [cause] = answer("feed", "check", "springfield")["causes"]
    assert (cause["file"], cause["column"], cause["rows"]) == ("users.csv", "role", 1)
    words = tmp_path / "words.csv"
    words.write_text(WORDS)
    assert answer("feed", "set", "springfield", "--words", str(words))["words"] is True
    checked = answer("feed", "check", "springfield")
    assert checked["causes"] == []
    assert any("users.csv, column role: in 1 row (line 2), a word of the mapping" in it for it in checked["notices"])
    assert answer("feed", "set", "springfield", "--words", "none")["words"] is False


@pytest.mark.usefixtures("export")
def test_a_bad_mapping_is_named_with_its_line(roster: Roster, answer: Answer, tmp_path: Path) -> None:
    words = tmp_path / "words.csv"
    words.write_text(WORDS + "users,role,tutor,mentor\n")
    answer("feed", "set", "springfield", "--words", str(words))
    done = roster("feed", "check", "springfield")
    assert done.exit_code == 1
    assert "the mapping of words, line 3, column means: must be one of" in done.stderr


def test_what_cannot_be_checked_or_read_is_refused(roster: Roster, answer: Answer, tmp_path: Path) -> None:
    answer("feed", "add", "springfield", "--format", "oneroster")
    assert "the feed springfield has no path" in roster("feed", "check", "springfield").stderr
    assert "cannot be read" in roster("feed", "set", "springfield", "--words", str(tmp_path / "none.csv")).stderr
