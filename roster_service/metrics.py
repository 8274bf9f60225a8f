"""The metrics of the service, for Prometheus: each is a row here. `web/metrics_page.py` shows them.

prometheus-client adds up the workers if `MULTIPROCESS_FOLDER` names a folder before this module is imported; with
ROSTER_METRICS_TOKEN, `roster run` makes one. A label never has an id, a value or an address.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

# Seconds. A page takes some milliseconds, a cold ordering some hundreds.
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

REQUESTS = Counter(
    "roster_requests", "Requests, by documented path and status of the response.", ["method", "path", "status"]
)
VENDOR_REQUESTS = Counter(
    "roster_vendor_requests", "Requests of each vendor, by class of status.", ["vendor", "status_class"]
)
SECONDS = Histogram("roster_request_seconds", "Seconds until the response was made.", ["path"], buckets=BUCKETS)
PAGES = Counter(
    "roster_pages",
    "Pages by how they were found: in a stored ordering, in one that the request made, or without an ordering.",
    ["found"],
)
READS = Counter(
    "roster_reads", "Pages and records by the server that they were read from: the standby, or the primary.", ["server"]
)
CONNECTIONS = Gauge(
    "roster_database_connections", "Open connections to the database.", ["role"], multiprocess_mode="livesum"
)
WAITING = Gauge("roster_access_log_waiting", "Entries that wait for the access log.", multiprocess_mode="livesum")
REFUSED_ROWS = Counter("roster_access_log_refused_rows", "Rows of the access log that the database refused for good.")
FAILURES = Counter("roster_failures", "Failures of what the service depends on.", ["dependency"])
