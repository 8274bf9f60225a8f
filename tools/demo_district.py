"""`python -m tools.demo_district`: writes the export of the demo, which the service ships and `roster run` loads."""

from __future__ import annotations

from pathlib import Path

from roster_service.cli.demo import EXPORT, STUDENTS
from tools.generate_district import generate

SCHOOL_YEAR = 2027


def write_demo(path: Path) -> None:
    """Writes the made-up district of the demo to `path`."""
    generate(path, students=STUDENTS, seed=1, version="1.1", school_year=SCHOOL_YEAR)


if __name__ == "__main__":
    write_demo(EXPORT)
