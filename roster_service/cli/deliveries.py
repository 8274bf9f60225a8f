"""`roster delivery`: the zip of OneRoster CSV that a vendor gets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from roster_service.cli.terminal import as_json, find_actor, read_settings, reason_option, show
from roster_service.deliveries.package import Package
from roster_service.deliveries.presets import PRESETS
from roster_service.deliveries.previews import preview_package
from roster_service.feeds.private_files import open_private
from roster_service.roster.roster_engine import open_roster_engine


@click.group()
def delivery() -> None:
    """The roster as files for vendors."""


preset_option = click.option(
    "--preset",
    required=True,
    type=click.Choice(list(PRESETS)),
    help="What the receiver takes: " + "; ".join(f"{name}: {it.words}" for name, it in PRESETS.items()) + ".",
)
client_option = click.option(
    "--client", "client_id", help="The client whose scopes count, if the vendor has several with this version."
)


@delivery.command("preview")
@click.argument("email")
@preset_option
@client_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@reason_option
@as_json
def delivery_preview(email: str, preset: str, client_id: str | None, out: Path, as_json: bool) -> None:
    """Write the zip that the vendor EMAIL would get now into a file that only its owner can read. The change log has
    the look."""
    settings = read_settings()
    with open_roster_engine(settings) as engine:
        package, made = preview_package(engine, find_actor(), email, preset, client_id, settings)
    with made, open_private(out) as written:
        shutil.copyfileobj(made, written)
    show(describe_package(package), as_json, lambda _: f"{list_rows(package)}\n{out}: {package.bytes:,} bytes")


def describe_package(package: Package) -> dict[str, Any]:
    """Returns a package for JSON, without its people."""
    return {
        "revision": package.revision,
        "digest": package.digest,
        "bytes": package.bytes,
        "rows": dict(package.rows),
        "absent": list(package.absent),
        "left_out": {name: dict(counts) for name, counts in package.left_out.items()},
    }


def list_rows(package: Package) -> str:
    """Returns the rows of each file in words, and what was left out of it."""
    lines = []
    for name, number in package.rows.items():
        left = package.left_out.get(name, {})
        words = "; ".join(f"{count:,} left out for their {header}" for header, count in left.items())
        lines.append(f"{name}.csv: {number:,} rows" + (f" ({words})" if words else ""))
    lines += [f"{name}.csv: absent" for name in package.absent]
    return "\n".join(lines)
