"""The service over HTTP, by behaviour. Every answer is held against the OpenAPI document that the service serves."""
