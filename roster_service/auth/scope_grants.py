"""The rule that decides which of the requested scopes a token gets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from roster_service.auth.scopes import Scope, ScopeName, read_scope

# RFC 6749, section 5.2: what the description of an error may have.
_UNFIT = re.compile(r"[^ !#-\[\]-~]")


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


def describe_refused_scopes(requested: str, registered: Sequence[Scope]) -> str:
    """Returns why `grant_scopes` grants none of the requested scopes: the first refused one with its mistake, the form
    of a scope, and those that the client is registered for."""
    words = requested.split()
    known = ", ".join(scope.short for scope in registered)
    versions = {scope.version for scope in map(read_scope, words) if scope is not None}
    if len(versions) > 1:
        mistake = "the requested scopes are of both versions, and a token is of one: get a token for each"
    else:
        mistake = _describe_refused_scope(words[0])
    return f"{mistake}. A scope is written v1p2/NAME, several are separated by spaces; this client may have: {known}"


def _describe_refused_scope(word: str) -> str:
    shown = _UNFIT.sub("?", word[:100])
    if "," in word:
        return f"scopes are separated by spaces, not by commas, as in `{shown}`"
    if word in ScopeName.__members__.values():
        return f"the scope `{shown}` has no version: write v1p2/{shown} or v1p1/{shown}"
    if read_scope(word) is None:
        return f"there is no scope `{shown}`"
    return f"the client is not registered for the scope `{shown}`"
