"""`make release`: says what keeps this version from being released, or builds what a person then publishes.

The distributions of the service and of the library come into `build/release`, with their hashes. The versions are those
of the packages; the newest section of each changelog must have the version and its day.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import oneroster_filter

import roster_service

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "build" / "release"
_SECTION = re.compile(r"^## (?P<version>\S+) \((?P<day>[^)]+)\)$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Checkout:
    """What is to be released. `versions`: by the path of the changelog that must have them; `changelogs`: by path;
    `changed`: files that no commit has; `kept`: the tags whose data the tests upgrade; `tags`: of the repository, and
    `here`: those of this commit."""

    versions: Mapping[str, str]
    changelogs: Mapping[str, str]
    changed: Sequence[str]
    kept: Sequence[str]
    tags: Sequence[str]
    here: Sequence[str]


def list_obstacles(checkout: Checkout) -> Iterator[str]:
    """Yields what keeps it from being released, in sentences."""
    if checkout.changed:
        yield f"no commit has {', '.join(checkout.changed[:3])}{' and others' if checkout.changed[3:] else ''}"
    for path, version in checkout.versions.items():
        newest = _SECTION.search(checkout.changelogs[path])
        if newest is None or newest["version"] != version:
            yield f"the newest section of {path} is not of {version}"
        elif _DAY.fullmatch(newest["day"]) is None:
            yield f"the section {version} of {path} has no day in place of ({newest['day']})"
    tag = name_tag(checkout)
    if tag not in checkout.kept:
        yield f"tests/db has no rows of {tag}: `python -m tests.db.released_data`, then `RELEASES`"
    if tag in checkout.tags and tag not in checkout.here:
        yield f"{tag} is another commit already: raise the version"


def name_tag(checkout: Checkout) -> str:
    """Returns the tag of the version of the service."""
    return f"v{next(iter(checkout.versions.values()))}"


def read_checkout() -> Checkout:
    """Reads what this folder would release."""
    versions = {
        "CHANGELOG.md": roster_service.__version__,
        "grammar/CHANGELOG.md": oneroster_filter.__version__,
    }
    return Checkout(
        versions=versions,
        changelogs={path: (ROOT / path).read_text() for path in versions},
        changed=[line[3:] for line in _ask_git("status", "--porcelain")],
        kept=[f"v{path.stem}" for path in (ROOT / "tests/db/released").glob("*.sql")],
        tags=_ask_git("tag"),
        here=_ask_git("tag", "--points-at", "HEAD"),
    )


def _ask_git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603, S607
    return done.stdout.splitlines()


def build(epoch: str) -> list[Path]:
    """Builds the distributions, and a file of their hashes. `epoch`: the time of everything in them, in seconds since
    1970. Returns all of these files."""
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    for command in (
        [sys.executable, "grammar/release.py", str(TARGET)],
        [sys.executable, "-m", "build", "--outdir", str(TARGET), "."],
    ):
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    built = sorted(TARGET.iterdir())
    hashes = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built)
    (TARGET / "SHA256SUMS").write_text(hashes)
    return [*built, TARGET / "SHA256SUMS"]


def main() -> int:
    """Returns 1 if something keeps the version from being released."""
    checkout = read_checkout()
    if obstacles := list(list_obstacles(checkout)):
        sys.stderr.write("".join(f"release: {obstacle}\n" for obstacle in obstacles))
        return 1
    [epoch] = _ask_git("log", "-1", "--format=%ct")
    built = "".join(f"  {path.relative_to(ROOT)}\n" for path in build(epoch))
    tag = name_tag(checkout)
    sys.stdout.write(
        f"{tag} can be released:\n{built}"
        f"Publish it: `git tag -a {tag}`, push the tag, upload these files with the section of the changelog. Then "
        "begin the next section, (unreleased), and keep the migrations of this version as they are.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
