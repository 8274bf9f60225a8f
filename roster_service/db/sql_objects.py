"""The functions and policies of the database: each is one file under `sql/`, which says what runs today.

They are applied all together at the end of every upgrade that moves the database to another revision, after the
migrations. So a migration changes tables and data alone, and never meets a file that was written for later tables. The
rules that follow:

- A change of a file takes a migration, which may be empty: a new revision is what has the files applied.
- A migration neither makes nor calls what a file makes. Where it drops or retypes a column that a policy or a function
  with a parsed body (`RETURN`, `BEGIN ATOMIC`) reads, it drops that policy or function first.
- Every policy is dropped and made anew. Functions are replaced in place, so that requests under way find them. A
  function whose file goes, or whose arguments or result change, is dropped before: its former signature is added to
  `REMOVED`.
- A function that runs as the owner says `SET search_path FROM CURRENT`: the files are applied with the service's schema
  and `pg_temp` as the search path, in this order, so that a caller's own schema cannot lend it other tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from sqlalchemy import Connection, text

SQL = files("roster_service.db") / "sql"
# In the order of application: a function with a parsed body comes after those that it calls.
FUNCTIONS = (
    "href_escape",
    "folding_lower",
    "folding_replace",
    "folding_position",
    "contains_folded",
    "take_hits",
    "read_window",
    "refresh_visible_orgs",
    "admit_client",
    "admit_key_holder",
    "evict_orderings",
)
# Former signatures, as DROP FUNCTION has them.
REMOVED: tuple[str, ...] = ()
# A file of these folders of `functions` takes the place of the one of the same name where the query is true.
VARIANTS: Mapping[str, str] = {
    "superuser": "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
    "icu": "SELECT collprovider <> 'b' FROM pg_collation WHERE oid = CAST('roster_nocase' AS regcollation)",
}
POLICY = "visible"

_SCHEMA = text("SELECT quote_ident(current_schema()), current_setting('search_path')")
_SET_PATH = text("SELECT set_config('search_path', :path, true)")
_TABLES_WITH_POLICY = text(
    "SELECT quote_ident(tablename) FROM pg_policies WHERE schemaname = current_schema() AND policyname = :name"
)


def apply_objects(connection: Connection) -> None:
    """Makes every function and policy what its file says, in the transaction of this connection."""
    schema, former_path = connection.execute(_SCHEMA).one()
    connection.execute(_SET_PATH, {"path": f"{schema}, pg_temp"})
    for table in connection.scalars(_TABLES_WITH_POLICY, {"name": POLICY}).all():
        _run(connection, f"DROP POLICY {POLICY} ON {table}")
    if REMOVED:
        _run(connection, f"DROP FUNCTION IF EXISTS {', '.join(REMOVED)}")
    folders = [SQL / "functions" / name for name, query in VARIANTS.items() if connection.scalar(text(query))]
    for function in FUNCTIONS:
        _run(connection, read_function(function, *folders))
    for policy in sorted((SQL / "policies").iterdir(), key=lambda file: file.name):
        _run(connection, policy.read_text(encoding="utf-8"))
    connection.execute(_SET_PATH, {"path": former_path})


def read_function(name: str, *folders: Traversable) -> str:
    """The text of a function: of the first of the folders that has it, else of `functions`."""
    found = (folder / f"{name}.sql" for folder in (*folders, SQL / "functions"))
    return next(file for file in found if file.is_file()).read_text(encoding="utf-8")


def _run(connection: Connection, statements: str) -> None:
    # As it stands: a percent sign is no parameter.
    connection.exec_driver_sql(statements, execution_options={"no_parameters": True})
