"""What all interfaces share of HTTP."""
