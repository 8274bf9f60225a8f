"""What the service is measured against, each below the same gunicorn: *raw* and *hello*.

*raw* is a bare WSGI function that fetches stored JSON texts by key and joins them: no token, no framework. Its table is
made by `store_answers` from the service's own answers. *hello* is an empty Flask view.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qs

import psycopg2
from flask import Flask
from psycopg2.extras import execute_values

URL_VARIABLE = "BENCH_DATABASE_URL"
PAGE = "SELECT body FROM raw_{} WHERE sourced_id > %s ORDER BY sourced_id LIMIT %s"
BY_KEY = "SELECT body FROM raw_{} WHERE sourced_id = ANY(%s) ORDER BY sourced_id"

_kept: dict[int, Any] = {}


def raw(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """`/NAME?limit=100&after=ID`, the next records by key; `/NAME?ids=A,B`, these records."""
    name = environ["PATH_INFO"].strip("/")
    asked = {key: values[0] for key, values in parse_qs(environ["QUERY_STRING"]).items()}
    connection = _kept.get(os.getpid())
    if connection is None:
        connection = _kept[os.getpid()] = psycopg2.connect(os.environ[URL_VARIABLE])
        connection.autocommit = True
    with connection.cursor() as cursor:
        if "ids" in asked:
            cursor.execute(BY_KEY.format(name), (asked["ids"].split(","),))
        else:
            cursor.execute(PAGE.format(name), (asked.get("after", ""), int(asked["limit"])))
        body = f'{{"{name}":[{",".join(row[0] for row in cursor)}]}}'.encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


hello = Flask("hello", static_folder=None)


@hello.get("/")
def greet() -> str:
    """Nothing."""
    return ""


def store_answers(url: str, name: str, bodies: Iterable[bytes]) -> list[str]:
    """Makes the table of `name` from the pages of a walk over it. Returns the ids, in order."""
    ids: list[str] = []
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS raw_{name}")
        cursor.execute(f'CREATE TABLE raw_{name} (sourced_id text COLLATE "C" PRIMARY KEY, body text NOT NULL)')
        for body in bodies:
            records = list(cut_records(body.decode(), name))
            ids += (sourced_id for sourced_id, _ in records)
            execute_values(cursor, f"INSERT INTO raw_{name} VALUES %s", records, page_size=1000)
    connection.close()
    # VACUUM stands in no transaction.
    connection = psycopg2.connect(url)
    connection.autocommit = True
    connection.cursor().execute(f"VACUUM ANALYZE raw_{name}")
    connection.close()
    return ids


def cut_records(body: str, name: str) -> Iterator[tuple[str, str]]:
    """The sourcedId and the very text of each record of a page."""
    decoder = json.JSONDecoder()
    place = body.index("[", len(name)) + 1
    while body[place] != "]":
        record, end = decoder.raw_decode(body, place)
        yield record["sourcedId"], body[place:end]
        place = end + (body[end] == ",")
