"""What loads and nights print goes into logs: files, lines, columns and reasons, and never what stands there."""

from __future__ import annotations

import contextlib
import os
import pty
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.db.tables import feeds, sync_rejections
from sync_scripts import load_clever, load_oneroster, load_sds, nightly
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.formats.clever import CLEVER
from sync_scripts.formats.model import Format
from sync_scripts.formats.oneroster import ONEROSTER_1_1, ONEROSTER_1_2
from sync_scripts.formats.sds import SDS
from sync_scripts.formats.sds_v1 import SDS_V1
from sync_scripts.reading.registry import FAMILIES
from tests.extent import cases, pair
from tests.postgres.loaded import load_first

from .conftest import SHELBYVILLE, SPRINGFIELD, lend_engine
from .export_changes import Bend, both, cell, raw, read_csv, rows_of, with_row

pytestmark = pytest.mark.shows(
    "Logs and transport",
    "Loaders and the nightly sync print no values of rejected rows, files or database errors.",
)

# The name of a pupil, who is in no export.
NAME = "Zorblax Quux"
OUTPUTS = ((), ("--json",))
# What a bar begins with, and no other output.
BAR = "\x1b["


@dataclass(frozen=True)
class Source:
    """A format, its script, its word for feeds, a small export of it, and the files of it that name people."""

    form: Format
    main: Any
    family: str
    export: str
    people: str


SOURCES = {
    "oneroster 1.1": Source(ONEROSTER_1_1, load_oneroster.main, "oneroster", SPRINGFIELD, "users"),
    "oneroster 1.2": Source(ONEROSTER_1_2, load_oneroster.main, "oneroster", SHELBYVILLE, "users"),
    "clever": Source(CLEVER, load_clever.main, "clever", "shelbyville-clever", "students"),
    "sds": Source(SDS, load_sds.main, "sds", "northhaven-sds", "users"),
    "sds v1": Source(SDS_V1, load_sds.main, "sds", "northhaven-sds-v1", "Student"),
}


def test_every_family_has_an_export_here() -> None:
    assert {source.family for source in SOURCES.values()} == set(FAMILIES)


def in_every_cell(value: str) -> Callable[[Source], Bend]:
    """In every file a row that has nothing else in any cell."""

    def plant(source: Source) -> Bend:
        def bend(folder: Path) -> None:
            for file in source.form.files:
                name = file.file_name.removesuffix(".csv")
                header = read_csv(folder / file.file_name)[0]
                with_row(name, **dict.fromkeys(header, value))(folder)

        return bend

    return plant


def in_rows(change: Callable[[list[list[str]]], object]) -> Callable[[Source], Bend]:
    return lambda source: rows_of(source.people, change)


def in_bytes(change: Callable[[bytes], bytes]) -> Callable[[Source], Bend]:
    return lambda source: raw(f"{source.people}.csv", change)


def name_id(source: Source) -> Bend:
    """Gives somebody an id that is a name, in all files."""
    if source.form is CLEVER:
        return both(cell("students", 4, "Student_id", NAME), cell("enrollments", 6, "Student_id", NAME))
    if source.form is SDS_V1:
        seats = (cell("StudentEnrollment", line, "SIS ID", NAME) for line in (3, 4))
        return both(cell("Student", 4, "SIS ID", NAME), *seats)
    identifier = {ONEROSTER_1_1: "spr-student-1", ONEROSTER_1_2: "shv-student-1", SDS: "u1"}[source.form]
    files = (file.file_name for file in source.form.files)
    return both(*(raw(name, lambda data: data.replace(identifier.encode(), NAME.encode())) for name in files))


def refuse_named(source: Source) -> Bend:
    """Somebody whose id is a name is refused, and with them the rows that name them."""
    columns = {CLEVER: (4, "Gender"), SDS_V1: (4, "Gender"), SDS: (2, "username")}
    line, column = columns.get(source.form, (2, "enabledUser"))
    return both(name_id(source), cell(source.people, line, column, "x" * 256))


