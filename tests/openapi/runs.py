"""How much of the documents a run tries: `make check` a sample, SCHEMATHESIS=all all of it."""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "SCHEMATHESIS"


@dataclass(frozen=True)
class Run:
    """`examples`: random requests an operation; `coverage`: also one request for every constraint and its breach."""

    examples: int
    coverage: bool


THIS_RUN = Run(examples=100, coverage=True) if os.environ.get(VARIABLE) == "all" else Run(examples=4, coverage=False)
