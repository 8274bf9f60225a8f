"""Authentication and authorization: vendors, grants, clients, scopes, signing keys and tokens. Independent of Flask."""
