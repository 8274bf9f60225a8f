"""Every setting of the service: a typed field, its default and its help text.

The environment variable of a field is `ROSTER_` and the field's name in capitals. The same name with `_FILE` may name a
file with the value instead, as containers give secrets. What the environment does not give may stand in a file of the
data folder, `roster.env`, which every process of an installation reads: cron gives its commands no variables. A test
compares the settings table of `docs/reference.md` with these fields. A `ROSTER_` variable without a field is refused,
so that a typing error does not silently leave the default in place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from roster_service.errors import ErrorProfile, SettingError
from roster_service.logs import LogFormat, LogLevel

PREFIX = "ROSTER_"
# What follows the name of a setting in the variable that names a file with its value.
FILE_SUFFIX = "_FILE"
# Stands for a secret that is not shown.
HIDDEN = "***"
# Variables that other programs of this project read. The service ignores them.
IGNORED = frozenset({"TEST_DATABASE_URL"})
# The file of settings in the data folder, and what it holds before an operator has written into it.
SETTINGS_FILE = "roster.env"
_TEMPLATE = """\
# The settings of this installation: the service, the console, the commands and the nightly sync read them here.
# A variable of the environment wins. Restart `make run` after a change; `roster settings` shows what counts.
# One NAME=VALUE in a line; a comment has a line of its own. docs/reference.md lists every setting.

# Mails of the nightly sync; `python -m sync_scripts.announce` tries them.
#ROSTER_SMTP_URL=smtp://user:password@mail.example.org:587
#ROSTER_MAIL_FROM=roster@example.org
#ROSTER_MAIL_TO=data@example.org

# The time zone of the district.
#ROSTER_TIME_ZONE=America/Chicago

# The port of the service; the console takes the next one.
#ROSTER_PORT=8000
"""
# The values of ROSTER_CONSOLE beside an address.
CONSOLE_OFF = "off"
LAST_PORT = 65_535
# Where the console stands below its address.
CONSOLE_PATH = "/console"

WordT = TypeVar("WordT", bound=StrEnum)


def read_text(text: str) -> str:
    """Accepts any text that is not blank. This and the next functions raise ValueError for other texts."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def read_contact(text: str) -> str:
    """Returns an e-mail address, or a URL. Raises ValueError for another text."""
    if not re.fullmatch(r"[^@\s<>\"]+@[^@\s<>\"/]+|https?://[^\s<>\"]+", text):
        raise ValueError("must be an e-mail address or a URL")
    return text


def read_address(*schemes: str) -> Callable[[str], str]:
    """Returns a reader of addresses with one of these schemes."""
    beginnings = tuple(f"{scheme}://" for scheme in schemes)

    def read(text: str) -> str:
        if not text.startswith(beginnings):
            raise ValueError(f"must begin with {' or '.join(beginnings)}")
        return text

    return read


def read_base_url(text: str) -> str:
    """Accepts an http or https address that others can follow; returns it without a trailing slash."""
    if not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", text):
        raise ValueError("must begin with http:// or https://, and have a host and at most a path")
    return text.rstrip("/")


def read_receivers(text: str) -> str:
    """Accepts e-mail addresses, separated by commas."""
    if not all(re.fullmatch(r"[^@]*[^@\s]@[^@\s]+", address.strip()) for address in text.split(",")):
        raise ValueError("must be e-mail addresses, separated by commas")
    return text


def read_directory(text: str) -> str:
    """Accepts the issuer of the directory of one organization, with a client id before its host. Entra's `common` and
    `organizations` stand for every organization, whose administrators could claim any e-mail address."""
    if any(f"/{word}/" in f"{text}/" for word in ("common", "organizations", "consumers")):
        raise ValueError("must be of your own tenant, by its id")
    if not re.fullmatch(r"https?://[^/@:?#]+@[^/@?#]+(/[^@?#]*)?", text):
        raise ValueError("must be an address with the id of the console, as https://CLIENT_ID@accounts.google.com")
    return read_base_url(text)


