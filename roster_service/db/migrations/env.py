"""Alembic's entry: runs the revisions on the connection that `roster_service.roster.upgrades` passes."""

from alembic import context

# The import declares all tables in `metadata`.
from roster_service.db import tables

context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
