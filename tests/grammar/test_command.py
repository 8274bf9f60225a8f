"""`oneroster-filter`: what it prints, and what it refuses."""

import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from oneroster_filter.command import DATABASES, REFUSED, main

from tests.offenders import in_one_test

USERS = """\
sourcedId,status,grades,roles,dateLastModified,enabledUser
u1,active,"09, 10",teacher,2026-11-21T02:00:00.000Z,true

u2,tobedeleted,,"student,aide",,false
u3,active
"""
TYPES = """{
    "status": "text", "grades": "texts", "roles": {"kind": "text", "many": true},
    "dateLastModified": "instant", "enabledUser": "flag", "elsewhere": "text"
}"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("users.csv").write_text(USERS)
    Path("types.json").write_text(TYPES)


def run(*arguments: str) -> tuple[int, str, str]:
    output, errors = io.StringIO(), io.StringIO()
    code = main(arguments, output, errors)
    return code, output.getvalue(), errors.getvalue()


MATCHES = {
    "text": ("status='active'", ["u1", "u3"]),
    "an item of a list": ("grades='10'", ["u1"]),
    "any of many": ("roles='aide'", ["u2"]),
    "an instant": ("dateLastModified>'2026-11-20'", ["u1"]),
    "a flag": ("enabledUser='false'", ["u2"]),
    "an empty cell is absent": ("grades!='10'", ["u2", "u3"]),
    "a missing cell is absent": ("roles!='aide'", ["u1", "u3"]),
}


@pytest.mark.parametrize(("text", "matching"), MATCHES.values(), ids=MATCHES)
def test_prints_the_rows_that_match(text: str, matching: list[str]) -> None:
    code, output, errors = run(text, "--types", "types.json", "--csv", "users.csv")

    header, *rows = output.splitlines()
    assert (code, header) == (0, USERS.splitlines()[0])
    assert [row.split(",")[0] for row in rows] == matching
    assert errors == f"{len(matching)} of 3 rows\n"


def test_rows_are_printed_as_they_were_written() -> None:
    assert run("sourcedId='u1'", "--csv", "users.csv")[1] == "\n".join(USERS.splitlines()[:2]) + "\n"


def test_without_types_every_column_is_text() -> None:
    code, output, _ = run("grades~'9, 1'", "--csv", "users.csv")

    assert (code, len(output.splitlines())) == (0, 2)


def test_a_column_whose_name_no_filter_can_write_is_printed() -> None:
    Path("names.csv").write_text("status,first name\nactive,Ada\n")

    assert run("status='active'", "--csv", "names.csv")[:2] == (0, "status,first name\nactive,Ada\n")


def test_reads_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a,b\n1,2\n"))

    assert run("a='1'", "--csv", "-") == (0, "a,b\n1,2\n", "1 of 1 rows\n")


BOM = b"\xef\xbb\xbf"
POLISH = 'name,note\nŁukasz,"a\r\nb"\n'.encode()


@pytest.mark.parametrize(
    ("kind", "found"),
    [("--csv", POLISH), ("--jsonl", '{"name": "Łukasz"}\n'.encode())],
    ids=["rows", "lines"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("is_piped", [False, True], ids=["a file", "the standard input"])
def test_files_and_streams_are_utf_8(kind: str, found: bytes, encoding: str, is_piped: bool) -> None:
    """With a byte order mark, as spreadsheets write it, and wherever the streams have another encoding."""
    Path("marked").write_bytes(BOM + found)

    done = subprocess.run(
        [sys.executable, "-m", "oneroster_filter", "name='Łukasz'", kind, "-" if is_piped else "marked"],
        input=BOM + found if is_piped else b"",
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, found), done.stderr.decode()


def test_a_standard_input_of_bytes_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(BOM + b"a,b\n1,2\n"), encoding="cp1252")
    monkeypatch.setattr(sys, "stdin", stdin)

    assert run("a='1'", "--csv", "-")[:2] == (0, "a,b\n1,2\n")
    assert stdin.read() == ""


def test_an_empty_file_has_no_fields() -> None:
    Path("empty.csv").write_text("")

    assert run("a='1'", "--csv", "empty.csv")[0] == REFUSED


def test_alone_it_prints_the_filter_as_it_was_understood() -> None:
    assert run(" status =  'active'") == (0, "status='active'\n", "")


def test_explains_the_tree_and_the_sql() -> None:
    code, output, _ = run(
        "roles='aide' AND enabledUser!='true' OR dateLastModified='2026-11-21'",
        *("--types", "types.json", "--explain", "--dialect", "sqlite", "--max-clauses", "3"),
    )

    assert code == 0
    assert output.splitlines() == [
        "OR",
        "  AND",
        "    roles = 'aide'  (text, any of many)",
        "    enabledUser != True  (true or false)",
        "  dateLastModified = 2026-11-21T00:00:00+00:00 to 2026-11-21T23:59:59.999999+00:00  (an instant)",
        "SQL (sqlite):",
        "  (EXISTS (SELECT 1 FROM roles WHERE (roles.roles) COLLATE BINARY = :1) AND "
        '"enabledUser" IS NOT :2 OR "dateLastModified" BETWEEN :3 AND :4)',
        "  :1 = 'aide'",
        "  :2 = True",
        "  :3 = '2026-11-21 00:00:00.000000'",
        "  :4 = '2026-11-21 23:59:59.999999'",
    ]


SQL = {
    "postgresql": """("Family") IS DISTINCT FROM :1\n:1 = 'x'\n""",
    "sqlite": """("Family") COLLATE BINARY IS NOT :1\n:1 = 'x'\n""",
    "mysql": "NOT ((`Family`) COLLATE utf8mb4_0900_bin <=> :1)\n:1 = 'x'\n",
    "mariadb": "NOT ((`Family`) COLLATE utf8mb4_nopad_bin <=> :1)\n:1 = 'x'\n",
}


@pytest.mark.parametrize("database", DATABASES)
def test_prints_the_sql_of_every_database(database: str) -> None:
    assert run("Family!='x'", "--sql", "--dialect", database) == (0, SQL[database], "")


def test_prints_a_moment_as_text() -> None:
    assert run("dateLastModified>'2026-11-21'", "--sql", "--types", "types.json")[1].splitlines()[1:] == [
        ":1 = '2026-11-21 00:00:00.000999+00:00'"
    ]


LINES = """\
{"id": "u1", "roles": [{"role": "aide"}], "born": "2012-02-29"}

