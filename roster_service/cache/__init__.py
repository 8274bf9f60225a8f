"""Derived data that the database stores to serve pages fast: orderings, and the pulls that read them."""
