"""The application of the contract tests."""

from tests.contract.conftest import client, make_served, roster, served

__all__ = ["client", "make_served", "roster", "served"]
