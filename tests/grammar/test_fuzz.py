"""The short run of `fuzz.py`; ROSTER_FUZZ_INPUTS makes it longer."""

import os
from collections import Counter

from .fuzz import fuzz, survive

INPUTS = int(os.environ.get("ROSTER_FUZZ_INPUTS", "4000"))


def test_whatever_comes_nothing_but_a_filter_error_is_raised() -> None:
    accepted: Counter[bool] = Counter()

    fuzz(INPUTS, 0, lambda text: accepted.update([survive(text)]))

    assert accepted[True] > INPUTS // 10
    assert accepted[False] > INPUTS // 10
