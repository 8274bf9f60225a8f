"""Alembic's entry: runs the revisions on the connection that `roster_service.db.migrate` hands over."""

from alembic import context

from roster_service.db.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
