"""Made-up districts of any size, for demonstrations, tests and measurements."""
