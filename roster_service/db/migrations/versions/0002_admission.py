"""Changes no table. `admit_key_holder` has another argument, and an upgrade applies the functions and policies anew with a
new revision alone."""

revision = "2_admission"
down_revision = "1_schema"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Leaves the tables as they are."""
