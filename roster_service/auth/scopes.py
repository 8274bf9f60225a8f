"""The scopes of both versions, and what a client gets of those that it asks for.

A scope is a version and a name. It is written `https://purl.imsglobal.org/spec/or/v1p1/scope/NAME`, the same with
`http://`, or `v1p1/NAME`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.roster.withheld import WithheldField

# The bound of the cache of content rights; the tokens in use carry only a few sets of scopes and of withheld fields.
KEPT_RIGHTS = 256

_SPELLING = re.compile(
    r"(?:https?://purl\.imsglobal\.org/spec/or/(?P<long>v1p[12])/scope/|(?P<short>v1p[12])/)(?P<name>[a-z.-]+)"
)


class ScopeName(StrEnum):
    """Every scope of the rostering interface, without its version."""

    CORE = "roster-core.readonly"
    FULL = "roster.readonly"
    DEMOGRAPHICS = "roster-demographics.readonly"
    GUARDIANS = "guardians.readonly"
    GUARDIANS_METADATA = "guardians-metadata.readonly"
    STUDENTS_METADATA = "students-metadata.readonly"
    DEMOGRAPHIC_METADATA = "demographic-metadata.readonly"
    ORGS_METADATA = "orgs-metadata.readonly"


# An explanation of each scope, for the OpenAPI document, `docs/vendors.md` and the command line.
EXPLANATIONS = {
    ScopeName.CORE: "the list and single-record paths, less demographics",
    ScopeName.FULL: "all paths, less demographics",
    ScopeName.DEMOGRAPHICS: "demographic records",
    ScopeName.GUARDIANS: "users with the role `guardian`, `parent` or `relative`, also in `agents`",
    ScopeName.GUARDIANS_METADATA: "`metadata` on users who are guardians",
    ScopeName.STUDENTS_METADATA: "`metadata` on users who are students",
    ScopeName.DEMOGRAPHIC_METADATA: "`metadata` on demographic records",
    ScopeName.ORGS_METADATA: "`metadata` on orgs",
}


@dataclass(frozen=True)
class ScopePreset:
    """Scopes that a purpose needs. `words`: what a client with them reads, for people."""

    words: str
    names: tuple[ScopeName, ...]

    def list_scopes(self, versions: str) -> tuple[Scope, ...]:
        """Returns its scopes of these versions, a key of `PRESET_VERSIONS`."""
        return tuple(Scope(version, name) for version in PRESET_VERSIONS[versions].prefixes for name in self.names)


@dataclass(frozen=True)
class PresetVersions:
    """The versions of which a preset gives scopes. `words`: for people; `prefixes`: a token request without scopes gets
    those of the first."""

    words: str
    prefixes: tuple[str, ...]


# For the command line and the console; the first is the default.
PRESET_VERSIONS: Mapping[str, PresetVersions] = {
    "v1p2": PresetVersions("OneRoster 1.2", ("v1p2",)),
    "v1p1": PresetVersions("OneRoster 1.1", ("v1p1",)),
    "both": PresetVersions("OneRoster 1.2 and 1.1", ("v1p2", "v1p1")),
}


# What most products need, for the command line and the console.
PRESETS: Mapping[str, ScopePreset] = {
    "students-teachers": ScopePreset(
        "students and teachers, with their schools, terms, classes and enrollments", (ScopeName.FULL,)
    ),
    "guardians": ScopePreset("these, and guardians", (ScopeName.FULL, ScopeName.GUARDIANS)),
    "demographics": ScopePreset(
        "students and teachers, and demographics: birth dates, sex, race and ethnicity",
        (ScopeName.FULL, ScopeName.DEMOGRAPHICS),
    ),
    "everything": ScopePreset("everything, with guardians, demographics and all metadata", tuple(ScopeName)),
}

_METADATA_SCOPES = {
    ScopeName.ORGS_METADATA: MetadataOf.ORGS,
    ScopeName.STUDENTS_METADATA: MetadataOf.STUDENTS,
    ScopeName.GUARDIANS_METADATA: MetadataOf.GUARDIANS,
    ScopeName.DEMOGRAPHIC_METADATA: MetadataOf.DEMOGRAPHICS,
}

# The paths of the token endpoint, its public keys, and its metadata.
TOKEN_PATH = "/oauth/token"  # noqa: S105  (an address)
JWKS_PATH = "/.well-known/jwks.json"
METADATA_PATH = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, order=True)
class Scope:
    """One scope: `version` is `v1p1` or `v1p2`."""

    version: str
    name: ScopeName

    def __str__(self) -> str:
        return f"https://purl.imsglobal.org/spec/or/{self.version}/scope/{self.name}"

    @property
    def short(self) -> str:
        """The short spelling, `v1p1/NAME`, which the database stores."""
        return f"{self.version}/{self.name}"


def read_scope(text: str) -> Scope | None:
    """Returns the scope that `text` spells, or None if the service does not have it (a gradebook scope, say)."""
    spelled = _SPELLING.fullmatch(text)
    if spelled is None or spelled["name"] not in ScopeName.__members__.values():
        return None
    return Scope(spelled["long"] or spelled["short"], ScopeName(spelled["name"]))


def read_scopes(texts: Iterable[str]) -> tuple[Scope, ...]:
    """Returns the scopes that `texts` spell, in their order, without those that the service does not have."""
    return tuple(scope for scope in map(read_scope, texts) if scope is not None)


@functools.lru_cache(KEPT_RIGHTS)
def make_content_rights(
    names: frozenset[ScopeName],
    withheld: frozenset[WithheldField],
    metadata_keys: frozenset[str] | None,
    *,
    has_rules: bool = False,
) -> ContentRights:
    """Returns the content rights of a token with these scopes, of a vendor from which these fields are withheld.
    `metadata_keys`: the keys of metadata that its agreement names, None without an agreement.
    `has_rules`: whether it has a grant with rules; without them, such a grant opens no records."""
    opened = () if metadata_keys is not None and not metadata_keys else _METADATA_SCOPES.items()
    metadata = frozenset(kind for name, kind in opened if name in names)
    return ContentRights(
        viewer=Viewer.RULED_VENDOR if has_rules else Viewer.ONE_VENDOR,
        guardians=ScopeName.GUARDIANS in names,
        metadata=metadata,
        metadata_keys=metadata_keys if metadata else None,
        withheld=withheld,
    )


def shows_metadata(scopes: Iterable[str]) -> bool:
    """Returns whether one of these scopes shows metadata."""
    return any(scope.name in _METADATA_SCOPES for scope in read_scopes(scopes))


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
    return f"the client may not have the scope `{shown}`"
