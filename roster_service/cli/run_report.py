"""`roster sync preview`, `roster sync changes`, and the report of a run as text: of a stored run or of a preview."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
import sqlalchemy as sa

from roster_service.cli.terminal import as_json, csv_option, make_table, open_connection, show, to_texts
from roster_service.db.tables import feeds
from roster_service.errors import CommandError
from roster_service.feeds.change_history import CSV_COLUMNS, ChangedRecord, find_changes
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import FORMATS
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.rejected_rows import explain_missing
from roster_service.feeds.run_history import TYPES
from roster_service.feeds.run_outcomes import REFUSED
from roster_service.feeds.scripts import run_script

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


def describe_report(report: Mapping[str, Any]) -> str:
    """Returns the report of a run as paragraphs. `report`: a run of `roster sync show --json`, or the JSON of a dry
    run."""
    return "\n\n".join(filter(None, _list_paragraphs(report)))


def _list_paragraphs(report: Mapping[str, Any]) -> Iterator[str]:
    texts = to_texts({key: report.get(key) or None for key in FACTS}, "started", "finished")
    facts = [f"{words:<9} {texts[key]}" for key, words in FACTS.items() if report.get(key)]
    if report.get("dry_run"):
        facts.append("preview   nothing was changed")
    yield "\n".join(facts)
    if report["outcome"] == HELD and report.get("run"):
        yield HINT.format(report["run"])
    yield make_table(
        [
            {"type": name, **{key: f"{count:,}" for key, count in counts.items()}}
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
    if report["rejected"]:
        yield from _describe_causes(report)
    if report.get("preview"):
        yield from _describe_preview(report["preview"])


def _describe_causes(report: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs on rejected rows, or on the reasons why the whole export was refused."""
    total, run = report["rejected"], report.get("run")
    samples = report.get("samples", report.get("rejections", []))[:SAMPLES]
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
    # A removal leaves nothing to check.
    if checks := preview.get("quality"):
        words = {"title": "check", "found": "records", "before": "before"}
        table = make_table([to_texts({words[name]: check[name] for name in words}) for check in checks], "")
        yield f"the checks of data quality would find:\n{table}"
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
    for name in ("grade", "role"):
        if listed := preview[f"{name}s"]:
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


@click.command("preview")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--feed", required=True, metavar="NAME", help="The feed that the export belongs to.")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="The CSV family, for a feed that is new.")
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all changes with their values as CSV into FILE, which only its owner can read.",
)
@as_json
def sync_preview(path: Path, feed: str, format_: str | None, csv_path: Path | None, as_json: bool) -> None:
    """Show the run that would load the export at PATH, and change nothing.

    It has the records of each type, notices, the causes of rejected rows, and what would vanish by school and class.
    """
    with open_connection() as connection:
        changes = [] if csv_path is None else ["--changes", str(csv_path)]
        report = preview_run(connection, _choose_format(connection, feed, format_), feed, path, *changes)
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else describe_report(report))


def preview_run(connection: sa.Connection, format_: str, feed: str, path: str | Path, *options: str) -> dict[str, Any]:
    """Returns the report, as its loader prints it, of a dry run of the export at `path`. Raises CommandError with the
    reasons if the export would not be loaded."""
    done = run_script(connection, f"load_{format_}", "--feed", feed, "--dry-run", "--json", *options, "--", path)
    report: dict[str, Any] = _read_report(done.stdout) or {}
    if report.get("dry_run") is None:
        raise CommandError(f"the export would not be loaded:\n{_describe_refusal(report) or done.stderr}")
    return report


def _choose_format(connection: sa.Connection, feed: str, given: str | None) -> str:
    known = connection.scalar(sa.select(feeds.c.format).where(feeds.c.name == feed, feeds.c.state != FeedState.TRIED))
    if known is None and given is None:
        raise CommandError(f"there is no feed {feed}; name its --format to preview its first run")
    if known and given not in (None, known):
        raise CommandError(f"the feed {feed} takes {known}, not {given}")
    return str(known or given)


def _read_report(text: str) -> Any:
    """The JSON object that a loader printed; None if it printed none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _describe_refusal(report: dict[str, Any]) -> str:
    """The message of an error, or the reasons of a refused export, a line each."""
    lines = [
        ", ".join(
            str(part)
            for part in (
                rejection["file"],
                rejection["line"] and f"line {rejection['line']}",
                rejection["column"] and f"column {rejection['column']}",
            )
            if part
        )
        + f": {rejection['reason']}"
        for rejection in report.get("rejections", [])
    ]
    hidden = report.get("total", 0) - len(lines)
    return "\n".join([*lines, *([f"... and {hidden:,} more"] if hidden > 0 else [])]) or report.get("message", "")


# How many changes of each type are printed.
SHOWN = 10


@click.command("changes")
@click.argument("run", type=int)
@click.option("--type", "kind", type=click.Choice(tuple(TYPES.values())), help="Only records of this type.")
@csv_option
@as_json
def sync_changes(run: int, kind: str | None, csv_file: TextIO | None, as_json: bool) -> None:
    """Show the records that RUN changed, each with its changed fields before and after.

    Records that it added, changed, revived, and marked as deleted.
    """
    with open_connection() as connection:
        history = find_changes(connection, run)
        if history is not None and history.missing:
            runs = ", ".join(map(str, history.missing))
            click.echo(f"roster: records added by run {run} and changed by run {runs} are not listed", err=True)
        if csv_file is not None:
            changes = iter(()) if history is None else history.read(connection, kind)
            write_private_csv(csv_file, CSV_COLUMNS, (line for change in changes for line in change.list_lines()))
            return
        is_listed = not as_json
        counts = {} if history is None else history.count(connection, kind)
        found = [] if history is None else list(history.read(connection, kind, SHOWN if is_listed else None))
    show(found, as_json, lambda _: describe_changes(counts, found))


def describe_changes(counts: dict[str, dict[str, int]], found: Sequence[ChangedRecord]) -> str:
    """Returns the counts of changes, and the first changes of each type, as two tables."""
    if not counts:
        return "no record changed"
    names = ("added", "changed", "revived", "tombstoned")
    summary = [{"type": kind, **{name: f"{count.get(name, 0):,}" for name in names}} for kind, count in counts.items()]
    lines = [
        dict(zip(CSV_COLUMNS, map(_to_text, line), strict=True)) for change in found for line in change.list_lines()
    ]
    total = sum(sum(count.values()) for count in counts.values())
    hidden = f"\n... and {total - len(found):,} more; `--csv FILE` writes all" if total > len(found) else ""
    return f"{make_table(summary, '')}\n\n{make_table(lines, '')}{hidden}"


def _to_text(cell: str) -> str:
    return cell or "-"
