"""The checker finds what is wrong with a package."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.schemas.file_presets import PRESETS
from tests.contract.conftest import add_vendor

from .checker import check
from .conftest import load_export, make

# file, what stands there, what stands in its place, the error
BREAKS = [
    ("manifest.csv", b"file.orgs,bulk", b"file.orgs,absent", "orgs is absent"),
    ("manifest.csv", b"file.results,absent\r\n", b"", "properties"),
    ("orgs.csv", b"sourcedId,status,", b"\xef\xbb\xbfsourcedId,status,", "byte order mark"),
    ("orgs.csv", b",name,", b",title,", "other columns"),
    ("orgs.csv", b"shv-north,,,", b"shv-north,active,,", "a status"),
    ("orgs.csv", b"North School,school", b"North School,schule", "bad type"),
    ("orgs.csv", b"North School,", b"North\nSchool,", "line break"),
    ("users.csv", b"shv-guardian-1,,,", b"shv-guardian-2,,,", "users has a bad agentSourcedIds"),
    ("users.csv", b"zoe.o,", b",", "lacks username"),
    ("users.csv", b"shv-student-1,,,true", b"shv-student-1,,,TRUE", "bad enabledUser"),
    ("roles.csv", b"primary,counselor", b"primary,administrator", "roles has a bad role"),
    ("enrollments.csv", b"shv-class-bio-n,shv-north", b"shv-class-bio-n,shv-district", "a school that is none"),
    ("demographics.csv", b"2012-02-29", b"2012-02-30", "bad birthDate"),
    ("demographics.csv", b"shv-student-4", b"shv-student-9", "demographics of nobody"),
]


@pytest.fixture(scope="module")
def content(make_database: Callable[[], str]) -> Iterator[bytes]:
    """A good package."""
    engine: sa.Engine = make_engine(make_database())
    load_export(engine, "shelbyville-1.2")
    with engine.begin() as connection:
        add_vendor(connection, "all", [("shv-district", ())])
    yield make(engine, "all@vendors.example", PRESETS["oneroster-1.2"]).content
    engine.dispose()


@pytest.mark.parametrize(("file", "before", "after", "error"), BREAKS)
def test_a_broken_package_is_found(content: bytes, file: str, before: bytes, after: bytes, error: str) -> None:
    assert check(content) == []
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as good, zipfile.ZipFile(out, "w") as bad:
        for name in good.namelist():
            text = good.read(name)
            assert name != file or before in text
            bad.writestr(name, text.replace(before, after, 1) if name == file else text)
    assert any(error in it for it in check(out.getvalue())), check(out.getvalue())
