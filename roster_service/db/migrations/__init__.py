"""The revisions of the database and the entry that runs them; a package, so that a distribution takes them along."""
