"""Scopes, secrets, vendors and signing keys."""
