"""`python -m oneroster_filter`: see `command.py`."""

from oneroster_filter.command import run

run()
