"""The database: tables, migrations, connections, the embedded server, visibility conditions and JSON expressions."""
