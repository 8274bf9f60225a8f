#!/bin/sh
# Makes the roles, the database and the rules of admission of a new primary. The image of PostgreSQL runs it once, as a
# superuser, before the server listens on the network.
set -eu

psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres \
  --set=roster="$ROSTER_PASSWORD" --set=pooler="$POOLER_PASSWORD" --set=replication="$REPLICATION_PASSWORD" <<'SQL'
-- The owner of the tables. `roster db upgrade` makes the roles that requests are served as.
CREATE ROLE roster LOGIN CREATEROLE PASSWORD :'roster';
CREATE ROLE replication LOGIN REPLICATION PASSWORD :'replication';
CREATE ROLE pgbouncer LOGIN PASSWORD :'pooler';
CREATE DATABASE roster OWNER roster;
SELECT pg_create_physical_replication_slot('standby');
\connect roster
-- pgbouncer asks for the stored secret of a role that logs in to it: the secrets stay in PostgreSQL alone.
CREATE SCHEMA pgbouncer AUTHORIZATION pgbouncer;
CREATE FUNCTION pgbouncer.find_login(name text) RETURNS TABLE (role_name text, secret text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog
AS 'SELECT usename::text, passwd FROM pg_shadow WHERE usename = name AND NOT usesuper AND NOT userepl';
REVOKE ALL ON FUNCTION pgbouncer.find_login(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pgbouncer.find_login(text) TO pgbouncer;
SQL

echo 'host replication replication all scram-sha-256' >> "$PGDATA/pg_hba.conf"
