#!/bin/sh
# Runs nginx with /etc/roster/nginx.conf, in front of the machines that WEB_MACHINES lists, and of the console at CONSOLE for
# the network OPERATORS.
set -eu

servers=""
for machine in $WEB_MACHINES; do
  servers="$servers server $machine;"
done
sed -e "s/server 127\.0\.0\.1:8000;/$servers/" -e "s/roster\.example\.org/$SERVER_NAME/" -e "s/^user .*/user $PROXY_USER;/" \
  -e "/# location \/console {/,/# }/{s/# //;s|192\.0\.2\.0/24|$OPERATORS|;s|127\.0\.0\.1:8001|$CONSOLE|}" \
  "${CONFIGURATION:-/etc/roster/nginx.conf}" > "${RESULT:-/etc/nginx/nginx.conf}"
exec nginx -c "${RESULT:-/etc/nginx/nginx.conf}" -g 'daemon off;'
