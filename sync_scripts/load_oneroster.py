"""`python -m sync_scripts.load_oneroster --feed NAME PATH`: loads a OneRoster CSV export, 1.1 or 1.2."""

from __future__ import annotations

from sync_scripts.engine.loader_command import make_command
from sync_scripts.reading.registry import ONEROSTER

main = make_command(ONEROSTER)

if __name__ == "__main__":
    main()
