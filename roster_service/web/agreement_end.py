"""Notes that an agreement has ended as soon as a request is refused for it, on any interface."""

from __future__ import annotations

import sqlalchemy as sa
from flask import Flask, Response
from sqlalchemy.exc import SQLAlchemyError

from roster_service.errors import Problem
from roster_service.http.request_facts import get_request_facts


def register_agreement_end(app: Flask, counting: sa.Engine) -> None:
    """Registers it. `counting`: of `make_counting_engine`."""

    def note_end(response: Response) -> Response:
        if get_request_facts().refusal is Problem.AGREEMENT:
            try:
                with counting.connect() as connection:
                    connection.execute(sa.select(sa.func.note_ended_agreements()))
            except SQLAlchemyError:
                # The database takes no writes: the next refusal notes it, or the night.
                pass
        return response

    app.after_request(note_end)
