"""One test of many cases that say the same of each: its failure lists those of which it does not hold."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from tests.extent import EXTENT, Extent, long

LONGEST_WORDS = 600


def in_one_test(test: Callable[..., None]) -> Callable[..., None]:
    """Makes one test of all cases of the `parametrize` marks below it; none of them may change what another one sees.

    It tries every case, but the long ones of a run of the sample, and fails with the names of those that do not hold.
    """
    marks: list[pytest.Mark] = list(vars(test).pop("pytestmark"))
    tables = [list(_read_cases(mark)) for mark in reversed(marks) if mark.name == "parametrize"]
    cases = [
        ("-".join(name for name, _ in chosen), {name: value for _, case in chosen for name, value in case.items()})
        for chosen in itertools.product(*tables)
    ]
    assert cases, test
    signature = inspect.signature(test)
    fixtures = [it for name, it in signature.parameters.items() if name not in cases[0][1]]

    def run(**given: Any) -> None:
        offenders = []
        for name, case in cases:
            try:
                test(**given, **case)
            except AssertionError as error:
                offenders.append(f"{name}: {str(error)[:LONGEST_WORDS]}")
            except BaseException as error:
                error.add_note(f"in the case {name}")
                raise
        assert not offenders, "\n".join([f"{len(offenders)} of {len(cases)} cases:", *offenders])

    functools.update_wrapper(run, test)
    run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
    for mark in marks:
        if mark.name != "parametrize":
            pytest.MarkDecorator(mark, _ispytest=True)(run)
    return run


def _read_cases(mark: pytest.Mark) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the values of each case of a mark."""
    arguments, table = mark.args
    names = [it.strip() for it in arguments.split(",")] if isinstance(arguments, str) else list(arguments)
    ids = mark.kwargs.get("ids")
    listed = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(table):
        given = isinstance(row, ParameterSet)
        values = list(row.values) if given else [row] if len(names) == 1 else list(row)
        if given and EXTENT is Extent.SAMPLE and any(it.name == long.name for it in row.marks):
            continue
        words = ids if callable(ids) else str
        own = row.id if given and row.id is not None else listed[number] if listed else None
        name = "-".join(str(words(value))[:80] for value in values) if own is None else str(own)
        yield name, dict(zip(names, values, strict=True))
