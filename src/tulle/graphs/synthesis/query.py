"""The question for a whole synthetic graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import text
from tulle.graphs.data import Graph
from tulle.graphs.queries.partitions import checked_partition, listed, shown

_PREFIX = "synthetic_"

MODELS = tuple(
    name.removeprefix(_PREFIX)
    for name in registry.find("mechanism", "graph")
    if name.startswith(_PREFIX)
)
"""The models, each by the word that a user names it with: what is registered as a mechanism."""

Option = str | int | float | bool | None


@dataclass(frozen=True)
class Synthetic(Query):
    """A synthetic graph from a model, with the model's own options."""

    model: str = "auto"
    options: tuple[tuple[str, Option], ...] = ()
    name: ClassVar[str] = "synthetic"
    words: ClassVar[str] = "A synthetic network that resembles the real one."
    quantity: ClassVar[str] = "links"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "object"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            known = ", ".join(MODELS)
            raise InputError(
                f"There is no model {self.model!r} of synthetic graphs. Known: {known}."
            )
        for name, value in self.options:
            if value is not None and not isinstance(value, str | int | float | bool):
                raise InputError(
                    f"Option {name!r} must be a number or text; got {type(value).__name__}."
                )

    def truth(self, dataset: Graph) -> Graph:
        """Return the graph itself: what a synthetic graph should look like. Custodian side."""
        return dataset

    def canonical(self) -> dict[str, Any]:
        return {"query": self.name, "model": self.model, "options": [list(o) for o in self.options]}

    def chosen(self) -> Mapping[str, Option]:
        """Return the model's options by name."""
        return dict(self.options)

    def __str__(self) -> str:
        said = [repr(self.model)]
        for name, value in self.options:
            long = name == "partition" and isinstance(value, str)
            said.append(f"{name}={shown(parts_of(value)) if long else repr(value)}")
        return f"{self.name}({', '.join(said)})"


def parts_of(text: Any) -> tuple[int, ...]:
    """Read a partition that :func:`synthetic` wrote: the number of each node's part."""
    try:
        return tuple(int(part) for part in str(text).split(","))
    except ValueError:
        raise_alone(InputError("partition must list one label for each node, numbers or strings."))


@public("Publish a graph")
@registry.register("query", "graph", "synthetic")
def synthetic(model: str = "auto", **options: Any) -> Synthetic:
    """Ask for a whole synthetic graph, made up from private statistics by a model.

    The Release's value is a public :class:`tulle.Graph`; the private statistics that it was made
    from are in ``release.parameters["statistics"]``, and
    :func:`tulle.graphs.synthesis.model.regenerate` draws further graphs from them at no cost.
    Its nodes have numbers. With ``names=True`` they have the names of the nodes, which are public
    per edge; only models that measure each node itself can do so (topm, response, communities).

    With ``partition``, one label for each node that you declare public (its school, say), the
    model communities keeps that partition: node i of the synthetic graph is in the part of node i,
    and edges within and between parts are as many as their private counts say. Nothing is spent on
    finding communities then. Other models do not keep what is public about single nodes.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, synthetic("1k"), unit="edge", epsilon=60.0)
        >>> r.value
        <SyntheticGraph: 9 nodes, 9 edges>
    """
    plain = {
        name: text(value) if isinstance(value, Fraction) else value
        for name, value in options.items()
    }
    if "partition" in plain:
        model = "communities" if model == "auto" else model
        if not isinstance(plain["partition"], str):
            parts = checked_partition(listed(plain["partition"]))
            plain["partition"] = ",".join(map(str, parts))
    return Synthetic(model, tuple(sorted(plain.items())))
