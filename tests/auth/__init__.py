"""Tokens, scopes, secrets, throttling and the access log."""
