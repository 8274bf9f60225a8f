-- As the visible orgs of a vendor.
CREATE POLICY visible ON visible_labels FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE visible_labels ENABLE ROW LEVEL SECURITY;
