"""One file for each revision. A revision changes tables and data alone: `roster_service.db.sql_objects` applies functions
and policies after it. No revision is undone: a database goes back by restoring a backup."""
