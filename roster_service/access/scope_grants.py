"""The rule that decides which of the requested scopes a token gets."""

from __future__ import annotations

from collections.abc import Sequence

from roster_service.access.scopes import Scope, read_scope


def grant_scopes(requested: str | None, registered: Sequence[Scope]) -> str:
    """Returns the scopes of the token, separated by spaces, in the spelling of the request.

    Scopes that the client is not registered for, and unknown scopes, are left out (RFC 6749, section 3.3). A request
    without scopes gets all registered scopes that have the version of the first one. The result is empty if no scope is
    left, and if the request names scopes of both versions, because a token has exactly one version.
    """
    if requested is None or not requested.strip():
        return " ".join(str(scope) for scope in registered if scope.version == registered[0].version)
    spelled = {text: read_scope(text) for text in requested.split()}
    if len({scope.version for scope in spelled.values() if scope is not None}) != 1:
        return ""
    return " ".join(text for text, scope in spelled.items() if scope in registered)
