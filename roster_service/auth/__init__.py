"""The check of callers: credentials, tokens, scopes, signatures and rate limits."""
