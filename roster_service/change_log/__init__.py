"""The change log: its verbs, its actors, and the log as operators read it."""
