"""Settings from the environment: every variable known, every value readable, or a refusal that says what to mend."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from roster_service.errors import SettingError
from roster_service.server.role_addresses import withhold_owner
from roster_service.settings import PREFIX, Settings, hide_passwords, override, read_environment
from tests.offenders import in_one_test


def test_without_variables_every_setting_has_its_default() -> None:
    assert Settings.from_environ({}) == Settings()
    assert Settings().max_limit == 10_000
    assert Settings().token_seconds == 3600
    assert Settings().retention_days == 7
    assert Settings().database_url is None


def test_every_setting_has_a_help_text() -> None:
    assert all(row.metadata["help"] for row in dataclasses.fields(Settings))


ROOT = Path(__file__).parents[1]
SETTINGS_FILE = ROOT / "roster_service" / "settings.py"


def list_read_settings(path: Path) -> Iterator[str]:
    """The names that the code of a file reads of `settings`, however it got them, or of `self` where they are
    declared."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner.endswith(("settings", "settings()")) or (owner == "self" and path == SETTINGS_FILE):
                yield node.attr


def test_every_setting_is_read_by_some_code() -> None:
    """Else an operator sets it, and nothing changes."""
    paths = [path for package in ("roster_service", "sync_scripts") for path in (ROOT / package).rglob("*.py")]
    read = {name for path in paths for name in list_read_settings(path)}
    assert [row.name for row in dataclasses.fields(Settings) if row.name not in read] == []


