"""What every table shares: the metadata with the names of constraints, and the types of columns.

Texts are `COLLATE "C"`: they sort by code point and compare exactly, and their indexes serve both.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

CText = sa.Text(collation="C")
CTexts: ARRAY[Any] = ARRAY(CText)
# In milliseconds, as the interfaces write instants: a filter with a stamp that a consumer has read finds its record.
Stamp = TIMESTAMP(timezone=True, precision=3)
