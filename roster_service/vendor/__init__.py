"""The vendor interface: `POST /v1/login` and `POST /v1/students`."""
