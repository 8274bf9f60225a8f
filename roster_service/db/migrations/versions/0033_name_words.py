"""Adds the index of the words of names, for the search of operators, in place of those of whole names."""

from alembic import op

revision = "2026_11_name_words"
down_revision = "2026_11_refusals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first load makes the indexes of the roster; a roster that is loaded gets this one now."""
    op.execute("DROP INDEX IF EXISTS ix_users_given_name_folded, ix_users_family_name_folded")
    # As `make_name_vector` of db/folding.py has it.
    op.execute(
        r"""
        DO $$ BEGIN
            IF to_regclass('ix_users_family_name_sourced_id') IS NULL THEN RETURN; END IF;
            CREATE INDEX ix_users_names ON users USING gin (array_to_tsvector(array_remove(string_to_array(
                translate(replace(lower(replace(regexp_replace(normalize(
                    ((((((((coalesce(given_name, '') || ' ') || coalesce(middle_name, '')) || ' ')
                    || coalesce(family_name, '')) || ' ') || coalesce(preferred_first_name, '')) || ' ')
                    || coalesce(preferred_last_name, '')), NFD), '[\u0300-\u036f]', '', 'g')
                COLLATE roster_nocase, 'İ', 'i')), 'ς', 'σ') COLLATE "C", 'øłđðı-''’.,_/()', 'olddi         '),
            ' '), '')));
            ANALYZE users;
        END $$
        """
    )
