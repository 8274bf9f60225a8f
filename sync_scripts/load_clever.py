"""`python -m sync_scripts.load_clever --feed NAME PATH`: a Clever CSV export into the roster."""

from __future__ import annotations

from sync_scripts.command import make_command
from sync_scripts.families import CLEVER

main = make_command(CLEVER)

if __name__ == "__main__":
    main()
