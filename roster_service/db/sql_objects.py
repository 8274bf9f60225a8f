"""The functions and policies of the database: one file each under `sql/`, with the present definition.

An upgrade that moves the database to another revision applies all of them after the migrations. So a migration changes
tables and data only, and never runs a file that was written for later tables. The rules that follow:

- A change of a file needs a migration, which may be empty, because only a new revision applies the files.
- A migration neither makes nor calls an object of these files. If it drops or retypes a column that a policy or a
  function with a parsed body (`RETURN`, `BEGIN ATOMIC`) reads, it drops that policy or function first.
- Every policy is dropped and created again. Functions are replaced in place, so that running requests still find them.
  A function whose file is removed, or whose arguments or result change, must be dropped first: add its former signature
  to `REMOVED`.
- A function that runs as the owner has `SET search_path FROM CURRENT`. The files are applied with the search path of
  the service's schema and then `pg_temp`, so that a caller cannot make the function use tables of another schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

import sqlalchemy as sa

SQL = files("roster_service.db") / "sql"
# In the order of application: a function with a parsed body comes after the functions that it calls.
FUNCTIONS = (
    "href_escape",
    "folding_lower",
    "folding_replace",
    "folding_position",
    "contains_folded",
    "take_hits",
    "read_window",
    "find_runs_under_way",
    "next_stamp",
    "limit_grants",
    "agreed_grants",
    "find_agreement_refusal",
    "note_ended_agreements",
    "refresh_visible_orgs",
    "admit_client",
    "admit_key_holder",
    "evict_orderings",
    "number_people",
    "use_secret_link",
)
# Former signatures, in the notation of DROP FUNCTION.
REMOVED: tuple[str, ...] = ("admit_key_holder(bytea, boolean)",)
# Subfolders of `functions`: if the query is true, a file of the subfolder replaces the file of the same name.
VARIANTS: Mapping[str, str] = {
    "superuser": "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
    "icu": "SELECT collprovider <> 'b' FROM pg_collation WHERE oid = CAST('roster_nocase' AS regcollation)",
}
POLICY = "visible"

_SCHEMA = sa.text("SELECT quote_ident(current_schema()), current_setting('search_path')")
_SET_PATH = sa.text("SELECT set_config('search_path', :path, true)")
_TABLES_WITH_POLICY = sa.text(
    "SELECT quote_ident(tablename) FROM pg_policies WHERE schemaname = current_schema() AND policyname = :name"
)


def apply_objects(connection: sa.Connection) -> None:
    """Creates or replaces every function and policy from its file, in the transaction of this connection."""
    schema, former_path = connection.execute(_SCHEMA).one()
    connection.execute(_SET_PATH, {"path": f"{schema}, pg_temp"})
    for table in connection.scalars(_TABLES_WITH_POLICY, {"name": POLICY}).all():
        _run(connection, f"DROP POLICY {POLICY} ON {table}")
    if REMOVED:
        _run(connection, f"DROP FUNCTION IF EXISTS {', '.join(REMOVED)}")
    folders = [SQL / "functions" / name for name, query in VARIANTS.items() if connection.scalar(sa.text(query))]
    for function in FUNCTIONS:
        _run(connection, read_function(function, *folders))
    for policy in sorted((SQL / "policies").iterdir(), key=lambda file: file.name):
        _run(connection, policy.read_text(encoding="utf-8"))
    connection.execute(_SET_PATH, {"path": former_path})


def read_function(name: str, *folders: Traversable) -> str:
    """Returns the text of a function, from the first of the folders that has its file, else from `functions`."""
    found = (folder / f"{name}.sql" for folder in (*folders, SQL / "functions"))
    return next(file for file in found if file.is_file()).read_text(encoding="utf-8")


def _run(connection: sa.Connection, statements: str) -> None:
    # Without parameters, because the driver would take a percent sign for one.
    connection.exec_driver_sql(statements, execution_options={"no_parameters": True})
