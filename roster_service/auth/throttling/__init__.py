"""Rate limits: requests of vendors, requests for tokens, and failed logins."""
