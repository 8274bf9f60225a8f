"""`python -m oneroster_filter`: see `command.py`."""

import os
import sys

from oneroster_filter.command import main

try:
    code = main(sys.argv[1:], sys.stdout, sys.stderr)
    sys.stdout.flush()
except BrokenPipeError:
    # The reader has closed the pipe (`| head`). Without this, Python would report the error again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 0
sys.exit(code)
