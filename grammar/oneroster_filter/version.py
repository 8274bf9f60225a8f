"""The version of the distribution, read by its build."""

__version__ = "1.0.0"
