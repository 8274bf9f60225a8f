"""The server of a receiver, by SFTP. paramiko is an extra of the installation, which only sending takes."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import itertools
import socket
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import IO, Any, Protocol

from roster_service.errors import CommandError

SECONDS = 30
EXTRA = "deliveries"


class ReceiverError(CommandError):
    """The server of a receiver does not do what is asked of it."""


class Receiver(Protocol):
    """The folder of a receiver. Each method raises OSError."""

    def put(self, file: IO[bytes], name: str) -> int | None:
        """Writes a whole file. Returns the bytes that the server has; None if it does not say."""

    def has(self, name: str) -> bool:
        """Returns whether there is a file with this name."""

    def replace(self, old: str, new: str) -> None:
        """Renames a file, in place of another one, as one step (`posix-rename`)."""

    def rename(self, old: str, new: str) -> None:
        """Renames a file. Another one with the name is refused."""

    def remove(self, name: str) -> None:
        """Removes a file."""


@dataclass(frozen=True)
class Server:
    """How to reach a receiver. `host_key`: the type and the base64 of the only key that the server may have;
    `private_hosts`: those that may have a private address."""

    host: str
    port: int
    username: str
    folder: str
    host_key: str
    secret: str
    has_private_key: bool
    private_hosts: Collection[str]


Connect = Callable[[Server], contextlib.AbstractContextManager[Receiver]]


def read_host_key(text: str) -> str:
    """Returns the type and the base64 of a line of `ssh-keyscan` or of a file of known hosts. Raises CommandError."""
    words = text.split()
    for kind, key in itertools.pairwise(words):
        with contextlib.suppress(ValueError):
            if base64.b64decode(key, validate=True)[4:].startswith(kind.encode()):
                return f"{kind} {key}"
    raise CommandError("the host key is a type and its base64, as `ssh-keyscan HOST` prints them")


@contextlib.contextmanager
def open_sftp(server: Server) -> Iterator[Receiver]:
    """Yields the folder of a receiver. Raises ReceiverError if it cannot be reached, has another key, or refuses the
    login; and if what the block asks of it fails."""
    paramiko = _import_paramiko()
    address = find_address(server)
    try:
        with contextlib.closing(socket.create_connection((address, server.port), SECONDS)) as connected:
            transport = paramiko.Transport(connected)
            with contextlib.closing(transport):
                transport.banner_timeout = transport.auth_timeout = SECONDS
                kind, key = server.host_key.split()
                host_key = paramiko.PKey.from_type_string(kind, base64.b64decode(key))
                wanted = ("rsa-sha2-512", "rsa-sha2-256") if kind == "ssh-rsa" else (kind,)
                transport.get_security_options().key_types = wanted
                transport.start_client(timeout=SECONDS)
                if transport.get_remote_server_key() != host_key:
                    raise ReceiverError(
                        f"{server.host} has another host key than the one that was given; ask the receiver"
                    )
                if server.has_private_key:
                    transport.auth_publickey(server.username, _read_private_key(server.secret))
                else:
                    transport.auth_password(server.username, server.secret)
                client = paramiko.SFTPClient.from_transport(transport)
                client.get_channel().settimeout(SECONDS)
                if server.folder:
                    client.chdir(server.folder)
                yield _Sftp(client)
    except paramiko.AuthenticationException:
        raise ReceiverError(f"{server.host} refuses the login of {server.username}") from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ReceiverError(f"the delivery to {server.host} failed: {reason}") from None


def _import_paramiko() -> Any:
    try:
        import paramiko
    except ImportError:
        raise CommandError(f"SFTP needs paramiko: pip install 'roster-service[{EXTRA}]'") from None
    return paramiko


def _read_private_key(text: str) -> Any:
    paramiko = _import_paramiko()
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with contextlib.suppress(paramiko.SSHException, ValueError):
            return kind.from_private_key(StringIO(text))
    raise CommandError("the private key is no key of OpenSSH without a passphrase")


def find_address(server: Server) -> str:
    """Returns the address of a server. Raises ReceiverError if it has none, or a private one that no setting allows: a
    delivery must not reach into the own network."""
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except OSError:
        raise ReceiverError(f"the name {server.host} has no address") from None
    addresses = [str(place[4][0]) for place in found]
    if server.host not in server.private_hosts and not all(
        ipaddress.ip_address(address).is_global for address in addresses
    ):
        raise ReceiverError(f"{server.host} has a private address; ROSTER_DELIVERY_PRIVATE_HOSTS may name it")
    return addresses[0]


class _Sftp:
    """The folder of a receiver on a client of paramiko."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, file: IO[bytes], name: str) -> int | None:
        self._client.putfo(file, name, confirm=False)
        # A drop box may not say what it has.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            return int(self._client.stat(name).st_size)
        return None

    def has(self, name: str) -> bool:
        try:
            self._client.stat(name)
        except FileNotFoundError:
            return False
        return True

    def replace(self, old: str, new: str) -> None:
        self._client.posix_rename(old, new)

    def rename(self, old: str, new: str) -> None:
        self._client.rename(old, new)

    def remove(self, name: str) -> None:
        self._client.remove(name)
