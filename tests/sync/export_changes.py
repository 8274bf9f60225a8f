"""Ways to bend a copy of an export; each returns a function of its folder, so that tables of cases can hold them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

Bend = Callable[[Path], None]
Rows = list[list[str]]


def read_csv(path: Path) -> Rows:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def write_csv(path: Path, rows: Rows, quoting: int = csv.QUOTE_MINIMAL) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n", quoting=quoting).writerows(rows)
    path.write_bytes(out.getvalue().encode())


def rows_of(file: str, change: Callable[[Rows], None]) -> Bend:
    """Changes the rows of a file, the header being the first."""

    def bend(folder: Path) -> None:
        rows = read_csv(folder / f"{file}.csv")
        change(rows)
        write_csv(folder / f"{file}.csv", rows)

    return bend


def cell(file: str, line: int, column: str, value: str) -> Bend:
    """Writes one cell; lines count from 1, the header's."""

    def change(rows: Rows) -> None:
        rows[line - 1][rows[0].index(column)] = value

    return rows_of(file, change)


def cell_of(file: str, identifier: str, column: str, value: str) -> Bend:
    """Writes one cell of the row with this sourcedId."""

    def change(rows: Rows) -> None:
        row = next(row for row in rows if row[0] == identifier)
        row[rows[0].index(column)] = value

    return rows_of(file, change)


def column(file: str, name: str, value: str) -> Bend:
    """Writes one column in every row; adds it where it is new."""

    def change(rows: Rows) -> None:
        if name not in rows[0]:
            for row in rows:
                row.append("")
            rows[0][-1] = name
        for row in rows[1:]:
            row[rows[0].index(name)] = value

    return rows_of(file, change)


def header(file: str, name: str, new: str) -> Bend:
    """Writes another header over a column."""

    def change(rows: Rows) -> None:
        rows[0][rows[0].index(name)] = new

    return rows_of(file, change)


def without_column(file: str, name: str) -> Bend:
    """Removes a column."""

    def change(rows: Rows) -> None:
        place = rows[0].index(name)
        for row in rows:
            del row[place]

    return rows_of(file, change)


def without_rows(file: str, *identifiers: str) -> Bend:
    """Removes rows by their sourcedId; all of them where none is named."""
    return rows_of(
        file,
        lambda rows: rows.__setitem__(
            slice(1, None), [row for row in rows[1:] if identifiers and row[0] not in identifiers]
        ),
    )


def with_row(file: str, **cells: str) -> Bend:
    """Adds a row with these cells, empty else."""
    return rows_of(file, lambda rows: rows.append([cells.get(name, "") for name in rows[0]]))


def shuffled(file: str) -> Bend:
    """Turns the order of the rows around."""
    return rows_of(file, lambda rows: rows.__setitem__(slice(1, None), rows[:0:-1]))


def raw(file: str, change: Callable[[bytes], bytes]) -> Bend:
    """Changes the bytes of a file."""

    def bend(folder: Path) -> None:
        path = folder / file
        path.write_bytes(change(path.read_bytes()))

    return bend


def quoted(file: str) -> Bend:
    """Puts every cell into quotes."""

    def bend(folder: Path) -> None:
        path = folder / f"{file}.csv"
        write_csv(path, read_csv(path), csv.QUOTE_ALL)

    return bend


def replaced(file: str, old: str | bytes, new: str | bytes) -> Bend:
    """Replaces bytes of a file, once."""
    old = old.encode() if isinstance(old, str) else old
    new = new.encode() if isinstance(new, str) else new

    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return raw(file, change)


def with_other_ids(folder: Path) -> None:
    """Gives the users of springfield other ids, `b-student-1` for `spr-student-1`, as another SIS does."""
    for file in ("users", "enrollments", "demographics"):
        of_users = rb"\bspr-(?=student|teacher|admin|aide|proctor|guardian|parent|relative)"
        raw(f"{file}.csv", lambda data, of_users=of_users: re.sub(of_users, b"b-", data))(folder)  # type: ignore[misc]


def declared(file: str, mode: str) -> Bend:
    """Gives a file another mode in the manifest."""
    return cell_of("manifest", f"file.{file}", "value", mode)


def repeat_row(file: str, identifier: str, **cells: str) -> Bend:
    """Adds the row with this sourcedId once more, with other cells."""

    def change(rows: Rows) -> None:
        row = next(row for row in rows if row[0] == identifier)
        rows.append([cells.get(name, cell) for name, cell in zip(rows[0], row, strict=True)])

    return rows_of(file, change)


def without_file(file: str) -> Bend:
    """Removes a file."""
    return lambda folder: (folder / file).unlink()


def with_file(file: str, data: bytes = b"") -> Bend:
    """Adds a file."""
    return lambda folder: (folder / file).write_bytes(data) and None


def renamed(old: str, *new: str) -> Bend:
    """Gives a file another name; with several, a copy under each."""

    def bend(folder: Path) -> None:
        data = (folder / old).read_bytes()
        (folder / old).unlink()
        for name in new:
            (folder / name).write_bytes(data)

    return bend


def both(*bends: Bend) -> Bend:
    """One after the other."""

    def bend(folder: Path) -> None:
        for each in bends:
            each(folder)

    return bend


def zipped(folder: Path, path: Path, prefix: str = "") -> Path:
    """The export as a zip. `prefix`: written in front of each name as it is."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo.from_file(file)
            entry.filename = prefix + file.name
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path
