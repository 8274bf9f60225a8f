"""Presets: what the receivers of files take. `docs/operators.md` says where each fact comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from roster_service.schemas.versions import V1P1, V1P2, Version

STANDARD_ID = r"[0-9A-Za-z.\-_/@]{1,255}"


@dataclass(frozen=True)
class Preset:
    """What a receiver takes. `name`: its key; `words`: for people; `id_pattern`, `id_words`: of the ids that it takes;
    `zip_name`: of its file, where `{date}` stands for the day; `files`: the only ones that it takes, None for all;
    `only`: the words that it takes, by file and header: rows with others are left out; `unique_ids`: whether no two
    files may have the same id; `metadata`: whether metadata follow as columns of their own."""

    name: str
    words: str
    version: Version
    id_pattern: re.Pattern[str] = re.compile(STANDARD_ID)
    id_words: str = "letters, digits and . - _ / @, as the standard has them"
    zip_name: str = "oneroster-{date}.zip"
    files: frozenset[str] | None = None
    only: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    unique_ids: bool = False
    metadata: bool = False

    def has_file(self, name: str) -> bool:
        """Returns whether it takes a file."""
        return self.files is None or name in self.files


_ST_MATH = frozenset({"users", "courses", "classes", "enrollments", "orgs", "academicSessions"})
_STUDENTS_AND_TEACHERS = frozenset({"student", "teacher"})
_ALL = (
    Preset("oneroster-1.1", "OneRoster CSV 1.1", V1P1, metadata=True),
    Preset("oneroster-1.2", "OneRoster CSV 1.2", V1P2, metadata=True),
    Preset(
        "apple",
        "Apple School Manager: OneRoster 1.1, only students and teachers",
        V1P1,
        re.compile(r"[0-9A-Za-z-]{1,255}"),
        "letters, digits and hyphens",
        files=_ST_MATH,
        only={
            ("orgs", "type"): frozenset({"district", "school"}),
            ("users", "role"): _STUDENTS_AND_TEACHERS,
            ("enrollments", "role"): _STUDENTS_AND_TEACHERS,
        },
        unique_ids=True,
    ),
    Preset(
        "st-math", "ST Math: OneRoster 1.1, six files and the manifest", V1P1, zip_name="OneRoster.zip", files=_ST_MATH
    ),
)
PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}
