"""The tests of the filter library, in a checkout beside the service or in the library's source distribution."""

from pathlib import Path

_ROOT = Path(__file__).parents[2]
LIBRARY = _ROOT / "grammar" if (_ROOT / "grammar").is_dir() else _ROOT
"""The folder of the library."""
