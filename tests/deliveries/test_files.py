"""The columns of the files are those that the loader reads, and those of the standard."""

from __future__ import annotations

import pytest

from roster_service.deliveries.files import FILES, OTHERS
from roster_service.schemas.versions import VERSIONS, Version
from sync_scripts.formats.model import CsvFile
from sync_scripts.formats.oneroster import VERSIONS as FORMATS


@pytest.mark.parametrize("version", VERSIONS, ids=lambda it: str(it.prefix))
def test_the_columns_are_those_that_the_loader_reads(version: Version) -> None:
    form = FORMATS[version.title.split()[-1]]
    written = {file.name: file for file in FILES[version]}
    read: dict[str, CsvFile] = {file.name: file for file in form.files}
    assert written.keys() == read.keys()
    for name, file in read.items():
        assert written[name].headers == file.headers
        required = {cell.header for cell in file.cells if cell.required} - {"sourcedId"}
        assert {it.header for it in written[name].columns if it.required} == required
        named = {cell.header: cell.refers.file for cell in file.cells if cell.refers and cell.header != "sourcedId"}
        assert {it.header: it.refers for it in written[name].columns if it.refers} == named
    assert set(OTHERS[version]) == form.skipped
