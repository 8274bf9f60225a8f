"""Derived data that the database stores to serve pages fast: orderings and rendered records."""
