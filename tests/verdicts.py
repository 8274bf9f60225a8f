"""The verdicts of the service on records, for tests that ask each way."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.explore.who_sees import Verdict, explain


def list_verdicts(connection: sa.Connection, sourced_id: str) -> list[Verdict]:
    """Those of every vendor on the records with this id."""
    return [verdict for of_vendor in explain(connection, sourced_id) for verdict in of_vendor.records]
