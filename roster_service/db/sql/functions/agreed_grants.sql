-- The grants of a vendor that its agreement allows, as limit_grants says.
CREATE OR REPLACE FUNCTION agreed_grants(vendor integer) RETURNS SETOF vendor_grants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT * FROM limit_grants(vendor, ARRAY(SELECT given FROM vendor_grants given WHERE given.vendor_id = vendor))
$$;
REVOKE ALL ON FUNCTION agreed_grants FROM PUBLIC;
