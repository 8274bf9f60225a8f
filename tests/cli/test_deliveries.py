"""`roster delivery` and `roster export`."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.contract.conftest import add_vendor
from tests.deliveries.checker import check
from tests.deliveries.conftest import read_zip
from tests.deliveries.dropbox import DropBox, use_drop_box
from tests.deliveries.test_sending import HOST_KEY
from tests.postgres.loaded import EXPORTS, load_first

from .conftest import Roster

EMAIL = "elementary@vendors.example"
PLACE = ("--host", "sftp.example.org", "--user", "us", "--host-key", HOST_KEY)


@pytest.fixture
def granted(engine: sa.Engine) -> str:
    """A vendor who sees a school."""
    load_first(engine, "springfield", EXPORTS / "springfield-1.1")
    with engine.begin() as connection:
        client_id, _ = add_vendor(connection, "elementary", [("spr-district", ("spr-elementary",))])
    return client_id


def test_a_preview_is_a_private_file_and_in_the_change_log(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    done = roster("delivery", "preview", EMAIL, "--preset", "oneroster-1.2", "--out", str(out), "--reason", "a test")
    assert done.exit_code == 0, done.output
    assert "users.csv: 7 rows" in done.stdout
    assert out.stat().st_mode & 0o777 == 0o600
    assert check(out.read_bytes()) == []
    row = json.loads(roster("changes", "--json").stdout)[-1]
    assert (row["verb"], row["subject"], row["vendor"]) == ("delivery preview", "oneroster-1.2", EMAIL)
    assert json.loads(roster("audit", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("delivery", "preview", "nobody@vendors.example", "--preset", "apple"), "there is no vendor"),
        (("delivery", "preview", EMAIL, "--preset", "apple", "--client", "client-x"), "no such client"),
        (("export", "pupils", "--as", EMAIL), "there is no collection pupils; there are orgs,"),
    ],
)
def test_a_refusal_leaves_no_file(
    granted: str, roster: Roster, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    done = roster(*arguments, "--out", str(folder / "out"))
    assert done.exit_code == 1
    assert words in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("delivery", "preview", EMAIL, "--preset", "apple"), ("export", "users", "--as", EMAIL)]
)
@pytest.mark.parametrize("name", ["nowhere/out", "x" * 300])
def test_a_file_that_cannot_be_written_is_in_no_row_of_the_change_log(
    granted: str, roster: Roster, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    before = roster("changes", "--json").stdout
    done = roster(*command, "--out", str(tmp_path / name))
    assert (done.exit_code, "cannot be written" in done.stderr, done.stderr.count("\n")) == (1, True, 1)
    assert roster("changes", "--json").stdout == before


@pytest.mark.parametrize(
    "command", [("delivery", "preview", EMAIL, "--preset", "apple"), ("export", "users", "--as", EMAIL)]
)
@pytest.mark.parametrize("is_link", [False, True], ids=["a pipe", "a link to a pipe"])
def test_a_file_replaces_no_device_or_pipe(
    granted: str, roster: Roster, tmp_path: Path, command: tuple[str, ...], is_link: bool
) -> None:
    """Root may replace /dev/null."""
    out = made = tmp_path / "made"
    os.mkfifo(made)
    if is_link:
        out = tmp_path / "link"
        out.symlink_to(made)
    done = roster(*command, "--out", str(out))
    assert (done.exit_code, f"{out} is no file" in done.stderr) == (1, True)
    assert (made.is_fifo(), out.is_symlink()) == (True, is_link)


def test_a_file_replaces_the_one_to_which_a_link_leads(granted: str, roster: Roster, tmp_path: Path) -> None:
    out, link = tmp_path / "out.zip", tmp_path / "link"
    out.write_text("of yesterday")
    link.symlink_to(out)
    assert roster("delivery", "preview", EMAIL, "--preset", "apple", "--out", str(link)).exit_code == 0
    assert link.is_symlink()
    assert (zipfile.is_zipfile(out), out.stat().st_mode & 0o777) == (True, 0o600)


def test_an_export_has_the_json_of_the_interface_by_line(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "users.ndjson"
    done = roster("export", "students", "--as", EMAIL, "--version", "v1p1", "--out", str(out), "--json")
    assert done.exit_code == 0, done.output
    assert out.stat().st_mode & 0o777 == 0o600
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert json.loads(done.stdout)["records"] == len(records) > 0
    assert {it["role"] for it in records} == {"student"}
    assert {it["orgs"][0]["href"] for it in records} == {"http://127.0.0.1:8000/ims/oneroster/v1p1/orgs/spr-elementary"}


def test_a_zip_opens_with_any_program(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    roster("delivery", "preview", EMAIL, "--preset", "st-math", "--out", str(out))
    with zipfile.ZipFile(io.BytesIO(out.read_bytes())) as packed:
        assert packed.testzip() is None


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> DropBox:
    """The receiver of every delivery."""
    return use_drop_box(monkeypatch)


def test_a_delivery_is_added_approved_sent_shown_and_removed(granted: str, roster: Roster, box: DropBox) -> None:
    added = ask(roster, "add", "math", EMAIL, "--preset", "st-math", *PLACE, "--key-file", __file__)
    assert added["state"] == "waiting"
    (listed,) = ask(roster, "list")
    assert (listed["name"], listed["vendor"], listed["contact"], listed["hour"]) == ("math", EMAIL, EMAIL, None)
    refused = roster("delivery", "approve", "math", "0" * 64)
    assert (refused.exit_code, "with this digest waits" in refused.stderr) == (1, True)
    sent = ask(roster, "approve", "math", added["digest"])
    assert (sent["state"], sent["file_name"]) == ("sent", "OneRoster.zip")
    assert check(box.files["OneRoster.zip"]) == []
    assert ask(roster, "send", "math")["state"] == "sent"
    shown = ask(roster, "show", "math")
    assert [it["state"] for it in shown["runs"]] == ["sent", "sent", "waiting"]
    assert "secret" not in json.dumps(shown)
    (_first, _second) = json.loads(roster("audit", "--json").stdout)
    assert "names" in _first["parts"]
    ask(roster, "remove", "math", "--yes")
    assert ask(roster, "list") == []


def test_a_delivery_is_changed_stopped_and_started(granted: str, roster: Roster, box: DropBox) -> None:
    added = ask(roster, "add", "math", EMAIL, "--preset", "st-math", *PLACE, "--key-file", __file__)
    ask(roster, "approve", "math", added["digest"])
    later = ask(roster, "set", "math", "--hour", "5", "--in-place", "--contact", "data@receiver.example")
    assert (later["hour"], later["in_place"], later["contact"], later["host"], later["state"]) == (
        *(5, True, "data@receiver.example", "sftp.example.org", "sent"),
    )
    back = ask(roster, "set", "math", "--hour", "sync", "--rename", "--contact", "")
    assert (back["hour"], back["in_place"], back["contact"]) == (None, False, EMAIL)
    assert ask(roster, "stop", "math")["state"] == "stopped"
    refused = roster("delivery", "send", "math")
    assert (refused.exit_code, "the delivery math is stopped" in refused.stderr) == (1, True)
    assert ask(roster, "start", "math")["state"] == "sent"
    ask(roster, "set", "math", "--host", "sftp.elsewhere.example")
    assert ask(roster, "send", "math")["state"] == "waiting"


def test_an_erasure_says_who_was_sent_the_person_and_to_whom_to_write(
    granted: str, roster: Roster, box: DropBox
) -> None:
    place = (*PLACE, "--key-file", __file__, "--contact", "data@receiver.example")
    added = ask(roster, "add", "math", EMAIL, "--preset", "st-math", *place)
    ask(roster, "approve", "math", added["digest"])
    erased = roster("person", "erase", "spr-student-1", "--yes", "--json")
    (recipient,) = json.loads(erased.stdout)["recipients"]
    assert (recipient["vendor"], recipient["contacts"]) == (EMAIL, ["data@receiver.example"])
    # Of another school.
    other = roster("person", "hide", "spr-student-3", "--yes", "--json")
    assert json.loads(other.stdout)["recipients"] == []
    assert "spr-student-1" in {row["sourcedId"] for row in read_zip(box.files["OneRoster.zip"])["users"]}
    assert ask(roster, "send", "math")["state"] == "sent"
    assert "spr-student-1" not in {row["sourcedId"] for row in read_zip(box.files["OneRoster.zip"])["users"]}


def test_a_delivery_is_shown_in_words(granted: str, roster: Roster, box: DropBox) -> None:
    """No name of a column or of a member."""
    ask(roster, "add", "math", EMAIL, "--preset", "st-math", *PLACE, "--key-file", __file__)
    shown, listed = roster("delivery", "show", "math").stdout, roster("delivery", "list").stdout
    assert re.findall(r"[a-z]+_[a-z]+|True|False|None", shown + listed) == []
    assert "us@sftp.example.org, port 22, with a private key" in shown
    assert "after the nightly sync, renamed once it is whole" in shown
    assert "waiting: The first file waits for an operator to look at it and approve it" in shown
    assert "after the nightly sync" in listed


def test_a_second_delivery_of_a_name_and_a_bad_host_key_are_refused(granted: str, roster: Roster, box: DropBox) -> None:
    arguments = ("delivery", "add", "math", EMAIL, "--preset", "st-math", "--key-file", __file__)
    bad = roster(*arguments, "--host", "h", "--user", "u", "--host-key", "ssh-rsa")
    assert "as `ssh-keyscan HOST` prints them" in bad.stderr
    assert roster(*arguments, *PLACE).exit_code == 0
    assert "there is a delivery math already" in roster(*arguments, *PLACE).stderr


def ask(roster: Roster, command: str, *arguments: str) -> Any:
    """What a command of `roster delivery` prints as JSON."""
    done = roster("delivery", command, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("given", "words"),
    [(("--host", "sftp..example.org"), "is no name of a server"), (("--key-file", "key"), "is no private key")],
)
def test_what_is_no_server_or_no_key_is_refused(
    granted: str, roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    refused = roster("delivery", "add", "nightly", EMAIL, "--preset", "oneroster-1.2", *PLACE, *given, typed="secret")
    assert (refused.exit_code, words in refused.stderr) == (1, True)


def test_who_revokes_a_right_learns_to_whom_to_write(granted: str, roster: Roster, box: DropBox) -> None:
    place = (*PLACE, "--key-file", __file__, "--contact", "data@receiver.example")
    revoke = ("vendor", "revoke", EMAIL, "--flag", "contacts")
    assert json.loads(roster(*revoke, "--json").stdout)["recipient"] is None
    added = ask(roster, "add", "math", EMAIL, "--preset", "st-math", *place)
    assert ask(roster, "approve", "math", added["digest"])["state"] == "sent"
    assert json.loads(roster(*revoke, "--json").stdout)["recipient"]["contacts"] == ["data@receiver.example"]
    said = roster(*revoke).stdout
    assert f"{EMAIL} was sent files, last at " in said
    assert said.endswith(": write to data@receiver.example\n")
