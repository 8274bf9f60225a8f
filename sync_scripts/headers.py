"""The first line of a CSV file against the columns that its format declares."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from sync_scripts.faults import find_line_faults, split_line
from sync_scripts.formats import METADATA_PREFIX, CsvFile
from sync_scripts.refusals import Findings, Refusal

# PostgreSQL's tables hold 1,600 columns; no export comes near.
MOST_METADATA_COLUMNS = 200
KEY_LENGTH = 100


def read_header(line: bytes, file: CsvFile) -> tuple[tuple[str, ...], Findings]:
    """(keys of the metadata columns, findings) of a header line; without findings the header is the declared one."""
    name = file.file_name
    if not line:
        return (), Findings.of([Refusal(name, "is empty; the first line names the columns", 1)])
    cells = split_line(line)
    faults = Findings.of(find_line_faults(line, name, 1, None))
    if cells is None or faults:
        return (), faults
    headers = [cell.decode() for cell in cells]
    declared = [cell.header for cell in file.cells]
    metadata = headers[len(declared) :]
    findings = Findings.of(_find_bad_headers(headers, declared, name))
    return tuple(header.removeprefix(METADATA_PREFIX) for header in metadata), findings


def _find_bad_headers(headers: list[str], declared: list[str], file_name: str) -> Iterator[Refusal]:
    def refuse(header: str, reason: str) -> Refusal:
        return Refusal(file_name, reason, 1, header)

    metadata = [header for header in headers if _is_metadata(header)]
    if len(metadata) > MOST_METADATA_COLUMNS:
        yield Refusal(file_name, f"has more than {MOST_METADATA_COLUMNS} metadata columns", 1)
    seen: set[str] = set()
    for header in headers:
        if header in seen:
            yield refuse(header, "stands in the header twice")
        elif header not in declared and not _is_metadata(header):
            near = difflib.get_close_matches(header, declared, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; own columns are named {METADATA_PREFIX}NAME"
            yield refuse(header, f"is no column of this file{hint}")
        seen.add(header)
    missing = [header for header in declared if header not in seen]
    for header in missing:
        yield refuse(header, "is missing in the header")
    if not missing and seen >= set(declared):
        for wanted, found in zip(declared, headers, strict=False):
            if wanted != found:
                yield refuse(found, f"is misplaced; {wanted} belongs here")
                return


def _is_metadata(header: str) -> bool:
    key = header.removeprefix(METADATA_PREFIX)
    return header != key and 0 < len(key) <= KEY_LENGTH and key == key.strip()
