"""Whatever a vendor may see, its zip says what its pages say, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from roster_service.db.engine import make_engine
from roster_service.schemas.file_presets import PRESETS
from tests.conftest import Tally
from tests.contract.client import DEMOGRAPHICS, RosterClient
from tests.deltas.test_pages import FilledWorld, add_callers, change, read_pages, read_roster
from tests.extent import examples

from .checker import check
from .conftest import loosen, make
from .triples import COLLECTIONS, compare, read_files

# Rosters with about 16 callers each.
ROSTERS = examples(1, 1, 20)
# Presets of receivers that take less than all.
NARROW = ("apple", "st-math")
# Errors of the checker that the made-up exports have, too.
SAID_BY_EXPORTS = ("other signs", "other subjects", "bad grades")


@pytest.mark.parametrize("number", range(ROSTERS))
def test_a_zip_says_what_the_pages_of_its_client_say(
    make_database: Callable[[], str], tmp_path: Path, tally: Tally, number: int
) -> None:
    engine = make_engine(make_database())
    world, dice, callers, same = FilledWorld(engine, tmp_path, 5 * number + 1), Random(number), 0, 0
    try:
        change(world, dice)
        listed = list(add_callers(world, read_roster(engine), dice))
        client = RosterClient(world.app, {name: vendor.login for name, vendor in world.vendors.items()})
        for caller in listed:
            version = {"v1p1": "1.1", "v1p2": "1.2"}[caller.version]
            paths = [it for it in COLLECTIONS if it != "demographics" or DEMOGRAPHICS in caller.scopes]
            pages = {path: read_pages(client, caller, f"/{path}", [], 1000) for path in paths}
            email = world.find_email(caller.vendor)
            made = make(engine, email, loosen(PRESETS[f"oneroster-{version}"]), caller.scopes)
            assert made.files.keys() - {"manifest", "roles", "userProfiles"} == {*paths}
            same += compare(pages, made.files, version)
            callers += 1
            if version == "1.1":
                less = make(engine, email, loosen(PRESETS[dice.choice(NARROW)]), caller.scopes)
                whole = read_files(made.files, version)
                for name, narrow in read_files(less.files, version).items():
                    assert all(values <= whole[name][it] for it, values in narrow.items()), name
            wrong = [it for it in check(made.content) if not any(text in it for text in SAID_BY_EXPORTS)]
            assert sorted(set(wrong)) == []
    finally:
        world.close()
        engine.dispose()
    assert same > 0
    tally(f"zips: {callers} callers, {same} values as on their pages")
