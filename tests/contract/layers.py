"""Taking one of the two layers of visibility away: what a test does to see whether the other one holds by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from roster_service.auth.credentials.tokens import AccessToken
from tests.access_matrix.layers import forget_statements, open_query_filter


@contextmanager
def query_filter_open() -> Iterator[None]:
    """While it is open every row counts as visible, and every caller as one who may see guardians. Row-level security
    is told the caller's own grants and rights, as ever."""
    with pytest.MonkeyPatch.context() as patch:
        open_query_filter(patch)
        rights, admission = AccessToken.rights.func, AccessToken.admission.func  # type: ignore[attr-defined]

        def admit_with_own_rights(token: AccessToken) -> object:
            call = admission(token)
            return dataclasses.replace(call, values={**call.values, "guardians": rights(token).guardians})

        patch.setattr(AccessToken, "rights", property(lambda token: dataclasses.replace(rights(token), guardians=True)))
        patch.setattr(AccessToken, "admission", property(admit_with_own_rights))
        yield
    forget_statements()
