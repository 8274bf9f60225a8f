"""The files of the recipe of several machines, without starting any."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from roster_service.settings import PREFIX, Settings
from tests.deploy.machines import PORTS, RECIPE, SECRETS, SERVICES, VARIABLE
from tests.deploy.proxy import CONFIGURATION

EXAMPLE = dict(re.findall(r"^(\w+)=(.*)$", (RECIPE / "machines.env.example").read_text(), re.MULTILINE))
WEB = ("web1", "web2")


def fill(text: str) -> str:
    """A text with the values of the example, each long enough for a secret."""
    return VARIABLE.sub(lambda found: EXAMPLE[found[1]].replace("CHANGE-ME", "x" * 48), text)


@pytest.mark.parametrize("name", [*WEB, "upgrade", "sync"])
def test_every_setting_of_a_service_is_one(name: str) -> None:
    given = {key: fill(text) for key, text in SERVICES[name]["environment"].items()}
    assert all(key.startswith(PREFIX) for key in given)
    settings = Settings.from_environ(given)
    assert settings.public_url == "https://roster.example.org"
    # A pooler passes on no session, which commands and the sync need.
    assert ("pooler" in str(settings.database_url)) == (name in WEB)
    assert settings.prepared_statements == (name not in WEB)


def test_the_example_names_exactly_what_the_recipe_needs() -> None:
    assert set(EXAMPLE) == set(VARIABLE.findall((RECIPE / "compose.yaml").read_text()))
    assert set(SECRETS) == {name for name, value in EXAMPLE.items() if value == "CHANGE-ME"}


def test_every_machine_is_a_service_and_every_mounted_file_is_there() -> None:
    assert set(PORTS) < set(SERVICES)
    for service in SERVICES.values():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert not source.startswith(".") or (RECIPE / source).is_file(), source
        for name in service.get("depends_on", ()):
            assert name in SERVICES


def test_the_console_has_the_data_folder_and_the_exports_of_the_sync() -> None:
    """It loads what a person uploads, approves and takes back what the sync keeps there, and starts a sync."""
    exports = "${EXPORTS:?}:/var/lib/roster/exports:ro"
    assert SERVICES["console"]["volumes"] == SERVICES["sync"]["volumes"] == ["office:/var/lib/roster", exports]


# What is in the folder of a standby, and whether it is made anew.
FOLDERS = {
    "without a file": ((), True),
    "a backup that was killed": (("PG_VERSION", "base/1/1255"), True),
    "a standby": (("PG_VERSION", "global/pg_control"), False),
}


@pytest.mark.parametrize(("files", "is_made"), FOLDERS.values(), ids=FOLDERS)
def test_a_standby_is_made_unless_it_is_whole(tmp_path: Path, files: tuple[str, ...], *, is_made: bool) -> None:
    data, programs = tmp_path / "data", tmp_path / "programs"
    for folder in (programs, data / "base/1", data / "global"):
        folder.mkdir(parents=True)
    for file in files:
        (data / file).write_text("before")
    # As the real one, it takes no folder that has a file.
    backup = f'test -z "$(ls -A {data})" && echo made > {data}/PG_VERSION'
    for name, does in (("pg_basebackup", backup), ("postgres", "true")):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    given = {"PATH": f"{programs}:/usr/bin:/bin", "PGDATA": str(data), "PRIMARY": "h", "REPLICATION_PASSWORD": "x"}
    subprocess.run(["sh", str(RECIPE / "standby.sh")], check=True, env=given)
    assert (data / "PG_VERSION").read_text() == ("made\n" if is_made else "before")
    assert (data / "base/1/1255").exists() is False


@pytest.mark.parametrize("path", sorted(RECIPE.glob("*.sh")), ids=lambda path: path.name)
def test_the_shell_can_read_a_script(path: Path) -> None:
    subprocess.run(["sh", "-n", str(path)], check=True)


def test_nginx_gets_both_machines(tmp_path: Path) -> None:
    nginx = tmp_path / "nginx"
    nginx.write_text("#!/bin/sh\n")
    nginx.chmod(0o755)
    environment = {key: fill(text) for key, text in SERVICES["proxy"]["environment"].items()}
    here = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CONFIGURATION": str(CONFIGURATION), "RESULT": str(tmp_path / "made")}
    subprocess.run(["sh", str(RECIPE / "proxy.sh")], env={**environment, **here}, check=True)
    made = (tmp_path / "made").read_text()
    assert re.search(r"upstream roster \{\s*server web1:8000; server web2:8000;\s*\}", made)
    assert "127.0.0.1:8000" not in made
    assert "user nginx;" in made
    opened = re.search(
        r"\n *location /console \{\s*allow ([^;]*);\s*deny all;[^}]*proxy_pass http://console:8001;\s*\}", made
    )
    assert opened is not None
    assert opened[1] == environment["OPERATORS"]
