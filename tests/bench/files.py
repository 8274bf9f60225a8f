"""`python -m tests.bench.files [--home DIR]`: what a vendor waits while the file of a district is made for another one.

One vendor asks for pages of 100 users, one after the other; meanwhile a process makes the zip, once a round. The
target is 1.5 times the 95th percentile without it. STUDENTS (40,000); SECONDS and ROUNDS as in `fairness.py`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from roster_service.cli.demo import EMAIL
from tests.bench import place as places
from tests.bench.fairness import ROOT, ROUNDS, SECONDS, WORKERS, add_client, ask, measure, show
from tests.bench.place import OURS, Place, find_port, open_place, serve

STUDENTS = int(os.environ.get("STUDENTS", "40000"))
PRESETS = ("oneroster-1.1", "oneroster-1.2")
SLICE_SECONDS = 0.5


def measure_beside(place: Place, port: int, headers: Mapping[str, str], preset: str) -> list[float]:
    """The seconds of each request while the command makes a file."""
    environment = os.environ | {
        "ROSTER_DATABASE_URL": place.url,
        "ROSTER_SECRET_KEY": str(place.settings.secret_key),
        "ROSTER_HOME": str(place.settings.home),
    }
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        roster = Path(sys.executable).with_name("roster")
        # As the unit of deploy/ runs it.
        command = (
            "nice",
            "-n",
            "5",
            roster,
            "delivery",
            "preview",
            EMAIL,
            "--preset",
            preset,
            "--out",
            Path(folder, "out.zip"),
        )
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                taken += measure(port, headers, SLICE_SECONDS)
    if process.returncode != 0:
        raise RuntimeError("no file was made")
    return taken


def compare(place: Place, port: int, headers: Mapping[str, str]) -> None:
    """Measures in turns, because other work on the machine comes and goes, and prints a row for each preset."""
    taken = {kind: list[float]() for kind in ("alone", *PRESETS)}
    for _ in range(ROUNDS):
        taken["alone"] += measure(port, headers, SECONDS)
        for preset in PRESETS:
            taken[preset] += measure_beside(place, port, headers, preset)
    print(f"{'':<36} {'requests':>8} {'median':>8} {'p95':>8} {'max':>8} {'ratio':>6}  (ms)")
    for kind, seconds in taken.items():
        show(kind, seconds, taken["alone"], {})


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    places.APPLICATIONS = {}
    with open_place(STUDENTS, given.home) as place:
        settings = replace(place.settings, port=find_port(), workers=WORKERS)
        with serve(settings, OURS, place.url) as server:
            headers = add_client(place, server, "modest")
            for _ in range(3):
                ask(server.port, f"{ROOT}/users?limit=100", headers)
            compare(place, server.port, headers)


if __name__ == "__main__":
    main()