def read_count(least: int, most: int) -> Callable[[str], int]:
    """Returns a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def read_switch(text: str) -> bool:
    """Accepts `true` or `false`, in any case."""
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def read_word(words: type[WordT]) -> Callable[[str], WordT]:
    """Returns a reader of the words of an enumeration."""

    def read(text: str) -> WordT:
        if text not in list(words):
            raise ValueError(f"must be one of {', '.join(words)}")
        return words(text)

    return read


def read_zone(text: str) -> tzinfo:
    """Returns a time zone by its IANA name."""
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be the IANA name of a time zone, as America/Chicago") from None


def read_console(text: str) -> str:
    """Accepts `off`, or the address and port of the console."""
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and 1 <= int(port) <= LAST_PORT
    if text != CONSOLE_OFF and not (host and is_port):
        raise ValueError("must be off, or an address and a port, as 127.0.0.1:8001; the console is its own process")
    return text


def read_secret(text: str) -> str:
    """Accepts a secret of at least 32 characters."""
    if len(text) < 32:
        raise ValueError("must have at least 32 characters")
    return text


def hide_secret(_text: str) -> str:
    """Returns what stands for a secret."""
    return HIDDEN


def hide_passwords(url: str) -> str:
    """Returns an address without its passwords: before the host, and among the parameters."""
    shown = re.sub(r"^([^:]+://[^:/@]*):.*@", rf"\1:{HIDDEN}@", url, flags=re.DOTALL)
    return re.sub(r"(password=)[^&]*", rf"\1{HIDDEN}", shown)


def declare_setting(
    default: Any, reader: Callable[[str], Any], explanation: str, show: Callable[[str], str] = str
) -> Any:
    """Declares a field of `Settings`: its default, the reader of the variable's text, which raises ValueError to refuse
    it, the help text, and the text that may be shown of a value."""
    return dataclasses.field(default=default, metadata={"reader": reader, "help": explanation, "show": show})


@dataclasses.dataclass(frozen=True)
class SettingText:
    """The text of a setting in the environment. `variable`: that gives it; `path`: of the file that it was read from,
    if there is one."""

    variable: str
    text: str
    path: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one process, read once at its start."""

    database_url: str | None = declare_setting(
        None,
        read_text,
        "PostgreSQL 15 or newer, as `postgresql://user:password@host/name`; none: the embedded server",
        hide_passwords,
    )
    read_database_url: str | None = declare_setting(
        None,
        read_text,
        "hot standby that rosters are read from, with the user and password of ROSTER_DATABASE_URL; several as "
        "`host=one,two`; for more readers than one server bears",
        hide_passwords,
    )
    role_password: str | None = declare_setting(
        None,
        read_text,
        "secret from which the passwords of the database roles follow; where ROSTER_DATABASE_URL has no password; "
        "none: that password",
        hide_secret,
    )
    home: Path = declare_setting(
        Path("var"),
        Path,
        "data folder; a full path if commands run in other folders",
    )
    host: str = declare_setting(
        "127.0.0.1", read_text, "address to listen on; another one if the proxy is on another machine"
    )
    port: int = declare_setting(8000, read_count(1, LAST_PORT), "port to listen on")
    time_zone: tzinfo | None = declare_setting(
        None,
        read_zone,
        "time zone of the district, for times, nights, pauses and hours of deliveries, as `America/Chicago`; none: "
        "that of the machine, by which its timer starts the nightly sync",
    )
    workers: int = declare_setting(
        os.cpu_count() or 1,
        read_count(1, 512),
        "worker processes; none: one per core; fewer if the database shares the cores",
    )
    public_url: str | None = declare_setting(
        None,
        read_base_url,
        "address that clients use, for `href`, `Link` and the rule that secrets need https; behind a proxy; none: the "
        "address of each request",
    )
    contact: str | None = declare_setting(
        None,
        read_contact,
        "e-mail address or URL for questions of vendors, in guides and OpenAPI documents; before the first vendor",
    )
    secret_key: str | None = declare_setting(
        None,
        read_secret,
        "seals the signing keys at rest, and gives clients with `--oauth1` their secrets; the same on all machines; "
        "none: made and kept in the data folder",
        hide_secret,
    )
    token_seconds: int = declare_setting(
        3600,
        read_count(60, 86400),
        "validity of a rostering access token, in seconds; it ends with its rights anyway",
    )
    oauth1: bool = declare_setting(
        False,
        read_switch,
        "`true`: OneRoster 1.1 also takes signed requests (OAuth 1.0a) of clients that were added with `--oauth1`",
    )
    trusted_proxies: int = declare_setting(
        0,
        read_count(0, 10),
        "number of proxies in front, whose `X-Forwarded-For`, `-Proto` and `-Host` count",
    )
    max_limit: int = declare_setting(
        10_000, read_count(1, 100_000), "largest page size; less if pages take too much memory"
    )
    v1p2_errors: ErrorProfile = declare_setting(
        ErrorProfile.SPECIFICATION,
        read_word(ErrorProfile),
        "form of errors and warnings in OneRoster 1.2: `specification` (`statusInfoSet`), `official` (the standard's "
        "schema, and a header for warnings) or `both`",
    )
    retention_days: int = declare_setting(
        7,
        read_count(1, 3650),
        "days that a record stays `tobedeleted` before it is purged; more if a consumer reads its deltas less often",
    )
    change_days: int = declare_setting(
        30,
        read_count(0, 3650),
        "days that what a run changed and rejected is kept, with the values, and exports for an undo; 0: no changes "
        "and exports, and rejected rows for a day",
    )
    log_days: int = declare_setting(
        400,
        read_count(1, 36_500),
        "days that the access log, the usage counters and runs are kept; as your law says",
    )
    change_log_days: int = declare_setting(
        2_555,
        read_count(1, 36_500),
        "days that the change log is kept, at least as many as the access log",
    )
    access_log_required: bool = declare_setting(
        True,
        read_switch,
        "an answer with records that neither the data folder nor the database can record is 503; `false`: it leaves, "
        "and its row waits in memory",
    )
    ordering_megabytes: int = declare_setting(
        1024,
        read_count(1, 10**6),
        "what orderings may take in the database, in megabytes; more if first pages of the same filters stay slow",
    )
    hold_tombstones_percent: int = declare_setting(
        10,
        read_count(0, 100),
        "a sync that would tombstone more percent of a type than this is held, unless the feed has a limit of its own",
    )
    hold_least_records: int = declare_setting(
        50,
        read_count(1, 10**9),
        "a type with fewer records or a file with fewer rows is held only if all rows of a bulk file are rejected; "
        "less for a small district",
    )
    delivery_loss_percent: int = declare_setting(
        10,
        read_count(0, 100),
        "a file for a vendor waits if its receiver would lose more percent of a type",
    )
    delivery_private_hosts: str | None = declare_setting(
        None, read_text, "servers of receivers that may have a private address, separated by commas; none: no one may"
    )
    rejected_percent: int = declare_setting(
        1,
        read_count(0, 100),
        "a sync that rejects more percent of the rows of a file than this is announced",
    )
    export_age_minutes: int = declare_setting(
        5,
        read_count(0, 1440),
        "minutes that nobody may have written to an export before it is loaded; more if your SIS pauses for longer",
    )
    stale_days: int = declare_setting(
        3,
        read_count(1, 365),
        "days after which an export that is always the same is stale; more if your SIS exports once a week",
    )
    sync_jobs: int = declare_setting(
        1, read_count(1, 64), "how many feeds a nightly sync loads at the same time; more if it takes too long"
    )
    smtp_url: str | None = declare_setting(
        None,
        read_address("smtp", "smtps"),
        "mail server for announcements of the sync, `smtp://user:password@host:587` or `smtps://...`; none: no mails",
        hide_passwords,
    )
    mail_from: str = declare_setting(
        "roster@localhost", read_text, "sender of the announcements; one that your mail server takes"
    )
    mail_to: str | None = declare_setting(None, read_receivers, "receivers of the announcements, separated by commas")
    webhook_url: str | None = declare_setting(
        None,
        read_address("http", "https"),
        "address that announcements of the sync are posted to, as JSON; none: nowhere",
        hide_secret,
    )
    webhook_secret: str | None = declare_setting(
        None, read_secret, "secret that signs what is posted there, of at least 32 characters", hide_secret
    )
    console: str | None = declare_setting(
        None,
        read_console,
        "address of the console, as `127.0.0.1:8001`, or `off`; none: with the embedded database at `127.0.0.1` and "
        "the port after `ROSTER_PORT`, else `off`",
    )
    console_idle_minutes: int = declare_setting(
        60,
        read_count(1, 1440),
        "minutes without a request after which a session of the console ends; less on shared computers",
    )
    oidc_url: str | None = declare_setting(
        None,
        read_directory,
        "directory for logins to the console (OpenID Connect), with the id that it has given the console: "
        "`https://CLIENT_ID@login.microsoftonline.com/TENANT/v2.0` or `https://CLIENT_ID@accounts.google.com`, with "
        "`:`, `/` and `@` in the id as `%3A`, `%2F` and `%40`; none: passwords alone",
    )
    oidc_secret: str | None = declare_setting(
        None, read_text, "secret that the directory has given the console", hide_secret
    )
    oidc_trust_email: bool = declare_setting(
        False,
        read_switch,
        "`true`: take addresses that the directory does not call verified (`email_verified`), only if its members "
        "cannot choose their own: else one who enters that of an owner becomes the owner",
    )
    prepared_statements: bool = declare_setting(
        True,
        read_switch,
        "statements are planned once for each connection; `false` behind a pooler that works by transaction",
    )
    log_format: LogFormat = declare_setting(
        LogFormat.AUTO,
        read_word(LogFormat),
        "`json`: an object in each line, for programs; `text`: for people; `auto`: text to a terminal, else JSON",
    )
    log_level: LogLevel = declare_setting(
        LogLevel.INFO,
        read_word(LogLevel),
        "least level of the log: `debug` (with the parameters of each request), `info` (each request), `warning` (slow "
        "ones), `error`",
    )
    metrics_token: str | None = declare_setting(
        None,
        read_secret,
        "bearer token for `/metrics`, of at least 32 characters; none: there is no such path",
        hide_secret,
    )
    request_seconds: int = declare_setting(
        30,
        read_count(1, 3600),
        "seconds that a request may wait for the database; then it is answered 503; less if your proxy gives up sooner",
    )

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Settings:
        """Reads the settings from environment variables and, what they do not give, from the file of settings in the
        data folder. Raises SettingError as `from_environ` and `read_environment`."""
        return cls.from_environ(read_environment(environ))

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Reads the settings from environment variables alone.

        Raises SettingError as `read_setting_texts`, for a refused value, and for days that contradict each other.
        """
        made = cls(**_read_values(read_setting_texts(environ)))
        for name, others in _AT_LEAST.items():
            for other in others:
                _require_order(made, name, other)
        return made

    @property
    def host_and_port(self) -> str:
        """The address and the port to listen on, as in a URL: an IPv6 address is in brackets."""
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"

    @property
    def root_url(self) -> str:
        """The address of the service, without a path: `public_url`, or where it listens."""
        return self.public_url or f"http://{self.host_and_port}"

    @property
    def is_ipv6(self) -> bool:
        """Whether the address to listen on is an IPv6 address."""
        return ":" in self.host

    @property
    def near_port(self) -> int:
        """The port after that of the service; the one before where there is none."""
        return self.port + 1 if self.port < LAST_PORT else self.port - 1

    @property
    def console_address(self) -> str | None:
        """The address and port of the console; None if there is none."""
        if self.console is None and self.database_url is None:
            return f"127.0.0.1:{self.near_port}"
        return None if self.console in (None, CONSOLE_OFF) else self.console

    def name_run_page(self, run: int) -> str | None:
        """Returns the address of the page of a run in the console; None if there is no console."""
        return None if self.console_address is None else f"{self.find_console_url()}{CONSOLE_PATH}/runs/{run}"

    @property
    def console_url(self) -> str:
        """The address of the console, without a path. Behind a proxy, it is reached at `public_url`, too."""
        return self.public_url or f"http://{self.console_address or self.host_and_port}"

    @property
    def served_path(self) -> Path:
        """The file in which `roster run` keeps the address of the console that it serves, until it ends."""
        return self.home / "console_url"

    @property
    def served_root_path(self) -> Path:
        """The file in which `roster run` keeps the address of the service, until it ends."""
        return self.home / "root_url"

    def find_console_url(self) -> str:
        """Returns the address of the console that serves this data folder, without a path: `public_url`, or that of a
        server that may have been given another port; without both, `console_url`."""
        return self._find_served(self.served_path) or self.console_url

    def find_root_url(self) -> str:
        """Returns the address of the service that serves this data folder, as `find_console_url`; without a server,
        `root_url`."""
        return self._find_served(self.served_root_path) or self.root_url

    def _find_served(self, path: Path) -> str | None:
        with contextlib.suppress(OSError):
            return self.public_url or path.read_text(encoding="utf-8")
        return None

    @property
    def settings_path(self) -> Path:
        """The file of settings, which may not exist."""
        return self.home / SETTINGS_FILE

    def make_settings_file(self) -> None:
        """Makes the file of settings, which only its owner may read, if there is none: with comments alone."""
        self.home.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(self.settings_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_TEMPLATE)

    @property
    def secret_key_path(self) -> Path:
        """The file of the secret key, if no setting gives it."""
        return self.home / "secret_key"

    @property
    def access_log_folder(self) -> Path:
        """The folder of the rows of the access log that the database does not have yet."""
        return self.home / "access-log"

    def find_secret_key(self) -> str | None:
        """Returns the setting `secret_key`, else the key in the data folder; None if there is neither. Raises
        SettingError for a file without a whole key."""
        if self.secret_key is not None:
            return self.secret_key
        return self._read_key_file() if self.secret_key_path.exists() else None

    def read_secret_key(self) -> str:
        """Returns the setting `secret_key`, else the key in the data folder, which the first call makes. For what may
        be the first to need a key; a command of an installation takes `find_secret_key`."""
        found = self.find_secret_key()
        if found is not None:
            return found
        path = self.secret_key_path
        if not path.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            # Linked into place when it is complete: two processes that start at once then use the same key.
            unfinished = path.with_name(f".secret_key.{os.getpid()}")
            unfinished.touch(mode=0o600)
            with unfinished.open("w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(48))
                file.flush()
                # Else a machine that loses its power may have the name, and no key.
                os.fsync(file.fileno())
            try:
                os.link(unfinished, path)
            except FileExistsError:
                pass
            finally:
                unfinished.unlink()
        return self._read_key_file()

    def _read_key_file(self) -> str:
        try:
            return read_secret(self.secret_key_path.read_text().strip())
        except ValueError as error:
            raise SettingError(f"{self.secret_key_path} {error}; restore it from a backup") from None


# Days that may not be fewer than others: nothing may need a row that is deleted by then. A run has rejected rows and
# changes, and the latest ones count what is purged; a tombstone may be disclosed until it is purged; the change log
# shows by which grant a row of the access log came about.
_AT_LEAST: Mapping[str, tuple[str, ...]] = {
    "log_days": ("change_days", "retention_days"),
    "change_log_days": ("log_days",),
}


def _require_order(settings: Settings, name: str, other: str) -> None:
    """Raises SettingError if the days of `name` are fewer than those of `other`."""
    days, least = getattr(settings, name), getattr(settings, other)
    if days < least:
        raise SettingError(
            f"{PREFIX}{name.upper()} is {days}, and must be at least {PREFIX}{other.upper()}, which is {least}"
        )


def read_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Returns environment variables and, of the settings that they do not give, the variables of the file of settings
    in the data folder: what a process that does not read the file needs.

    Raises SettingError, which names the file, for a line that is no setting, for a refused value, and for a file that
    cannot be read; and for a bad name of the data folder.
    """
    named = {variable: text for variable, text in environ.items() if _name_field(variable) == "HOME"}
    path = Settings.from_environ(named).settings_path
    try:
        texts = read_setting_texts(_read_settings_file(path))
        if "home" in texts:
            raise SettingError(f"{texts['home'].variable} leads to this file, and cannot stand in it")
        _read_values(texts)
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None
    given = {_name_field(variable) for variable in environ}
    # Without `_FILE`: what the file said is read now.
    added = {name.upper(): found.text for name, found in texts.items() if name.upper() not in given}
    return {**{PREFIX + name: text for name, text in added.items()}, **environ}