READ = [
    ("ROSTER_DATABASE_URL", "postgresql://u:p@h/n", "database_url", "postgresql://u:p@h/n"),
    ("ROSTER_HOME", "/srv/roster", "home", Path("/srv/roster")),
    ("ROSTER_HOST", "0.0.0.0", "host", "0.0.0.0"),
    ("ROSTER_PORT", "65535", "port", 65_535),
    ("ROSTER_CONSOLE", "127.0.0.1:65535", "console_address", "127.0.0.1:65535"),
    ("ROSTER_WORKERS", "1", "workers", 1),
    ("ROSTER_CONTACT", "roster@district.example", "contact", "roster@district.example"),
    ("ROSTER_CONTACT", "https://district.example/roster", "contact", "https://district.example/roster"),
    ("ROSTER_PUBLIC_URL", "https://roster.example/", "public_url", "https://roster.example"),
    ("ROSTER_PUBLIC_URL", "http://h/prefix", "public_url", "http://h/prefix"),
    ("ROSTER_PUBLIC_URL", "https://[::1]:8000", "public_url", "https://[::1]:8000"),
    ("ROSTER_MAIL_TO", "Ada <a@b.example>, c@d.example", "mail_to", "Ada <a@b.example>, c@d.example"),
    ("ROSTER_WEBHOOK_URL", "https://h.example/a?key=b", "webhook_url", "https://h.example/a?key=b"),
    ("ROSTER_SECRET_KEY", "x" * 32, "secret_key", "x" * 32),
    ("ROSTER_TOKEN_SECONDS", "86400", "token_seconds", 86_400),
    ("ROSTER_MAX_LIMIT", "1", "max_limit", 1),
    ("ROSTER_RETENTION_DAYS", "30", "retention_days", 30),
    ("ROSTER_REQUEST_SECONDS", "5", "request_seconds", 5),
    ("ROSTER_TIME_ZONE", "America/Chicago", "time_zone", ZoneInfo("America/Chicago")),
]


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"), [pytest.param(*row, id=f"{row[0]}={row[1]}") for row in READ]
)
def test_a_variable_is_read(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(Settings.from_environ({variable: text}), name) == value


@pytest.mark.parametrize(("port", "of_console"), [(1, 2), (65_534, 65_535), (65_535, 65_534)])
def test_the_console_has_a_port_beside_that_of_the_service(port: int, of_console: int) -> None:
    assert Settings(port=port).console_address == f"127.0.0.1:{of_console}"


REFUSED = [
    *(
        ("ROSTER_TIME_ZONE", text)
        for text in ("", "Chicago", "America", "../America/Chicago", "/etc/localtime", "x" * 300)
    ),
    ("ROSTER_PORT", "0"),
    ("ROSTER_PORT", "65536"),
    ("ROSTER_PORT", "-1"),
    ("ROSTER_PORT", "80a"),
    ("ROSTER_PORT", ""),
    ("ROSTER_PORT", " 80"),
    ("ROSTER_PORT", "٨٠٠٠"),
    ("ROSTER_PORT", "9" * 5000),
    *(("ROSTER_CONSOLE", text) for text in ("127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "[::1]:" + "9" * 5000)),
    ("ROSTER_WORKERS", "0"),
    ("ROSTER_PUBLIC_URL", "roster.example"),
    ("ROSTER_PUBLIC_URL", "ftp://roster.example"),
    ("ROSTER_PUBLIC_URL", ""),
    *(("ROSTER_PUBLIC_URL", f"https://{rest}") for rest in ("", "a b", "a/x?y", "a#b", "/x")),
    *(("ROSTER_MAIL_TO", text) for text in ("", "foo", "a@b.example, ", "a@b.example;c@d.example", "@b.example")),
    ("ROSTER_SECRET_KEY", "short"),
    ("ROSTER_SECRET_KEY", ""),
    ("ROSTER_DATABASE_URL", ""),
    ("ROSTER_DATABASE_URL", "   "),
    ("ROSTER_HOST", ""),
    ("ROSTER_TOKEN_SECONDS", "59"),
    ("ROSTER_MAX_LIMIT", "1e3"),
    *(
        ("ROSTER_OIDC_URL", text)
        for text in (
            "https://accounts.google.com",
            "https://@accounts.google.com",
            "https://id:secret@accounts.google.com",
            "https://id@",
            "https://id@accounts.google.com/?x=1",
            "https://id@login.microsoftonline.com/common/v2.0",
            "https://id@login.microsoftonline.com/organizations",
        )
    ),
    *((f"ROSTER_{name}_DAYS", text) for name in ("LOG", "CHANGE_LOG") for text in ("0", "-1")),
]


@in_one_test
@pytest.mark.parametrize(("variable", "text"), [pytest.param(*row, id=f"{row[0]}={row[1][:20]}") for row in REFUSED])
def test_a_value_that_cannot_be_used_is_refused_by_name(variable: str, text: str) -> None:
    with pytest.raises(SettingError, match=variable) as caught:
        Settings.from_environ({variable: text})
    assert "must" in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.shows(
    "Operators",
    "The change log is deleted after its days, never before the access log that it explains.",
)
@pytest.mark.parametrize(
    ("days", "said"),
    [
        pytest.param({"LOG_DAYS": "29"}, "ROSTER_LOG_DAYS is 29, and must be at least ROSTER_CHANGE_DAYS", id="logs"),
        pytest.param({"CHANGE_DAYS": "401"}, "must be at least ROSTER_CHANGE_DAYS, which is 401", id="changes"),
        pytest.param(
            {"RETENTION_DAYS": "500"}, "must be at least ROSTER_RETENTION_DAYS, which is 500", id="tombstones"
        ),
        pytest.param({"LOG_DAYS": "2556"}, "ROSTER_CHANGE_LOG_DAYS is 2555, and must be at least", id="change log"),
    ],
)
def test_days_that_contradict_each_other_are_refused(days: dict[str, str], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        Settings.from_environ({PREFIX + name: text for name, text in days.items()})


def test_a_secret_that_is_refused_is_not_repeated() -> None:
    with pytest.raises(SettingError) as caught:
        Settings.from_environ({"ROSTER_SECRET_KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        pytest.param("ROSTER_DATABSE_URL", "ROSTER_DATABASE_URL", id="letters-left-out"),
        pytest.param("ROSTER_PROT", "ROSTER_PORT", id="letters-turned"),
        pytest.param("ROSTER_MAXLIMIT", "ROSTER_MAX_LIMIT", id="no-underscore"),
        pytest.param("ROSTER_port", None, id="lower-case"),
        pytest.param("ROSTER_", None, id="only-the-prefix"),
        pytest.param("ROSTER_XYZZY", None, id="nothing-near"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(variable: str, near: str | None) -> None:
    with pytest.raises(SettingError, match=variable) as caught:
        Settings.from_environ({variable: "1"})
    assert near is None or f"did you mean {near}?" in str(caught.value)


def test_variables_of_others_are_left_alone() -> None:
    """The prefix must stand in front; what the tests of this project read is none of the service's business."""
    others = {"PATH": "/bin", "PORT": "x", "roster_port": "x", "MY_ROSTER_PORT": "x"}
    assert Settings.from_environ({**others, "ROSTER_TEST_DATABASE_URL": "postgresql://h/n"}) == Settings()


@pytest.mark.shows(
    "Credentials",
    "Private signing keys are sealed with `ROSTER_SECRET_KEY`; files with secrets are their owner's alone.",
)
def test_the_secret_key_is_made_once_and_kept(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there"
    first = Settings(home=home).read_secret_key()
    assert len(first) >= 32
    assert Settings(home=home).read_secret_key() == first
    assert (home / "secret_key").stat().st_mode & 0o077 == 0
    assert [path.name for path in home.iterdir()] == ["secret_key"]
    assert Settings(home=home, secret_key="x" * 32).read_secret_key() == "x" * 32


@pytest.mark.parametrize("text", ["", "short"])
def test_a_file_without_a_whole_key_is_refused(tmp_path: Path, text: str) -> None:
    """As a loss of power leaves it: with another key, no stored secret could be read."""
    (tmp_path / "secret_key").write_text(text)
    with pytest.raises(SettingError, match=f"{tmp_path}/secret_key must have at least 32 characters; restore it"):
        Settings(home=tmp_path).find_secret_key()


def test_a_value_for_a_process_counts_instead_of_a_file() -> None:
    given = {"ROSTER_CONSOLE_FILE": "/run/secrets/console", "ROSTER_PORT": "81", "PATH": "/bin"}
    made = override(given, {"ROSTER_CONSOLE": "off"})
    assert made == {"ROSTER_CONSOLE": "off", "ROSTER_PORT": "81", "PATH": "/bin"}


@pytest.mark.parametrize("row", dataclasses.fields(Settings), ids=lambda row: row.name)
def test_every_setting_is_read_from_a_file(row: dataclasses.Field[object], tmp_path: Path) -> None:
    values = {f"{PREFIX}{key}": text for key, text in EXAMPLES.items()}
    variable = PREFIX + row.name.upper()
    kept = tmp_path / "kept"
    text = values.get(variable) or ("77" if row.default is None else str(row.default))
    kept.write_text(f"{text}\n")
    assert Settings.from_environ({f"{variable}_FILE": str(kept)}) == Settings.from_environ({variable: text})
    with pytest.raises(SettingError, match=f"{variable} and {variable}_FILE give one setting"):
        Settings.from_environ({variable: text, f"{variable}_FILE": str(kept)})


EXAMPLES = {
    "TIME_ZONE": "America/Chicago",
    "CONSOLE": "127.0.0.1:8001",
    "CONTACT": "roster@district.example",
    "MAIL_TO": "data@district.example",
    "OIDC_URL": "https://console@accounts.google.com",
    "PUBLIC_URL": "https://roster.example",
    "SECRET_KEY": "k" * 40,
    "METRICS_TOKEN": "m" * 40,
    "SMTP_URL": "smtp://host",
    "WEBHOOK_URL": "https://hook.example",
    "WEBHOOK_SECRET": "w" * 40,
}


UNREADABLE: dict[str, tuple[bytes | None, str]] = {
    "it does not exist": (None, "cannot be read: No such file or directory"),
    "it is no text": (b"\xff\xfe" + b"x" * 40, "is no text in UTF-8"),
    "it is empty": (b"\n", "must have at least 32 characters"),
}


@pytest.mark.parametrize(("content", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_gives_no_value_is_refused(content: bytes | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "kept").write_bytes(content)
    with pytest.raises(SettingError, match=f"ROSTER_SECRET_KEY_FILE .*{reason}"):
        Settings.from_environ({"ROSTER_SECRET_KEY_FILE": str(tmp_path / "kept")})


ADDRESSES = {
    "postgresql://roster:hunter2@host/name": "postgresql://roster:***@host/name",
    "postgresql://roster:hunt@er/2#?@host:1/name": "postgresql://roster:***@host:1/name",
    "postgresql://roster@host/name?sslpassword=hunter2&password=hunter2&x=1": (
        "postgresql://roster@host/name?sslpassword=***&password=***&x=1"
    ),
    "smtp://:hunter2@host": "smtp://:***@host",
    "postgresql://host:5432/name": "postgresql://host:5432/name",
}


@pytest.mark.parametrize(("address", "shown"), ADDRESSES.items())
def test_an_address_is_shown_without_its_passwords(address: str, shown: str) -> None:
    assert hide_passwords(address) == shown


def write_settings(home: Path, text: str) -> Path:
    """Writes a file of settings into a data folder, and returns its path."""
    home.mkdir(exist_ok=True)
    path = home / "roster.env"
    path.write_text(text)
    return path


def test_the_file_of_the_data_folder_gives_what_the_environment_does_not(tmp_path: Path) -> None:
    write_settings(
        tmp_path,
        "# Mails\n\nROSTER_SMTP_URL='smtp://user:pass#word=@host'\n  export ROSTER_MAIL_TO = a@b.example, c@d.example\n"
        'ROSTER_MAIL_FROM="Roster <roster@b.example>"\nROSTER_PORT=81\nROSTER_ORDERING_MEGABYTES=77\n',
    )
    found = Settings.read({"ROSTER_HOME": str(tmp_path), "ROSTER_PORT": "82", "PATH": "/bin"})
    assert found == Settings(
        home=tmp_path,
        port=82,
        smtp_url="smtp://user:pass#word=@host",
        mail_to="a@b.example, c@d.example",
        mail_from="Roster <roster@b.example>",
        ordering_megabytes=77,
    )


def test_the_data_folder_of_the_current_folder_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path / "var", "ROSTER_PORT=81\n")
    monkeypatch.chdir(tmp_path)
    assert Settings.read({}) == Settings(port=81)


@pytest.mark.parametrize("environ", [{}, {"ROSTER_HOME": "nowhere"}], ids=["no file", "no data folder"])
def test_without_the_file_the_environment_counts_alone(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.read(environ) == Settings.from_environ(environ)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "variable"),
    [
        ("ROSTER_SECRET_KEY_FILE=of-file", "ROSTER_SECRET_KEY"),
        ("ROSTER_SECRET_KEY=" + "f" * 40, "ROSTER_SECRET_KEY_FILE"),
    ],
)
def test_the_environment_wins_whatever_the_forms_of_both(
    line: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of-file").write_text("f" * 40)
    (tmp_path / "of-environment").write_text("e" * 40)
    given = {variable: "of-environment" if "FILE" in variable else "e" * 40}
    write_settings(tmp_path / "var", f"{line}\n")
    assert Settings.read(given) == Settings.from_environ(given)


def test_a_process_that_reads_no_file_is_handed_what_it_says(tmp_path: Path) -> None:
    """So that the workers of vendors do not find the address of the owner there, which is withheld from them."""
    (tmp_path / "key").write_text("k" * 40)
    write_settings(
        tmp_path, f"ROSTER_DATABASE_URL=postgresql://h/n\nROSTER_SECRET_KEY_FILE={tmp_path / 'key'}\nROSTER_PORT=81\n"
    )
    handed = read_environment({"ROSTER_HOME": str(tmp_path), "ROSTER_PORT": "82", "PATH": "/bin"})
    assert handed == {
        "ROSTER_HOME": str(tmp_path),
        "ROSTER_PORT": "82",
        "PATH": "/bin",
        "ROSTER_DATABASE_URL": "postgresql://h/n",
        "ROSTER_SECRET_KEY": "k" * 40,
    }
    assert "postgresql://h/n" not in withhold_owner(handed).values()


REFUSED_FILES = {
    "no name": ("hunter2\n", "line 1 is no ROSTER_NAME=VALUE"),
    "a variable of others": ("# x\nSMTP=hunter2\n", "line 2 is no ROSTER_NAME=VALUE"),
    "an unknown name": ("ROSTER_PROT=81\n", "ROSTER_PROT is no setting of this service; did you mean ROSTER_PORT?"),
    "a refused value": ("ROSTER_PORT=hunter2\n", "ROSTER_PORT must be a whole number"),
    "an empty value": ("ROSTER_SMTP_URL=\n", "ROSTER_SMTP_URL must begin with"),
    "a name twice": ("ROSTER_PORT=81\nROSTER_PORT=82\n", "ROSTER_PORT stands there twice"),
    "both forms": ("ROSTER_MAIL_TO=a@b.example\nROSTER_MAIL_TO_FILE=x\n", "give one setting; set one of them"),
    "the data folder": ("ROSTER_HOME=/srv\n", "ROSTER_HOME leads to this file, and cannot stand in it"),
    "no text": ("\udcff", "the file is no text in UTF-8"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_file_with_a_mistake_is_refused_by_its_name(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.env"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SettingError) as caught:
        Settings.read({"ROSTER_HOME": str(tmp_path)})
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "roster.env").mkdir()
    with pytest.raises(SettingError, match=r"roster\.env: the file cannot be read: Is a directory"):
        Settings.read({"ROSTER_HOME": str(tmp_path)})


@pytest.mark.shows(
    "Credentials",
    "Private signing keys are sealed with `ROSTER_SECRET_KEY`; files with secrets are their owner's alone.",
)
def test_the_file_is_made_once_for_its_owner_and_sets_nothing(tmp_path: Path) -> None:
    home = tmp_path / "data"
    Settings(home=home).make_settings_file()
    path = home / "roster.env"
    assert path.stat().st_mode & 0o777 == 0o600
    assert Settings.read({"ROSTER_HOME": str(home)}) == Settings(home=home)
    # Each setting that it shows is one, and can be taken as it stands.
    shown = "".join(line[1:] + "\n" for line in path.read_text().splitlines() if line.startswith(f"#{PREFIX}"))
    path.write_text(shown)
    assert Settings.read({"ROSTER_HOME": str(home)}).mail_to == "data@example.org"
    Settings(home=home).make_settings_file()
    assert path.read_text() == shown


def test_addresses_are_those_of_the_server_that_runs(tmp_path: Path) -> None:
    """It may have been given another port than the commands and the nightly sync beside it."""
    given = Settings(home=tmp_path)
    assert (given.find_root_url(), given.name_run_page(7)) == (
        "http://127.0.0.1:8000",
        "http://127.0.0.1:8001/console/runs/7",
    )
    given.served_root_path.write_text("http://127.0.0.1:8080")
    given.served_path.write_text("http://127.0.0.1:8081")
    assert (given.find_root_url(), given.name_run_page(7)) == (
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8081/console/runs/7",
    )
    public = Settings(home=tmp_path, public_url="https://roster.example")
    assert (public.find_root_url(), public.name_run_page(7)) == (
        "https://roster.example",
        "https://roster.example/console/runs/7",
    )
