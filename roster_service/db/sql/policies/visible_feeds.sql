-- As the visible orgs of a vendor.
CREATE POLICY visible ON visible_feeds FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE visible_feeds ENABLE ROW LEVEL SECURITY;
