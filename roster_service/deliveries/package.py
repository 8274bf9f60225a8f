"""Writes the zip of what a client sees, in bulk: by the plans of its collections, in one transaction of one snapshot.

A reference names a row of the same zip or is empty. A row that lacks something which the standard requires is left out,
with what hangs on it, and counted. The same roster and rights give the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import sqlalchemy as sa

from roster_service.auth.credentials.tokens import AccessToken
from roster_service.deliveries.files import (
    FILES,
    MANIFEST,
    METADATA,
    METADATA_PREFIX,
    OTHERS,
    SUFFIX,
    Column,
    File,
)
from roster_service.deliveries.presets import Preset
from roster_service.errors import CommandError
from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.schemas.versions import USERS, Version
from roster_service.serving.params import Params
from roster_service.serving.plan import Plan, make_plan
from roster_service.serving.record_stream import admit, stream_records

# Of compression: a higher one takes more time than all the rest, for a tenth of the bytes.
_LEVEL = 1
_ACTIVE = "status='active'"
_FLAT = str.maketrans({"\r": " ", "\n": " "})
_DIGEST_CHARACTERS = 32
_COPIED_BYTES = 2**20
_ENDPOINTS = {row.path: row for row in ENDPOINTS}
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Whose roster a package has. `token`: of the client, with scopes of the preset's version; `secret_key`: of the
    service, from which the ids of rows follow that no interface shows; `feeds`: the names of all feeds by number."""

    preset: Preset
    token: AccessToken
    secret_key: str
    feeds: Mapping[int, str]


@dataclass(frozen=True)
class Package:
    """What a zip has. `revision`: of the roster, as the client sees it; `digest`: SHA-256, in hexadecimal; `rows`: by
    file; `absent`: the files that it does not have; `left_out`: the number of rows by file and by the column that they
    lack; `schools`: the number of rows by kind (`users`, `classes`, `enrollments`) and org; `ids`: by file, of users
    and of classes."""

    revision: int
    digest: str
    bytes: int
    rows: Mapping[str, int]
    absent: Sequence[str]
    left_out: Mapping[str, Mapping[str, int]]
    schools: Mapping[str, Mapping[str, int]]
    ids: Mapping[str, Collection[str]]

    @property
    def people(self) -> Collection[str]:
        """The ids of the people whose records these are."""
        return self.ids["users"]


def write_package(connection: sa.Connection, source: Source, out: IO[bytes]) -> Package:
    """Writes the zip into `out`, which can seek and is empty. `connection`: as for `stream_records`.

    Raises RefusedRequestError if the client is not admitted, and CommandError if the receiver of the preset cannot take
    the ids of a feed, or if the client may see no file of it.
    """
    state = admit(connection, source.token.admission, source.token.vendor_id)
    writer = _Writer(connection, source)
    if not writer.present:
        raise CommandError("the client has no scope for any file")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as packed:
        writer.write(packed)
    return Package(
        revision=state.revision,
        digest=_hash(out),
        bytes=out.tell(),
        rows={file.name: writer.rows[file.name] for file in writer.present},
        absent=[file.name for file in FILES[source.preset.version] if file not in writer.present],
        left_out={name: dict(counts) for name, counts in writer.left_out.items()},
        schools={kind: dict(counts) for kind, counts in writer.schools.items()},
        ids={name: writer.written.get(name, ()) for name in ("users", "classes")},
    )


def _hash(out: IO[bytes]) -> str:
    out.seek(0)
    hashing = hashlib.sha256()
    for piece in iter(partial(out.read, _COPIED_BYTES), b""):
        hashing.update(piece)
    return hashing.hexdigest()


def is_open(endpoint: Endpoint, token: AccessToken) -> bool:
    """Returns whether a scope of the token opens the collection."""
    return bool(token.scope_names.intersection(endpoint.access.value))


def plan_collection(endpoint: Endpoint, version: Version, token: AccessToken, fields: Sequence[str] | None) -> Plan:
    """Returns the plan of the active records of a collection, as the client would ask for them. `fields`: None for
    all."""
    params = Params(0, 0, _ACTIVE, None, False, None if fields is None else tuple(fields))
    return make_plan(params, version.records[endpoint.resource], token.rights, endpoint.path_filter, {})