def override(environ: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of an environment with other values of some settings, for a process of this service. What
    would name files with these values is left out, because both together are refused."""
    files = {name + FILE_SUFFIX for name in values}
    return {**{name: value for name, value in environ.items() if name not in files}, **values}


def _name_field(variable: str) -> str | None:
    """The name in capitals of the field that a variable would give; None if it is none of this service."""
    if not variable.startswith(PREFIX):
        return None
    return variable.removeprefix(PREFIX).removesuffix(FILE_SUFFIX)


def _read_settings_file(path: Path) -> dict[str, str]:
    """The variables of a file of settings; none if there is no file. Quotes around a value do not count, as for a
    shell and for systemd."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError:
        raise SettingError("the file is no text in UTF-8") from None
    except OSError as error:
        raise SettingError(f"the file cannot be read: {error.strerror}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        # A line may have a secret, so it is not repeated.
        variable, equals, value = (part.strip() for part in text.removeprefix("export ").partition("="))
        if not equals or not variable.startswith(PREFIX):
            raise SettingError(f"line {number} is no {PREFIX}NAME=VALUE")
        if variable in found:
            raise SettingError(f"{variable} stands there twice")
        found[variable] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return found


def _read_values(texts: Mapping[str, SettingText]) -> dict[str, Any]:
    """The values of fields, of their texts. Raises SettingError for a refused one."""
    rows = {row.name: row for row in dataclasses.fields(Settings)}
    values: dict[str, Any] = {}
    for name, given in texts.items():
        try:
            values[name] = rows[name].metadata["reader"](given.text)
        except ValueError as error:
            raise SettingError(f"{given.variable} {error}") from None
    return values


def read_setting_texts(environ: Mapping[str, str]) -> Mapping[str, SettingText]:
    """Returns the texts that environment variables, or the files that they name, give for fields of `Settings`.

    Raises SettingError for an unknown name, for a file that cannot be read, and for a setting that is set twice: with
    its value and with a file.
    """
    names = {row.name.upper(): row.name for row in dataclasses.fields(Settings)}
    found: dict[str, SettingText] = {}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        given = variable.removeprefix(PREFIX)
        if given in IGNORED:
            continue
        name = given.removesuffix(FILE_SUFFIX)
        if name not in names:
            near = difflib.get_close_matches(given, names, 1)
            hint = f"; did you mean {PREFIX}{near[0]}?" if near else ""
            raise SettingError(f"{variable} is no setting of this service{hint}")
        field = names[name]
        if field in found:
            raise SettingError(f"{found[field].variable} and {variable} give one setting; set one of them")
        path = environ[variable] if given != name else None
        found[field] = SettingText(variable, environ[variable] if path is None else _read_file(variable, path), path)
    return found


def _read_file(variable: str, path: str) -> str:
    """Returns the text of a file, without the end of its line."""
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SettingError(f"{variable} names a file that is no text in UTF-8") from None
    except OSError as error:
        raise SettingError(f"{variable} names a file that cannot be read: {error.strerror}") from None
