"""The database: tables, migrations, connections, roles, the embedded server."""
