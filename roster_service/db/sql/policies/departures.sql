-- A departure is visible to those who see its label, the former one of the record, or whose group it left, if it is later than the floors of the
-- vendor and of the client. A policy that reads another table gets the rows that the other table's policy shows.
-- Of a person who was kept from the vendor at the time, the vendor sees those alone that are for it.
-- OFFSET 0: as in the policy of user_roles.
CREATE POLICY visible ON departures FOR SELECT USING (
    (
        EXISTS (SELECT FROM visibility_labels former WHERE former.id = departures.label_id)
        OR (
            EXISTS (SELECT FROM visible_groups seen WHERE seen.group_id = departures.group_id)
            AND (role NOT IN ('guardian', 'parent', 'relative')
                OR (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean))
        )
    )
    AND EXISTS (
        SELECT FROM visible_feeds seen
        WHERE seen.feed_id = departures.feed_id AND seen.floor < departures.departed_at
            AND departures.vendor_id IN (0, seen.vendor_id)
    )
    AND NOT ((SELECT EXISTS (SELECT FROM kept_people)) AND EXISTS (
        SELECT FROM kept_people kept WHERE kept.user_id = departures.person_id AND departures.vendor_id = 0
            AND kept.since < departures.departed_at
            AND (kept.until IS NULL OR departures.departed_at <= kept.until)
        OFFSET 0
    ))
    AND departures.departed_at > coalesce(
        (SELECT NULLIF(current_setting('roster.floor', true), '')::timestamptz), '-infinity'
    )
);
ALTER TABLE departures ENABLE ROW LEVEL SECURITY;
