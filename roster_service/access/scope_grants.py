"""Which of the scopes that a client asks for it gets."""

from __future__ import annotations

from collections.abc import Sequence

from roster_service.access.scopes import Scope, read_scope


def grant_scopes(asked: str | None, registered: Sequence[Scope]) -> str:
    """The scopes of the token, space separated, in the spelling in which they were asked for.

    What the client may not have, or what is none of ours, is left out (RFC 6749, section 3.3). Without `asked`, or
    with a blank one: everything that is registered in the version of the first one. Empty where nothing is left,
    and where one request asks for both versions, because a token has exactly one.
    """
    if asked is None or not asked.strip():
        return " ".join(str(scope) for scope in registered if scope.version == registered[0].version)
    spelled = {text: read_scope(text) for text in asked.split()}
    if len({scope.version for scope in spelled.values() if scope is not None}) != 1:
        return ""
    return " ".join(text for text, scope in spelled.items() if scope in registered)
