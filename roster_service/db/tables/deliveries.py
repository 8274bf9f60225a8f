"""The tables of deliveries: where files of the roster go, and each file that was made for one."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables.base import CText, Stamp, metadata

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("name", CText, nullable=False, unique=True),
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    # No foreign key: a delivery whose client was removed fails, and says so.
    sa.Column("client_id", CText, nullable=False),
    # A name in roster_service/schemas/file_presets.py
    sa.Column("preset", CText, nullable=False),
    sa.Column("host", CText, nullable=False),
    sa.Column("port", sa.Integer, nullable=False),
    sa.Column("username", CText, nullable=False),
    # On the server of the receiver; '' for the one in which a login begins.
    sa.Column("folder", CText, nullable=False),
    # The public key of the server, as in a file of known hosts: its type and its base64.
    sa.Column("host_key", CText, nullable=False),
    # Whether the secret is a private key, and no password.
    sa.Column("has_private_key", sa.Boolean, nullable=False),
    # Sealed with the service's secret key.
    sa.Column("secret_sealed", sa.LargeBinary, nullable=False),
    # The hour of the day of the machine at which it is sent; NULL: after the nightly sync.
    sa.Column("hour", sa.SmallInteger),
    # Whether the file is written under its own name, because the server allows no rename.
    sa.Column("in_place", sa.Boolean, nullable=False),
    # To whom to write at the receiver; NULL: to the vendor.
    sa.Column("contact", CText),
    # SHA-256, in hexadecimal, of the file that an operator has approved last.
    sa.Column("approved_digest", CText),
    sa.Column("stopped", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # When what is sent, or where to, was last set: earlier files are not compared.
    sa.Column("since", Stamp, nullable=False, server_default=sa.text("now()")),
)

delivery_runs = sa.Table(
    "delivery_runs",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("delivery_id", sa.ForeignKey("deliveries.id", ondelete="CASCADE"), nullable=False),
    sa.Column("started_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # NULL: under way, interrupted, or failed so that nobody knows what the receiver has.
    sa.Column("finished_at", Stamp),
    # made, waiting, sent, failed
    sa.Column("state", CText, nullable=False),
    # Why it waits or has failed.
    sa.Column("message", CText),
    # NULL in the next ones: no file was made.
    sa.Column("revision", sa.BigInteger),
    sa.Column("digest", CText),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("seconds", sa.REAL),
    # {file: number of rows}
    sa.Column("rows", JSONB(none_as_null=True)),
    # What a later file is compared with: {kind: {org: number of rows}}, and keyed hashes of some ids by kind.
    sa.Column("schools", JSONB(none_as_null=True)),
    sa.Column("sample", JSONB(none_as_null=True)),
    # The name at the receiver.
    sa.Column("file_name", CText),
    # The instant at which the whole file was there under its temporary name.
    sa.Column("uploaded_at", Stamp),
    sa.CheckConstraint("state IN ('made', 'waiting', 'sent', 'failed')", name="state"),
    sa.Index(None, "delivery_id", "id"),
)
