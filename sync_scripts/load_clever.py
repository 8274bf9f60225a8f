"""`python -m sync_scripts.load_clever --feed NAME PATH`: loads a Clever CSV export into the roster."""

from __future__ import annotations

from sync_scripts.engine.loader_command import make_command
from sync_scripts.reading.registry import CLEVER

main = make_command(CLEVER)

if __name__ == "__main__":
    main()
