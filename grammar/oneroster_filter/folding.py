"""How `~` ignores case: one definition for plain records and for every database.

A text is folded by the one-to-one lower-case mapping of Unicode, with two letters levelled on which systems differ: the
final sigma counts as sigma, and the capital dotted I as plain i. Each system's own `lower` does the rest, between two
replacements; see `sql_constructs.py`. Nothing is normalised, and no letter becomes two: ß is not ss.
"""

DOTTED_I, PLAIN_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
FINAL_SIGMA, SIGMA = "\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"


def fold(text: str) -> str:
    """Fold a text, so that texts which differ in case only become equal.

    Args:
        text: Any text.

    Returns:
        The text as `~` compares it, of the same length.
    """
    return text.replace(DOTTED_I, PLAIN_I).lower().replace(FINAL_SIGMA, SIGMA)
