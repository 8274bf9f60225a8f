"""The keys that sign tokens: made once, sealed at rest, read when a stranger's id comes by."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from roster_service.auth.credentials.signing_keys import (
    KEY_BITS,
    KeyRing,
    add_signing_key,
    ensure_signing_key,
    make_seal,
)
from roster_service.db.tables import signing_keys
from roster_service.errors import SettingError

SECRET = "a secret key of the tests, long enough"


def test_the_first_key_is_made_once(engine: sa.Engine) -> None:
    for _ in range(2):
        with engine.begin() as connection:
            ensure_signing_key(connection, SECRET)
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(signing_keys)) == 1


@pytest.mark.shows(
    "Credentials",
    "Private signing keys are sealed with `ROSTER_SECRET_KEY`; files with secrets are their owner's alone.",
)
def test_the_private_half_is_sealed_and_the_public_half_has_nothing_of_it(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        key_id = add_signing_key(connection, SECRET)
        (row,) = connection.execute(sa.select(signing_keys))
    assert set(row.public_jwk) == {"alg", "e", "kid", "kty", "n", "use"}
    assert b"PRIVATE KEY" not in bytes(row.private_sealed)
    ring = KeyRing(engine, SECRET)
    assert list(ring.read_public()) == [key_id]
    (private,) = ring.read_private().keys
    assert private.kid == key_id
    assert private.is_private


@pytest.mark.shows("Machine and database", "Another secret key opens no signing key.")
def test_another_secret_key_does_not_open_it(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_signing_key(connection, SECRET)
    with pytest.raises(SettingError, match="ROSTER_SECRET_KEY"):
        KeyRing(engine, SECRET + "x").read_private()


def test_the_seal_alone_vouches_for_a_key(engine: sa.Engine) -> None:
    """The checks of a key of others, which this one would not pass, take most of the time of a token."""
    numbers = generate_private_key(65537, KEY_BITS).private_numbers()
    odd = RSAPrivateNumbers(
        numbers.p, numbers.q, numbers.d + 2, numbers.dmp1, numbers.dmq1, numbers.iqmp, numbers.public_numbers
    ).private_key(unsafe_skip_rsa_key_validation=True)
    pem = odd.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ValueError, match="private key"):
        load_pem_private_key(pem, None)
    with engine.begin() as connection:
        add_signing_key(connection, SECRET)
        connection.execute(signing_keys.update().values(private_sealed=make_seal(SECRET).encrypt(pem)))
    (private,) = KeyRing(engine, SECRET).read_private().keys
    assert private.as_pem(private=True) == pem


def test_a_new_key_signs_and_the_old_one_still_verifies(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        old = add_signing_key(connection, SECRET)
    with engine.begin() as connection:
        new = add_signing_key(connection, SECRET)
    ring = KeyRing(engine, SECRET)
    assert set(ring.read_public()) == {old, new}
    assert [key.kid for key in ring.read_private().keys] == [new]


def test_a_retired_key_neither_signs_nor_verifies(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        old = add_signing_key(connection, SECRET)
        add_signing_key(connection, SECRET)
        connection.execute(
            signing_keys.update()
            .where(signing_keys.c.key_id == old)
            .values(retired_at=sa.func.now() - timedelta(seconds=1))
        )
    ring = KeyRing(engine, SECRET)
    assert ring.find_public(old, is_live=False) is None
    assert old not in ring.read_public()


def test_a_key_that_another_worker_made_is_found(engine: sa.Engine) -> None:
    ring = KeyRing(engine, SECRET)
    ring.pause = 0.0
    assert ring.find_public("no-such-key", is_live=False) is None
    with engine.begin() as connection:
        made = add_signing_key(connection, SECRET)
    found = ring.find_public(made, is_live=False)
    assert found is not None
    assert found.kid == made


def test_strangers_ids_do_not_make_the_ring_read_each_time(engine: sa.Engine) -> None:
    """Whoever sends tokens with made-up key ids must not cost a query each."""
    ring = KeyRing(engine, SECRET)
    ring.pause = 3600.0
    assert ring.find_public("first", is_live=False) is None
    with engine.begin() as connection:
        made = add_signing_key(connection, SECRET)
    assert ring.find_public(made, is_live=False) is None
    assert ring.read_public().keys() == {made}
    assert ring.find_public(made, is_live=False) is not None
