#!/bin/sh
# Makes the hot standby of the server PRIMARY, unless it is made already, and runs it.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  PGPASSWORD="$REPLICATION_PASSWORD" pg_basebackup --pgdata="$PGDATA" --host="$PRIMARY" --username=replication \
    --slot=standby --checkpoint=fast --write-recovery-conf
  chmod 0700 "$PGDATA"
fi
# With the feedback, the primary keeps rows that a query here still reads.
exec postgres -c hot_standby_feedback=on -c log_min_error_statement=panic -c log_error_verbosity=terse "$@"
