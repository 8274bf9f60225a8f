"""One file for each revision, in one line."""
