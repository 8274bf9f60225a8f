"""Alembic's entry: runs the revisions on the connection that `roster_service.db.migrate` hands over."""

from alembic import context

from roster_service.db.access_tables import api_keys

context.configure(connection=context.config.attributes["connection"], target_metadata=api_keys.metadata)
with context.begin_transaction():
    context.run_migrations()
