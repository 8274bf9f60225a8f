"""What a form had whose session has ended: it comes back after the login of the same operator, to be sent again.

The browser has it meanwhile, sealed, in a hidden field of the login; the service stores nothing. Whoever logs in as
another operator, or opens the source of the page, learns nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from cryptography.fernet import Fernet, InvalidToken

from roster_service.auth.credentials.signing_keys import make_seal

# The time for the login.
KEPT_SECONDS = 3600
# Of the sealed text, in characters: the login that carries it has to fit into the bound of a body.
LONGEST = 48 * 1024
# Of the session that has ended.
_LEFT_OUT = frozenset({"csrf"})
# Secrets, and what confirms a change that cannot be undone: they are typed again.
TYPED_AGAIN = frozenset({"again", "code", "key", "password", "secret", "typed"})


@dataclass(frozen=True)
class KeptForm:
    """The form of an operator. `path`: to which it is sent; `fields`: names and values, None for what has to be typed
    again."""

    email: str
    path: str
    fields: list[tuple[str, str | None]]

    @property
    def screen(self) -> str:
        """The path of the page that has the form."""
        return self.path.rpartition("/")[0]


def keep_form(email: str, path: str, given: Iterable[tuple[str, str]], secret_key: str) -> str | None:
    """Returns a form as a sealed text; None if it is too long. `given`: its fields; `secret_key`: of the service."""
    fields = [(name, None if name in TYPED_AGAIN else value) for name, value in given if name not in _LEFT_OUT]
    sealed = _make_seal(secret_key).encrypt(json.dumps(asdict(KeptForm(email, path, fields))).encode()).decode()
    return sealed if len(sealed) <= LONGEST else None


def read_kept(sealed: str, email: str, secret_key: str) -> KeptForm | None:
    """Returns the form of a sealed text; None if it is none of this operator, or too old."""
    try:
        kept = KeptForm(**json.loads(_make_seal(secret_key).decrypt(sealed, ttl=KEPT_SECONDS)))
    except InvalidToken:
        return None
    return kept if kept.email == email else None


def _make_seal(secret_key: str) -> Fernet:
    """Another seal than that of what the database has."""
    return make_seal(f"kept form {secret_key}")
