"""Standalone scripts that load SIS exports into the roster. Of the service they import only the database, the settings,
the errors and the publication of a roster."""
