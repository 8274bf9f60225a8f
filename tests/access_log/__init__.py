"""The access log: no row is lost or doubled, and rows of days answer as rows of answers do."""
