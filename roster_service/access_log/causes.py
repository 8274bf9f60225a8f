"""What a cause of refused requests, and of answers without a record, says to operators, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roster_service.errors import Problem


@dataclass(frozen=True)
class RefusalCause:
    """`words`: what was wrong, as a clause in which `{caller}` stands for the client or key; `remedy`: what to do."""

    words: str
    remedy: str


# The cause of an answer without a record, whose filter is not the one of a delta.
NOTHING_FOUND = "nothing found"
_NOT_UNDERSTOOD = RefusalCause(
    "a request of {caller} was not valid",
    "the vendor must correct the request; the answer said what is wrong",
)
CAUSES: Mapping[str, RefusalCause] = {
    problem.value: cause
    for problem, cause in {
        Problem.CREDENTIALS: RefusalCause(
            "the secret or password of {caller} was wrong or missing",
            "let the vendor check the secret that it sends; or make a new one, or a link with which it makes one",
        ),
        Problem.DISABLED: RefusalCause(
            "{caller} or its vendor is disabled, or its secret has ended",
            "enable the client or the vendor, or make a new secret",
        ),
        Problem.API_KEY: RefusalCause("the API key was missing, unknown or has ended", "make a new key"),
        Problem.NO_TOKEN: RefusalCause(
            "a request came without a token", "the product must ask the token endpoint first, and send what it gets"
        ),
        Problem.BAD_TOKEN: RefusalCause(
            "the token of {caller} was not one of this service", "the product must get its token from this service"
        ),
        Problem.ENDED_TOKEN: RefusalCause(
            "the token of {caller} had ended",
            "the product must get a new one: a token ends after its time, and with a change of scopes, grants or flags",
        ),
        Problem.BAD_SIGNATURE: RefusalCause(
            "the signature of {caller} was not valid",
            "the product must sign with the present secret, and its clock must be right",
        ),
        Problem.SCOPE: RefusalCause(
            "{caller} lacks a scope", "give the client the scope, or let the product do without"
        ),
        Problem.PRIVILEGE: RefusalCause(
            "{caller} asked for a part of students that it may not request", "check the part on the vendor's page"
        ),
        Problem.NO_GRANT: RefusalCause(
            "no district or school is granted", "choose districts or schools for the vendor"
        ),
        Problem.AGREEMENT: RefusalCause(
            "the agreement of the vendor has ended or not begun, or there is none and one is required",
            "save the agreement that holds now, or leave it so",
        ),
        Problem.RATE: RefusalCause(
            "{caller} sent too many requests", "the product must wait as `Retry-After` says, or needs higher limits"
        ),
        Problem.UNKNOWN_RECORD: RefusalCause(
            "{caller} asked for a record that is not there, or that the vendor does not see",
            "look at the page of the record: it says which vendors see it",
        ),
        Problem.PULL_ENDED: RefusalCause(
            "a page was of a pull that had ended", "the product must begin with the first page"
        ),
        **dict.fromkeys(
            (
                *(Problem.METHOD, Problem.VERSION, Problem.PARAMETER, Problem.FILTER),
                *(Problem.BLANK_SELECTION, Problem.UNKNOWN_PATH, Problem.TOO_LARGE),
            ),
            _NOT_UNDERSTOOD,
        ),
    }.items()
} | {
    NOTHING_FOUND: RefusalCause(
        "the filter of {caller} fits no record that the vendor sees",
        "compare the values that the product asks for with those of the roster",
    )
}


def find_cause(text: str) -> RefusalCause:
    """Returns what a stored cause says. A former version may have stored one that is no more."""
    return CAUSES.get(text, RefusalCause(text, ""))
