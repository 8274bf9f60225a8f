"""The page of examples: filters of every kind with the records that they select and their SQL, made by the library."""

import json
from datetime import date, datetime
from typing import Any

from oneroster_filter import check, field_types, parse, predicate, sql_text, to_query

TYPES = field_types(
    {
        "sourcedId": str,
        "status": str,
        "familyName": str,
        "enabledUser": bool,
        "dateLastModified": datetime,
        "birthDate": date,
        "grades": list[str],
        "metadata.*": str,
    }
)
COLUMNS = {
    "status": "status",
    "familyName": "family_name",
    "enabledUser": "enabled_user",
    "dateLastModified": "modified",
    "birthDate": "birth_date",
    "grades": "grades",
    "metadata.tier": "metadata ->> 'tier'",
}
PEOPLE: tuple[dict[str, Any], ...] = (
    {
        "sourcedId": "u1",
        "status": "active",
        "familyName": "O'Brien",
        "enabledUser": "true",
        "dateLastModified": "2026-11-21T02:00:00.000Z",
        "birthDate": "2012-02-29",
        "grades": ["09", "10"],
        "metadata": {"tier": "1"},
    },
    {"sourcedId": "u2", "status": "active", "familyName": "Σίσυφος", "enabledUser": "false", "grades": ["10"]},
    {
        "sourcedId": "u3",
        "status": "tobedeleted",
        "familyName": "Lovelace",
        "dateLastModified": "2026-11-20T23:00:00.000Z",
    },
)
EXAMPLES = {
    "A word": "status='active'",
    "A quote inside a value is doubled": "familyName='O''Brien'",
    "A part of a text, in any letter case": "familyName~'ΣΊΣ'",
    "Not equal holds where there is no value": "enabledUser!='true'",
    "Changes since an instant": "dateLastModified>'2026-11-21T01:59:59.999Z'",
    "A whole day": "dateLastModified='2026-11-20'",
    "A day": "birthDate<'2013-01-01'",
    "A list that has all of the items": "grades='09,10'",
    "A list that has any of the items": "grades~'09,11'",
    "A key of the metadata": "metadata.tier='1'",
    "Two clauses, both true": "status='active' AND grades='10'",
    "Two clauses, one of them true": "status='tobedeleted' OR enabledUser='true'",
}


def make_page() -> str:
    """The page."""
    lines = [
        "# Examples of OneRoster filters",
        "",
        "The library made this page: for each filter, the `sourcedId` of the records below that it selects, its text",
        "in a URL, and its SQL on PostgreSQL with `%s` for each value.",
        "",
        "```json",
        *(json.dumps(person, ensure_ascii=False) for person in PEOPLE),
        "```",
    ]
    for title, text in EXAMPLES.items():
        typed = check(parse(text), TYPES)
        chosen = [person["sourcedId"] for person in filter(predicate(typed), PEOPLE)]
        sql = sql_text(typed, COLUMNS)
        lines += ["", f"## {title}", "", "```text"]
        lines += [f"filter   {text}", f"selects  {', '.join(chosen)}", f"URL      filter={to_query(parse(text))}"]
        lines += [f"SQL      {sql.text}", "```"]
    return "\n".join([*lines, ""])
