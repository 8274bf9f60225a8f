"""What is published: the metadata, and that the same source gives the same bytes."""

import io
import re
import sys
import tarfile
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import oneroster_filter

LIBRARY = Path(__file__).parents[2] / "grammar"
PROJECT = tomllib.loads((LIBRARY / "pyproject.toml").read_text())["project"]


def test_every_extra_that_a_name_needs_is_one_of_the_distribution() -> None:
    assert {extra for _, extra in oneroster_filter.OPTIONAL.values()} | {"marshmallow", "pydantic"} == set(
        PROJECT["optional-dependencies"]
    )


def test_the_changelog_begins_with_the_version() -> None:
    newest = re.search(r"^## ([0-9.]+)", (LIBRARY / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest is not None
    assert newest[1] == oneroster_filter.__version__


def test_the_classifiers_name_the_least_version_of_python() -> None:
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))

    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert versions == sorted(versions, key=lambda version: int(version.partition(".")[2]))


def make_archive(epoch: int, owner: str, names: list[str]) -> bytes:
    """A source distribution as setuptools makes it: with the times and the owner of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = len(name), epoch, owner, 0o664
            archive.addfile(member, io.BytesIO(name.encode()))
    return buffer.getvalue()


def test_a_source_distribution_does_not_depend_on_times_owner_and_order() -> None:
    spec = spec_from_file_location("release", LIBRARY / "release.py")
    assert spec is not None
    assert spec.loader is not None
    release = module_from_spec(spec)
    spec.loader.exec_module(release)

    one, other = make_archive(1, "a", ["x/a", "x/b"]), make_archive(2, "b", ["x/b", "x/a"])

    assert one != other
    assert release.normalize(one, 3) == release.normalize(other, 3)
    with tarfile.open(fileobj=io.BytesIO(release.normalize(one, 3))) as archive:
        found = {member.name: archive.extractfile(member).read().decode() for member in archive}
    assert found == {"x/a": "x/a", "x/b": "x/b"}
    assert "release" not in sys.modules
