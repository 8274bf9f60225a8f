"""The HTTP code that all interfaces share."""
