"""`roster run` and `roster console`: opens the database, makes the demo district, and runs gunicorn until Ctrl-C."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import click

from roster_service.accounts.operators import list_operators
from roster_service.app import prepare_database
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.credentials.transport import is_local_host
from roster_service.auth.scopes import TOKEN_PATH
from roster_service.cli.demo import DemoAccount, FirstInvitation, invite_first, prepare_demo
from roster_service.cli.terminal import announce_cluster, as_json, read_settings
from roster_service.console.login import ROOT
from roster_service.console.login import ROOT as CONSOLE_ROOT
from roster_service.db.embedded_server import open_database, restart_embedded
from roster_service.db.engine import make_engine, require_reachable
from roster_service.db.roles import VENDOR_ROLES
from roster_service.errors import CommandError, DatabaseUnavailableError
from roster_service.explore.listed_settings import EMBEDDED
from roster_service.http.request_facts import READY_PATH
from roster_service.roster.revisions import require_current
from roster_service.roster.upgrades import upgrade
from roster_service.schemas.versions import VERSIONS
from roster_service.server.gunicorn_app import announce_stop, make_options, share_metrics, start, stop
from roster_service.server.role_addresses import DESCRIPTOR, SharedAddresses, withhold_owner
from roster_service.settings import CONSOLE_OFF, Settings, override, read_environment
from roster_service.web.time_limit import NOTICE_SECONDS

START_SECONDS = 60
# The shortest time from one start of the console to the next.
RESTART_SECONDS = 5
FIRST = "`roster operator add EMAIL --name NAME --role owner`"
WANTS_PROXY = (
    "roster: other machines can reach {}: put a proxy in front that terminates TLS and holds slow clients, and set "
    "ROSTER_TRUSTED_PROXIES; deploy/nginx.conf is one"
)


@click.command()
@click.option(
    "--demo/--no-demo",
    default=None,
    help="Fill an empty database with a demo district. By default only the embedded one.",
)
@click.option("--operator", "email", help="The e-mail of the first operator of the console, if it has none yet.")
@click.option("--operator-name", "name", help="The name of the first operator. By default the e-mail.")
@as_json
def run(demo: bool | None, email: str | None, name: str | None, as_json: bool) -> None:
    """Serve until Ctrl-C.

    Without ROSTER_DATABASE_URL, use the embedded PostgreSQL, migrate it, and ask for the first operator of the console.
    """
    settings = read_settings()
    is_embedded = settings.database_url is None
    # With a database of its own, `roster console` is started by itself, maybe on another machine.
    console = make_own_settings(settings) if is_embedded and settings.console_address is not None else None
    require_free_port(settings, "ROSTER_HOST", f"ROSTER_PORT, as in `make run PORT={settings.near_port}`")
    if console is not None:
        require_free_port(console, "ROSTER_CONSOLE", "ROSTER_CONSOLE")
    if not settings.trusted_proxies and not is_local_host(settings.host):
        click.echo(WANTS_PROXY.format(settings.host), err=True)
    # A signal that arrives while the database starts must stop the database too.
    signals = RunSignals()
    signals.register()
    wants_demo = is_embedded if demo is None else demo
    with share_metrics(settings), open_database(settings, announce_cluster) as url:
        account, invitation, lacks_operator = None, None, False
        # The service starts even if another database is not reachable.
        if is_embedded or wants_demo:
            engine = make_engine(url)
            require_reachable(engine)
            if is_embedded:
                settings.make_settings_file()
                upgrade(engine, settings.role_password)
            require_current(engine)
            # Each worker checks this too. Here it fails with one sentence, before any worker starts.
            with engine.begin() as connection:
                ensure_signing_key(connection, settings.read_secret_key())
            if console is not None:
                invitation = invite_first(engine, settings, email, name, may_ask=not as_json)
                with engine.connect() as connection:
                    lacks_operator = not list_operators(connection)
            account = prepare_demo(engine, url, settings) if wants_demo else None
            engine.dispose()
        with (
            SharedAddresses(lambda: prepare_database(settings, url, VENDOR_ROLES)) as addresses,
            open_console(console, make_console_environment(settings, url)) as watch_console,
        ):
            addresses.update()

            def watch() -> None:
                if is_embedded:
                    watch_embedded(settings.home, url)
                addresses.update()
                watch_console()

            serve(
                settings,
                override(
                    withhold_owner(read_environment(os.environ)),
                    {DESCRIPTOR: str(addresses.descriptor), "ROSTER_CONSOLE": settings.console_address or CONSOLE_OFF},
                ),
                signals,
                {settings.served_path: settings.console_url, settings.served_root_path: settings.root_url},
                lambda is_ready: announce(
                    settings, account, invitation, lacks_operator=lacks_operator, as_json=as_json, is_ready=is_ready
                ),
                watch=watch,
                descriptors=(addresses.descriptor,),
            )


def make_console_environment(settings: Settings, url: str) -> dict[str, str]:
    """Returns the environment of a console beside `roster run`, which does not see that the database is embedded."""
    address = {} if settings.console_address is None else {"ROSTER_CONSOLE": settings.console_address}
    embedded = {"ROSTER_DATABASE_URL": url, EMBEDDED: "1"} if settings.database_url is None else {}
    return override(os.environ, embedded | address)


@contextlib.contextmanager
def open_console(own: Settings | None, environment: Mapping[str, str]) -> Iterator[Callable[[], None]]:
    """Runs the console in a process of its own until the block ends; nothing without settings of it. Yields what to
    call every second: a console that has ended is started again, and the vendors do not notice."""
    if own is None:
        yield lambda: None
        return
    children = [_start_console(own, environment)]
    started = time.monotonic()

    def watch() -> None:
        nonlocal started
        code = children[-1].poll()
        if code is not None and time.monotonic() - started >= RESTART_SECONDS:
            click.echo(f"roster: the console had ended with code {code}; it is started again", err=True)
            children.append(_start_console(own, environment))
            started = time.monotonic()

    try:
        wait_until_answering(own, children[-1])
        yield watch
    finally:
        stop(children[-1])


def _start_console(own: Settings, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return start(APPLICATION, make_options(own), env=environment, start_new_session=True)


def watch_embedded(home: Path, url: str) -> None:
    """Starts the embedded server again if it has ended, and says so. The workers connect again by themselves."""
    try:
        if restart_embedded(home, url):
            click.echo("roster: the embedded PostgreSQL had ended; it is started again", err=True)
    except DatabaseUnavailableError as error:
        click.echo(f"roster: {error}", err=True)


def require_free_port(settings: Settings, name: str, remedy: str) -> None:
    """Raises CommandError if the service cannot listen on its address and port. `name`: of the setting of the address;
    `remedy`: how to choose another port."""
    with socket.socket(socket.AF_INET6 if settings.is_ipv6 else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            is_foreign = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
            advice = f"choose an address of this machine: {name}" if is_foreign else f"choose another port: {remedy}"
            raise CommandError(f"cannot listen on {settings.host_and_port} ({error.strerror}); {advice}") from None


def note_addresses(home: Path, served: Mapping[Path, str]) -> None:
    """Writes the addresses into their files; says so if it cannot. Without them, other processes go by their
    settings."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        for path, address in served.items():
            path.write_text(address, encoding="utf-8")
    except OSError as error:
        click.echo(f"roster: the data folder {home} cannot be written: {error.strerror}", err=True)


