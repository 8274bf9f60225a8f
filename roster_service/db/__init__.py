"""The database: tables, connections, the embedded server, visibility conditions and JSON expressions."""