# Rows that are rejected: their values are kept.
ROWS: dict[str, Callable[[Source], Bend]] = {
    "a name": in_every_cell(NAME),
    "names": in_every_cell(f"{NAME},{NAME}"),
    "a name with a space in front": in_every_cell(f" {NAME}"),
    "a long name": in_every_cell(NAME * 400),
    "an id that other rows name": refuse_named,
    "an id twice": lambda source: rows_of(
        "sections" if source.family == "clever" else source.people,
        lambda rows: [row.__setitem__(rows[0].index("Section_id" if "Section_id" in rows[0] else "sourcedId"), NAME)
                      for row in rows[1:3]],
    ),
}  # fmt: skip
# Files that cannot be taken: what they say is kept nowhere.
FILES: dict[str, Callable[[Source], Bend]] = {
    "no header": in_rows(lambda rows: rows.__setitem__(0, [f"{NAME} {place}" for place, _ in enumerate(rows[0])])),
    "a header that is nearly one": in_rows(lambda rows: rows[0].__setitem__(0, f"{rows[0][0]} {NAME}")),
    "a quote that is left open": in_bytes(lambda data: data + b'"' + NAME.encode() + b"\n"),
    "a quote in a bare cell": in_bytes(lambda data: data + NAME.encode() + b' "Q",\n'),
    "a control character": in_bytes(lambda data: data + NAME.encode() + b"\x07\n"),
}  # fmt: skip
# Files that can be repaired: a row of them may be rejected.
REPAIRED: dict[str, Callable[[Source], Bend]] = {
    "a column more": in_rows(lambda rows: [row.append(NAME if row is not rows[0] else "x") for row in rows]),
    "a cell more": in_bytes(lambda data: data.rstrip(b"\n") + b"," + NAME.encode() + b"\n"),
    "a cell alone": in_bytes(lambda data: data + NAME.encode() + b"\n"),
    "bytes of another encoding": in_bytes(lambda data: data + NAME.encode() + b"\xfc\n"),
    "an empty line": in_bytes(lambda data: data + b"\n" + NAME.encode() + b"\n"),
}  # fmt: skip


def each_case(bends: Mapping[str, Callable[[Source], Bend]], always: str) -> pytest.MarkDecorator:
    """One test per (format, case): each case in one format, and one of them in all, unless the run tries all. What the
    loader prints is a text in one, and JSON in the next."""
    pairs = pair(list(bends), list(SOURCES), [always])
    parameters = [
        pytest.param(SOURCES[form], bends[name], OUTPUTS[number % len(OUTPUTS)], id=f"{name}-{form}")
        for number, (form, name) in enumerate(pairs)
    ]
    return pytest.mark.parametrize(("source", "bend", "options"), parameters)


def assert_silent(*printed: str) -> None:
    """Nothing that was planted stands there, whole, cut, or in another case."""
    for it in printed:
        assert "zorblax" not in it.lower()
        assert "quux" not in it.lower()


def load(source: Source, folder: Path, *options: str, feed: str = "feed") -> tuple[int, str]:
    """Runs the loader; its exit code, and all that it printed."""
    done = CliRunner().invoke(source.main, ["--feed", feed, *options, str(folder)])
    assert_silent(done.stdout, done.stderr, repr(done.exception))
    return done.exit_code, done.output


