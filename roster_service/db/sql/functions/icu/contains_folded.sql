-- As functions/contains_folded.sql, for an ICU collation. ICU lowers the capital dotted I to two characters, so the
-- function replaces it first.
CREATE OR REPLACE FUNCTION contains_folded(value text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN folding_position(
        folding_replace(folding_lower(folding_replace(wanted COLLATE roster_nocase, 'İ', 'i')), 'ς', 'σ'), 'σ'
    ) = 0
    THEN folding_position(
        folding_lower(folding_replace(value COLLATE roster_nocase, 'İ', 'i')),
        folding_replace(folding_lower(folding_replace(wanted COLLATE roster_nocase, 'İ', 'i')), 'ς', 'σ')
    ) > 0
    ELSE folding_position(
        folding_replace(folding_lower(folding_replace(value COLLATE roster_nocase, 'İ', 'i')), 'ς', 'σ'),
        folding_replace(folding_lower(folding_replace(wanted COLLATE roster_nocase, 'İ', 'i')), 'ς', 'σ')
    ) > 0
END;
