"""The export that the service ships for its demo is the one that the generator of made-up districts writes now."""

from __future__ import annotations

import zipfile
from pathlib import Path

from roster_service.cli.demo import EXPORT
from tools.demo_district import write_demo


def read_files(path: Path) -> dict[str, bytes]:
    """The bytes of each file. Another zlib may compress them otherwise, so the bytes of the zip do not count."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_shipped_demo_is_what_the_generator_writes(tmp_path: Path) -> None:
    write_demo(tmp_path / EXPORT.name)
    written, shipped = read_files(tmp_path / EXPORT.name), read_files(EXPORT)
    different = [name for name in sorted({*written, *shipped}) if written.get(name) != shipped.get(name)]
    assert not different, f"run `make demo-district`: {different}"
