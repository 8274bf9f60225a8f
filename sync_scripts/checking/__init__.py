"""The checks of staged rows: cells, references, ids, rules. Rows that fail a check are rejected."""
