"""One file for each revision. A revision changes tables and data only: `roster_service.db.sql_objects` applies
functions and policies after it. There are no downgrades: to go back, restore a backup."""
