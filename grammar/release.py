"""Builds the distributions of the library, so that the same source gives the same bytes: `python release.py FOLDER`.

The times in them are SOURCE_DATE_EPOCH, or 1980. setuptools makes wheels so by itself; a source distribution also has
the times and the owner of the files that it was built from, which this script replaces.
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

LEAST_EPOCH = 315532800
"""The first second of 1980: a wheel is a zip file, which has no earlier times."""

PERMISSIONS = 0o644


def build(source: Path, target: Path, epoch: int) -> list[Path]:
    """Build both distributions.

    Args:
        source: The folder of the library.
        target: The folder to put them in.
        epoch: The time of everything in them, in seconds since 1970.

    Returns:
        The source distribution and the wheel.
    """
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(source)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    [archive], [wheel] = target.glob("*.tar.gz"), target.glob("*.whl")
    archive.write_bytes(normalize(archive.read_bytes(), epoch))
    return [archive, wheel]


def normalize(archive: bytes, epoch: int) -> bytes:
    """Return a tar.gz with the same files in the order of their names, of one time, and without an owner."""
    inner = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as old,
        tarfile.open(fileobj=inner, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            if member.isfile():
                made = tarfile.TarInfo(member.name)
                made.size, made.mode, made.mtime = member.size, PERMISSIONS, epoch
                new.addfile(made, old.extractfile(member))
    return gzip.compress(inner.getvalue(), mtime=epoch)


if __name__ == "__main__":
    built = build(Path(__file__).parent, Path(sys.argv[1]), int(os.environ.get("SOURCE_DATE_EPOCH", LEAST_EPOCH)))
    sys.stdout.writelines(f"{path}\n" for path in built)