{"id": "u2", "roles": [], "born": null}
"""


@pytest.mark.parametrize(
    ("text", "matching"),
    [("roles.role='aide' AND born>'2012-01-01'", [0]), ("born!='2012-02-29'", [2]), ("id~'U'", [0, 2])],
)
def test_prints_the_lines_that_match_as_they_are_written(text: str, matching: list[int]) -> None:
    Path("users.jsonl").write_text(LINES)
    Path("types.json").write_text('{"id": "text", "born": "day", "roles.role": {"kind": "text", "many": true}}')

    code, output, errors = run(text, "--types", "types.json", "--jsonl", "users.jsonl")

    assert (code, output.splitlines()) == (0, [LINES.splitlines()[number] for number in matching])
    assert errors == f"{len(matching)} of 2 records\n"


def test_without_types_every_field_of_a_line_is_text() -> None:
    Path("users.jsonl").write_text(LINES)

    assert run("born>'2'", "--jsonl", "users.jsonl")[1].splitlines() == LINES.splitlines()[:1]


def test_explains_without_types_as_text() -> None:
    assert "x.y = '1'  (text)" in run("x.y='1'", "--explain")[1]


REFUSALS = {
    "a malformed filter": (["status=active"], "the value is not quoted (column 8)\n  status=active\n"),
    "a third clause": (["a='1' OR a='2' OR a='3'"], "the filter has more than 2 clauses (column 16)"),
    "an unknown column": (["stats='x'", "--csv", "users.csv"], "there is no field stats"),
    "a typed field that is no column": (
        ["elsewhere='x'", "--types", "types.json", "--csv", "users.csv"],
        "the file has no column elsewhere\n",
    ),
    "a cell of the wrong kind": (
        ["status='true'", "--types", "flags.json", "--csv", "users.csv"],
        "row 1: status: the record's value is not of the field's kind: 'active'\n",
    ),
    "a line that is no JSON": (["a='1'", "--jsonl", "lines.jsonl"], "line 2: not JSON: "),
    "a line that is no object": (["a='1'", "--jsonl", "list.json"], "line 1: not a JSON object\n"),
    "a value of a line of the wrong kind": (
        ["status='true'", "--types", "flags.json", "--jsonl", "lines.jsonl"],
        "line 1: status: the record's value is not of the field's kind: 'active'\n",
    ),
    "a missing file": (["a='1'", "--csv", "nowhere.csv"], "nowhere.csv: No such file or directory\n"),
    "a file in another encoding": (["a='1'", "--csv", "latin.csv"], "latin.csv: 'utf-8' codec can't decode"),
    "a broken CSV file": (["a='1'", "--csv", "broken.csv"], "broken.csv: unexpected end of data"),
    "a field that is not among the types, without anything else": (
        ["stats='active'", "--types", "types.json"],
        "there is no field stats (column 1)",
    ),
    "a field that is not among the types": (["a='1'", "--explain", "--types", "none.json"], "there is no field a"),
    "types that are no JSON": (
        ["a='1'", "--explain", "--types", "users.csv"],
        "users.csv: not an object of field types",
    ),
    "types that are no object": (["a='1'", "--explain", "--types", "list.json"], "list.json: not an object"),
    "an unknown kind": (
        ["a='1'", "--explain", "--types", "kind.json"],
        "kind.json: not an object of field types (kinds: text,",
    ),
}


@in_one_test
@pytest.mark.parametrize(("arguments", "complaint"), REFUSALS.values(), ids=REFUSALS)
def test_refuses(arguments: list[str], complaint: str) -> None:
    Path("flags.json").write_text('{"status": "flag"}')
    Path("none.json").write_text("{}")
    Path("list.json").write_text("[]")
    Path("kind.json").write_text('{"a": "number"}')
    Path("lines.jsonl").write_text('{"status": "active"}\n{\n')
    Path("latin.csv").write_bytes("a\nÖ\n".encode("latin-1"))
    Path("broken.csv").write_text('a\n"1\n')

    code, _, errors = run(*arguments)

    assert code == REFUSED
    assert errors.startswith(complaint)


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_a_limit_of_clauses_is_a_number_from_one(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("a='1' OR b='2' OR c='3'", "--max-clauses", number)

    assert caught.value.code == REFUSED
    assert f"'{number}'" in capsys.readouterr().err


def test_runs_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["oneroster_filter", "a = '1'"])

    with pytest.raises(SystemExit) as caught:
        runpy.run_module("oneroster_filter", run_name="__main__")

    assert (caught.value.code, capsys.readouterr().out) == (0, "a='1'\n")


def test_runs_where_the_output_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "argv", ["oneroster_filter", "a = '1'"])

    with pytest.raises(SystemExit):
        runpy.run_module("oneroster_filter", run_name="__main__")

    assert output.getvalue() == "a='1'\n"


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as closed_pipe:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", closed_pipe)
        monkeypatch.setattr(sys, "argv", ["oneroster_filter", "status='active'", "--csv", "users.csv"])

        with pytest.raises(SystemExit) as caught:
            runpy.run_module("oneroster_filter", run_name="__main__")

    assert caught.value.code == 0
