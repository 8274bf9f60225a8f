"""What a developer runs in a checkout. It is not part of the distribution."""
