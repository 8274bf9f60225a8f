"""The parts of the rostering interface that need no request."""