class _Prepared(NamedTuple):
    """A column, ready for many rows. `known`: the ids that it may name, None for a column that names none; `taken`: the
    words that the receiver takes, None for all."""

    header: str
    field: str
    required: bool
    many: bool
    known: Collection[str] | None
    taken: Collection[str] | None


class _Writer:
    """Writes the files of one zip. `present`: those that it has; `written`: the ids of the rows of those files that
    others name; the rest is as in `Package`."""

    def __init__(self, connection: sa.Connection, source: Source) -> None:
        self._connection, self._preset, self._token = connection, source.preset, source.token
        self._source, self._digest = source, _PartIds(source.secret_key)
        self.rows, self.schools = Counter[str](), defaultdict[str, Counter[str]](Counter)
        self.left_out = defaultdict[str, Counter[str]](Counter)
        self.written = dict[str, set[str]]()
        self.present = list[File]()
        names = set[str]()
        for file in FILES[source.preset.version]:
            wanted = source.preset.files is None or file.name in source.preset.files
            needed = {column.refers for column in file.columns if column.required and column.refers != file.name}
            # A file whose rows can name nothing would have 0 rows, which means that all are to be deleted.
            if wanted and needed | {file.owner} <= names | {None} and self._may_see(file):
                self.present.append(file)
                names.add(file.name)
        # What a row may name, for each file of which rows are named.
        self._named = {c.refers for file in self.present for c in file.columns} | {file.owner for file in self.present}

    def _plan(self, file: File, fields: Sequence[str] | None = None) -> Plan:
        return plan_collection(_ENDPOINTS[f"/{file.resource.plural}"], self._preset.version, self._token, fields)

    def _may_see(self, file: File) -> bool:
        """Whether the scopes open the collection, and no withheld field is the file."""
        if not is_open(_ENDPOINTS[f"/{file.resource.plural}"], self._token):
            return False
        return file.part is None or file.part in self._plan(file).shape.view.fields

    def write(self, packed: zipfile.ZipFile) -> None:
        """Writes the manifest and the files."""
        with _open_csv(packed, MANIFEST) as rows:
            rows.writerow(("propertyName", "value"))
            rows.writerow(("manifest.version", "1.0"))
            rows.writerow(("oneroster.version", self._preset.version.title.split()[-1]))
            names = {file.name for file in self.present}
            others = OTHERS[self._preset.version]
            for name in sorted((*others, *(file.name for file in FILES[self._preset.version]))):
                rows.writerow((f"file.{name}", "bulk" if name in names else "absent"))
        for file in self.present:
            if file.part is None:
                parts = [
                    present
                    for present in self.present
                    if present.part is not None and present.resource is file.resource
                ]
                self._write_file(packed, file, parts)

    def _write_file(self, packed: zipfile.ZipFile, file: File, parts: Sequence[File]) -> None:
        """Writes a file, and those of the parts of its records."""
        plan = self._plan(file)
        keys = self._read_ahead(file, self._preset.metadata and METADATA in plan.shape.view.fields)
        if file.name in self._named:
            self.written.setdefault(file.name, set())
        columns = self._prepare(file, file.columns)
        if parts:
            # The profiles of one user at a time: a role names those of its user alone.
            self.written["userProfiles"] = set()
        prepared = {part: self._prepare(part, part.columns) for part in parts}
        with _Parts(parts) as kept:
            with _open_csv(packed, file.name + SUFFIX) as rows:
                rows.writerow((*file.headers, *(METADATA_PREFIX + key for key in keys)))
                for sourced_id, record in self._read(file, plan):
                    cells = self._make_cells(file, columns, _drop_foreign_org(record))
                    if cells is None:
                        continue
                    if keys:
                        metadata = record.get(METADATA, {})
                        cells += [_make_text_cell(metadata.get(key)) for key in keys]
                    rows.writerow((sourced_id, "", "", *cells))
                    self._count(file, sourced_id, record)
                    if parts:
                        self._write_parts(kept, prepared, sourced_id, record)
            for part in parts:
                kept.copy(packed, part)

    def _read(self, file: File, plan: Plan) -> Iterator[tuple[str, Json]]:
        """Yields the id and the JSON of each record. Raises CommandError after the last one if ids do not fit."""
        fits = self._preset.id_pattern.fullmatch
        unfit = defaultdict[int, list[str]](list)
        for sourced_id, feed_id, body in stream_records(self._connection, plan, self._token.vendor_id, ""):
            if not fits(sourced_id):
                unfit[feed_id].append(sourced_id)
            record = json.loads(body)
            # A line break is one of these in JSON. (Hardly any record has one.)
            yield sourced_id, _flatten(record) if "\\n" in body or "\\r" in body else record
        for feed_id, ids in unfit.items():
            signs = {sign for sourced_id in ids for sign in sourced_id if not fits(sign)}
            which = f"have {' '.join(map(repr, sorted(signs)))}" if signs else "are longer"
            feed = self._source.feeds[feed_id]
            number = "one id" if len(ids) == 1 else f"{len(ids):,} ids"
            raise CommandError(
                f"{number} in {file.name} of the feed {feed} {which}; the receiver takes "
                f"ids of {self._preset.id_words}. Another spelling would be a second id for one record, so there is no "
                "file of this vendor for it: grant it districts of other feeds alone, or choose another preset"
            )

    def _read_ahead(self, file: File, has_metadata: bool) -> Sequence[str]:
        """Returns the keys of the metadata. Of a file that names its own rows, it collects their ids."""
        if not (file.refers_to_itself or has_metadata):
            return ()
        required = [column for column in file.columns if column.required]
        columns = self._prepare(file, required)
        plan = self._plan(file, ("sourcedId", METADATA, *(column.field for column in required)))
        keys, ids = set[str](), set[str]()
        for sourced_id, record in self._read(file, plan):
            if self._make_cells(file, columns, record, counted=False) is not None:
                ids.add(sourced_id)
                keys.update(record.get(METADATA, ()))
        if file.refers_to_itself:
            self.written[file.name] = ids
        return sorted(keys)

    def _prepare(self, file: File, columns: Sequence[Column]) -> Sequence[_Prepared]:
        """Returns columns with the ids that each may name, and the words that the receiver takes."""
        return [
            _Prepared(
                column.header,
                column.field,
                column.required,
                column.many,
                None if column.refers is None else self.written.get(column.refers, frozenset()),
                self._preset.only.get((file.name, column.header)),
            )
            for column in columns
        ]

    def _make_cells(
        self, file: File, columns: Sequence[_Prepared], record: Json, *, counted: bool = True
    ) -> list[str] | None:
        """Returns the cells of a row; None if the row is left out, which is counted unless not `counted`."""
        cells = []
        for header, field, required, many, known, taken in columns:
            value = record.get(field)
            if value is None:
                cell = ""
            elif known is not None:
                named = value if many else (value,)
                cell = ",".join([one["sourcedId"] for one in named if one["sourcedId"] in known])
            else:
                cell = ",".join([_make_item(one) for one in value]) if many else value
            if (required and not cell) or (taken is not None and cell not in taken):
                if counted:
                    self.left_out[file.name][header] += 1
                return None
            cells.append(cell)
        if file.owner is not None and record["sourcedId"] not in self.written[file.owner]:
            self.left_out[file.name]["sourcedId"] += 1
            return None
        return cells

    def _count(self, file: File, sourced_id: str, record: Json) -> None:
        """Counts a row of a record, and notes its id for the rows that name it."""
        self.rows[file.name] += 1
        if self._preset.unique_ids:
            others = [name for name, ids in self.written.items() if name != file.name and sourced_id in ids]
            if others:
                raise CommandError(
                    f"{file.name} and {others[0]} have the same id for a record each; the receiver takes an id once"
                )
        if file.name in self.written:
            self.written[file.name].add(sourced_id)
        counts = self.schools[file.name]
        if "school" in record:
            counts[record["school"]["sourcedId"]] += 1
        elif file.resource is USERS:
            orgs = record["orgs"] if "orgs" in record else [role["org"] for role in record["roles"]]
            counts.update({org["sourcedId"] for org in orgs})

    def _write_parts(
        self, kept: _Parts, prepared: Mapping[File, Sequence[_Prepared]], sourced_id: str, record: Json
    ) -> None:
        """Writes the rows of the parts of a record. `prepared`: the columns by file."""
        own_profiles = self.written["userProfiles"]
        own_profiles.clear()
        for part, columns in prepared.items():
            counted = Counter[object]()
            for item in record.get(part.part or "", ()):
                for content, row in _list_part_rows(part, item):
                    counted[content] += 1
                    own_id = self._digest.name(part.name, sourced_id, content, counted[content])
                    named = {"user": {"sourcedId": sourced_id}}
                    if "userProfile" in row:
                        profile = self._digest.name("userProfiles", sourced_id, row["userProfile"], 1)
                        named["userProfile"] = {"sourcedId": profile}
                    cells = self._make_cells(part, columns, {**row, **named})
                    if cells is not None:
                        kept.writers[part].writerow((own_id, "", "", *cells))
                        self.rows[part.name] += 1
                        if part.part == "userProfiles":
                            own_profiles.add(own_id)


