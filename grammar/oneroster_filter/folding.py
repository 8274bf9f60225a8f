"""Case folding for `~`: one definition for plain records and for every database.

Folding is the one-to-one lower-case mapping of Unicode, except for two letters on which systems differ: the final sigma
becomes sigma, and the capital dotted I becomes plain i. Databases replace these two letters before and after their own
`lower`; see `sql_constructs.py`. Folding does not normalise, and no letter becomes two: ß is not ss.
"""

DOTTED_I, PLAIN_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
FINAL_SIGMA, SIGMA = "\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"


def fold(text: str) -> str:
    """Fold a text, so that texts which differ only in case become equal.

    Args:
        text: Any text.

    Returns:
        The folded text, of the same length.
    """
    return text.replace(DOTTED_I, PLAIN_I).lower().replace(FINAL_SIGMA, SIGMA)
