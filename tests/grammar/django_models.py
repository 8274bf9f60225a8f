"""Django on the records of `samples.py`, in SQLite and in PostgreSQL."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import django
import sqlalchemy as sa
from django.conf import settings
from django.db import connections, models
from django.db.backends.signals import connection_created
from oneroster_filter import Through, add_sqlite_functions
from oneroster_filter.django import django_q
from oneroster_filter.typing import TypedExpr

from .samples import Record


class TextListField(models.Field):
    """A list of texts: an array on PostgreSQL, and JSON elsewhere."""

    def db_type(self, connection: Any) -> str:
        return "text[]" if connection.vendor == "postgresql" else "text"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return value if value is None or connection.vendor == "postgresql" else json.dumps(value)


def add_functions(connection: Any, **others: Any) -> None:
    """The function for `~`, on each new connection to SQLite."""
    if connection.vendor == "sqlite":
        add_sqlite_functions(connection.connection)


def set_up(server_url: str) -> None:
    """Configure Django; a process can do so once."""
    url = sa.make_url(server_url)
    postgresql = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.database,
        "USER": url.username,
        "PASSWORD": url.password,
        "HOST": url.query.get("host", url.host),
        "PORT": url.port or "",
    }
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    settings.configure(
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        DATABASES={"default": {}, "sqlite": sqlite, "postgresql": postgresql},
    )
    django.setup()
    connection_created.connect(add_functions)


Choose = Callable[[Sequence[Record], Sequence[TypedExpr]], list[list[int]]]


@contextmanager
def open_models(server_url: str) -> Iterator[Callable[[str, str], Choose]]:
    """Make the tables in both databases. Yields a function of the database and the collation."""
    set_up(server_url)

    class User(models.Model):
        status = models.TextField(null=True)
        role = models.TextField(null=True)
        family_name = models.TextField(null=True)
        enabled = models.BooleanField(null=True)
        modified = models.DateTimeField(null=True)
        born = models.DateField(null=True)
        grades = TextListField(null=True)
        class_id = models.TextField(null=True)
        tier = models.TextField(null=True)
        second_name = models.TextField(null=True)

        class Meta:
            app_label = "filters"

    class Role(models.Model):
        user = models.ForeignKey(User, on_delete=models.CASCADE)
        role = models.TextField(null=True)
        begin = models.DateField(null=True)

        class Meta:
            app_label = "filters"

    def has_role(condition: models.Q) -> models.Exists:
        return models.Exists(Role.objects.filter(condition, user=models.OuterRef("pk")))

    columns = {
        "status": "status",
        "role": "role",
        "familyName": "family_name",
        "enabledUser": "enabled",
        "dateLastModified": models.F("modified"),
        "birthDate": "born",
        "grades": "grades",
        "class.sourcedId": "class_id",
        "roles.role": Through("role", has_role),
        "roles.beginDate": Through("begin", has_role),
        "metadata.tier": "tier",
        "metadata.2nd-name": "second_name",
    }

    def load(alias: str, records: Sequence[Record]) -> None:
        Role.objects.using(alias).all().delete()
        User.objects.using(alias).all().delete()
        users = [
            User(
                id=place,
                status=record.get("status"),
                role=record.get("role"),
                family_name=record.get("familyName"),
                enabled=record.get("enabledUser"),
                modified=record.get("dateLastModified"),
                born=record.get("birthDate"),
                grades=record.get("grades"),
                class_id=(record.get("class") or {}).get("sourcedId"),
                tier=(record.get("metadata") or {}).get("tier"),
                second_name=(record.get("metadata") or {}).get("2nd-name"),
            )
            for place, record in enumerate(records)
        ]
        roles = [
            Role(user_id=place, role=role.get("role"), begin=role.get("beginDate"))
            for place, record in enumerate(records)
            for role in record.get("roles") or ()
        ]
        User.objects.using(alias).bulk_create(users)
        Role.objects.using(alias).bulk_create(roles)

    def make_choose(alias: str, collation: str | None) -> Choose:
        def choose(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
            load(alias, records)
            flags = {
                f"flag{number}": models.Case(
                    models.When(django_q(expr, columns, collation=collation), then=1),
                    default=0,
                    output_field=models.IntegerField(),
                )
                for number, expr in enumerate(wanted)
            }
            rows = list(User.objects.using(alias).annotate(**flags).order_by("id").values("id", *flags))
            return [[row["id"] for row in rows if row[flag]] for flag in flags]

        return choose

    for alias in ("sqlite", "postgresql"):
        with connections[alias].schema_editor() as editor:
            editor.create_model(User)
            editor.create_model(Role)
    yield make_choose
    with connections["postgresql"].schema_editor() as editor:
        editor.delete_model(Role)
        editor.delete_model(User)
    connections.close_all()
