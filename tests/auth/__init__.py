"""Tokens, scopes, secrets and throttling."""
