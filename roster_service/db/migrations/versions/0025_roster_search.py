"""Adds the indexes of the operators' search, and one for the history of a record."""

from alembic import op

revision = "2026_11_roster_search"
down_revision = "2026_11_disclosed_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first load makes the indexes of the roster; a roster that is loaded gets these now."""
    op.create_index("ix_sync_changes_sourced_id", "sync_changes", ["sourced_id"])
    op.execute(
        """
        DO $$ DECLARE searched text; BEGIN
            IF to_regclass('ix_users_family_name_sourced_id') IS NULL THEN RETURN; END IF;
            FOREACH searched IN ARRAY ARRAY['family_name', 'given_name', 'email'] LOOP
                EXECUTE format(
                    'CREATE INDEX %I ON users ((replace(lower(replace(%I COLLATE roster_nocase, ''İ'', ''i'')), '
                    '''ς'', ''σ'') COLLATE "C"))', 'ix_users_' || searched || '_folded', searched
                );
            END LOOP;
            -- Without statistics of the new indexes, the planner would not use them.
            ANALYZE users;
        END $$
        """
    )
