-- As the visible orgs of a vendor.
CREATE POLICY visible ON visible_groups FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE visible_groups ENABLE ROW LEVEL SECURITY;
