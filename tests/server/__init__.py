"""Tests of the HTTP side of a worker."""
