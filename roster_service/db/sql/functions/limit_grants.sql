-- What the agreement of a vendor allows of grants, whether it has them or not: all of them for a vendor without one. A
-- grant of a district of which only schools are agreed opens these schools; with rules it opens nothing, because its group
-- is of the whole district. It runs as the owner of the tables, because the access log, too, asks for the districts.
CREATE OR REPLACE FUNCTION limit_grants(vendor integer, given vendor_grants[]) RETURNS SETOF vendor_grants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT given.* FROM unnest(given) given LEFT JOIN agreements agreed ON agreed.vendor_id = vendor
    WHERE agreed.vendor_id IS NULL OR given.school_id = ANY (agreed.schools)
        OR CASE
            WHEN given.school_id IS NULL THEN given.district_id
            -- A school that has moved to another district is not of the agreed one any more.
            ELSE (SELECT school.district_id FROM orgs school WHERE school.sourced_id = given.school_id)
        END = ANY (agreed.districts)
    UNION ALL
    SELECT given.id, given.vendor_id, given.district_id, school.sourced_id, given.students, given.classes, given.staff,
        given.guardians
    FROM unnest(given) given
    JOIN agreements agreed ON agreed.vendor_id = vendor
    JOIN orgs school ON school.sourced_id = ANY (agreed.schools) AND school.district_id = given.district_id
    WHERE given.school_id IS NULL AND given.staff IS NULL AND given.district_id <> ALL (agreed.districts)
$$;
REVOKE ALL ON FUNCTION limit_grants FROM PUBLIC;