def _drop_foreign_org(record: Json) -> Json:
    """Returns a user without a primary org at which it shows no role: a file of 1.2 must not have one."""
    primary = record.get("primaryOrg")
    if primary is None or any(role["org"] == primary for role in record["roles"]):
        return record
    return {name: value for name, value in record.items() if name != "primaryOrg"}


def _list_part_rows(part: File, item: Json) -> Iterator[tuple[object, Json]]:
    """Yields the rows of an item of a record: what tells it from the others, and its fields."""
    if part.part == "roles":
        yield (item["role"], item["org"]["sourcedId"]), item
        return
    for credential in item.get("credentials", ()):
        yield item["profileId"], {**item, "credentialType": credential["type"], "username": credential["username"]}


class _PartIds:
    """The ids of rows that no interface shows: keyed digests, so that they are stable and name nothing."""

    def __init__(self, secret_key: str) -> None:
        self._key = hmac.digest(secret_key.encode(), b"roster ids of parts", "sha256")

    def name(self, file: str, owner: str, content: object, number: int) -> str:
        """Returns the id of a row. `owner`: the id of the record that it is a part of; `content`: what tells it from
        the other parts; `number`: among those with the same content, from 1."""
        return hmac.digest(self._key, repr((file, owner, content, number)).encode(), "sha256").hex()[
            :_DIGEST_CHARACTERS
        ]


