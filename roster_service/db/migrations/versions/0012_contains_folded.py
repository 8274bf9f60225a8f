"""What `~` asks of a text, as a function that row-level security may put before its own question."""

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Row-level security asks first whether a row is visible, and then what the caller asks, because an error or a notice of
# a function could tell of a row that is not shown. Functions that tell nothing but their result may be asked first,
# which for a search of all users is several times cheaper. These three of PostgreSQL's own tell nothing else, but only
# `starts_with` among its text functions is declared so. Declaring it takes a superuser; without one, they are what they
# are, and searches are as right and slower.
TELLING_NOTHING = {
    "folding_lower(text) RETURNS text": "lower",
    "folding_replace(text, text, text) RETURNS text": "replace_text",
    "folding_position(text, text) RETURNS integer": "textpos",
}
DECLARED = """
CREATE FUNCTION {signature} LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS '{function}'
"""
NAMES = {"lower": "lower", "replace": "replace", "position": "strpos"}
# Folded as `oneroster_filter.folding` has it: case is gone, the capital dotted I is a plain one, and the final sigma is
# any sigma. Where the text that is looked for has no sigma, none has to be levelled in the others. The planner puts the
# body in the place of the function.
CONTAINS_FOLDED = """
CREATE FUNCTION contains_folded(value text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN {position}({wanted}, 'σ') = 0 THEN {position}({value}, {wanted}) > 0
    ELSE {position}({replace}({value}, 'ς', 'σ'), {wanted}) > 0
END
"""
# The built-in collation maps letters one to one, and the capital dotted I to the plain one.
LOWERED = {"b": "{lower}({text} COLLATE {collation})"}
LOWERED_ELSE = "{lower}({replace}({text} COLLATE {collation}, 'İ', 'i'))"


def spell_contains(provider: str, collation: str, names: Mapping[str, str]) -> str:
    """What makes the function. `provider`: of the collation, as PostgreSQL marks it; `names`: of the functions in it."""
    lowered = LOWERED.get(provider, LOWERED_ELSE)
    value, wanted = (lowered.format(text=text, collation=collation, **names) for text in ("value", "wanted"))
    return CONTAINS_FOLDED.format(value=value, wanted=f"{names['replace']}({wanted}, 'ς', 'σ')", **names)


def upgrade() -> None:
    """Makes them."""
    connection = op.get_bind()
    names = NAMES
    if connection.scalar(sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")):
        for signature, function in TELLING_NOTHING.items():
            op.execute(DECLARED.format(signature=signature, function=function))
        names = {name: f"folding_{name}" for name in NAMES}
    kind = sa.text("SELECT collprovider FROM pg_collation WHERE oid = CAST('roster_nocase' AS regcollation)")
    op.execute(spell_contains(connection.execute(kind).scalar_one(), "roster_nocase", names))


def downgrade() -> None:
    """Back to LIKE."""
    op.execute("DROP FUNCTION contains_folded(text, text)")
    for signature in TELLING_NOTHING:
        op.execute(f"DROP FUNCTION IF EXISTS {signature.partition(' RETURNS')[0]}")
