"""nginx with deploy/nginx.conf, in a folder and on a port of its own, with a certificate of its own."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cli.alone_check import find_free_port

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NAME = "localhost"
START_SECONDS = 20


@dataclass(frozen=True)
class Reply:
    """What came back over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Proxy:
    """A running nginx; `port` speaks TLS, `plain_port` does not."""

    folder: Path
    port: int
    plain_port: int

    @property
    def root(self) -> str:
        """The public address."""
        return f"https://{NAME}:{self.port}"

    @property
    def certificate(self) -> Path:
        """The file of its certificate, which is its own authority."""
        return self.folder / "certificate.pem"

    @property
    def log(self) -> str:
        """All that it has logged."""
        return "".join(path.read_text() for path in self.folder.glob("*.log"))

    def make_context(self) -> ssl.SSLContext:
        """What a client needs that trusts its certificate."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def connect(self, source: str = "127.0.0.1", receive_bytes: int = 0, timeout: float = 60) -> ssl.SSLSocket:
        """A TLS connection from an address of this machine; `receive_bytes`: the kernel's buffer for what arrives."""
        plain = socket.socket()
        if receive_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        plain.settimeout(timeout)
        plain.bind((source, 0))
        plain.connect(("127.0.0.1", self.port))
        return self.make_context().wrap_socket(plain, server_hostname=NAME)

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None, timeout: float = 60
    ) -> Reply:
        """One request over a connection of its own."""
        connection = HTTPSConnection(NAME, self.port, timeout=timeout, context=self.make_context())
        try:
            connection.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, text in headers.items():
                connection.putheader(name, text)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def find_free_ports(number: int) -> list[int]:
    """Ports that nobody listens on."""
    found: set[int] = set()
    while len(found) < number:
        found.add(find_free_port())
    return list(found)


def make_certificate(folder: Path) -> None:
    """Writes a self-signed certificate for this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def place(text: str, folder: Path, service_port: int, port: int, plain_port: int) -> str:
    """The configuration with the places of this machine in it, and nothing else changed."""
    changes = {
        "/var/log/nginx/": f"{folder}/",
        "/run/nginx.pid": f"{folder}/nginx.pid",
        "/etc/ssl/roster/fullchain.pem": f"{folder}/certificate.pem",
        "/etc/ssl/roster/privkey.pem": f"{folder}/key.pem",
        "server 127.0.0.1:8000;": f"server 127.0.0.1:{service_port};",
        "server_name roster.example.org;": f"server_name {NAME};",
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "listen 80 ": f"listen 127.0.0.1:{plain_port} ",
        # It has one worker, and keeps what it buffers in the folder.
        "worker_processes auto;": "worker_processes 1;",
        "http {\n": "http {\n"
        + "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ),
    }
    for printed, here in changes.items():
        assert printed in text, printed
        text = text.replace(printed, here)
    return "".join(line for line in text.splitlines(keepends=True) if "listen [::]" not in line)


@contextmanager
def proxying(service_port: int, port: int, plain_port: int) -> Iterator[Proxy]:
    """A running nginx in front of a service, once it accepts connections; it is ended at the end."""
    with tempfile.TemporaryDirectory(prefix="roster-nginx-") as name:
        folder = Path(name)
        # Its worker runs as another user.
        folder.chmod(0o755)
        make_certificate(folder)
        configuration = folder / "nginx.conf"
        configuration.write_text(place(CONFIGURATION.read_text(), folder, service_port, port, plain_port))
        command = ["nginx", "-p", name, "-c", str(configuration), "-g", "daemon off;"]
        with (folder / "start.log").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        proxy = Proxy(folder, port, plain_port)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not accepts(port):
                assert process.poll() is None, proxy.log
                assert time.monotonic() < deadline, proxy.log
                time.sleep(0.05)
            yield proxy
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def accepts(port: int) -> bool:
    """Whether anybody listens there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False
