-- A label is visible if it opens records to the caller, by the visible orgs that the policy of their table shows. A
-- setting that was not set reads as NULL: then no guardian is visible.
CREATE POLICY visible ON visibility_labels FOR SELECT USING (
    NOT EXISTS (
        SELECT FROM unnest(all_orgs) AS needed (org_id)
        WHERE NOT EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = needed.org_id AND seen.granted)
    )
    AND EXISTS (
        SELECT FROM visible_orgs seen
        WHERE (seen.granted AND seen.org_id = ANY (any_orgs))
            OR (
                seen.granted AND seen.org_id = ANY (guardian_orgs)
                AND (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean)
            )
            OR (NOT seen.narrowed AND seen.org_id = ANY (listed_orgs))
    )
);
ALTER TABLE visibility_labels ENABLE ROW LEVEL SECURITY;
