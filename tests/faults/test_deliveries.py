"""Deliveries to a real OpenSSH server, whose sender is killed at each step."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db.engine import make_engine
from roster_service.deliveries.accounts import approve_file, change_delivery, find_delivery
from roster_service.deliveries.sender import Sender
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.contract.conftest import SECRET_KEY, add_vendor
from tests.deliveries.checker import check
from tests.deliveries.conftest import load_export
from tests.deliveries.test_sending import NAME, add

from .killed_delivery import PLACED, STEPS, UPLOADED
from .sftp_server import PROGRAM, SftpServer, open_sftp_server

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "1"))
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="there is no sshd; Debian has it in openssh-server"),
    pytest.mark.skipif(importlib.util.find_spec("paramiko") is None, reason="paramiko is not installed"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    """The server."""
    with open_sftp_server(tmp_path_factory.mktemp("sftp")) as made:
        yield made


@pytest.fixture
def sender(make_database: Callable[[], str], server: SftpServer, tmp_path: Path) -> Iterator[Sender]:
    """A delivery to it whose first file is approved."""
    for file in server.folder.iterdir():
        file.unlink()
    engine = make_engine(make_database())
    load_export(engine, "springfield-1.1")
    settings = Settings(secret_key=SECRET_KEY, home=tmp_path, delivery_private_hosts="127.0.0.1")
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        add_vendor(connection, "all", [("spr-district", ())])
    add(
        engine, settings, host="127.0.0.1", port=server.port, username=server.username, folder=str(server.folder),
        host_key=server.host_key, secret=server.private_key, has_private_key=True,
    )  # fmt: skip
    made = Sender(engine, settings)
    made.deliver(NAME)
    approve(engine)
    yield made
    engine.dispose()


def approve(engine: sa.Engine) -> None:
    """Approves the latest file."""
    with engine.begin() as connection:
        approve_file(connection, TESTER, NAME, str(find_delivery(connection, NAME).digest))


def list_whole(server: SftpServer, digest: str | None) -> list[Path]:
    """The files that have their names, each held to the digest."""
    found = sorted(server.folder.glob("*.zip"))
    assert all(hashlib.sha256(it.read_bytes()).hexdigest() == digest for it in found)
    return found


def test_a_file_arrives_whole(sender: Sender, server: SftpServer) -> None:
    ended = sender.deliver(NAME)
    (file,) = list_whole(server, ended.digest)
    assert (file.name, ended.state) == (ended.file_name, "sent")
    assert check(file.read_bytes()) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_sender_leaves_the_name_absent_or_whole_and_the_next_one_ends_it(
    sender: Sender, server: SftpServer, step: str
) -> None:
    url = sender.owner.url.render_as_string(hide_password=False)
    settings = {
        "ROSTER_DATABASE_URL": url,
        "ROSTER_SECRET_KEY": SECRET_KEY,
        "ROSTER_HOME": str(sender.settings.home),
        "ROSTER_DELIVERY_PRIVATE_HOSTS": "127.0.0.1",
    }
    environment = {name: it for name, it in os.environ.items() if not name.startswith("ROSTER_")} | settings
    for _ in range(ROUNDS):
        for file in server.folder.iterdir():
            file.unlink()
        command = [sys.executable, "-m", "tests.faults.killed_delivery", step]
        killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert killed.returncode == -9, killed.stderr
        with sender.owner.connect() as connection:
            digest = find_delivery(connection, NAME).digest
        # The receiver takes what has its name.
        taken = [it.name for it in list_whole(server, digest)]
        assert len(taken) == (step == PLACED)
        for file in server.folder.glob("*.zip"):
            file.unlink()
        ended = sender.deliver(NAME)
        if ended.state == "waiting":
            # The killed run has used the approval: it was sent.
            assert step == PLACED
            approve(sender.owner)
            ended = sender.deliver(NAME)
        assert ended.state == "sent"
        sent = [it.name for it in list_whole(server, ended.digest)]
        assert not set(sent) & set(taken)
        assert len({*sent, *taken}) == 1 + (step == PLACED)
        assert list(server.folder.glob("*.part")) == []
        with sender.owner.begin() as connection:
            connection.execute(sa.text("DELETE FROM delivery_runs WHERE id < (SELECT max(id) FROM delivery_runs)"))
            connection.execute(sa.text("UPDATE delivery_runs SET state = 'waiting'"))
        approve(sender.owner)


def test_a_revoke_after_the_upload_takes_the_file_back(sender: Sender, server: SftpServer) -> None:
    environment = {name: it for name, it in os.environ.items() if not name.startswith("ROSTER_")}
    environment |= {
        "ROSTER_DATABASE_URL": sender.owner.url.render_as_string(hide_password=False),
        "ROSTER_SECRET_KEY": SECRET_KEY,
        "ROSTER_DELIVERY_PRIVATE_HOSTS": "127.0.0.1",
    }
    command = [sys.executable, "-m", "tests.faults.killed_delivery", UPLOADED]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    assert [it.suffix for it in server.folder.iterdir()] == [".part"]
    with sender.owner.begin() as connection:
        connection.execute(sa.text("UPDATE vendors SET enabled = false, grant_version = grant_version + 1"))
    assert sender.deliver(NAME).state == "failed"
    assert list(server.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIv7Bm7pXkUq9W2fTgcXbqHqWb7gq7b2o3Ck0cJx1d5o"},
            "another host key",
        ),
        ({"host_key": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7"}, "failed"),
        ({"username": "nobody-here"}, "refuses the login"),
        ({"port": 1}, "Connection refused"),
        ({"folder": "/no/such/folder"}, "No such file"),
    ],
)
def test_a_server_that_is_not_as_agreed_gets_nothing(
    sender: Sender, server: SftpServer, change: dict[str, object], words: str
) -> None:
    with sender.owner.begin() as connection:
        for name, value in change.items():
            connection.execute(sa.text(f"UPDATE deliveries SET {name} = :value"), {"value": value})
    ended = sender.deliver(NAME)
    assert ended.state == "failed"
    assert words in str(ended.message)
    assert list(server.folder.iterdir()) == []


def test_a_server_that_speaks_no_sftp_gets_nothing(sender: Sender, tmp_path: Path) -> None:
    """As one whose account is not for SFTP, or says something at a login."""
    with open_sftp_server(tmp_path / "other", "echo This account is not available.") as other:
        place = {"port": other.port, "host_key": other.host_key, "secret": other.private_key, "has_private_key": True}
        with sender.owner.begin() as connection:
            change_delivery(connection, TESTER, NAME, place, sender.settings)
        ended = sender.deliver(NAME)
        assert ended.state == "waiting"
        approve(sender.owner)
        ended = sender.deliver(NAME)
    assert (ended.state, ended.message) == ("failed", "the delivery to 127.0.0.1 failed: SFTPError")


def test_a_private_address_must_be_allowed(sender: Sender, server: SftpServer) -> None:
    settings = replace(sender.settings, delivery_private_hosts=None)
    ended = replace(sender, settings=settings).deliver(NAME)
    assert "has a private address; ROSTER_DELIVERY_PRIVATE_HOSTS may name it" in str(ended.message)
    assert list(server.folder.iterdir()) == []
