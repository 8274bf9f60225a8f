"""The query string, the plan and the statements, without Flask."""
