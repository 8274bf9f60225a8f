"""Charts by day: their ranges and sums, and the screens that have one."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
import sqlalchemy as sa

from roster_service.console.day_charts import MOST_BARS, RANGES, find_first, make_chart
from roster_service.db.tables import usage
from roster_service.feeds.data_quality import store_counts
from tests.console.conftest import Console

LAST = date(2026, 11, 23)


@pytest.mark.parametrize("days", RANGES)
def test_a_chart_has_a_bar_for_each_part_of_its_range(days: int) -> None:
    chart = make_chart(days, LAST, (), is_sum=True)
    first = find_first(days, LAST)
    assert len(chart.bars) <= MOST_BARS
    assert chart.bars[0].first == first.isoformat()
    assert date.fromisoformat(chart.bars[-1].first) + timedelta(days=chart.step - 1) == LAST
    assert days <= (LAST - first).days + 1 < days + chart.step


@pytest.mark.parametrize("days", RANGES)
def test_a_chart_counts_each_day_of_its_range_once(days: int) -> None:
    numbers = [(LAST - timedelta(days=back), f"{back % 2}", 1) for back in range(400)]
    chart = make_chart(days, LAST, numbers, is_sum=True)
    assert sum(bar.total for bar in chart.bars) == (LAST - find_first(days, LAST)).days + 1
    assert all(sum(bar.parts.values()) == bar.total for bar in chart.bars)
    assert chart.most == max(bar.total for bar in chart.bars)


def test_a_week_of_counts_shows_the_last_one() -> None:
    chart = make_chart(365, LAST, [(LAST - timedelta(days=back), "records", back) for back in (6, 3, 2)], is_sum=False)
    assert (chart.step, chart.bars[-1].parts) == (7, {"records": 2})


def test_usage_is_shown_in_the_chosen_range(console: Console) -> None:
    today = datetime.now(UTC).date()
    counts = [(0, "2xx", 7), (0, "4xx", 2), (20, "2xx", 30), (200, "5xx", 1000)]
    with console.engine.begin() as connection:
        for back, status, requests in counts:
            day = today - timedelta(days=back)
            row = {"vendor_id": 4711, "day": day, "endpoint": "users", "status_class": status}
            connection.execute(sa.insert(usage).values(**row, requests=requests, records=requests, bytes=0))
    browser = console.log_in()
    shown = {}
    for days in RANGES:
        content = browser.get(f"/disclosures/usage.json?days={days}&vendor=4711").json
        shown[days] = sum(bar["total"] for bar in content["chart"]["bars"])
        page = browser.get(f"/disclosures/usage?days={days}&vendor=4711").text
        assert f'days={days}&amp;vendor=4711" aria-current="true"' in page
        # The smaller chart of a vendor has the bar of today at its end.
        last = max(float(x) for x in re.findall(r'<rect x="([0-9.]+)" y="[0-9.]+" width="3"', page))
        assert last == 4 * (len(content["chart"]["bars"]) - 1)
        assert page.count("<g><title>") == sum(bar["total"] > 0 for bar in content["chart"]["bars"])
    assert shown == {7: 9, 30: 39, 90: 39, 365: 1039}
    assert browser.get("/disclosures/usage.json?days=8").json["chart"]["days"] == 30
    assert "4711,users,2xx,30" in browser.get("/disclosures/usage.csv?days=30").text


def test_a_finding_shows_its_trend_in_a_feed(console: Console) -> None:
    store_counts(console.engine)
    browser = console.log_in()
    checks = [it["check"] for it in browser.get("/quality.json?feed=springfield").json["checks"]]
    counts = {it["check"]: it["count"] for it in browser.get("/quality.json?feed=springfield").json["checks"]}
    for check in checks:
        path = f"/quality/{check}"
        chart = browser.get(f"{path}.json?feed=springfield&days=7").json["chart"]
        assert chart["bars"][-1]["total"] == counts[check]
        assert ("<g><title>" in browser.get(f"{path}?feed=springfield&days=7").text) == (counts[check] > 0)
    assert browser.get(f"{path}.json").json["chart"] is None
