"""Builds the distributions of the library, so that the same source gives the same bytes: `python release.py FOLDER`.

Two variables of the environment are its settings. RELEASE_URL is the address of this folder in the repository, as
`https://forge.example/project/blob/main/grammar`: it becomes the addresses of the project and of the links in the
README, which otherwise are plain text. SOURCE_DATE_EPOCH is the time of all files, or 1980.

The archives do not depend on times, the owner, the order or the permissions (umask) of the files they were built from.
"""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LEAST_EPOCH = 315532800
"""The first second of 1980: a wheel is a zip file, which has no earlier times."""

PERMISSIONS = 0o644
ADDRESSES = {"Documentation": "README.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
LINK = re.compile(r"\[([^]]+)\]\((?!https?:|#)([^)]+)\)")
LEFT_OUT = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*")


def build(library: Path, target: Path, epoch: int, url: str) -> list[Path]:
    """Build both distributions.

    Args:
        library: The folder of the library, in a checkout or in an unpacked source distribution.
        target: The folder to put them in.
        epoch: The time of everything in them, in seconds since 1970.
        url: The address of the folder in the repository, or an empty text.

    Returns:
        The source distribution and the wheel.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        shutil.copytree(library, source, ignore=LEFT_OUT)
        if not (source / "tests").is_dir():
            copy_tests(library, source / "tests")
        write_addresses(source, url)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
        command = [sys.executable, "-m", "build", "--outdir", str(target), str(source)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    [archive], [wheel] = target.glob("*.tar.gz"), target.glob("*.whl")
    archive.write_bytes(normalize(archive.read_bytes(), epoch))
    wheel.write_bytes(normalize_wheel(wheel.read_bytes()))
    return [archive, wheel]


def copy_tests(library: Path, target: Path) -> None:
    """Copy the tests of the library, which stand beside those of the service in a checkout."""
    tests = library.parent / "tests"
    shutil.copytree(tests / "grammar", target / "grammar", ignore=LEFT_OUT)
    for name in ("__init__.py", "extent.py", "offenders.py"):
        shutil.copy(tests / name, target / name)
    shutil.copy(library / "standalone_conftest.py", target / "conftest.py")


def write_addresses(source: Path, url: str) -> None:
    """Write the addresses of the project into its metadata, and those of files into the README."""
    readme, project = source / "README.md", source / "pyproject.toml"
    readme.write_text(LINK.sub(rf"[\1]({url}/\2)" if url else r"\1", readme.read_text()))
    if url:
        lines = ["[project.urls]", f'Source = "{url}"', *(f'{name} = "{url}/{at}"' for name, at in ADDRESSES.items())]
        text = re.sub(r"\[project\.urls\]\n(.+\n)*\n?", "", project.read_text())
        project.write_text(f"{text}\n" + "\n".join(lines) + "\n")


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


def normalize_wheel(archive: bytes) -> bytes:
    """Return a wheel with the same files in the same order, with one set of permissions."""
    inner = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            made = zipfile.ZipInfo(member.filename, member.date_time)
            made.compress_type, made.external_attr = zipfile.ZIP_DEFLATED, PERMISSIONS << 16
            new.writestr(made, old.read(member))
    return inner.getvalue()


if __name__ == "__main__":
    built = build(
        Path(__file__).parent,
        Path(sys.argv[1]),
        int(os.environ.get("SOURCE_DATE_EPOCH", LEAST_EPOCH)),
        os.environ.get("RELEASE_URL", "").rstrip("/"),
    )
    sys.stdout.writelines(f"{path}\n" for path in built)
