"""The report of a run as text: of a stored run, and of a run that is only previewed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from roster_service.cli.terminal import make_table, to_texts
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.rejected_rows import explain_missing
from roster_service.feeds.run_history import TYPES
from roster_service.feeds.run_outcomes import REFUSED

# How many of the rejected rows and of the schools are printed.
SAMPLES, SCHOOLS = 5, 20
FACTS = {
    "run": "run",
    "feed": "feed",
    "format": "format",
    "source": "export",
    "outcome": "outcome",
    "message": "message",
    "started": "started",
    "finished": "finished",
    "stamp": "stamp",
}
# What is told of a file.
FILE = ("file", "mode", "rows", "rejected")
HINT = "`roster sync approve {0}` applies it, `roster sync discard {0}` forgets it"


def name_count(key: str) -> str:
    """The heading of a count; its key in JSON is older than the word."""
    return "rejected" if key == "refused" else key


def describe_report(report: Mapping[str, Any]) -> str:
    """Returns the report of a run as paragraphs. `report`: a run of `roster sync show --json`, or the JSON of a dry
    run."""
    return "\n\n".join(filter(None, _list_paragraphs(report)))


def _list_paragraphs(report: Mapping[str, Any]) -> Iterator[str]:
    facts = [f"{words:<9} {report[key]}" for key, words in FACTS.items() if report.get(key)]
    if report.get("dry_run"):
        facts.append("preview   nothing was changed")
    yield "\n".join(facts)
    if report["outcome"] == HELD and report.get("run"):
        yield HINT.format(report["run"])
    yield make_table(
        [
            {"type": name, **{name_count(key): f"{count:,}" for key, count in counts.items()}}
            for name, counts in report["counts"].items()
        ],
        "",
    )
    yield make_table([{"step": name, "seconds": f"{seconds:.3f}"} for name, seconds in report["seconds"].items()], "")
    if report["files"]:
        yield make_table(
            [{name: "-" if file[name] is None else str(file[name]) for name in FILE} for file in report["files"]], ""
        )
    if report["notices"]:
        yield "notices:\n" + "\n".join(f"  {notice}" for notice in report["notices"])
    if report["refused"]:
        yield from _describe_causes(report)
    if report.get("preview"):
        yield from _describe_preview(report["preview"])


def _describe_causes(report: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs on rejected rows, or on the reasons why the whole export was refused."""
    total, run = report["refused"], report.get("run")
    samples = report.get("samples", report.get("refusals", []))[:SAMPLES]
    is_refused = report["outcome"] == REFUSED
    if report["causes"]:
        rows = [_to_cause_row(number, cause) for number, cause in enumerate(report["causes"], 1)]
        what = "refused" if is_refused else f"{total:,} rejected {'row' if total == 1 else 'rows'}"
        yield f"{what} by root cause:\n{make_table(rows, '')}"
    if samples:
        place = f", with values in `roster sync rejected {run}`" if run else ""
        rest = "" if len(samples) == total else f", first {len(samples)} of {total:,}"
        what = "refused" if is_refused else "rejected"
        yield f"{what}{place}{rest}:\n{make_table([to_texts(sample) for sample in samples], '')}"
    elif not report["causes"]:
        yield explain_missing(total, 0)


def _to_cause_row(number: int, cause: Mapping[str, Any]) -> dict[str, str]:
    return to_texts(
        {
            "cause": cause.get("number", number),
            "file": cause["file"],
            "column": cause["column"],
            "first line": cause["line"],
            "rows": f"{cause['rows']:,}",
            "consequences": f"{cause['consequences']:,}",
            "reason": cause["reason"],
        }
    )


def _describe_preview(preview: Mapping[str, Any]) -> Iterator[str]:
    if schools := preview["schools"]:
        kinds = [kind for kind in TYPES.values() if any(kind in school["counts"] for school in schools)]
        rows = [
            {
                "school": school["name"] or "-",
                "sourcedId": school["sourcedId"],
                **{kind: _to_part(school["counts"].get(kind)) for kind in kinds},
            }
            for school in schools[:SCHOOLS]
        ]
        hidden = f"\n... and {len(schools) - SCHOOLS:,} more" if len(schools) > SCHOOLS else ""
        yield f"would vanish or change, by school:\n{make_table(rows, '')}{hidden}"
    # A run that an older version held has neither.
    for name in ("grade", "role"):
        if listed := preview.get(f"{name}s"):
            rows = [{name: place[name], "users": _to_part(place["counts"]["users"])} for place in listed]
            yield f"would vanish or change, by {name}:\n{make_table(rows, '')}"
    if preview["classes"]:
        rows = [
            {
                "class": taught["title"],
                "sourcedId": taught["sourcedId"],
                "school": taught["school"] or "-",
                "enrollments": _to_part(taught["counts"]["enrollments"]),
            }
            for taught in preview["classes"]
        ]
        yield f"would vanish, by class:\n{make_table(rows, '')}"
    if preview["samples"]:
        names = ("type", "change", "sourcedId", "fields")
        rows = [
            {**{name: sample[name] for name in names}, "fields": ", ".join(sample["fields"])}
            for sample in preview["samples"]
        ]
        yield f"samples:\n{make_table([to_texts(row) for row in rows], '')}"


def _to_part(count: Mapping[str, int] | None) -> str:
    if count is None:
        return "-"
    changing = f" and {count['changing']:,} changed" if count.get("changing") else ""
    return f"{count['vanishing']:,}{changing} of {count['active']:,}"
