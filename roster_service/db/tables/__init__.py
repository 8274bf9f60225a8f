"""Every table, in SQLAlchemy Core: `tables.users`, wherever it is declared."""

from roster_service.db.tables.access import (
    Moment,
    api_keys,
    audit,
    last_uses,
    oauth1_nonces,
    rate_hits,
    rate_windows,
    usage,
    visible_orgs,
)
from roster_service.db.tables.accounts import oauth_clients, signing_keys, vendor_grants, vendors
from roster_service.db.tables.base import CText, CTexts, Stamp, metadata
from roster_service.db.tables.exclusions import exclusions
from roster_service.db.tables.feeds import feeds, sync_changes, sync_refusals, sync_runs
from roster_service.db.tables.operators import changes, operators
from roster_service.db.tables.orderings import ordering_chunks, orderings, pulls
from roster_service.db.tables.renditions import rendered_records, renditions
from roster_service.db.tables.roster import (
    PART_TABLES,
    ROSTER_TABLES,
    academic_sessions,
    class_terms,
    classes,
    courses,
    demographics,
    enrollments,
    orgs,
    roster_state,
    user_agents,
    user_profiles,
    user_roles,
    users,
)

__all__ = [
    "PART_TABLES",
    "ROSTER_TABLES",
    "CText",
    "CTexts",
    "Moment",
    "Stamp",
    "academic_sessions",
    "api_keys",
    "audit",
    "changes",
    "class_terms",
    "classes",
    "courses",
    "demographics",
    "enrollments",
    "exclusions",
    "feeds",
    "last_uses",
    "metadata",
    "oauth1_nonces",
    "oauth_clients",
    "operators",
    "ordering_chunks",
    "orderings",
    "orgs",
    "pulls",
    "rate_hits",
    "rate_windows",
    "rendered_records",
    "renditions",
    "roster_state",
    "signing_keys",
    "sync_changes",
    "sync_refusals",
    "sync_runs",
    "usage",
    "user_agents",
    "user_profiles",
    "user_roles",
    "users",
    "vendor_grants",
    "vendors",
    "visible_orgs",
]
