"""CSV for people: no cell is a formula in a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest

from roster_service.feeds.private_files import write_private_csv

# As they are, and in full width.
SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_a_formula_is_guarded(sign: str) -> None:
    out = io.StringIO(newline="")
    write_private_csv(out, ("name", "number", "none"), [(f"{sign}HYPERLINK(1)", -1, None), (f"a{sign}", 1, None)])
    header, guarded, plain = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert header == ["name", "number", "none"]
    assert guarded == [f"'{sign}HYPERLINK(1)", "-1", ""]
    assert plain == [f"a{sign}", "1", ""]
