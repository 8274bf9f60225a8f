"""The answers of the service, held against the official OpenAPI document of OneRoster 1.2."""
