"""The tables of the access log by day: the rows of `audit` become one row of a day, and its people are numbers.

Neither table has a foreign key, as `audit`. No role that workers log in as has a right to them.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

# The bytes of a person's hash, 48 bits, in `audit` and here. A question about one person also finds rows of another one
# with the same hash: among ten million people there is such a person with a probability of 4e-8.
HASH_BYTES = 6

# The number of each person of a day (`number_people`). A number is never given again.
audit_people = sa.Table(
    "audit_people",
    metadata,
    sa.Column("number", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
    # A row of a later day than LAST_DAY_STEP days after it does not have the number.
    sa.Column("last_day", sa.Date, nullable=False),
)
LAST_DAY_STEP = 7

# The responses of a vendor on a day in UTC that have the first columns in common, those of DAY_KEY.
DAY_KEY = ("caller", "method", "path", "filter", "address", "scope", "districts", "hash_check")
audit_days = sa.Table(
    "audit_days",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("vendor_id", sa.Integer, nullable=False),
    # As in `audit`.
    sa.Column("caller", CText, nullable=False),
    sa.Column("method", CText, nullable=False),
    sa.Column("path", CText, nullable=False),
    sa.Column("filter", CText),
    sa.Column("address", CText),
    sa.Column("scope", CText),
    sa.Column("districts", CTexts),
    # The beginning of `audit.people`: with which key the hashes were made; empty: the rows have no people; NULL: they
    # are older than the hashes.
    sa.Column("hash_check", sa.LargeBinary),
    # The first and the last response.
    sa.Column("at", Stamp, nullable=False),
    sa.Column("last_at", Stamp, nullable=False),
    sa.Column("request_id", CText, nullable=False),
    sa.Column("last_request_id", CText, nullable=False),
    # How many responses, and the sum of their records.
    sa.Column("answers", sa.Integer, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    # The `entry_id` of each response, one after the other: one that is moved to `audit` again is left out.
    sa.Column("entries", sa.LargeBinary, nullable=False),
    # The people, in the shorter of two forms; the other one is NULL. `people`: their numbers. `people_bits`: the bit of
    # each number, which `get_bit` reads. Its storage is EXTERNAL, so that PostgreSQL reads the part that has a number.
    sa.Column("people", ARRAY(sa.Integer)),
    sa.Column("people_bits", sa.LargeBinary),
    sa.Index(None, "vendor_id", "at"),
    sa.Index(None, "at"),
)

# The view of the rows of both kinds. `by`: `page` for a row of `audit`, `day` for one of `audit_days`; `hashes`:
# `audit.people`, where `people` and `people_bits` are NULL.
disclosures = sa.table(
    "disclosures",
    *(sa.column(column.name, column.type) for column in audit_days.c),
    sa.column("by", sa.Text),
    sa.column("hashes", sa.LargeBinary),
)
