"""How much of the documents a run tries."""

from __future__ import annotations

from dataclasses import dataclass

from tests.extent import EXTENT, Extent, examples


@dataclass(frozen=True)
class Run:
    """`examples`: random requests an operation; `coverage`: also one request for every constraint and its breach."""

    examples: int
    coverage: bool


THIS_RUN = Run(examples=examples(2, 2, 100), coverage=EXTENT is Extent.ALL)
