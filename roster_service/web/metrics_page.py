"""Shows at `/metrics` the metrics of all workers and of the database, for Prometheus.

The path exists only with ROSTER_METRICS_TOKEN, and takes that token as a bearer token: the figures show which vendors
read how much, and the names of the feeds.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from flask import Flask, Response, request
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import Unauthorized

from roster_service.feeds.figures import Figures, read_figures
from roster_service.http.request_facts import METRICS_PATH
from roster_service.metrics import MULTIPROCESS_FOLDER
from roster_service.serving.standby import Standby


def register_metrics_page(app: Flask, token: str, engine: sa.Engine, standby: Standby | None) -> None:
    """Registers the path, which takes `token`. `engine`: of `make_counting_engine`; `standby`: None if there is
    none."""

    def show_metrics() -> Response:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Unauthorized("this path takes the token of ROSTER_METRICS_TOKEN")
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = Response(encode(make_registry(engine, standby)), content_type=content_type)
        response.headers["Cache-Control"] = "no-store"
        return response

    app.add_url_rule(METRICS_PATH, endpoint="metrics", view_func=show_metrics, methods=["GET"])


def make_registry(engine: sa.Engine, standby: Standby | None) -> CollectorRegistry:
    """Returns a registry with the metrics of all workers, if they share a folder, else of this one; and with the
    figures of the database, and of the standby if there is one."""
    registry = CollectorRegistry()
    folder = os.environ.get(MULTIPROCESS_FOLDER)
    if folder is not None:
        _forget_ended_workers(Path(folder))
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(REGISTRY)
    registry.register(DatabaseCollector(engine))
    if standby is not None:
        registry.register(StandbyCollector(standby))
    return registry


def _forget_ended_workers(folder: Path) -> None:
    """Removes the gauges of workers that have ended, also of those that were killed. Their counters stay."""
    for pid in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*_*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid)  # type: ignore[no-untyped-call]


class DatabaseCollector:
    """Reads the figures of the database when they are asked for."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics; only `roster_database_up`, with 0, if the database does not answer."""
        try:
            with self._engine.connect() as connection:
                figures = read_figures(connection)
        except SQLAlchemyError:
            yield GaugeMetricFamily("roster_database_up", "Whether the database answers.", 0)
            return
        yield from list_database_metrics(figures)


class StandbyCollector:
    """Asks the standby how far it lags when the figures are asked for."""

    def __init__(self, standby: Standby) -> None:
        self._standby = standby

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics; without the lag if the standby does not answer."""
        yield from list_standby_metrics(self._standby.read_lag())


def list_standby_metrics(lag: float | None) -> Iterator[Metric]:
    """Yields the metrics of a standby that is `lag` seconds behind; None: it does not answer."""
    yield GaugeMetricFamily("roster_standby_up", "Whether the standby answers.", 0 if lag is None else 1)
    if lag is not None:
        yield GaugeMetricFamily("roster_standby_lag_seconds", "Seconds that the standby is behind.", lag)


def list_database_metrics(figures: Figures) -> Iterator[Metric]:
    """Yields the figures of a database that answers, as metrics."""
    yield GaugeMetricFamily("roster_database_up", "Whether the database answers.", 1)
    yield GaugeMetricFamily("roster_ordering_bytes", "What orderings take.", figures.ordering_bytes)
    age = GaugeMetricFamily("roster_feed_age_seconds", "Seconds since the last good run of a feed.", labels=["feed"])
    rejected = GaugeMetricFamily("roster_feed_rejected_rows", "Rejected rows of the last run.", labels=["feed"])
    held = GaugeMetricFamily("roster_feed_held", "Whether a run waits for a decision.", labels=["feed"])
    for feed in figures.feeds:
        if feed.age_seconds is not None:
            age.add_metric([feed.name], feed.age_seconds)
        rejected.add_metric([feed.name], feed.rejected_rows)
        held.add_metric([feed.name], feed.is_held)
    yield from (age, rejected, held)
