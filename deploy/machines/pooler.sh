#!/bin/sh
# Runs pgbouncer, whose own password is not in its configuration.
set -eu

umask 077
printf '"pgbouncer" "%s"\n' "$POOLER_PASSWORD" > "${USERS:=/etc/pgbouncer/users.txt}"
exec pgbouncer "${CONFIGURATION:-/etc/roster/pgbouncer.ini}"
