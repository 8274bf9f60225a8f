"""The e-mail addresses of accounts."""

from __future__ import annotations

from roster_service.errors import CommandError


def normalize_email(email: str) -> str:
    """Returns an e-mail address in the spelling in which it is stored."""
    return email.strip().lower()


def read_email(email: str) -> str:
    """Returns the address of a new account in the spelling in which it is stored. Raises CommandError if it is none."""
    address = normalize_email(email)
    if address.count("@") != 1 or any(part == "" for part in address.split("@")):
        raise CommandError(f"{email!r} is no e-mail address")
    return address
