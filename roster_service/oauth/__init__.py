"""The token endpoint and the public keys: OAuth 2.0 client credentials, with Authlib."""
