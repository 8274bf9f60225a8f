"""The rostering interface over HTTP: 41 paths in each of two versions, from one table of endpoints."""
