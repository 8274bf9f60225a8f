"""Reads pages and single records for authorized requests, usually in one round trip to the database."""
