"""Announces the state of feeds by e-mail and by webhook."""
