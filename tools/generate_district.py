"""`python -m tools.generate_district --out PATH --students N`: writes the export of a made-up district.

The same arguments give the same bytes. The rows are written one by one, so any size needs little memory.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import click

from roster_service.feeds.run_history import ABSENT
from sync_scripts.formats.model import METADATA_PREFIX
from sync_scripts.formats.oneroster import VERSIONS
from sync_scripts.reading.manifest import BULK, FILE_NAME, FILE_PREFIX, HEADER
from tools.districts.drift import Drift
from tools.districts.files import METADATA, ROWS
from tools.districts.model import District

DEFAULT_NAME = "Springdale Unified School District"
# Few SIS export the guardians of every family. With this part of them, ten of eleven users are students.
DEFAULT_GUARDIANS_PERCENT = 4.0
LAST_MONTH_OF_SCHOOL = 7
SYSTEM = "Made-up district"
PERCENT = click.FloatRange(0, 100)
# The earliest date of a zip entry. The true date would make every export differ.
NO_DATE = (1980, 1, 1, 0, 0, 0)
PLAIN_FILE = 0o100644 << 16
Opener = Callable[[str], AbstractContextManager[IO[bytes]]]


@contextlib.contextmanager
def open_export(path: Path) -> Iterator[Opener]:
    """Yields a function that opens a file of the export for writing, one at a time. The export replaces `path` when the
    block ends: a zip if the name ends in .zip, else a folder.

    Raises FileExistsError if `path` does not end in .zip and is a file or a folder that is not empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.partial")
    if path.suffix == ".zip":
        try:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                yield lambda name: archive.open(_describe(name), "w", force_zip64=True)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(path)
    unfinished.mkdir()
    try:
        yield lambda name: (unfinished / name).open("wb")
        unfinished.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _describe(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, NO_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = PLAIN_FILE
    return entry


def write_rows(stream: IO[bytes], headers: Iterable[str], rows: Iterable[Mapping[str, str]]) -> int:
    """Writes a CSV file: the headers, then the cells of each row under these headers. Returns the number of rows."""
    headers = tuple(headers)
    count = 0
    with io.TextIOWrapper(stream, encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(headers)
        for row in rows:
            writer.writerow([row.get(header, "") for header in headers])
            count += 1
    return count


def find_school_year(today: datetime.date) -> int:
    """The year in which the school year of `today` ends."""
    return today.year + (1 if today.month >= LAST_MONTH_OF_SCHOOL else 0)


def generate(
    path: Path,
    *,
    students: int,
    seed: int,
    version: str,
    school_year: int,
    name: str = DEFAULT_NAME,
    guardians_percent: float = DEFAULT_GUARDIANS_PERCENT,
    drift: Drift | None = None,
) -> Mapping[str, int]:
    """Writes the export of a made-up district to `path` (a zip where it ends in .zip, else a folder).

    `version`: "1.1" or "1.2"; `school_year`: the year in which it ends; `guardians_percent`: of how many families the
    guardians are in the export; `drift`: the changes since the export without it. Two districts with different seeds
    or names share no id. Returns the number of rows per file. Raises FileExistsError if `path` does not end in .zip
    and is a file or a folder that is not empty, and KeyError for another version.
    """
    district = District(name, students, seed, school_year, guardians_percent)
    form = VERSIONS[version]
    counts = {}
    with open_export(path) as open_file:
        with open_file(FILE_NAME) as stream:
            properties = {"manifest.version": "1.0", "oneroster.version": version}
            properties |= {FILE_PREFIX + file.name: BULK for file in form.files}
            properties |= {FILE_PREFIX + file: ABSENT for file in sorted(form.skipped)}
            properties |= {"source.systemName": SYSTEM, "source.systemCode": f"seed-{seed}"}
            write_rows(stream, HEADER, (dict(zip(HEADER, pair, strict=True)) for pair in properties.items()))
        for file in form.files:
            metadata = (METADATA_PREFIX + key for key in METADATA.get(file.name, ()))
            with open_file(file.file_name) as stream:
                headers = [*(cell.header for cell in file.cells), *metadata]
                rows = ROWS[file.name](district)
                counts[file.name] = write_rows(stream, headers, drift.apply(file.name, rows) if drift else rows)
    return counts


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A .zip file, or a folder.")
@click.option("--students", default=1000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Another seed, another district.")
@click.option("--version", default="1.1", show_default=True, type=click.Choice(list(VERSIONS)), help="Of OneRoster.")
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="The name of the district.")
@click.option("--school-year", type=click.IntRange(1900, 2900), help="The year it ends in.  [default: the current one]")
@click.option(
    "--guardians-percent",
    default=DEFAULT_GUARDIANS_PERCENT,
    show_default=True,
    type=PERCENT,
    help="Percent of the families whose guardians are in the export.",
)
@click.option(
    "--next-day", is_flag=True, help="Write the export of the next day, on which people came, changed and left."
)
@click.option("--adds", default=1.0, show_default=True, type=PERCENT, help="Percent of the people who come.")
@click.option("--changes", default=1.0, show_default=True, type=PERCENT, help="Percent of the records that change.")
@click.option("--drops", default=0.5, show_default=True, type=PERCENT, help="Percent of the people who leave.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    out: Path,
    students: int,
    seed: int,
    version: str,
    name: str,
    school_year: int | None,
    guardians_percent: float,
    next_day: bool,
    adds: float,
    changes: float,
    drops: float,
    as_json: bool,
) -> None:
    """Write the OneRoster CSV export of a made-up district to OUT."""
    drift = Drift(seed, adds, changes, drops) if next_day else None
    school_year = school_year or find_school_year(datetime.datetime.now(tz=datetime.UTC).date())
    try:
        counts = generate(
            out,
            students=students,
            seed=seed,
            version=version,
            school_year=school_year,
            name=name,
            guardians_percent=guardians_percent,
            drift=drift,
        )
    except FileExistsError:
        raise click.BadParameter(f"{out} is there already, and is no empty folder", param_hint="--out") from None
    except OSError as error:
        raise click.BadParameter(f"{out} cannot be written: {error.strerror}", param_hint="--out") from None
    if as_json:
        click.echo(json.dumps({"out": str(out), "rows": counts}))
    else:
        click.echo(f"{out}: " + ", ".join(f"{count:,} {file}" for file, count in counts.items()))


if __name__ == "__main__":
    main()
