"""The families of formats, by the word in `feeds.format`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from sync_scripts.formats.clever import CLEVER as CLEVER_CSV
from sync_scripts.formats.model import Format
from sync_scripts.formats.oneroster import VERSIONS
from sync_scripts.formats.sds import SDS as SDS_CSV
from sync_scripts.formats.sds import SDS_V2
from sync_scripts.formats.sds_v1 import SDS_V1
from sync_scripts.formats.tolerated import NO_MANIFEST, Tolerated
from sync_scripts.reading.lines import LONGEST_LINE
from sync_scripts.reading.manifest import FILE_NAME as MANIFEST
from sync_scripts.reading.manifest import Contents, list_contents, list_without_manifest, read_manifest
from sync_scripts.reading.package import UNREADABLE, ExportPackage, recognize_names
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection


@dataclass(frozen=True)
class Family:
    """A family of formats. `name`: its word in `feeds.format`; `title`: the name of its exports in help texts; `parse`
    returns the format and the contents of a package, and raises RefusedExportError."""

    name: str
    title: str
    forms: tuple[Format, ...]
    parse: Callable[[ExportPackage], tuple[Format, Contents]]

    def read(self, package: ExportPackage) -> tuple[Format, Contents]:
        """Returns the format and the contents of a package. Raises RefusedExportError, also for an export of another
        family."""
        other = _find_other_family(package, self)
        if other is not None:
            raise OtherFormatError(package.path, other)
        try:
            return self.parse(package)
        except RefusedExportError as error:
            if foreign := Findings.of(_find_foreign_files(package, self)):
                raise RefusedExportError(foreign + error.findings) from None
            raise


class OtherFormatError(RefusedExportError):
    """The export is of another family of formats. `format`: its word; `hint`: how to load it with commands."""

    def __init__(self, path: Path, family: Family) -> None:
        super().__init__(Findings.of([Rejection(path.name, f"has the files of a {family.title}")]))
        self.format = family.name
        self.hint = (
            f"load it with `python -m sync_scripts.load_{family.name}`, or add its feed with `--format {family.name}`"
        )


def _find_other_family(package: ExportPackage, own: Family) -> Family | None:
    """The family whose files an export has, if they are not those of its own."""
    # OneRoster and School Data Sync have files of the same names.
    is_oneroster = _has_files_of_oneroster(package)
    if own is SDS and _has_users_of_oneroster(package):
        return ONEROSTER
    if (own is ONEROSTER and is_oneroster) or (own is not ONEROSTER and _has_files(package, own)):
        return None
    unlikely = SDS if is_oneroster else ONEROSTER
    likely = (*(family for family in FAMILIES.values() if family is not unlikely), unlikely)
    return next((family for family in likely if family is not own and _has_files(package, family)), None)


def _has_files(package: ExportPackage, family: Family) -> bool:
    names = {name.lower() for name in package.names}
    return any(_list_required(form).keys() <= names for form in family.forms)


def _list_required(form: Format) -> dict[str, str]:
    """The names of the files that every export of a format has, by the same names in lower case."""
    names = (file.file_name for file in form.files if file.required and file.name not in form.made)
    return {name.lower(): name for name in names}


def _find_foreign_files(package: ExportPackage, own: Family) -> Iterator[Rejection]:
    """Says of which other family an export has files, if it lacks files of each family."""
    if _has_files(package, own):
        return
    names = {name.lower() for name in package.names}
    foreign = names - {file.file_name.lower() for form in own.forms for file in form.files}
    others = [
        (family, _list_required(form)) for family in FAMILIES.values() if family is not own for form in family.forms
    ]
    family, required = max(others, key=lambda it: len(it[1].keys() & foreign))
    if len(required.keys() & foreign) > 1:
        found, missing = (
            ", ".join(sorted(required[name] for name in part))
            for part in (required.keys() & foreign, required.keys() - names)
        )
        yield Rejection(package.path.name, f"has files of a {family.title} ({found}), but lacks others ({missing})")


def _has_files_of_oneroster(package: ExportPackage) -> bool:
    """Whether an export has a manifest, or users with a column that only OneRoster has."""
    return any(name.lower() == MANIFEST for name in package.names) or _has_users_of_oneroster(package)


def _has_users_of_oneroster(package: ExportPackage) -> bool:
    """Whether the users of an export have a column that only OneRoster has."""
    return b"enableduser" in _read_users_header(package)


def _read_users_header(package: ExportPackage) -> bytes:
    """The first line of users.csv in lower case; empty where there is none."""
    names = {name.lower(): name for name in package.names}
    # The staging of a file that cannot be read says so.
    with contextlib.suppress(*UNREADABLE):
        if "users.csv" in names:
            with package.open(names["users.csv"]) as users:
                return users.readline(LONGEST_LINE).lower()
    return b""


def _read_oneroster(package: ExportPackage) -> tuple[Format, Contents]:
    package, name_notices = recognize_names(package, [MANIFEST])
    package = replace(package, notices=(*package.notices, *name_notices))
    if MANIFEST not in package.names:
        form = VERSIONS[_guess_version(package)]
        contents = list_without_manifest(package, form, MANIFEST)
        return form, replace(contents, notices=(Tolerated(MANIFEST, NO_MANIFEST, found=form.name), *contents.notices))
    known = {name for form in VERSIONS.values() for name in (*(file.name for file in form.files), *form.skipped)}
    manifest = read_manifest(package, known)
    form = VERSIONS[manifest.version or _guess_version(package)]
    return form, list_contents(package, manifest, form)


def _guess_version(package: ExportPackage) -> str:
    """The version of an export that states none. Only 1.2 has roles.csv, which may have a wrong name; its users have no
    list of orgs."""
    if any(name.lower() == "roles.csv" for name in package.names):
        return "1.2"
    users = _read_users_header(package)
    has_orgs = re.search(rb"(^|[^a-z])orgsourcedid", users) is not None
    return "1.2" if b"enableduser" in users and not has_orgs else "1.1"


def _read_sds(package: ExportPackage) -> tuple[Format, Contents]:
    form = _find_sds_version(package)
    return form, list_without_manifest(package, form)


def _find_sds_version(package: ExportPackage) -> Format:
    """The version of an export of School Data Sync: only v1 has no orgs, and only in v2 users have their orgs."""
    names = {name.lower() for name in package.names}
    if "orgs.csv" not in names and _list_required(SDS_V1).keys() & names:
        return SDS_V1
    return SDS_V2 if "roles.csv" not in names and b"orgsourcedids" in _read_users_header(package) else SDS_CSV


ONEROSTER = Family("oneroster", "OneRoster CSV export, 1.1 or 1.2", tuple(VERSIONS.values()), _read_oneroster)
CLEVER = Family(
    "clever",
    "Clever CSV export",
    (CLEVER_CSV,),
    lambda package: (CLEVER_CSV, list_without_manifest(package, CLEVER_CSV)),
)
SDS = Family("sds", "Microsoft School Data Sync CSV export, v1, v2 or v2.1", (SDS_V1, SDS_V2, SDS_CSV), _read_sds)

FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in (ONEROSTER, CLEVER, SDS)})
