"""The filters of the templates: values as people read them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from urllib.parse import urlencode

from jinja2 import Undefined
from markupsafe import Markup

from roster_service.db.instants import describe_day, describe_instant
from roster_service.explore.known_people import describe_cut
from roster_service.feeds.run_outcomes import OUTCOMES

# What a run does with records, by the kind of change, the gravest first.
EFFECTS = {"tombstoned": "delete", "changed": "change", "added": "add", "revived": "bring back"}
# By pattern of a command: the screen that does the same. The first that fits counts.
SCREENS_OF_COMMANDS = {
    "`roster feed list`": "the page Feeds",
    "`roster feed [^`]*`": "the page of the feed",
    "`roster sync list`": "the page Runs",
    # That of the held run asks for no new ids.
    "`roster sync (show|approve|discard|undo) [0-9]*`": "the page of the run",
    "`roster person list`": "the page Hidden",
    "`roster delivery [^`]*`": "the page Files of the vendor",
    "`roster client [^`]*`": "the page Clients and keys of the vendor",
    "`roster vendor list`": "the page Vendors",
    "`roster vendor [^`]*`": "the page of the vendor",
    "`roster (district|school) list`": "the page Access",
    "`roster operator list`": "the page Operators",
}
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def to_age(seconds: float | None) -> str:
    """Returns how long ago something was, in the largest unit: `3 hours ago`; None as never."""
    if seconds is None:
        return "never"
    for size, name in UNITS:
        number = int(seconds // size)
        if number >= 1:
            return f"{to_counted(number, name)} ago"
    return "just now"


def to_counted(number: int, noun: str, plural: str | None = None) -> str:
    """Returns a number with what it counts: `1 row`, `2,000 rows`. `plural`: None for that with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def to_bytes(number: int) -> str:
    """Returns a number of bytes in the unit that suits it: `1.5 MB`."""
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def to_number(number: int | None) -> str:
    """Returns a whole number with commas between the thousands; None as a dash."""
    return "–" if number is None else f"{number:,}"


def to_screens(text: str) -> str:
    """Returns a text in which screens stand in place of the commands that do the same. The text is made below the
    console, where the commands make it too. A command that no screen does stays."""
    for command, screen in SCREENS_OF_COMMANDS.items():
        text = re.sub(command, screen, text)
    return text


def to_sentence(text: str) -> str:
    """Returns a text with a capital letter at its beginning, unless it begins with an id, a path or another name that
    has more than letters."""
    text = to_screens(text)
    first = text.partition(" ")[0].rstrip(",;:.")
    return text[:1].upper() + text[1:] if first.isalpha() else text


def to_instant(zone: tzinfo | None, text: str | None) -> str:
    """Returns an instant of ISO 8601 as `describe_instant` does, as an element that is one word; None as a dash."""
    if text is None:
        return "–"
    instant = datetime.fromisoformat(text).astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        instant.isoformat(timespec="seconds"), describe_instant(instant, zone)
    )


def to_day(text: str) -> str:
    """Returns the day of a day or an instant of ISO 8601, which is not moved to another time zone, as people read
    it."""
    return describe_day(date.fromisoformat(text[:10]))


def to_effect(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Returns what a run would do, as the words after `would`: `delete 1,203 records, change 56`. `counts`: of the run,
    by type."""
    sums = {kind: sum(of_type.get(kind, 0) for of_type in counts.values()) for kind in EFFECTS}
    done = [f"{EFFECTS[kind]} {number:,}" for kind, number in sums.items() if number]
    if not done:
        return "change no record"
    verb, _, rest = ", ".join(done).partition(", ")
    noun = "record" if verb.endswith(" 1") else "records"
    return f"{verb} {noun}{', ' if rest else ''}{rest}"


def to_made(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Returns what a run did: `4 records added, 1 changed`. `counts`: of the run, by type."""
    words = {"added": "added", "changed": "changed", "tombstoned": "marked as deleted", "revived": "revived"}
    sums = {word: sum(of_type.get(kind, 0) for of_type in counts.values()) for kind, word in words.items()}
    done = [(number, word) for word, number in sums.items() if number]
    if not done:
        return "no record changed"
    (number, word), *rest = done
    return ", ".join([f"{to_counted(number, 'record')} {word}", *(f"{number:,} {word}" for number, word in rest)])


def to_query(values: Mapping[str, Any]) -> str:
    """Returns values as a query string, without those that are None."""
    return urlencode({name: value for name, value in values.items() if value is not None})


def to_value(value: Any) -> str:
    """Returns a value of a field as a person reads it: None, or none, as a dash, an empty list as `none`, any other
    with commas, the members of a part with their names."""
    if value is None or isinstance(value, Undefined):
        return "–"
    if value in ([], {}):
        return "none"
    if isinstance(value, list):
        return (", " if all(isinstance(one, str) for one in value) else "; ").join(map(to_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {to_value(one)}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_words(value: Any) -> str:
    """Returns a value of a setting as a person reads it: a list with commas, without empty parts; none as `none`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        value = [f"{name.replace('_', ' ')} {to_words(part)}" for name, part in value.items() if part is not None]
    if isinstance(value, (list, tuple)):
        return ", ".join(to_words(part) for part in value if part is not None) or "none"
    return "none" if value is None else str(value)


def to_colour(outcome: str) -> str:
    """Returns the colour of the outcome of a run."""
    return OUTCOMES[outcome].colour


def to_shape(outcome: str | None) -> str:
    """Returns the shape of a night: that of the colour of its outcome, or `none` for a night without a run."""
    return "none" if outcome is None else to_colour(outcome)


def to_cause(outcome: str, message: str | None) -> str:
    """Returns why a run has its outcome."""
    return OUTCOMES[outcome].explain(message)


def to_described(outcome: str, message: str | None) -> str:
    """Returns the outcome of a run with its cause."""
    return OUTCOMES[outcome].describe(message)


def to_remedy(outcome: str) -> str:
    """Returns what to do after the outcome of a run, without its first capital and full stop; blank if there
    is nothing to do."""
    return OUTCOMES[outcome].remedy or ""


def to_segment(text: str) -> str:
    """Returns a text as one segment of a path. All signs but ASCII letters and digits, `-` and `_` become `~` and two
    hexadecimal digits for each byte: a server takes `%2F` for a slash, a browser `%2E%2E` for the folder above, and a
    dot would begin the ending of a format. `from_segment` reads it."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda sign: "".join(f"~{byte:02X}" for byte in sign[0].encode()), text)


def from_segment(segment: str) -> str:
    """Returns the text of `to_segment`; of any other segment, some text, which has no NUL."""
    read = re.sub(rb"~([0-9A-F]{2})", lambda code: bytes([int(code[1], 16)]), segment.encode())
    return read.decode(errors="replace").replace("\x00", "\ufffd")


# Beside `instant`, which needs the time zone.
FILTERS: Mapping[str, Callable[..., str]] = {
    "age": to_age,
    "colour": to_colour,
    "day": to_day,
    "described": to_described,
    "remedy": to_remedy,
    "cause": to_cause,
    "cut": describe_cut,
    "counted": to_counted,
    "bytes": to_bytes,
    "number": to_number,
    "effect": to_effect,
    "made": to_made,
    "query": to_query,
    "segment": to_segment,
    "shape": to_shape,
    "screens": to_screens,
    "sentence": to_sentence,
    "value": to_value,
    "words": to_words,
}