def serve(
    settings: Settings,
    environment: Mapping[str, str],
    signals: RunSignals,
    served: Mapping[Path, str],
    when_answering: Callable[[bool], None],
    application: str = "wsgi:app",
    watch: Callable[[], None] = lambda: None,
    descriptors: Sequence[int] = (),
) -> None:
    """Runs gunicorn until it ends, or until Ctrl-C or SIGTERM, after which it finishes its requests. `application`:
    `module:name`; `served`: the files in which other processes find its addresses, which may have another port than
    their settings; `descriptors`: those that it inherits. Raises CommandError if gunicorn fails.

    `when_answering`: called once gunicorn answers requests, with True if it can use the database; `watch`: called every
    second after that.
    """
    # In a new session, so that Ctrl-C in the terminal interrupts this process only, which then stops gunicorn.
    child = start(application, make_options(settings), env=environment, start_new_session=True, pass_fds=descriptors)
    try:
        is_ready = wait_until_answering(settings, child)
        note_addresses(settings.home, served)
        signals.forward_to(child)
        when_answering(is_ready)
        while (ended := child.poll()) is None:
            watch()
            time.sleep(1)
        code = ended
    except Terminated:
        click.echo(f"roster: ends in {NOTICE_SECONDS} s, when load balancers know; a second signal: at once", err=True)
        with contextlib.suppress(Terminated, KeyboardInterrupt):
            announce_stop(child, NOTICE_SECONDS)
        code = 0
    except KeyboardInterrupt:
        code = 0
    finally:
        for path in served:
            with contextlib.suppress(OSError):
                path.unlink()
        stop(child)
    if code != 0:
        raise CommandError(f"gunicorn ended with code {code}")


