"""The revisions of the database and the entry that runs them. It is a package so that a distribution contains it."""
