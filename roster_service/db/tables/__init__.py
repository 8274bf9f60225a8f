"""Every table, in SQLAlchemy Core: `tables.users`, wherever it is declared."""

from roster_service.db.tables.access import *
from roster_service.db.tables.accounts import *
from roster_service.db.tables.base import *
from roster_service.db.tables.deliveries import *
from roster_service.db.tables.feeds import *
from roster_service.db.tables.roster import *
