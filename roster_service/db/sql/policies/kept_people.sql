-- The people who are kept from a vendor are visible as its orgs are.
CREATE POLICY visible ON kept_people FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE kept_people ENABLE ROW LEVEL SECURITY;
