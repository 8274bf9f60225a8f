"""One-time codes of an authenticator app (TOTP, RFC 6238) as the second proof of an operator at a login.

The key that app and service share is sealed with the service's secret key. A code counts once.
"""

from __future__ import annotations

import re
import time

import pyotp
import sqlalchemy as sa
from cryptography.fernet import InvalidToken

from roster_service.auth.credentials.signing_keys import make_seal
from roster_service.db.tables import operators

_KEY = re.compile("[A-Z2-7]{32}", re.ASCII)
ISSUER = "Roster Service"
# Clocks may differ by a step of 30 seconds in either direction.
TOLERATED_STEPS = 1


def make_code_key() -> str:
    """Returns a new key, as people type it into an app."""
    return pyotp.random_base32()


def make_address(key: str, email: str) -> str:
    """Returns the address of a key that apps read from a QR code."""
    return str(pyotp.TOTP(key).provisioning_uri(name=email, issuer_name=ISSUER))


def find_step(key: str, code: str) -> int | None:
    """Returns the time step that a code is of, if it is one of now; else None, also for a text that is no key."""
    if _KEY.fullmatch(key) is None:
        return None
    generator = pyotp.TOTP(key)
    now = int(time.time()) // generator.interval
    given = "".join(code.split())
    steps = range(now - TOLERATED_STEPS, now + TOLERATED_STEPS + 1)
    return next((step for step in steps if pyotp.utils.strings_equal(given, generator.generate_otp(step))), None)


def store_code_key(connection: sa.Connection, email: str, key: str | None, step: int | None, secret_key: str) -> None:
    """Stores the key of an operator, and the step of the code that was used last; None ends the codes."""
    sealed = None if key is None else make_seal(secret_key).encrypt(key.encode())
    own = sa.update(operators).where(operators.c.email == email)
    connection.execute(own.values(code_key_sealed=sealed, code_step=step))


def use_code(connection: sa.Connection, email: str, code: str, secret_key: str) -> bool:
    """Returns whether an operator may log in with this code: it is one of now, and was not used; or the operator has
    none. The operator's row stays locked until the end of the transaction, so two logins cannot use one code."""
    own = sa.select(operators.c.code_key_sealed, operators.c.code_step).where(operators.c.email == email)
    stored = connection.execute(own.with_for_update()).one()
    if stored.code_key_sealed is None:
        return True
    try:
        key = make_seal(secret_key).decrypt(bytes(stored.code_key_sealed)).decode()
    except InvalidToken:
        # Sealed with another secret key: an owner can reset the operator.
        return False
    step = find_step(key, code)
    if step is None or (stored.code_step is not None and step <= stored.code_step):
        return False
    connection.execute(sa.update(operators).where(operators.c.email == email).values(code_step=step))
    return True