def wait_until_answering(settings: Settings, child: subprocess.Popen[bytes]) -> bool:
    """Waits until the server answers. Returns True if it serves, False if it answers 503 because it cannot use its
    database. With the embedded database, which is running, it waits until the server serves.

    Raises CommandError if the server ends before that, or does not answer within `START_SECONDS`.
    """
    expected = (b"200",) if settings.database_url is None else (b"200", b"503")
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise CommandError("the server did not start; the lines above say why")
        try:
            with socket.create_connection((settings.host, settings.port), timeout=START_SECONDS) as probe:
                probe.sendall(f"GET {READY_PATH} HTTP/1.0\r\n\r\n".encode())
                status = probe.recv(12)[-3:]
                if status in expected:
                    return status == b"200"
        except OSError:
            pass
        time.sleep(0.1)
    raise CommandError(f"the server did not answer within {START_SECONDS} seconds")


def announce(
    settings: Settings,
    account: DemoAccount | None,
    invitation: FirstInvitation | None,
    *,
    lacks_operator: bool,
    as_json: bool,
    is_ready: bool,
) -> None:
    """Prints the address of the service, and example calls if there is a demo account. `invitation`: of the first
    operator, None if there is no password to set; `lacks_operator`: whether the console is known to have none."""
    root = settings.root_url
    console = None if settings.console_address is None else settings.console_url
    if as_json:
        demo = None if account is None else dataclasses.asdict(account)
        click.echo(
            json.dumps(
                {
                    "url": root,
                    "console": None if console is None else f"{console}{CONSOLE_ROOT}",
                    "demo": demo,
                    "invitation": None if invitation is None else invitation.link,
                }
            )
        )
        return
    if not is_ready:
        click.echo(f"\nThe service runs at {root}, and answers 503 until it can use its database. Ctrl-C stops it.\n")
        return
    click.echo(f"\nThe roster is served at {root}; its documentation at {root}/docs. Ctrl-C stops it.\n")
    if account is not None:
        click.echo(make_example_calls(root, account))
        click.echo("The district is made up, and its vendor for trying; `roster demo remove` deletes both.\n")
    if invitation is not None:
        click.echo(
            f"The console; this link sets the password of its first operator, {invitation.email}:\n{invitation.link}\n"
        )
    elif lacks_operator:
        click.echo(f"The console, {console}{CONSOLE_ROOT}, has no operator; add the first one with {FIRST}\n")
    elif console is not None:
        click.echo(f"The console: {console}{CONSOLE_ROOT}\n")