class _Parts:
    """The rows of parts, which wait in private files without a name: a zip is written file by file."""

    def __init__(self, parts: Sequence[File]) -> None:
        self._files = {part: TemporaryFile() for part in parts}  # noqa: SIM115  (closed by `__exit__`)
        self._texts = {part: _make_text(file) for part, file in self._files.items()}
        self.writers = {part: _make_csv_writer(text) for part, text in self._texts.items()}
        for part, writer in self.writers.items():
            writer.writerow(part.headers)

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def copy(self, packed: zipfile.ZipFile, part: File) -> None:
        """Copies the rows of a part into the zip."""
        self._texts[part].flush()
        file = self._files[part]
        file.seek(0)
        with packed.open(part.name + SUFFIX, "w") as member:
            for piece in iter(partial(file.read, _COPIED_BYTES), b""):
                member.write(piece)


@contextmanager
def _open_csv(packed: zipfile.ZipFile, name: str) -> Iterator[Any]:
    with packed.open(name, "w") as member, _make_text(member) as text:
        yield _make_csv_writer(text)


def _make_text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8", newline="")


def _make_csv_writer(text: IO[str]) -> Any:
    return csv.writer(text, lineterminator="\r\n")


def _make_item(item: str | Json) -> str:
    """Returns an item of a list. It cannot have a comma, which ends an item; a pair can."""
    return item.replace(",", " ") if isinstance(item, str) else f"{{{item['type']}:{item['identifier']}}}"


def _make_text_cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flatten(value: Any) -> Any:
    """Returns a JSON value with spaces in place of line breaks, at every depth."""
    if isinstance(value, str):
        return value.replace("\r\n", " ").translate(_FLAT)
    if isinstance(value, list):
        return [_flatten(item) for item in value]
    return {name: _flatten(item) for name, item in value.items()} if isinstance(value, dict) else value
