"""The Flask application: registers all interfaces on one database."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial

import sqlalchemy as sa
from flask import Flask, redirect
from werkzeug.middleware.proxy_fix import ProxyFix

from roster_service.access_log.entries import GrantedDistricts, PersonHasher
from roster_service.access_log.spool import Spool
from roster_service.access_log.writer import AccessLog
from roster_service.auth.credentials.signing_keys import KeyRing, ensure_signing_key
from roster_service.auth.credentials.tokens import TokenReader
from roster_service.auth.signed_requests import SignedRequests
from roster_service.auth.throttling.counters import Counters
from roster_service.auth.throttling.limits import RATES, Rates
from roster_service.auth.throttling.throttles import OrderingThrottle, RosteringThrottle, TokenThrottle
from roster_service.console.blueprint import register_console
from roster_service.console.login import ROOT as CONSOLE_ROOT
from roster_service.db.engine import (
    make_counting_engine,
    make_engine,
    make_ordering_engine,
    make_reading_engine,
    make_startup_engine,
    read_url,
    require_reachable,
    require_reading,
)
from roster_service.db.roles import (
    CONSOLE_ROLES,
    OWNER_URL,
    VENDOR_ROLES,
    Addresses,
    DatabaseRole,
    make_role_url,
    make_role_urls,
    require_role,
)
from roster_service.db.round_trip import RoundTrips
from roster_service.feeds.export_previews import drop_old_previews
from roster_service.feeds.roster_state import read_database_id
from roster_service.feeds.undo import drop_unknown_copies
from roster_service.http.request_facts import add_common_headers, register_host_check
from roster_service.http.stages import DisclosureRecorder
from roster_service.metrics import CONNECTIONS
from roster_service.roster.revisions import require_servable
from roster_service.rostering import blueprints as rostering
from roster_service.rostering.paths import EncodedIds, IdConverter
from roster_service.rostering.pipeline import Services
from roster_service.rostering.token_endpoint import TokenEndpoint, register_token_endpoint
from roster_service.schemas.vendor_bodies import MAX_BODY_BYTES
from roster_service.serving.orderings import Orderings
from roster_service.serving.params import Limits
from roster_service.serving.reader import Reader
from roster_service.serving.roster_status import RosterStatusReader
from roster_service.serving.standby import Standby, StandbyReader
from roster_service.settings import Settings
from roster_service.vendor.views import VendorServices, register_vendor
from roster_service.web.compression import register_compression
from roster_service.web.error_handlers import register_error_handlers
from roster_service.web.guides import register_docs, register_start_page
from roster_service.web.health import HealthCheck, Need, find_first_unmet, register_health
from roster_service.web.metrics_page import register_metrics_page
from roster_service.web.page_assets import register_assets
from roster_service.web.request_log import register_request_end
from roster_service.web.secret_page import register_secret_page
from roster_service.web.time_limit import TimeLimit
from roster_service.web.transparency_page import register_transparency
from roster_service.web.transport_check import register_transport_check

POOL_SIZE = 4
ACCOUNTS_POOL_SIZE = 2
_log = logging.getLogger(__name__)


def create_app(settings: Settings, database_url: str, rates: Rates = RATES) -> Flask:
    """Makes the application of the vendors. `database_url`: of a migrated database, as the owner of its tables;
    `rates`: tests ask for more in a minute.

    Raises DatabaseUnavailableError if the database does not answer or is not migrated, SQLAlchemyError if it fails in
    another way, and SettingError if a setting is wrong.
    """
    return create_service(settings, prepare_database(settings, database_url, VENDOR_ROLES), rates)


def create_service(settings: Settings, addresses: Addresses, rates: Rates = RATES) -> Flask:
    """Makes the application of the vendors, without the address of the owner of the tables. `addresses`: of
    `prepare_database`. `rates`, and what it raises: as for `create_app`."""
    urls = addresses.urls
    engine = make_serving_engine(urls[DatabaseRole.SERVING], settings)
    accounts = make_reading_engine(
        urls[DatabaseRole.ACCOUNTS],
        statement_seconds=settings.request_seconds,
        pool_size=ACCOUNTS_POOL_SIZE,
        own_sessions=False,
    )
    require_servable(accounts)
    keys = KeyRing(accounts, settings.read_secret_key())
    issuer = settings.root_url

    access_log = AccessLog(
        make_engine(urls[DatabaseRole.COUNTERS]),
        open_spool(settings, addresses.database_id),
        is_required=settings.access_log_required,
    )
    app = begin_app(settings, access_log)
    app.extensions["roster_access_log"] = access_log
    app.extensions["roster_engine"] = engine
    app.extensions["roster_accounts_engine"] = accounts
    ordering = make_ordering_engine(urls[DatabaseRole.SERVING], statement_seconds=settings.request_seconds)
    app.extensions["roster_ordering_engine"] = ordering
    round_trips = RoundTrips(engine)
    app.extensions["roster_round_trips"] = round_trips
    standby = open_standby(engine, addresses.standby, settings)
    app.extensions["roster_standby"] = standby
    limits = Limits(settings.max_limit)
    counting = make_counting_engine(urls[DatabaseRole.COUNTERS])
    app.extensions["roster_counting_engine"] = counting
    counters = Counters(counting)
    throttle = RosteringThrottle(counters, accounts, settings.workers)
    orderings = Orderings(ordering, settings.ordering_megabytes, OrderingThrottle(counters, rates))
    reader = Reader(round_trips, orderings) if standby is None else StandbyReader(round_trips, orderings, standby)
    disclosures = DisclosureRecorder(access_log, GrantedDistricts(accounts), PersonHasher(settings.read_secret_key()))
    status = RosterStatusReader(engine, counting, settings.time_zone)
    signed = SignedRequests(accounts, counting, settings.read_secret_key()) if settings.oauth1 else None
    rostering.register_rostering(
        app,
        Services(
            reader=reader,
            tokens=TokenReader(keys, issuer),
            signed_requests=signed,
            throttle=throttle,
            limits=limits,
            disclosures=disclosures,
            status=status,
            public_url=settings.public_url,
        ),
        settings.contact,
    )
    register_vendor(
        app,
        VendorServices(
            engine=engine,
            reader=reader,
            accounts=accounts,
            keys=keys,
            issuer=issuer,
            counters=counters,
            disclosures=disclosures,
            status=status,
        ),
        settings.public_url,
        settings.contact,
    )
    tokens = TokenThrottle(counters, rates)
    endpoint = TokenEndpoint(accounts, keys, tokens, issuer, settings.public_url, settings.token_seconds)
    register_token_endpoint(app, endpoint)
    if settings.metrics_token is not None:
        register_metrics_page(app, settings.metrics_token, counting, standby)
    register_docs(app, settings)
    register_secret_page(app, accounts, counting, settings.public_url)
    register_transparency(app, accounts)
    # Behind a public address, vendors read this page.
    has_link = settings.console_address is not None and settings.public_url is None
    register_start_page(app, settings.console_url + CONSOLE_ROOT if has_link else None)
    register_health(app, partial(find_first_unmet, list_checks(engine, keys)), standby)
    roles = {
        engine: DatabaseRole.SERVING,
        ordering: DatabaseRole.SERVING,
        accounts: DatabaseRole.ACCOUNTS,
        counting: DatabaseRole.COUNTERS,
    }
    for opened, role in roles.items():
        count_connections(opened, role)
    return finish_app(app, settings)


def begin_app(settings: Settings, access_log: AccessLog | None = None) -> Flask:
    """Returns an application without routes: with the first and the last step of each request, the check of the host,
    the longest body, the way in which paths are read, and the form of errors. `access_log`: None if it has no
    vendors."""
    app = Flask("roster_service", static_folder=None)
    register_request_end(app, access_log)
    register_host_check(app)
    register_transport_check(app, settings.public_url)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.url_map.converters["id"] = IdConverter
    # The service accepts a trailing slash without a redirect.
    app.url_map.strict_slashes = False
    # Two slashes in a row are an empty id: the path must not be redirected to one with a single slash.
    app.url_map.merge_slashes = False
    rostering.set_error_profile(app, settings.v1p2_errors)
    return app


def finish_app(app: Flask, settings: Settings) -> Flask:
    """Adds to an application with all its routes what sees each answer last and each request first, and returns it."""
    register_error_handlers(app)
    # Flask runs the hook that was registered last first: so compression runs before the access log counts the bytes.
    register_compression(app)
    app.after_request(add_common_headers)
    # Flask documents this way of adding middleware. A request passes the one that was added last first.
    app.wsgi_app = EncodedIds(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = TimeLimit(app.wsgi_app, settings.request_seconds)  # type: ignore[method-assign]
    if settings.trusted_proxies:
        # Each proxy appends the address of its client. The scheme and the host are those that the last proxy names.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=settings.trusted_proxies, x_proto=1, x_host=1, x_port=0, x_prefix=0
        )
    return app


def create_console(settings: Settings, database_url: str) -> Flask:
    """Makes an application with the console alone, for a process of its own. Arguments and errors as for
    `create_app`."""
    urls = prepare_database(settings, database_url, CONSOLE_ROLES).urls
    serving = make_serving_engine(urls[DatabaseRole.SERVING], settings)
    counting = make_counting_engine(urls[DatabaseRole.COUNTERS])
    owner = make_engine(urls[DatabaseRole.CONSOLE])
    # The scripts of the sync, which the console starts as processes, have the rights of the owner.
    owner.update_execution_options(**{OWNER_URL: database_url})
    # The nightly sync deletes old exports in the data folder of its own machine alone.
    drop_old_previews(settings.home)
    with owner.connect() as connection:
        drop_unknown_copies(connection, settings.home)
    app = begin_app(settings)
    for name, engine in {"owner": owner, "counting": counting, "serving": serving}.items():
        app.extensions[f"roster_{name}_engine"] = engine
    counters = Counters(counting)
    register_assets(app)
    register_console(app, settings, owner, serving, counters)
    app.add_url_rule("/", endpoint="root", view_func=lambda: redirect(CONSOLE_ROOT), methods=["GET"])
    register_health(app, partial(find_first_unmet, {Need.DATABASE: partial(require_reachable, owner)}))
    return finish_app(app, settings)


def open_spool(settings: Settings, database_id: str) -> Spool:
    """Opens the spool of the database, and logs that the data folder has rows of another one, if it does."""
    spool = Spool(settings.access_log_folder / database_id)
    strangers = spool.list_strangers()
    if strangers:
        _log.warning(
            "%d files of the access log are of another database, as %s: only a service of that database moves them",
            len(strangers),
            strangers[0],
        )
    return spool


def prepare_database(settings: Settings, database_url: str, roles: Collection[DatabaseRole]) -> Addresses:
    """Checks that this version can serve the database, makes the first signing key where there is none, and returns
    where workers find it as these roles.

    Raises DatabaseUnavailableError, SettingError and SQLAlchemyError as `create_app`.
    """
    starting = make_startup_engine(database_url)
    try:
        require_reachable(starting)
        require_servable(starting)
        with starting.begin() as connection:
            ensure_signing_key(connection, settings.read_secret_key())
            of_all = make_role_urls(connection, settings.role_password)
            urls = {role: of_all[role] for role in roles}
            database_id = read_database_id(connection)
    finally:
        starting.dispose()
    for url in urls.values():
        engine = make_startup_engine(url)
        try:
            require_role(engine)
        finally:
            engine.dispose()
    standby = None
    if settings.read_database_url is not None:
        name = str(sa.make_url(urls[DatabaseRole.SERVING]).username)
        read = read_url(settings.read_database_url, "ROSTER_READ_DATABASE_URL")
        standby = make_role_url(read, name, settings.role_password)
    return Addresses(urls, standby, database_id)


def make_serving_engine(url: str, settings: Settings) -> sa.Engine:
    """Makes the engine that reads the roster. `url`: of the serving role.

    Raises SettingError if the sessions of the database ignore the settings that the engine asks for.
    """
    engine = _make_roster_engine(url, settings)
    try:
        require_reading(engine)
    finally:
        # Forked workers must not share a connection.
        engine.dispose()
    return engine


def _make_roster_engine(url: str, settings: Settings) -> sa.Engine:
    return make_reading_engine(
        url,
        statement_seconds=settings.request_seconds,
        pool_size=POOL_SIZE,
        own_sessions=settings.prepared_statements,
    )


def open_standby(serving: sa.Engine, url: str | None, settings: Settings) -> Standby | None:
    """Opens the standby at `url`; None if there is none. It may be away. `serving`: of the primary.

    Raises SettingError as `make_serving_engine`.
    """
    if url is None:
        return None
    standby = Standby(serving, _make_roster_engine(url, settings))
    standby.start()
    return standby


def count_connections(engine: sa.Engine, role: DatabaseRole) -> None:
    """Counts the open connections of an engine in the metrics."""
    number = CONNECTIONS.labels(role.value)
    sa.event.listen(engine, "connect", lambda *_: number.inc())
    for ending in ("close", "close_detached"):
        sa.event.listen(engine, ending, lambda *_: number.dec())


def list_checks(serving: sa.Engine, keys: KeyRing) -> Mapping[Need, HealthCheck]:
    """Returns the checks of `/readyz`, in the order in which one depends on another. This version can serve the schema,
    or the application would not exist."""
    return {Need.DATABASE: partial(require_reachable, serving), Need.SIGNING_KEY: keys.read_private}
