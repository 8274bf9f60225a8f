"""The actor of changes that tests make."""

from __future__ import annotations

from roster_service.change_log.actors import Actor, ActorKind

TESTER = Actor(ActorKind.SYSTEM_USER, "tester@tests", None)
