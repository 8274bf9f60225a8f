#!/bin/sh
# Makes the hot standby of the server PRIMARY, unless it is whole already, and runs it.
set -eu

# The file that comes last of a base backup: without it, there is nothing that a server could start.
if [ ! -s "$PGDATA/global/pg_control" ]; then
  mkdir -p "$PGDATA"
  # What a backup that was killed has left.
  find "$PGDATA" -mindepth 1 -delete
  PGPASSWORD="$REPLICATION_PASSWORD" pg_basebackup --pgdata="$PGDATA" --host="$PRIMARY" --username=replication \
    --slot=standby --checkpoint=fast --write-recovery-conf
  chmod 0700 "$PGDATA"
fi
# With the feedback, the primary keeps rows that a query here still reads.
exec postgres -c hot_standby_feedback=on -c log_min_error_statement=panic -c log_error_verbosity=terse "$@"
