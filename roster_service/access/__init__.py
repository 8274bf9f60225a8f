"""Who is asking, and what they may: vendors, grants, clients, scopes, signing keys and tokens. No Flask."""
