"""Charts of numbers by day, in a range that the operator chooses. The page draws them as SVG, without script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from roster_service.console.visit import Visit

# The ranges to choose from, in days.
RANGES = (7, 30, 90, 365)
# A chart has at most so many bars, as its table has rows; a longer range has a bar for each week.
MOST_BARS = 100


@dataclass(frozen=True)
class Bar:
    """A bar of a chart. `place`: from 0; `first`: its day, or the first one of its week; `parts`: by series, in the
    order of the chart, without those that are 0."""

    place: int
    first: str
    parts: Mapping[str, int]
    total: int


@dataclass(frozen=True)
class DayChart:
    """A chart. `days`: its range; `step`: the days of a bar; `series`: the names of the parts; `most`: the total of the
    highest bar."""

    days: int
    ranges: Sequence[int]
    step: int
    series: Sequence[str]
    bars: Sequence[Bar]
    most: int


def read_range(visit: Visit) -> int:
    """Returns the number of days that the query string wants; 30 unless it is one of the ranges."""
    wanted = visit.get_number("days", 30, max(RANGES))
    return wanted if wanted in RANGES else 30


def find_first(days: int, last: date) -> date:
    """Returns the first day of a chart that ends with `last`: with a bar for each week, of a whole one."""
    step = _find_step(days)
    return last - timedelta(days=(days + step - 1) // step * step - 1)


def make_chart(days: int, last: date, numbers: Iterable[tuple[date, str, int]], *, is_sum: bool) -> DayChart:
    """Returns the chart of the range that ends with `last`. `numbers`: (day, series, number) in the order of the days;
    those before the range are left out; `is_sum`: whether a bar sums its numbers up, or shows the last of them."""
    step, first = _find_step(days), find_first(days, last)
    sums: Counter[tuple[int, str]] = Counter()
    for day, series, number in numbers:
        if first <= day <= last:
            key = ((day - first).days // step, series)
            sums[key] = number + (sums[key] if is_sum else 0)
    names = sorted({series for _, series in sums})
    bars = []
    for place in range(((last - first).days + step) // step):
        parts = {name: sums[place, name] for name in names if sums[place, name]}
        day = first + timedelta(days=place * step)
        bars.append(Bar(place, day.isoformat(), parts, sum(parts.values())))
    return DayChart(days, RANGES, step, names, bars, max(bar.total for bar in bars))


def _find_step(days: int) -> int:
    return 1 if days <= MOST_BARS else 7