def make_example_calls(root: str, account: DemoAccount) -> str:
    """Returns shell lines for the demo account: a token and calls for both versions, a login, and students."""
    calls = [f"CLIENT='{account.client_id}:{account.client_secret}'", ""]
    for version in VERSIONS:
        call = f'curl -sS -w "\\n" -H "Authorization: Bearer $TOKEN" "{root}{version.root}'
        calls += [
            f"# {version.title}",
            'TOKEN=$(curl -s -u "$CLIENT" -d grant_type=client_credentials \\',
            f"  -d scope={version.prefix}/roster.readonly \\",
            f"  {root}{TOKEN_PATH} | {_make_member_filter('access_token')})",
            f'{call}/schools?fields=sourcedId,name"',
            f'{call}/students?limit=2"',
            "",
        ]
    return "\n".join(calls + _make_vendor_calls(root, account))


def _make_vendor_calls(root: str, account: DemoAccount) -> list[str]:
    headers = "-H \"x-api-key: $KEY\" -H 'Content-Type: application/json'"
    login = json.dumps({"email": account.email, "password": account.password})
    query = json.dumps({"districtlea": account.districtlea, "limit": 2})
    return [
        "# The vendor interface",
        f"KEY='{account.api_key}'",
        f"PJWT=$(curl -s {headers} \\",
        f"  -d '{login}' {root}/v1/login | {_make_member_filter('token')})",
        f'curl -sS -w "\\n" {headers} -H "Authorization: Bearer $PJWT" \\',
        f"  -d '{query}' {root}/v1/students",
        "",
    ]


def _make_member_filter(member: str) -> str:
    """Returns a shell filter that prints the text of one member of a JSON object."""
    return f'sed -n \'s/.*"{member}": *"\\([^"]*\\)".*/\\1/p\''


TERMINAL = 0


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived."""


class RunSignals:
    """SIGINT and SIGTERM end `roster run`. SIGHUP lets gunicorn replace its workers, or ends `roster run` if it is sent
    because the terminal has closed."""

    def __init__(self) -> None:
        self._had_terminal = os.isatty(TERMINAL)
        self._server: subprocess.Popen[bytes] | None = None

    def register(self) -> None:
        """Registers the handlers. A SIGHUP that is ignored, as below nohup, stays ignored."""
        signal.signal(signal.SIGTERM, self._terminate)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._hang_up)

    def forward_to(self, server: subprocess.Popen[bytes]) -> None:
        """Sends each further SIGHUP to gunicorn. It must have started: a SIGHUP before that would end it."""
        self._server = server

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        raise Terminated

    def _hang_up(self, _signal: int, _frame: FrameType | None) -> None:
        if self._had_terminal and not os.isatty(TERMINAL):
            raise KeyboardInterrupt
        if self._server is not None:
            self._server.send_signal(signal.SIGHUP)


APPLICATION = "roster_service.server.entry:open_console()"


@click.command("console")
def console() -> None:
    """Serve the console, at the address of ROSTER_CONSOLE, until Ctrl-C.

    With the embedded database, `roster run` does so.
    """
    settings = read_settings()
    own = make_own_settings(settings)
    require_free_port(own, "ROSTER_CONSOLE", "ROSTER_CONSOLE")
    signals = RunSignals()
    signals.register()
    with open_database(settings) as url:
        serve(
            own,
            make_console_environment(settings, url),
            signals,
            {own.served_path: own.console_url},
            lambda _: click.echo(f"The console: {settings.console_url}{ROOT}"),
            APPLICATION,
        )


def make_own_settings(settings: Settings) -> Settings:
    """Returns the settings of the process of the console: one worker at its address. Raises CommandError if the
    settings name none."""
    if settings.console_address is None:
        raise CommandError("set ROSTER_CONSOLE to an address and a port, such as 127.0.0.1:8001")
    host, _, port = settings.console_address.rpartition(":")
    return dataclasses.replace(settings, host=host.strip("[]"), port=int(port), workers=1)
