"""Districts that do not exist, of any size, for demonstrations, tests and measurements."""
