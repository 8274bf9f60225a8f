"""A consumer that keeps copies by the recipes of docs/vendors.md ("Deltas", "Keep a copy"), written from that guide
alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from werkzeug.test import Client, TestResponse

Record = dict[str, Any]
Answer = tuple[list[Record], Mapping[str, str]]
# Reads a collection whole, or its changes since an instant: the records, and the headers of the first page. None: the
# caller may not read it.
Read = Callable[[str, str | None], Answer | None]


@dataclass
class Consumer:
    """Keeps a copy of some collections: records by collection and id. `collections`: listed anew for each pull and
    delta; `instant`: of the copy; empty without one."""

    read: Read
    collections: Iterable[str]
    copy: dict[str, dict[str, Record]] = field(default_factory=dict)
    instant: str = ""

    def pull(self) -> None:
        """Drops the copy, and reads everything."""
        self.copy = {}
        self._take({path: self.read(path, None) for path in self.collections})

    def update(self) -> bool:
        """Brings the copy up to date; returns whether a delta was enough."""
        # A collection that is new is read whole.
        since = {path: self.instant if path in self.copy else None for path in self.collections} if self.instant else {}
        answers = {path: self.read(path, instant) for path, instant in since.items()}
        floors = [answer[1]["X-Roster-Deletions-Since"] for answer in answers.values() if answer]
        if not floors or max(floors) > self.instant:
            self.pull()
            return False
        self._take(answers)
        return True

    def _take(self, answers: Mapping[str, Answer | None]) -> None:
        self.copy = {path: records for path, records in self.copy.items() if path in answers}
        for path, answer in answers.items():
            records = self.copy.setdefault(path, {})
            for record in answer[0] if answer else ():
                if record["status"] == "tobedeleted":
                    records.pop(record["sourcedId"], None)
                else:
                    records[record["sourcedId"]] = record
        self.instant = min((answer[1]["X-Roster-As-Of"] for answer in answers.values() if answer), default="")


@dataclass
class Rostering:
    """Reads collections of one version of the rostering interface."""

    http: Client
    version: str
    login: tuple[str, str]
    token: str = ""

    def read(self, path: str, since: str | None) -> Answer | None:
        """All records of a collection, page by page as `Link` says."""
        root = {"v1p1": "/ims/oneroster/v1p1", "v1p2": "/ims/oneroster/rostering/v1p2"}[self.version]
        query = {"limit": "1000"} | ({"filter": f"dateLastModified>'{since}'"} if since else {})
        address: str | None = f"{root}{path}?{urlencode(query, quote_via=quote)}"
        records: list[Record] = []
        headers: Mapping[str, str] = {}
        while address:
            answer = self._get(address)
            if answer.status_code == 403:
                return None
            assert answer.status_code == 200, answer.data
            headers = headers or answer.headers
            records += next(value for key, value in answer.get_json().items() if key != "statusInfoSet")
            found = re.search(r'<([^<>]*)>; rel="next"', answer.headers.get("Link", ""))
            address = found and found[1]
        return records, headers

    def _get(self, address: str) -> TestResponse:
        """A request with a token. One that has ended is replaced."""
        answer = self.http.get(address, headers={"Authorization": f"Bearer {self.token}"})
        if answer.status_code == 401:
            names = "roster roster-demographics guardians guardians-metadata students-metadata demographic-metadata"
            scopes = " ".join(f"{self.version}/{name}.readonly" for name in f"{names} orgs-metadata".split())
            form = {"grant_type": "client_credentials", "scope": scopes}
            self.token = self.http.post("/oauth/token", data=form, auth=self.login).get_json()["access_token"]
            answer = self.http.get(address, headers={"Authorization": f"Bearer {self.token}"})
        return answer


@dataclass
class Students:
    """Lists the districts of a vendor, and reads the students of each by the vendor interface, with all that the vendor
    may include."""

    http: Client
    api_key: str
    login: Mapping[str, str]
    token: str = ""
    flags: Iterable[str] = ()

    def read(self, district: str, since: str | None) -> Answer | None:
        """All students of a district, page by page as `nextOffset` says."""
        body: dict[str, Any] = {"districtlea": district, "limit": 5000}
        offset: int | None = 0
        students: list[Record] = []
        headers: Mapping[str, str] = {}
        while offset is not None:
            answer = self._post(body | {"offset": offset} | ({"modifiedSince": since} if since else {}))
            if answer.status_code in (401, 403):
                return None
            assert answer.status_code == 200, answer.data
            headers = headers or answer.headers
            students += answer.get_json()["students"]
            offset = answer.get_json().get("nextOffset")
        return students, headers

    def __iter__(self) -> Iterator[str]:
        """Each `districtlea` that a new login lists, once; none where nothing is granted."""
        answer = self._log_in()
        districts = answer.get_json()["districts"] if answer.status_code == 200 else ()
        yield from dict.fromkeys(district["districtlea"] for district in districts)

    def _log_in(self) -> TestResponse:
        answer = self.http.post("/v1/login", json=self.login, headers={"x-api-key": self.api_key})
        if answer.status_code == 200:
            self.token = answer.get_json()["token"]
            self.flags = answer.get_json()["flags"]
        else:
            assert (answer.status_code, answer.get_json()["code"]) == (403, "no-privilege")
        return answer

    def _post(self, body: Mapping[str, Any]) -> TestResponse:
        """A request with a permission token. One that has ended is replaced."""
        for _ in range(2):
            headers = {"x-api-key": self.api_key, "Authorization": f"Bearer {self.token}"}
            answer = self.http.post("/v1/students", json={"include": self.flags, **body}, headers=headers)
            if answer.status_code != 401 or self._log_in().status_code == 403:
                break
        return answer
