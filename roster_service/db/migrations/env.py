"""Alembic's entry: runs the revisions on the connection that `roster_service.db.upgrades` hands over."""

from alembic import context

# Whatever declares tables, so that they are known.
from roster_service.db import tables

context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
