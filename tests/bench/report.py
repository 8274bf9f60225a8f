"""What the benchmark of the service found: a table to read, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """A row: the figure of the service and the one it is held against, their ratio, and its target."""

    what: str
    ours: float
    limit: float
    unit: str
    ratio: float
    target: float
    at_least: bool

    @property
    def holds(self) -> bool:
        """Whether the ratio meets the target."""
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target

    def line(self) -> str:
        """The row of the table."""
        bound = f"{'>=' if self.at_least else '<='} {self.target:g}"
        verdict = "holds" if self.holds else "MISSED"
        figures = f"{self.ours:>10.2f} {self.limit:>10.2f} {self.unit:<10} {self.ratio:>7.2f}  {bound:<8}"
        return f"{self.what:<58} {figures} {verdict}"


def show(facts: Mapping[str, object], results: Sequence[Result]) -> str:
    """The facts, and the table with its head."""
    said = ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in facts.items()
    )
    head = f"{'what':<58} {'ours':>10} {'limit':>10} {'unit':<10} {'ratio':>7}  {'target':<8}"
    return "\n".join([said, "", head, *(result.line() for result in results)])


def draw(results: Sequence[Result], path: Path) -> None:
    """A bar for each ratio as a part of its target; what reaches past 1 to the right holds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    worth = [result.ratio / result.target if result.at_least else result.target / result.ratio for result in results]
    figure, axes = pyplot.subplots(figsize=(10, 0.35 * len(results) + 1))
    colours = ["tab:green" if result.holds else "tab:red" for result in results]
    axes.barh([result.what for result in results], worth, color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("times its target; 1 and more holds")
    axes.set_xscale("log")
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
