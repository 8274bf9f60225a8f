"""What the interfaces over HTTP share: facts of a request, disclosures, the base of OpenAPI, JSON answers."""
