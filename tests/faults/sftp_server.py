"""An OpenSSH server of its own on 127.0.0.1, with one key for its user."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.alone_check import find_free_port

PROGRAM = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True)
class SftpServer:
    """Where it listens, what it is, and the private key that it admits. `folder`: in which files arrive."""

    port: int
    host_key: str
    private_key: str
    username: str
    folder: Path


@contextmanager
def open_sftp_server(home: Path, command: str = "internal-sftp") -> Iterator[SftpServer]:
    """Runs the server, with its files in `home`. `command`: what it runs for whoever logs in."""
    folder = home / "in"
    folder.mkdir(parents=True)
    keys = {}
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
        keys[name] = (home / f"{name}.pub").read_text()
    (home / "authorized").write_text(keys["user"])
    port = find_free_port()
    Path("/run/sshd").mkdir(exist_ok=True, parents=True) if getpass.getuser() == "root" else None
    settings = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": home / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": home / "authorized", "StrictModes": "no", "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password", "Subsystem": "sftp internal-sftp", "ForceCommand": command,
    }  # fmt: skip
    (home / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    with (home / "log").open("wb") as log:
        server = subprocess.Popen([str(PROGRAM), "-D", "-e", "-f", str(home / "config")], stderr=log)
        try:
            _wait(port)
            user = (home / "user").read_text()
            yield SftpServer(port, " ".join(keys["host"].split()[:2]), user, getpass.getuser(), folder)
        finally:
            server.terminate()
            server.wait()


def _wait(port: int) -> None:
    for _ in range(100):
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError
