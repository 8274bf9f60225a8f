"""`python -m sync_scripts.load_sds --feed NAME PATH`: loads a School Data Sync v2.1 CSV export."""

from __future__ import annotations

from sync_scripts.engine.loader_command import make_command
from sync_scripts.reading.registry import SDS

main = make_command(SDS)

if __name__ == "__main__":
    main()
