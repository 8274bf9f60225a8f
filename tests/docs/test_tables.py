"""Tables of the documentation that repeat rows of the code: each has exactly these rows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from marshmallow import Schema
from prometheus_client import REGISTRY

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.scopes import EXPLANATIONS, ScopeName, make_content_rights
from roster_service.auth.throttling.counters import THROTTLES
from roster_service.auth.throttling.limits import RATES, ROSTERING_DEFAULTS, fill_allowance, fill_rostering_rate
from roster_service.console.screens import SCREENS
from roster_service.db import tables
from roster_service.db.roles import READABLE, WRITABLE
from roster_service.feeds.figures import FeedHealth, Figures
from roster_service.feeds.run_history import STEPS
from roster_service.roster import visibility
from roster_service.roster.withheld import WithheldField
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality
from roster_service.rostering.status_info import STATUS_INFO
from roster_service.schemas.kinds import list_hidden, list_roster_fields
from roster_service.schemas.students import Student
from roster_service.schemas.vendor_bodies import MAX_BODY_BYTES, StudentsRequest
from roster_service.schemas.versions import VERSIONS
from roster_service.server.gunicorn_app import STOP_SECONDS, find_worker_timeout
from roster_service.server.gunicorn_worker import HANDOVER_SECONDS
from roster_service.server.http_channel import BYTES_PER_SECOND, SECONDS, ConnectionState
from roster_service.server.http_parser import HEAD_BYTES, HEADERS, LINE_BYTES
from roster_service.server.http_server import CONNECTIONS, MEMORY_BYTES
from roster_service.serving.params import COLLECTION_PARAMETERS, DEFAULT_LIMIT
from roster_service.serving.pulls import PULL_MINUTES
from roster_service.settings import Settings
from roster_service.vendor.bodies import FAILURES
from roster_service.web.metrics_page import list_database_metrics, list_standby_metrics
from roster_service.web.time_limit import NOTICE_SECONDS
from sync_scripts.engine.exit_codes import MEANINGS
from sync_scripts.formats import tolerated
from sync_scripts.formats.oneroster import VERSIONS as CSV_VERSIONS
from sync_scripts.formats.tolerated import DEVIATIONS
from sync_scripts.reading.registry import FAMILIES
from tests.deltas.events import EVENTS
from tests.docs import reference_snapshot
from tests.docs.pages import ALL, ROOT, list_rows, read_page, read_section
from tests.docs.reference_snapshot import make_reference

ARCHITECTURE, CONFORMANCE, PERFORMANCE = "docs/architecture.md", "docs/conformance.md", "docs/performance.md"
INSTALL, PRIVACY, RUN = "docs/install.md", "docs/privacy.md", "docs/run.md"
CONSOLE, SYNC, VENDORS = "docs/console.md", "docs/sync.md", "docs/vendors.md"


def list_codes(cell: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_reference_is_generated_from_the_code() -> None:
    """Line by line; `python -m tests.docs.reference_snapshot` writes the page."""
    made, written = make_reference().splitlines(), reference_snapshot.PAGE.read_text().splitlines()
    assert [line for line in made if line not in written] == []
    assert [line for line in written if line not in made] == []
    assert made == written


def test_metrics() -> None:
    figures = Figures([FeedHealth("a feed", 1, 0, False)], 0)
    families = [*REGISTRY.collect(), *list_database_metrics(figures), *list_standby_metrics(0)]
    metrics = {family.name: family for family in families if family.name.startswith("roster_")}
    names = {f"{name}_total" if family.type == "counter" else name for name, family in metrics.items()}
    rows = [row[0].strip("`}").partition("{") for row in list_rows(read_page(RUN), "metric")]
    assert {name for name, _, _ in rows} == names
    labels = {name: set(sample.labels) for name, family in metrics.items() for sample in family.samples}
    for name, _, shown in rows:
        # A metric with labels has no sample until it is counted.
        assert labels.get(name.removesuffix("_total"), set()) - {"le"} <= set(shown.split(","))
    alerts = (ROOT / "deploy/alerts.yaml").read_text()
    assert set(re.findall(r"roster_\w+", alerts)) - names == {"roster_request_seconds_bucket"}


def list_withheld_by(word: WithheldField, *records: type[Schema]) -> list[str]:
    """The dotted names of the fields of these records that a word withholds."""
    rights = make_content_rights(frozenset(ScopeName), frozenset({word}), None)
    return sorted({name for record in records for name in list_hidden(list_roster_fields(record), rights)})


def test_withheld_fields() -> None:
    """One row has all words that withhold the field of their name, and the same field of demographics."""
    *rows, (alike, _, _) = list_rows(read_section(PRIVACY, "Withheld fields"), "field")
    shown = [(list_codes(word), list_codes(first), list_codes(second)) for word, first, second in rows]
    shown += [([word], [word], [f"demographics.{word}"]) for word in list_codes(alike)]
    records = [record for version in VERSIONS for record in version.records.values()]
    assert [(word, sorted(first), sorted(second)) for word, first, second in shown] == [
        ([word.value], list_withheld_by(word, *records), list_withheld_by(word, Student)) for word in WithheldField
    ]


def test_scopes() -> None:
    rows = list_rows(read_section(VENDORS, "Scopes"), "name")
    assert rows == [[f"`{name}`", explanation] for name, explanation in EXPLANATIONS.items()]


def test_errors_of_the_rostering_interface() -> None:
    rows = list_rows(read_section(VENDORS, "Errors"), "status")
    shown = {(int(status), code) for status, codes, _ in rows for code in list_codes(codes)}
    assert shown == set(STATUS_INFO.values()) - {(500, "internal_server_error")}


def test_errors_of_the_vendor_interface() -> None:
    rows = list_rows(read_section(VENDORS, "Errors of the vendor interface"), "status")
    shown = {(int(status), code) for status, codes, _ in rows for code in list_codes(codes)}
    assert shown == set(FAILURES.values()) - {(500, "internal")}


def test_what_a_change_does_to_a_copy() -> None:
    rows = list_rows(read_section(VENDORS, "What a change does to a copy"), "copy")
    shown = [(words, copy, running) for copy, running, several in rows for words in several.split("; ")]
    assert sorted(shown) == sorted((words, event.copy, event.running) for words, event in EVENTS.items())


def test_keys_of_a_students_request() -> None:
    rows = list_rows(read_page(VENDORS), "key of the body")
    assert sorted(key for row in rows for key in list_codes(row[0])) == sorted(StudentsRequest().fields)


def test_parameters() -> None:
    rows = list_rows(read_section(VENDORS, "Parameters"), "parameter")
    shown = sorted(name for row in rows for name in list_codes(row[0]))
    assert shown == sorted(parameter.name for parameter in COLLECTION_PARAMETERS)


def test_bounds_of_parameters() -> None:
    assert f"{DEFAULT_LIMIT} by default, at most {Settings().max_limit:,}" in read_page(VENDORS)
    assert f"until {PULL_MINUTES} minutes after its last page" in read_page(VENDORS)


def test_rates_of_tokens() -> None:
    words = " ".join(read_page(VENDORS).split())
    assert f"{RATES.tokens} tokens a minute of a client and {RATES.token_requests} requests a minute of an" in words


def test_limits_of_vendors() -> None:
    rate, burst, day = fill_allowance(Allowance(None, None, None))
    limits = " ".join(read_section(VENDORS, "Limits").split())
    assert f"{rate} requests a second on average, {burst} at once, and {day:,} in 24 hours" in limits


def test_limits_of_the_rostering_interface() -> None:
    rate, burst = fill_rostering_rate(ROSTERING_DEFAULTS)
    words = " ".join(read_section(VENDORS, "Rates of the rostering interface").split())
    assert f"{rate:,} requests a second on average, and {burst:,} in a burst" in words


def test_throttles() -> None:
    rows = list_rows(read_section(RUN, "Throttles, and their counters"), "counted")
    shown = [[counted, when] for several, when in rows for counted in several.split("; ")]
    assert shown == [[throttle.counted, throttle.when_away.value] for throttle in THROTTLES.values()]


def test_roots_and_numbers_of_paths() -> None:
    rows = list_rows(read_section(VENDORS, "Rostering interface"), "version")
    assert [(title, list_codes(root)[0]) for title, root, *_ in rows] == [(it.title, it.root) for it in VERSIONS]
    nested = [endpoint for endpoint in ENDPOINTS if endpoint.cardinality is Cardinality.COLLECTION and endpoint.ids]
    for page, words in (
        (VENDORS, f"{len(nested)} nested lists"),
        (VENDORS, f"{len(ENDPOINTS)} paths"),
        ("README.md", f"{len(ENDPOINTS)} paths"),
        (CONFORMANCE, f"{len(nested)} nested paths"),
        (CONFORMANCE, f"{len(ENDPOINTS) - len(nested)} list and single-record paths"),
    ):
        assert words in " ".join(read_page(page).split()), (page, words)


def test_exit_codes() -> None:
    rows = list_rows(read_section(SYNC, "Exit codes"), "exit code")
    assert rows == [[f"{code:d}", f"`{MEANINGS[code][0]}`", MEANINGS[code][1]] for code in MEANINGS]


def test_outcomes_that_need_an_operator() -> None:
    shown = [name for row in list_rows(read_page("docs/night.md"), "outcome") for name in list_codes(row[0])]
    assert sorted(shown) == sorted({"interrupted", "missing", *(name for name, _ in MEANINGS.values())} - {"loaded"})


def test_every_tolerated_deviation_has_a_test() -> None:
    tests = "".join(path.read_text() for path in (Path(__file__).parents[1] / "sync").rglob("test_*.py"))
    names = {id(value): name for name, value in vars(tolerated).items()}
    assert {names[id(deviation)] for deviation in DEVIATIONS} <= set(re.findall(r"\w+", tests))


def test_formats_and_their_loaders() -> None:
    rows = list_rows(read_section(SYNC, "Formats"), "format")
    shown = [(list_codes(name)[0], list_codes(loader)[0]) for name, loader, _ in rows]
    assert shown == [(family, f"python -m sync_scripts.load_{family}") for family in FAMILIES]


def test_every_page_and_picture_names_the_versions_of_oneroster_csv_that_are_read() -> None:
    """A picture has its words in several elements."""
    texts = {path: path.read_text() for path in (*ALL, *ROOT.glob("docs/pictures/*.svg"))}
    one = r"1\.\d"
    named = {
        (path.name, tuple(re.findall(one, versions)))
        for path, text in texts.items()
        for versions in re.findall(rf"OneRoster CSV\s+({one}(?:(?:, | and | or ){one})*)", re.sub("<[^>]*>", "", text))
    }
    assert {name for name, _ in named} >= {"README.md", "sync.md", "CHANGELOG.md", "overview.svg"}
    assert {versions for _, versions in named} == {tuple(CSV_VERSIONS)}


def test_packages_and_their_floors() -> None:
    """The contract of the floors says nothing of a package that it does not name."""
    layers = read_page("setup.cfg").partition("[importlinter:contract:floors]")[2].partition("\n\n")[0]
    rows = list_rows(read_section(ARCHITECTURE, "The packages"), "package")
    shown = {name.removesuffix("/") for row in rows for name in list_codes(row[0])}
    packages = {path.parent.name for path in (ROOT / "roster_service").glob("*/__init__.py")}
    assert packages - shown == set()
    assert packages - set(re.findall(r"roster_service\.(\w+)", layers)) == set()


def test_screens() -> None:
    """By their words in the menu, else by their titles."""
    rows = list_rows(read_section(CONSOLE, "The console"), "screen")
    shown = [name for row in rows for name in row[0].split(", ")]
    names = [screen.menu or screen.title for screen in SCREENS]
    assert set(names) ^ set(shown) == set()
    assert len(names) == len(shown)


def test_mechanisms_for_speed_have_about_their_lines() -> None:
    """Within a tenth, so that a mended line changes no page."""
    rows = list_rows(read_section(PERFORMANCE, "Ledger"), "mechanism")
    assert len(rows) > 10
    counted = {}
    for name, files, lines, _ in rows:
        counted[name] = (int(lines), sum(_count_lines(code) for code in list_codes(files)))
    assert {name: both for name, both in counted.items() if abs(both[0] - both[1]) > both[1] / 10} == {}


def _count_lines(code: str) -> int:
    """The lines of a file, or of a class, function or table in it: `PATH:NAME`."""
    path, _, name = code.partition(":")
    text = _find_file(path).read_text()
    if not name:
        return len(text.splitlines())
    [found] = [node for node in ast.parse(text).body if name in _list_names(node)]
    return (found.end_lineno or found.lineno) - found.lineno + 1


def _list_names(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


def _find_file(path: str) -> Path:
    """The file with a path from the root, or from the package of the service."""
    [found] = [base / path for base in (ROOT, ROOT / "roster_service") if (base / path).is_file()]
    return found


def test_steps_of_a_run() -> None:
    rows = list_rows(read_section(ARCHITECTURE, "A run of the sync"), "step")
    shown = [step for row in rows for step in row[0].split(", ")]
    assert [step for step in shown if step in STEPS] == list(STEPS)


def test_layers_of_visibility() -> None:
    rows = list_rows(read_section(ARCHITECTURE, "Who sees what"), "a row of")
    shown = [table for row in rows for table in list_codes(row[0])]
    assert sorted(shown) == sorted(table.name for table in (*READABLE, *WRITABLE))
    functions = [name for row in rows for name in list_codes(row[1]) if name.endswith(("_visible", "_granted"))]
    assert len(functions) > 3
    assert all(hasattr(visibility, name) for name in functions)


def test_tables_of_the_data_model() -> None:
    rows = list_rows(read_section(ARCHITECTURE, "The data model"), "tables")
    shown = [table for row in rows for table in list_codes(row[0])]
    assert sorted(shown) == sorted(tables.metadata.tables)


def list_figures(text: str) -> list[int]:
    """The numbers in a text."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def test_bounds_of_a_worker() -> None:
    longest = find_worker_timeout(Settings())
    sending = [SECONDS[ConnectionState.SENDING], BYTES_PER_SECOND, SECONDS[ConnectionState.SENDING]]
    expected = {
        "request line": [LINE_BYTES],
        "request line and headers": [HEAD_BYTES, HEADERS],
        "head of a request": [SECONDS[ConnectionState.HEAD]],
        "body of a request": [MAX_BODY_BYTES],
        "body and response on their way": sending,
        "connection without a request": [SECONDS[ConnectionState.IDLE]],
        "connections": [CONNECTIONS],
        "responses that their clients have not read": [MEMORY_BYTES // 2**20],
        "one request": [longest - Settings().request_seconds, longest],
    }
    assert {row[0]: list_figures(row[1]) for row in list_rows(read_page(INSTALL), "per worker")} == expected


def test_effects_of_signals() -> None:
    figures = [list_figures(row[1]) for row in list_rows(read_page(INSTALL), "signal to `roster run`")]
    stop = [NOTICE_SECONDS, NOTICE_SECONDS + STOP_SECONDS]
    assert figures == [stop, [NOTICE_SECONDS], [HANDOVER_SECONDS], []]
