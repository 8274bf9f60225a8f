"""The machines of deploy/machines/compose.yaml on this one: each service is a program with an address of its own.

The files, settings and commands are those of the recipe. Only names of services become addresses of the loopback
network, and paths become folders of the test. The programs are those of Debian.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg2
import yaml

from tests.deploy.proxy import NAME, Proxy, find_free_ports, make_certificate, place

PROJECT = Path(__file__).parents[2]
RECIPE = PROJECT / "deploy" / "machines"
SERVICES: Mapping[str, Any] = yaml.safe_load((RECIPE / "compose.yaml").read_text())["services"]
ROSTER = (sys.executable, "-c", "from roster_service.cli import main; main()")
# Debian keeps each version of PostgreSQL in a folder of its own.
POSTGRES = max(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), default="postgres")
PROGRAMS = ("nginx", "pgbouncer", POSTGRES)
# The machines that others reach by their name, with the port of each.
PORTS = {"primary": 5432, "standby": 5432, "pooler": 6432, "web1": 8000, "web2": 8000, "console": 8001}
# Not the scheme of an address, nor a part of a word.
NAMES = re.compile(rf"(?<![\w.-])({'|'.join(PORTS)})(?![\w-]|://)")
VARIABLE = re.compile(r"\$\{(\w+):\?\}")
SECRETS = (
    "ROSTER_SECRET_KEY",
    "ROSTER_METRICS_TOKEN",
    "ROSTER_PASSWORD",
    "SUPERUSER_PASSWORD",
    "POOLER_PASSWORD",
    "REPLICATION_PASSWORD",
)
START_SECONDS = 60


@dataclass
class Machines:
    """The running machines. `processes`: by the name of their service; `proxy`: nginx in front."""

    folder: Path
    proxy: Proxy
    values: Mapping[str, str]
    network: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def find_address(self, name: str) -> str:
        """The address of a machine."""
        return f"{self.network}.{list(PORTS).index(name) + 1}"

    def localize(self, text: str) -> str:
        """A text of the recipe with the values and addresses of this machine."""
        filled = VARIABLE.sub(lambda found: self.values[found[1]], text)
        return NAMES.sub(lambda found: self.find_address(found[1]), filled)

    def make_environment(self, name: str, **more: str) -> dict[str, str]:
        """The environment of a service, and `more`."""
        kept = {key: text for key, text in os.environ.items() if not key.startswith(("ROSTER_", "PG"))}
        given = {key: self.localize(text) for key, text in SERVICES[name].get("environment", {}).items()}
        path = f"{Path(POSTGRES).parent}:{os.environ['PATH']}:/usr/sbin"
        return {**kept, **given, "PATH": path, **more}

    @property
    def owner_url(self) -> str:
        """The database on the primary, as commands reach it."""
        return self.localize(SERVICES["upgrade"]["environment"]["ROSTER_DATABASE_URL"])

    def make_folder(self, name: str) -> Path:
        """A folder for the files of a service, which its user owns."""
        made = self.folder / name
        made.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(made, find_user(), find_user())
        return made

    def start(self, name: str, command: Sequence[str], *, as_user: bool = False, **more: str) -> None:
        """Starts a service, and returns when it accepts connections. `as_user`: not as root."""
        options = self._make_options(name, as_user=as_user, **more)
        with (self.folder / f"{name}.log").open("ab") as out:
            self.processes[name] = subprocess.Popen(command, **options, stdout=out, stderr=out, start_new_session=True)
        address = self.find_address(name) if name in PORTS else "127.0.0.1"
        self.wait_for(name, address, PORTS.get(name, self.proxy.port))

    def wait_for(self, name: str, address: str, port: int) -> None:
        """Returns when something accepts connections there."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert self.processes[name].poll() is None, self.read_log(name)
            assert time.monotonic() < deadline, self.read_log(name)
            with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=5):
                return
            time.sleep(0.1)

    def read_log(self, name: str) -> str:
        """What a service has written."""
        return (self.folder / f"{name}.log").read_text()

    def stop(self, name: str) -> None:
        """Ends a service. After SIGINT, PostgreSQL waits for no client, and `roster run` for no load balancer."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM if name in ("pooler", "proxy") else signal.SIGINT)
        process.wait(START_SECONDS)

    def run(self, name: str, command: Sequence[str], *, as_user: bool = False, **more: str) -> None:
        """Runs a command of a service until its end."""
        options = self._make_options(name, as_user=as_user, **more)
        done = subprocess.run(command, **options, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _make_options(self, name: str, *, as_user: bool, **more: str) -> dict[str, Any]:
        """The options of `subprocess` for a command of a service."""
        user = find_user()
        of_user = {"user": user, "group": user, "extra_groups": []} if as_user else {}
        return {"env": self.make_environment(name, **more), "cwd": PROJECT, **of_user}

    # --- the services -------------------------------------------------------------------------------------------------

    def start_primary(self) -> None:
        """Makes the primary as the image of PostgreSQL does: its scripts run while it listens on a socket alone."""
        home = self.make_folder("primary")
        data = str(home / "data")
        options = ("--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync")
        self.run("primary", ("initdb", f"--pgdata={data}", *options), as_user=True)
        with (home / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")
        control = ("pg_ctl", f"--pgdata={data}", "--wait", f"--log={home}/log")
        self.run("primary", (*control, f"--options=-h '' -k {home}", "start"), as_user=True)
        self.run("primary", ("sh", str(RECIPE / "primary.sh")), as_user=True, PGHOST=str(home), PGDATA=data)
        self.run("primary", (*control, "stop"), as_user=True)
        command = [self.localize(word) for word in SERVICES["primary"]["command"]]
        here = ("-D", data, "-h", self.find_address("primary"), "-k", "")
        self.start("primary", (*command, *here), as_user=True)

    def start_standby(self) -> None:
        """Makes the standby by the script of the recipe, and runs it; later calls run it again."""
        home = self.folder / "standby"
        if not home.exists():
            self.make_folder("standby")
        here = ("-h", self.find_address("standby"), "-k", str(home))
        command = ("sh", str(RECIPE / "standby.sh"), *here)
        self.start("standby", command, as_user=True, PGDATA=str(home / "data"))

    def ask_standby(self, statement: str) -> Any:
        """The one value of a statement on the standby, as a superuser, whom its socket admits."""
        session = psycopg2.connect(host=str(self.folder / "standby"), user="postgres")
        try:
            with session, session.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchone()[0]
        finally:
            session.close()

    def start_pooler(self) -> None:
        """Runs pgbouncer."""
        home = self.make_folder("pooler")
        users = home / "users.txt"
        text = self.localize((RECIPE / "pgbouncer.ini").read_text())
        for printed, here in {
            "listen_addr = *": f"listen_addr = {self.find_address('pooler')}",
            "/etc/pgbouncer/users.txt": str(users),
        }.items():
            assert printed in text, printed
            text = text.replace(printed, here)
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(text)
        command = ("sh", str(RECIPE / "pooler.sh"))
        self.start("pooler", command, as_user=True, USERS=str(users), CONFIGURATION=str(configuration))

    def start_web(self, name: str) -> None:
        """Runs the service as the image does, with one worker."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        self.start(
            name,
            (*ROSTER, "run"),
            ROSTER_HOST=self.find_address(name),
            ROSTER_HOME=str(home),
            ROSTER_WORKERS="1",
            PYTHONWARNINGS="ignore",
        )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready(name):
            assert time.monotonic() < deadline, self.read_log(name)
            time.sleep(0.2)

    def is_ready(self, name: str) -> bool:
        """Whether a web machine says that it can answer."""
        connection = HTTPConnection(self.find_address(name), PORTS[name], timeout=START_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def start_proxy(self) -> None:
        """Runs nginx by the script of the recipe."""
        make_certificate(self.folder)
        text = (RECIPE.parent / "nginx.conf").read_text()
        configuration = self.folder / "given.conf"
        configuration.write_text(place(text, self.folder, 8000, self.proxy.port, self.proxy.plain_port))
        here = {"CONFIGURATION": str(configuration), "RESULT": str(self.folder / "nginx.conf")}
        self.start("proxy", ("sh", str(RECIPE / "proxy.sh")), **here, PROXY_USER="www-data")


def find_user() -> str:
    """The user that PostgreSQL and pgbouncer run as: they refuse root."""
    return "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


@contextlib.contextmanager
def open_machines() -> Iterator[Machines]:
    """Starts all machines, with the tables of this version and nothing in them; ends them at the end."""
    port, plain_port = find_free_ports(2)
    values = {name: secrets.token_hex(24) for name in SECRETS} | {
        "SERVER_NAME": f"{NAME}:{port}",
        "OPERATORS": "127.0.0.0/8",
    }
    with tempfile.TemporaryDirectory(prefix="roster-machines-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The users of the programs enter it.
        folder.chmod(0o711)
        machines = Machines(folder, Proxy(folder, port, plain_port), values, f"127.{20 + os.getpid() % 200}.0")
        try:
            machines.start_primary()
            machines.start_standby()
            machines.run("upgrade", (*ROSTER, *SERVICES["upgrade"]["command"][1:]))
            machines.start_pooler()
            for web in ("web1", "web2"):
                machines.start_web(web)
            machines.start_proxy()
            yield machines
        finally:
            for started in reversed(list(machines.processes)):
                machines.stop(started)
