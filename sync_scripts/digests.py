"""The digest of a whole export: what came before in the same bytes changes nothing, and is not loaded again."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, select, update

from roster_service.db.tables import feeds
from sync_scripts.formats import Format
from sync_scripts.lines import LONGEST_LINE
from sync_scripts.manifest import Contents
from sync_scripts.package import UNREADABLE
from sync_scripts.sifting import RULES


def make_digest(contents: Contents, form: Format) -> bytes | None:
    """The digest of everything in an export that a load depends on; None where a file cannot be read, which staging
    then tells."""
    silent = sorted(file.name for file in contents.silent)
    digest = hashlib.sha256("\n".join((str(RULES), form.name, *sorted(contents.deltas), "", *silent)).encode())
    try:
        for file in sorted(contents.files, key=lambda file: file.name):
            of_file = hashlib.sha256()
            with contents.package.open(file.file_name) as stream:
                while block := stream.read(LONGEST_LINE):
                    of_file.update(block)
            digest.update(f"\n{file.name}\n".encode() + of_file.digest())
    except UNREADABLE:
        return None
    return digest.digest()


def is_known(connection: Connection, feed_id: int, digest: bytes | None) -> bool:
    """Whether an export with this digest is what the feed's records were last made of, without a refusal."""
    found = connection.scalar(select(feeds.c.last_digest).where(feeds.c.id == feed_id))
    return digest is not None and found == digest


def note_digest(connection: Connection, feed_id: int, digest: bytes | None) -> None:
    """Remembers what the feed's records are made of; None: nothing that may be skipped the next time."""
    connection.execute(update(feeds).where(feeds.c.id == feed_id).values(last_digest=digest))
