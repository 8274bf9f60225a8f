"""A database with the real exports, and vendors who see parts of them; the zips that they get."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from roster_service.auth.scopes import Scope, ScopeName
from roster_service.deliveries.choices import choose_client
from roster_service.deliveries.package import Package, write_package
from roster_service.deliveries.sources import make_source, open_snapshots
from roster_service.schemas.file_presets import Preset
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from sync_scripts.reading.registry import FAMILIES
from tests.contract.conftest import SECRET_KEY
from tests.postgres.loaded import EXPORTS

# The six exports, with their formats.
FEEDS = {
    "springfield-1.1": "oneroster",
    "shelbyville-1.2": "oneroster",
    "shelbyville-clever": "clever",
    "northhaven-sds": "sds",
    "northhaven-sds-v1": "sds",
    "northhaven-sds-v2": "sds",
}
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Made:
    """A zip: what the service says of it, its bytes, and its files as dictionaries."""

    package: Package
    content: bytes
    files: dict[str, Rows]


def read_zip(content: bytes) -> dict[str, Rows]:
    """The rows of each file of a zip, by name without its ending."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        return {
            name.removesuffix(".csv"): list(csv.DictReader(io.StringIO(packed.read(name).decode(), newline="")))
            for name in packed.namelist()
        }


def make(engine: sa.Engine, email: str, preset: Preset, scopes: Sequence[str] | None = None) -> Made:
    """The zip of a vendor with one client. `scopes`: names of those that the token has; None: all of the client."""
    settings, out = Settings(secret_key=SECRET_KEY), io.BytesIO()
    with engine.connect() as connection:
        client = choose_client(connection, email, preset.version, None)
        source = make_source(connection, client.client_id, preset, settings)
    if scopes is not None:
        held = tuple(Scope(preset.version.prefix, ScopeName(it)) for it in scopes)
        source = replace(source, token=replace(source.token, scopes=held))
    with open_snapshots(engine, settings) as snapshots, snapshots.connect() as snapshot:
        package = write_package(snapshot, source, out)
    return Made(package, out.getvalue(), read_zip(out.getvalue()))


def load_export(engine: sa.Engine, name: str) -> None:
    """Loads one of the six exports."""
    load(engine, name, EXPORTS / name, family=FAMILIES[FEEDS[name]])


def loosen(preset: Preset) -> Preset:
    """The preset without rules for ids."""
    return replace(preset, id_pattern=re.compile(".+"), unique_ids=False)
