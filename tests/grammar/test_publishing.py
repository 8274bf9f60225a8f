"""What is published: the metadata, and that the same source gives the same bytes."""

import io
import re
import tarfile
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import oneroster_filter
import pytest

from . import LIBRARY

PROJECT = tomllib.loads((LIBRARY / "pyproject.toml").read_text())["project"]


def test_every_package_that_a_module_needs_is_an_extra_of_the_distribution() -> None:
    named = {path.stem.removesuffix("_types") for path in (LIBRARY / "oneroster_filter").iterdir()}

    assert {"django", "marshmallow", "pandas", "polars", "pydantic", "sqlalchemy"} <= named
    assert set(PROJECT["optional-dependencies"]) <= named


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


@pytest.fixture
def release():
    spec = spec_from_file_location("release", LIBRARY / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_source_distribution_does_not_depend_on_times_owner_and_order(release) -> None:
    one, other = make_archive(1, "a", ["x/a", "x/b"]), make_archive(2, "b", ["x/b", "x/a"])

    assert one != other
    assert release.normalize(one, 3) == release.normalize(other, 3)
    with tarfile.open(fileobj=io.BytesIO(release.normalize(one, 3))) as archive:
        found = {member.name: archive.extractfile(member).read().decode() for member in archive}
    assert found == {"x/a": "x/a", "x/b": "x/b"}


def make_wheel(permissions: int) -> bytes:
    """A wheel as setuptools makes it: with the permissions of the files, which the umask decides."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        member = zipfile.ZipInfo("x/a.py")
        member.external_attr = permissions << 16
        archive.writestr(member, "a = 1")
    return buffer.getvalue()


def test_a_wheel_does_not_depend_on_the_umask(release) -> None:
    one, other = make_wheel(0o100644), make_wheel(0o100600)

    assert one != other
    assert release.normalize_wheel(one) == release.normalize_wheel(other)
    with zipfile.ZipFile(io.BytesIO(release.normalize_wheel(one))) as archive:
        assert archive.read("x/a.py") == b"a = 1"


README = "[lark](https://x.example) and [a page](docs/a.md) of [errors](#errors)"
LINKS = {
    "https://f.example": "[lark](https://x.example) and [a page](https://f.example/docs/a.md) of [errors](#errors)",
    "": "[lark](https://x.example) and a page of [errors](#errors)",
}


@pytest.mark.parametrize("url", LINKS)
def test_the_addresses_follow_from_one_setting(release, tmp_path: Path, url: str) -> None:
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    # Once more, as from a source distribution.
    for _ in range(2):
        release.write_addresses(tmp_path, url)

    assert (tmp_path / "README.md").read_text() == LINKS[url]
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"].get("urls", {})
    assert set(urls) == ({"Source", "Documentation", "Changelog", "Security"} if url else set())
    assert all(address.startswith(url) for address in urls.values())


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", (LIBRARY / "README.md").read_text())

    assert all((LIBRARY / link).is_file() for link in links)
