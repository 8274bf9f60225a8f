"""The credentials of callers: API keys, passwords, access and permission tokens, and the keys that sign tokens."""
