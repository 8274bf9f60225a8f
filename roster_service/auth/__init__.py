"""The check of callers: credentials, tokens, scopes, signatures, rate limits, and the log of what was shown to them."""
