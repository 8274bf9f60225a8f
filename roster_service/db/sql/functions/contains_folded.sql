-- Returns whether a text contains another one, ignoring case: the operator `~`. It folds texts as
-- `oneroster_filter.folding` does: letters become lower case, the capital dotted I becomes a plain i, and a final sigma
-- becomes a medial one. If the wanted text has no sigma, the sigmas of the value need no folding. The built-in
-- collation maps letters one to one, and the capital dotted I to the plain one; for an ICU collation,
-- icu/contains_folded.sql replaces this file. The planner inlines the function.
CREATE OR REPLACE FUNCTION contains_folded(value text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN folding_position(folding_replace(folding_lower(wanted COLLATE roster_nocase), 'ς', 'σ'), 'σ') = 0
    THEN folding_position(
        folding_lower(value COLLATE roster_nocase),
        folding_replace(folding_lower(wanted COLLATE roster_nocase), 'ς', 'σ')
    ) > 0
    ELSE folding_position(
        folding_replace(folding_lower(value COLLATE roster_nocase), 'ς', 'σ'),
        folding_replace(folding_lower(wanted COLLATE roster_nocase), 'ς', 'σ')
    ) > 0
END;
