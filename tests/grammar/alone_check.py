"""What must work where nothing but lark is installed; run by `alone.sh`."""

import importlib
import importlib.resources
import importlib.util

import oneroster_filter as of
from oneroster_filter import *  # noqa: F403

assert not [name for name in ("flask", "marshmallow", "sqlalchemy") if importlib.util.find_spec(name)]
assert importlib.resources.files("oneroster_filter").joinpath("py.typed").is_file()

types = of.field_types({"status": of.Kind.TEXT, "grades": of.Kind.TEXTS})
typed = of.check(of.parse("status='active' AND grades~'09,11'"), types)
assert of.predicate(typed)({"status": "active", "grades": ["09"]})
assert of.to_query(of.F("a") == "b") == "a%3D%27b%27"
missing = []
for name in ("sqlalchemy", "django", "pandas", "polars"):
    try:
        importlib.import_module(f"oneroster_filter.{name}")
    except ModuleNotFoundError as error:
        missing.append(error.name)
assert missing == ["sqlalchemy", "django", "numpy", "polars"], missing
importlib.import_module("oneroster_filter.typing")
