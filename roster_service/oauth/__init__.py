"""The token endpoint (OAuth 2.0 client credentials, with Authlib) and the endpoint of the public keys."""
