-- Says why a vendor gets nothing now, by its agreement: it has ended, and on which day; it has not begun; it covers nothing
-- that is granted; or there is none and one is required. NULL: the agreement holds, or none is needed. It asks the clock
-- of this server, because the primary admits each caller.
CREATE OR REPLACE FUNCTION find_agreement_refusal(vendor integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    agreed agreements;
BEGIN
    SELECT known.* INTO agreed FROM agreements known WHERE known.vendor_id = vendor;
    IF agreed.vendor_id IS NULL THEN
        RETURN CASE
            WHEN (SELECT kept.agreement_required FROM vendor_defaults kept) THEN 'is required, and there is none'
        END;
    ELSIF agreed.ended_at IS NOT NULL OR agreed.ends_at <= clock_timestamp() THEN
        -- The end of a day is the beginning of the next one.
        RETURN 'ended on ' || to_char((agreed.ends_at - interval '1 millisecond') AT TIME ZONE agreed.zone, 'YYYY-MM-DD');
    ELSIF agreed.starts_at > clock_timestamp() THEN
        RETURN 'begins on ' || to_char(agreed.starts_at AT TIME ZONE agreed.zone, 'YYYY-MM-DD');
    ELSIF NOT EXISTS (SELECT FROM visible_orgs seen WHERE seen.vendor_id = vendor)
        AND EXISTS (SELECT FROM vendor_grants given WHERE given.vendor_id = vendor)
        AND NOT EXISTS (SELECT FROM agreed_grants(vendor)) THEN
        RETURN 'covers none of the districts and schools that are granted';
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION find_agreement_refusal FROM PUBLIC;
