"""The server of a receiver, by SFTP. paramiko is an extra of the installation, which only sending takes."""

from __future__ import annotations

import base64
import contextlib
import socket
from collections.abc import Callable, Iterator
from io import StringIO
from typing import IO, Any, Protocol

from roster_service.deliveries.accounts import Delivery
from roster_service.deliveries.addresses import find_address
from roster_service.errors import CommandError
from roster_service.settings import Settings

SECONDS = 30
EXTRA = "deliveries"


class ReceiverError(CommandError):
    """The server of a receiver does not do what is asked of it."""


class Receiver(Protocol):
    """The folder of a receiver, as the client of paramiko has it. Each method raises OSError."""

    def putfo(self, file: IO[bytes], name: str, /, *, confirm: bool) -> object:
        """Writes a whole file. `confirm`: asks for its size, which a drop box may not say."""

    def stat(self, name: str, /) -> Any:
        """Returns a value with the size of a file, `st_size`."""

    def posix_rename(self, old: str, new: str, /) -> None:
        """Renames a file, in place of another one, as one step."""

    def rename(self, old: str, new: str, /) -> None:
        """Renames a file. Another one with the name is refused."""

    def remove(self, name: str, /) -> None:
        """Removes a file."""


Connect = Callable[[Delivery, str, Settings], contextlib.AbstractContextManager[Receiver]]


@contextlib.contextmanager
def open_sftp(to: Delivery, secret: str, settings: Settings) -> Iterator[Receiver]:
    """Yields the folder of the receiver of a delivery, with its secret. Raises ReceiverError if it cannot be reached,
    has another key, or refuses the login; and if what the block asks of it fails."""
    try:
        import paramiko
    except ImportError:
        raise CommandError(f"SFTP needs paramiko: pip install 'roster-service[{EXTRA}]'") from None
    address = find_address(to.host, to.port, settings)
    try:
        with contextlib.closing(socket.create_connection((address, to.port), SECONDS)) as connected:
            transport = paramiko.Transport(connected)
            with contextlib.closing(transport):
                transport.banner_timeout = transport.auth_timeout = SECONDS
                kind, key = to.host_key.split()
                host_key = paramiko.PKey.from_type_string(kind, base64.b64decode(key))
                wanted = ("rsa-sha2-512", "rsa-sha2-256") if kind == "ssh-rsa" else (kind,)
                transport.get_security_options().key_types = wanted
                transport.start_client(timeout=SECONDS)
                if transport.get_remote_server_key() != host_key:
                    raise ReceiverError(f"{to.host} has another host key than the one that was given; ask the receiver")
                if to.has_private_key:
                    transport.auth_publickey(to.username, _read_private_key(secret))
                else:
                    transport.auth_password(to.username, secret)
                client = paramiko.SFTPClient.from_transport(transport)
                client.get_channel().settimeout(SECONDS)
                if to.folder:
                    client.chdir(to.folder)
                yield client
    except paramiko.AuthenticationException:
        raise ReceiverError(f"{to.host} refuses the login of {to.username}") from None
    except (OSError, EOFError, paramiko.SSHException, paramiko.SFTPError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ReceiverError(f"the delivery to {to.host} failed: {reason}") from None


def _read_private_key(text: str) -> Any:
    import paramiko

    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with contextlib.suppress(paramiko.SSHException, ValueError):
            return kind.from_private_key(StringIO(text))
    raise CommandError("the private key is no key of OpenSSH without a passphrase")
