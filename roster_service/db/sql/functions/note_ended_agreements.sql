-- Notes of each agreement whose end the clock has reached that it has ended: it stays so if the clock goes back. Whoever
-- refuses a request for the sake of an agreement calls it, and each night. It runs as the owner of the tables, because
-- what it notes is no right of a caller.
CREATE OR REPLACE FUNCTION note_ended_agreements() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE agreements SET ended_at = clock_timestamp() WHERE ended_at IS NULL AND ends_at <= clock_timestamp()
$$;
REVOKE ALL ON FUNCTION note_ended_agreements FROM PUBLIC;
