-- Whether a text contains another one, ignoring case: the operator `~`. It folds as `oneroster_filter.folding` does:
-- case is gone, the capital dotted I is a plain one, and a final sigma is any sigma. Where the wanted text has no
-- sigma, the sigmas of the value do not matter. The built-in collation maps letters one to one, and the capital dotted
-- I to the plain one; with an ICU collation, icu/contains_folded.sql takes the place of this function. The planner puts
-- the body in the place of the call.
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
