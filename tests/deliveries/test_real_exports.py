"""The zips of six real exports hold against the standard, and the loader gets from them what the vendor gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db.engine import make_engine
from roster_service.errors import CommandError
from roster_service.schemas.file_presets import PRESETS
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from sync_scripts.reading.rejections import RefusedExportError
from tests.conftest import close_app
from tests.contract.client import RosterClient
from tests.contract.conftest import SECRET_KEY, SETTINGS, add_vendor

from .checker import COLUMNS, ID, check
from .conftest import FEEDS, load_export, loosen, make
from .triples import COLLECTIONS, read_files, read_page

# A loader takes no bulk export without a row of each.
NEEDED = ("orgs", "academicSessions", "courses", "classes", "users", "enrollments")
GENERIC = ("oneroster-1.1", "oneroster-1.2")


@pytest.fixture(scope="module", params=FEEDS)
def loaded(request: pytest.FixtureRequest, make_database: Callable[[], str]) -> Iterator[tuple[str, sa.Engine]]:
    """One of the exports in a database, with vendors who see all, a school, and two schools."""
    engine = make_engine(make_database())
    load_export(engine, request.param)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        orgs = connection.exec_driver_sql("SELECT sourced_id, type, district_id FROM orgs ORDER BY sourced_id").all()
        districts = sorted({row.district_id for row in orgs if row.district_id})
        schools = [row for row in orgs if row.type == "school" and row.district_id]
        add_vendor(connection, "all", [(it, ()) for it in districts])
        add_vendor(connection, "one", [(schools[0].district_id, (schools[0].sourced_id,))])
        add_vendor(connection, "last", [(schools[-1].district_id, (schools[-1].sourced_id,))])
    yield request.param, engine
    engine.dispose()


@pytest.mark.parametrize("preset", GENERIC)
@pytest.mark.parametrize("vendor", ["all", "one", "last"])
def test_a_zip_holds_against_the_standard(loaded: tuple[str, sa.Engine], vendor: str, preset: str) -> None:
    name, engine = loaded
    email, wanted = f"{vendor}@vendors.example", PRESETS[preset]
    # Without the rule for ids, which most formats break with ids that they make.
    made = make(engine, email, loosen(wanted))
    unfit = {
        file for file, rows in made.files.items() if not all(ID.fullmatch(it.get("sourcedId", "1")) for it in rows)
    }
    assert check(made.content) == [
        f"{file} has an id with other signs" for file in COLUMNS[preset[-3:]] if file in unfit
    ]
    if unfit:
        with pytest.raises(CommandError, match=f"of the feed {name} ha"):
            make(engine, email, wanted)
    else:
        assert make(engine, email, wanted).content == made.content
    if vendor == "all":
        assert made.package.rows["users"] > 0
        assert bool(unfit) == (FEEDS[name] != "oneroster")


@pytest.mark.parametrize("preset", GENERIC)
def test_the_loader_gets_from_a_zip_what_the_vendor_gets(
    loaded: tuple[str, sa.Engine], make_database: Callable[[], str], tmp_path: Path, preset: str
) -> None:
    _name, engine = loaded
    version = PRESETS[preset].version.prefix
    made = make(engine, "all@vendors.example", loosen(PRESETS[preset]))
    path = tmp_path / "out.zip"
    path.write_bytes(made.content)
    second = make_engine(make_database())
    try:
        if not all(made.package.rows[it] for it in NEEDED):
            with pytest.raises(RefusedExportError, match="has no row"):
                load(second, "copy", path)
            return
        assert load(second, "copy", path).to_json()["rejected"] == 0
        with second.begin() as connection:
            ensure_signing_key(connection, SECRET_KEY)
            districts = connection.exec_driver_sql("SELECT DISTINCT district_id FROM orgs").scalars()
            login = add_vendor(connection, "all", [(it, ()) for it in districts])
        app = create_app(Settings(**SETTINGS), second.url.render_as_string(hide_password=False))
        client, files = RosterClient(app, {"all": login}), read_files(made.files, preset[-3:])
        for name in COLLECTIONS:
            pages = client.call(version, f"/{name}", {"limit": "1000"}, vendor="all").records
            assert read_page(pages) == files[name], name
        close_app(app)
    finally:
        second.dispose()
