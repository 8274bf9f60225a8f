"""Writes the zip of what a client sees, in bulk: by the plans of its collections, in one transaction of one snapshot.

A reference names a row of the same zip or is empty. A row that lacks something which the standard requires is left out,
with what hangs on it, and counted. The same roster and rights give the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import zipfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.auth.credentials.tokens import AccessToken
from roster_service.deliveries.cells import METADATA, join_part, make_cell
from roster_service.deliveries.files import FILES, OTHERS, Column, File
from roster_service.errors import CommandError
from roster_service.roster.person_parts import PersonPart
from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.schemas.file_presets import Preset
from roster_service.schemas.versions import Version
from roster_service.serving.params import Params
from roster_service.serving.plan import Plan, make_plan
from roster_service.serving.record_stream import admit, select_records, stream_rows
from roster_service.serving.statements import get_key_column

# Of compression: a higher one takes more time than all the rest, for a tenth of the bytes.
_LEVEL = 1
_ACTIVE = "status='active'"
_FLAT = str.maketrans({"\r": " ", "\n": " "})
_DIGEST_CHARACTERS = 32
_ENDPOINTS = {row.path: row for row in ENDPOINTS}
# The place of a cell that tells a part of people, the part, and the words that tell it, none if all do.
_PartSign = tuple[int, PersonPart, Sequence[str]]


@dataclass(frozen=True)
class Source:
    """Whose roster a package has. `token`: of the client, with scopes of the preset's version; `secret_key`: of the
    service, from which the ids of rows follow that no interface shows; `feeds`: the names of the feeds that the vendor
    sees, by number."""

    preset: Preset
    token: AccessToken
    secret_key: str
    feeds: Mapping[int, str]


@dataclass(frozen=True)
class Package:
    """What a zip has. `revision`: of the roster, as the client sees it; `digest`: SHA-256, in hexadecimal; `rows`: by
    file; `absent`: the files that it does not have; `left_out`: the number of rows by file and by the column that they
    lack; `schools`: the number of rows by file and school, of files that have one; `ids`: by file, of users
    and of classes; `parts`: the parts of people in it."""

    revision: int
    digest: str
    bytes: int
    rows: Mapping[str, int]
    absent: Sequence[str]
    left_out: Mapping[str, Mapping[str, int]]
    schools: Mapping[str, Mapping[str, int]]
    ids: Mapping[str, Collection[str]]
    parts: Collection[PersonPart]


def write_package(connection: sa.Connection, source: Source, out: io.BufferedRandom | io.BytesIO) -> Package:
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
    out.seek(0)
    return Package(
        revision=state.revision,
        digest=hashlib.file_digest(out, "sha256").hexdigest(),
        bytes=out.tell(),
        rows={file.name: writer.rows[file.name] for file in writer.present},
        absent=[file.name for file in FILES[source.preset.version] if file not in writer.present],
        left_out={name: counts for name, counts in writer.left_out.items() if counts},
        schools=writer.schools,
        ids={name: writer.written.get(name, ()) for name in ("users", "classes")},
        parts=writer.parts,
    )


def is_open(endpoint: Endpoint, token: AccessToken) -> bool:
    """Returns whether a scope of the token opens the collection."""
    return bool(token.scope_names.intersection(endpoint.access.value))


def plan_collection(endpoint: Endpoint, version: Version, token: AccessToken) -> Plan:
    """Returns the plan of the active records of a collection, as the client would ask for them."""
    params = Params(0, 0, _ACTIVE, None, False, None)
    return make_plan(params, version.records[endpoint.resource], token.rights, endpoint.path_filter, {})


class _Writer:
    """Writes the files of one zip. `present`: those that it has; `written`: the ids of the rows of those files that
    others name; the rest is as in `Package`."""

    def __init__(self, connection: sa.Connection, source: Source) -> None:
        self._connection, self._preset, self._token = connection, source.preset, source.token
        self._source = source
        self._key = hmac.digest(source.secret_key.encode(), b"roster ids of parts", "sha256")
        self.rows, self.schools = Counter[str](), defaultdict[str, Counter[str]](Counter)
        self.left_out = defaultdict[str, Counter[str]](Counter)
        self.written = dict[str, set[str]]()
        self.parts = set[PersonPart]()
        self.present = list[File]()
        names = set[str]()
        for file in FILES[source.preset.version]:
            wanted = source.preset.has_file(file.name)
            needed = {column.refers for column in file.columns if column.required and column.refers != file.name}
            # A file whose rows can name nothing would have 0 rows, which means that all are to be deleted.
            if wanted and needed | {file.owner} <= names | {None} and self._may_see(file):
                self.present.append(file)
                names.add(file.name)
        # What a row may name, for each file of which rows are named.
        self._named = {c.refers for file in self.present for c in file.columns} | {file.owner for file in self.present}

    def _plan(self, file: File) -> Plan:
        return plan_collection(_ENDPOINTS[f"/{file.resource.plural}"], self._preset.version, self._token)

    def _may_see(self, file: File) -> bool:
        """Whether the scopes open the collection, and no withheld field is the file."""
        opened = is_open(_ENDPOINTS[f"/{file.resource.plural}"], self._token)
        return opened and (file.part is None or file.part in self._plan(file).shape.view.fields)

    def write(self, packed: zipfile.ZipFile) -> None:
        """Writes the manifest and the files."""
        with _open_csv(packed, "manifest") as rows:
            rows.writerow(("propertyName", "value"))
            rows.writerow(("manifest.version", "1.0"))
            rows.writerow(("oneroster.version", self._preset.version.title.split()[-1]))
            names = {file.name for file in self.present}
            others = OTHERS[self._preset.version]
            for name in sorted((*others, *(file.name for file in FILES[self._preset.version]))):
                rows.writerow((f"file.{name}", "bulk" if name in names else "absent"))
        for file in self.present:
            self._write_file(packed, file)

    def _write_file(self, packed: zipfile.ZipFile, file: File) -> None:
        metadata = [f"{METADATA}.{key}" for key in self._list_metadata(file)]
        columns = (*file.columns, *(Column(header, header, False, None, False) for header in metadata))
        if file.name in self._named:
            required = [column for column in columns if column.required]
            names_itself = any(column.refers == file.name for column in columns)
            self.written[file.name] = {row[0] for row in self._list_rows(file, required)} if names_itself else set()
        self.left_out[file.name].clear()
        noted = self.written.get(file.name)
        others = [(name, ids) for name, ids in self.written.items() if self._preset.unique_ids and name != file.name]
        signs: Sequence[_PartSign] = list(self._list_part_signs(file))
        school = next((at for at, column in enumerate(columns) if column.header == file.school), None)
        counted, number = Counter[str](), 0
        with _open_csv(packed, file.name) as rows:
            rows.writerow((*file.headers, *metadata))
            for sourced_id, cells in self._list_rows(file, columns):
                number += 1
                rows.writerow((sourced_id, "", "", *cells))
                if noted is not None:
                    noted.add(sourced_id)
                for name, ids in others:
                    if sourced_id in ids:
                        raise CommandError(
                            f"{file.name} and {name} have the same id for a record each; the receiver takes an id once"
                        )
                if signs:
                    signs = self._add_parts(cells, signs)
                if school is not None:
                    counted[cells[school]] += 1
        self.parts.update(self._find_metadata(file) if metadata else ())
        self.rows[file.name] = number
        for orgs, users in counted.items():
            self.schools[file.name].update(dict.fromkeys(orgs.split(","), users))

    def _list_part_signs(self, file: File) -> Iterator[_PartSign]:
        """Yields the places of the cells that may tell a part of people which no file has told yet."""
        fields = self._plan(file).shape.view.fields
        of_rows = None if file.part is None else fields[file.part].part
        if of_rows is not None:
            # Each row is an item of the part, and its first cell the user.
            yield 0, of_rows, ()
        if file.part is not None:
            fields = fields[file.part].members
        for at, column in enumerate(file.columns):
            field = fields.get(column.field)
            # The cells of a hidden one are empty.
            if field is not None and field.part is not None and field.part not in self.parts:
                yield at, field.part, field.part_words

    def _add_parts(self, cells: Sequence[Any], signs: Sequence[_PartSign]) -> Sequence[_PartSign]:
        """Adds the parts that a row tells. Returns the places that may tell one which no row has told yet."""
        found = {part for at, part, words in signs if cells[at] and (not words or cells[at] in words)}
        self.parts |= found
        return [sign for sign in signs if sign[1] not in found] if found else signs

    def _find_metadata(self, file: File) -> Iterator[PersonPart]:
        """Yields the parts of people that the metadata of a file is: the cells do not tell whose they are."""
        plan = self._plan(file)
        for part, value in plan.shape.view.fields[METADATA].list_values(self._token.rights):
            rows = select_records(self._connection, plan, self._token.vendor_id, value).where(value.is_not(None))
            if self._connection.execute(rows.order_by(None).limit(1)).first() is not None:
                yield part

    def _list_metadata(self, file: File) -> Sequence[str]:
        """Returns the names in the metadata of a file."""
        plan = self._plan(file)
        metadata = plan.shape.view.fields.get(METADATA)
        if not self._preset.metadata or metadata is None or file.part is not None:
            return ()
        key = sa.func.jsonb_object_keys(sa.cast(metadata.json(self._token.rights), JSONB))
        rows = select_records(self._connection, plan, self._token.vendor_id, key)
        return sorted(self._connection.scalars(rows.order_by(None).distinct()))

    def _list_rows(self, file: File, columns: Sequence[Column]) -> Iterator[tuple[str, list[str]]]:
        """Yields the id and the cells of each row, and counts those that are left out. Raises CommandError after the
        last one if ids do not fit."""
        fits, unfit = self._preset.id_pattern.fullmatch, defaultdict[int, list[str]](list)
        left_out, owned = self.left_out[file.name], self.written.get(file.owner or "")
        # The place of a cell, the ids that it may name (None: it names none), the words that the receiver takes.
        checks = [
            (at, column, None if column.refers is None else self.written.get(column.refers, set[str]()), taken)
            for at, column in enumerate(columns)
            if (taken := self._preset.only.get((file.name, column.header))) or column.required or column.refers
        ]
        for sourced_id, feed_id, cells in self._select(file, columns):
            if not fits(sourced_id):
                unfit[feed_id].append(sourced_id)
            for at, column, known, taken in checks:
                cell = cells[at]
                if known is not None and column.many:
                    cell = cells[at] = ",".join([one for one in cell or () if one in known])
                elif known is not None and cell not in known:
                    cell = cells[at] = None
                if (column.required and not cell) or (taken is not None and cell not in taken):
                    left_out[column.header] += 1
                    break
            else:
                if owned is None or sourced_id in owned:
                    yield sourced_id, cells
                else:
                    left_out["sourcedId"] += 1
        for feed_id, ids in unfit.items():
            signs = {sign for sourced_id in ids for sign in sourced_id if not fits(sign)}
            number, has, is_ = ("one id", "has", "is") if len(ids) == 1 else (f"{len(ids):,} ids", "have", "are")
            which = f"{has} {' '.join(map(repr, sorted(signs)))}" if signs else f"{is_} longer"
            raise CommandError(
                f"{number} in {file.name} of the feed {self._source.feeds[feed_id]} {which}; the receiver takes "
                f"ids of {self._preset.id_words}. Another spelling would be a second id for one record, so there is no "
                "file of this vendor for it: grant it districts of other feeds alone, or choose another preset"
            )

    def _select(self, file: File, columns: Sequence[Column]) -> Iterator[tuple[str, int, list[Any]]]:
        """Yields the id, the number of the feed and the cells of each record, or of each item of a part."""
        plan, rights = self._plan(file), self._token.rights
        key, feed = get_key_column(plan.shape), plan.shape.view.record.table.c.feed_id
        fields, distinct_by = plan.shape.view.fields, file.distinct_by
        part = None if file.part is None else fields[file.part]
        if part is not None:
            fields = part.members
        cells = [
            key if part is not None and column.field == "user" else make_cell(fields, column.field, rights)
            for column in columns
        ]
        extra = [make_cell(fields, path, rights) for path in distinct_by]
        rows = select_records(self._connection, plan, self._token.vendor_id, key, feed, *extra, *cells)
        if part is None:
            yield from ((row[0], row[1], list(row[2:])) for row in stream_rows(self._connection, rows))
            return
        profile = next((at for at, column in enumerate(columns) if column.refers == "userProfiles"), None)
        owner, counted = None, Counter[object]()
        for user, feed_id, *values in stream_rows(self._connection, join_part(rows, part, rights)):
            if user != owner:
                owner, counted = user, Counter()
            content, row = tuple(values[: len(extra)]), values[len(extra) :]
            counted[content] += 1
            if profile is not None and row[profile] is not None:
                row[profile] = self._name_part("userProfiles", user, (row[profile],), 1)
            yield self._name_part(file.name, user, content, counted[content]), feed_id, row

    def _name_part(self, file: str, *parts: object) -> str:
        """The id of a row that no interface shows: a keyed digest of the record that it is a part of, of what tells it
        from the other parts, and of its number among those with the same content. It is stable and names nothing."""
        return hmac.digest(self._key, repr((file, *parts)).encode(), "sha256").hex()[:_DIGEST_CHARACTERS]


class _Lines:
    """The lines of a file, without other line breaks than their ends."""

    def __init__(self, text: IO[str]) -> None:
        self._write = text.write

    def write(self, line: str) -> None:
        """Writes a line. Hardly any has a line break in a cell, which a space replaces."""
        if line.count("\n") > 1 or line.count("\r") > 1:
            line = line[:-2].replace("\r\n", " ").translate(_FLAT) + "\r\n"
        self._write(line)


@contextmanager
def _open_csv(packed: zipfile.ZipFile, name: str) -> Iterator[Any]:
    with packed.open(f"{name}.csv", "w") as member, io.TextIOWrapper(member, encoding="utf-8", newline="") as text:
        yield csv.writer(_Lines(text), lineterminator="\r\n")
