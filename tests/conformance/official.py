"""The official OpenAPI document of OneRoster 1.2 as a judge of answers. It is not a part of the project."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import FormatChecker
from openapi_schema_validator import OAS30Validator

from tests.contract.document import is_address, is_day, is_instant

VARIABLE = "ONEROSTER_OPENAPI"
FORMATS = FormatChecker(formats=())
for name, check in {"date-time": is_instant, "date": is_day, "uri": is_address}.items():
    FORMATS.checks(name, raises=ValueError)(check)


def find_document() -> Path | None:
    """The file that the variable names; None if there is none."""
    path = Path(os.environ.get(VARIABLE) or os.devnull)
    return path if path.is_file() else None


class Official:
    """The official document. `operations`: by the path in the names of the specification of this service."""

    def __init__(self, path: Path) -> None:
        self._document = json.loads(path.read_text())
        self.operations = {
            re.sub(r"\{(\w+)SourcedId\}", r"{\1Id}", template): item["get"]
            for template, item in self._document["paths"].items()
        }

    @cache  # noqa: B019  (one document in a run)
    def find_validator(self, path: str, status: int) -> Any:
        """The validator of the bodies with a status at a path."""
        response = self.operations[path]["responses"][str(status)]
        schema = response["content"]["application/json"]["schema"]
        return OAS30Validator({**schema, "components": self._document["components"]}, format_checker=FORMATS)

    def list_errors(self, path: str, status: int, body: Any) -> list[str]:
        """What the document finds wrong with a body."""
        found = self.find_validator(path, status).iter_errors(body)
        return [f"{path} {status}: {error.message} at {error.json_path}" for error in found]