@pytest.fixture
def planted(
    engine: sa.Engine, copy_export: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """A copy of the small export of a format with something planted, loaded as it is before."""
    lend_engine(monkeypatch, engine)

    def plant(source: Source, bend: Callable[[Source], Bend]) -> Path:
        folder = copy_export(source.export)
        load_first(engine, "feed", folder, FAMILIES[source.family])
        bend(source)(folder)
        return folder

    return plant


@pytest.mark.shows(
    "Logs and transport",
    "Values of rejected rows are in the database and in files of mode 0600 alone.",
)
@each_case(ROWS, always="a name")
def test_no_value_of_a_rejected_row_is_printed(
    engine: sa.Engine,
    planted: Callable[..., Path],
    tmp_path: Path,
    source: Source,
    bend: Callable[[Source], Bend],
    options: Sequence[str],
) -> None:
    """It stands in the database, and in a file that its owner alone can read."""
    folder = planted(source, bend)
    rejects = tmp_path / "rejects.csv"
    rejects.touch(mode=0o644)
    assert load(source, folder, *options, "--rejects", str(rejects))[0] == ExitCode.PARTIAL
    written = rejects.read_text()
    assert stat.S_IMODE(rejects.stat().st_mode) == 0o600
    with engine.connect() as connection:
        kept = " ".join(map(str, connection.scalars(sa.select(sync_rejections.c.value))))
        reasons = " ".join(connection.scalars(sa.select(sync_rejections.c.reason)))
    assert NAME in kept
    assert NAME in written
    assert_silent(reasons)


@each_case(FILES, always="no header")
def test_no_value_of_a_refused_file_is_printed(
    planted: Callable[..., Path], source: Source, bend: Callable[[Source], Bend], options: Sequence[str]
) -> None:
    code, printed = load(source, planted(source, bend), *options)
    assert code == ExitCode.REFUSED
    assert ".csv" in printed


@each_case(REPAIRED, always="a column more")
def test_no_value_of_a_repaired_file_is_printed(
    planted: Callable[..., Path], source: Source, bend: Callable[[Source], Bend], options: Sequence[str]
) -> None:
    assert load(source, planted(source, bend), *options)[0] in (ExitCode.LOADED, ExitCode.PARTIAL)


# What needs an export of its own kind.
OTHERS: dict[str, Bend] = {
    "a property of the manifest": with_row("manifest", propertyName=NAME, value=NAME),
    "a file that the manifest names": with_row("manifest", propertyName=f"file.{NAME}", value=NAME),
    "the version of the manifest": rows_of("manifest", lambda rows: rows[1].__setitem__(1, NAME)),
    "a mode in the manifest": rows_of("manifest", lambda rows: rows[3].__setitem__(1, NAME)),
    "a line of the manifest": raw("manifest.csv", lambda data: data + NAME.encode() + b"\n"),
    "the type of an org that a class names": both(
        cell("orgs", 3, "type", NAME), cell("classes", 2, "schoolSourcedId", "spr-elementary")
    ),
}


@pytest.mark.parametrize("bend", OTHERS.values(), ids=OTHERS)
def test_no_value_is_printed_of(planted: Callable[..., Path], bend: Bend) -> None:
    source = SOURCES["oneroster 1.1"]
    folder = planted(source, lambda _: bend)
    for options in ([], ["--json"]):
        assert load(source, folder, *options)[0] in (ExitCode.LOADED, ExitCode.PARTIAL, ExitCode.REFUSED)


@pytest.mark.parametrize("name", ["oneroster 1.1", "sds"])
def test_no_id_of_another_feed_is_printed(
    engine: sa.Engine, copy_export: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lend_engine(monkeypatch, engine)
    source = SOURCES[name]
    folder = copy_export(source.export)
    name_id(source)(folder)
    assert load(source, folder, feed="another")[0] == ExitCode.LOADED
    # Without an org of its own, the export would be refused as a whole.
    with_row("orgs", sourcedId="own", name="Own", type="district")(folder)
    for options in ([], ["--json"]):
        code, printed = load(source, folder, "--allow-mass-delete", *options)
        assert code == ExitCode.PARTIAL
        assert "belongs to the feed another" in printed


TRIGGER = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  {body}
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION refuse();
"""
FAULTS = {
    "a fault that quotes a row": "RAISE EXCEPTION 'no place for %', NEW.given_name;",
    "a value that cannot be converted": "NEW.feed_id = NEW.given_name::integer; RETURN NEW;",
}


@pytest.mark.parametrize("body", FAULTS.values(), ids=FAULTS)
def test_no_value_is_printed_with_a_fault_of_the_database(
    engine: sa.Engine, planted: Callable[..., Path], body: str
) -> None:
    source = SOURCES["oneroster 1.1"]
    folder = planted(source, lambda _: cell("users", 2, "givenName", NAME))
    try:
        with engine.begin() as connection:
            connection.execute(sa.text(TRIGGER.format(body=body)))
        for options in ([], ["--json"]):
            code, printed = load(source, folder, *options)
            assert code == ExitCode.UNAVAILABLE
            assert "the database gave up" in printed
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text("DROP FUNCTION IF EXISTS refuse CASCADE"))


@pytest.mark.parametrize("source", cases(SOURCES, quick=["sds"]))
def test_no_value_is_shown_on_a_terminal(
    engine: sa.Engine, planted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, source: Source
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    folder = planted(source, in_every_cell(NAME))
    for options in ([], ["--json"]):
        shown = show(source.main, "--feed", "feed", *options, str(folder))
        assert "must" in shown
        assert (BAR in shown) == (not options)
        assert_silent(shown)
    register(engine, folder)
    shown = show(nightly.main)
    assert "feed: partial" in shown
    assert BAR in shown
    assert_silent(shown)


def show(main: Any, *arguments: str) -> str:
    """What a command shows on a terminal of its own, also with its bars."""
    master, slave = pty.openpty()
    shown = bytearray()

    def read() -> None:
        # A terminal whose last writer is gone says so with an error.
        with contextlib.suppress(OSError):
            while block := os.read(master, 65536):
                shown.extend(block)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with (
            os.fdopen(slave, "w", encoding="utf-8") as terminal,
            contextlib.redirect_stdout(terminal),
            contextlib.redirect_stderr(terminal),
            pytest.raises(SystemExit),
        ):
            main(arguments)
    finally:
        reader.join()
        os.close(master)
    return shown.decode()


def register(engine: sa.Engine, folder: Path) -> None:
    """Has the feed loaded at night."""
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=str(folder)))


# The night prints the report of a loader, whose words each format has above.
@pytest.mark.parametrize(
    ("source", "bend"),
    [*((it, ROWS["a name"]) for it in SOURCES.values()), (SOURCES["oneroster 1.2"], FILES["no header"])],
    ids=[*(f"rows-{name}" for name in SOURCES), "a file-oneroster 1.2"],
)
def test_no_value_is_printed_by_the_nightly_sync(
    engine: sa.Engine, planted: Callable[..., Path], source: Source, bend: Callable[[Source], Bend]
) -> None:
    folder = planted(source, bend)
    register(engine, folder)
    done = CliRunner().invoke(nightly.main)
    assert done.exit_code in (ExitCode.PARTIAL, ExitCode.REFUSED)
    assert '"rejections": [{' in done.stdout
    assert_silent(done.stdout, done.stderr)
