-- Whether these grants open every org. The query filter asks it once a statement, and then asks nothing of single
-- users. It runs as the owner of the tables, so that no policy hides the orgs that are not granted.
CREATE OR REPLACE FUNCTION grants_every_org(districts text[], schools text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT NOT EXISTS (
        SELECT FROM orgs WHERE (district_id = ANY (districts) OR sourced_id = ANY (schools)) IS NOT TRUE
    )
$$;
REVOKE ALL ON FUNCTION grants_every_org(text[], text[]) FROM PUBLIC;
