"""The body of `/status`: what the last run of each feed was."""

from __future__ import annotations

from marshmallow import fields, validate

from roster_service.schemas.kinds import StrictSchema, describe

# State -> its meaning for a consumer, as the OpenAPI documents have it; the guide says it in fewer words.
FEED_STATES = {
    "done": "the last run was loaded",
    "unchanged": "the export was the one that is loaded already",
    "running": "the run is under way",
    "held": "the run waits for the decision of an operator; the roster is as it was",
    "failed": "the run loaded nothing; the roster is as it was",
    "missing": "the last run found no export, or no run has begun for 30 hours",
    "incomplete": "the export was still being written",
    "paused": "the operator has paused the feed",
    "removed": "the operator has removed the feed; its records are tombstones until the purge deletes them",
}


class FeedStatus(StrictSchema):
    """A feed, that is an export of a SIS, of which the caller sees records."""

    name = fields.String(required=True, metadata=describe("The name of the feed", example="springfield"))
    state = fields.String(
        required=True,
        validate=validate.OneOf(tuple(FEED_STATES)),
        metadata=describe("; ".join(f"`{state}`: {meaning}" for state, meaning in FEED_STATES.items()), example="done"),
    )
    ranAt = fields.DateTime(
        metadata=describe("The instant at which its last run began", example="2026-11-22T01:00:00.000Z")
    )
    revision = fields.Integer(
        required=True, metadata=describe("The last revision of the roster that changed the feed", example=41)
    )


class RosterStatus(StrictSchema):
    """The state of the roster as the caller sees it. `revision` is that of `X-Roster-Revision`."""

    revision = fields.Integer(required=True, metadata=describe("The present revision of the roster", example=42))
    feeds = fields.List(fields.Nested(FeedStatus), required=True, metadata=describe("The feeds, by name"))
