"""Standalone scripts that bring SIS exports into the roster; they know the database and the settings, nothing above."""
