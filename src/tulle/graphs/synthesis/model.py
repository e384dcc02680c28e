"""What a model of synthetic graphs is: a private part, and a generator that never sees records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tulle.core import codec, registry
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.graph import SyntheticGraph
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise.post_processing import Random, post_processing

Statistics = Mapping[str, Any]
"""Private statistics by name: numbers, texts and arrays that were released under the guarantee."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelSettings(Settings):
    """What the public settings of all models have; each adds its own."""

    nodes: int
    names: bool | None = None
    """Whether nodes keep their names; said only where they do."""


class SynthesisModel(Mechanism):
    """A model of synthetic graphs; see the package's docstring for how to add one.

    Guarantee:
        That of :meth:`measure`, per edge. :meth:`generate` is given the measured statistics and
        public settings only, so whatever it does is post-processing.
    """

    kind: ClassVar[str] = "graph"

    model: ClassVar[str]
    """The word a user names the model with; the mechanism is called ``synthetic_<model>``."""

    anonymous: ClassVar[bool] = False
    """Whether a node of the synthetic graph stands for no node in particular.

    Such nodes are numbered at random: in order of degree, say, they would look alike to nodes
    that are numbered by community, and a comparison would take that for knowledge.
    """

    keeps_identities: ClassVar[bool] = False
    """Whether what is known about each node of the synthetic graph was measured at that very node.

    Only then may the names of nodes be asked for (``names=True``): elsewhere a real name would
    stand at somebody else's edges.
    """

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, Synthetic) and query.model == self.model and unit.base == "edge"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, Synthetic)
        asked = {**terms.query.chosen(), **options}
        names = check_names(asked.pop("names", False))
        if names and not self.keeps_identities:
            raise QueryError(
                f"Model {self.model!r} does not know who is who, so its nodes have numbers and no "
                "names. Leave names out, or take topm, response or communities."
            )
        if "partition" in asked and "partition" not in self.options:
            raise QueryError(
                f"Model {self.model!r} does not keep a public partition. Leave partition out, or "
                "take communities."
            )
        self.check_options(asked)
        nodes = int(terms.facts["nodes"])
        # Without a pair of nodes there is nothing to protect and nothing to make up.
        found = ModelSettings(nodes=nodes) if nodes < 2 else self.prepare(terms, nodes, asked)
        return replace(found, names=True) if names else found

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        kinds = getattr(terms.facts, "kinds", {}).get("node", {})
        if not kinds or "partition" in settings:
            return Prediction(None, None)
        names = ", ".join(sorted(kinds))
        return Prediction(
            None,
            None,
            notes=(
                f"Attributes of nodes ({names}) are not kept. A partition that is public is kept "
                "by the model communities (its option partition).",
            ),
        )

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        measured = {}
        if ModelSettings.read(settings).nodes >= 2:
            measured = dict(self.measure(terms, settings, dataset, source))
        graph = self.draw(measured, settings, source)
        if settings.get("names"):
            # The set of nodes is public under the only unit that models answer.
            graph = with_names(graph, dataset.labels.tolist())
        return Outcome(graph, None, {"statistics": codec.encode(measured)})

    def draw(self, statistics: Statistics, settings: Parameters, source: Source | None) -> Graph:
        """Return a synthetic graph from private statistics."""
        nodes = ModelSettings.read(settings).nodes
        edges = np.empty((0, 2), dtype=np.int64)
        if nodes >= 2:
            random = post_processing(source)
            edges = self.generate(statistics, settings, random)
            if self.anonymous:
                edges = random.permutation(nodes)[edges]
        return SyntheticGraph.from_edges(edges, nodes=nodes)

    @abstractmethod
    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        """Return the public settings of a run on at least two nodes: scales, grids, shares.

        Raises:
            QueryError: when the budget is too small for the model, with advice.
            InputError: when an option cannot be used.
        """

    @abstractmethod
    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        """Return the private statistics: the only method that sees records."""

    @abstractmethod
    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        """Return the edges of a synthetic graph, from private statistics and settings alone."""


def regenerate(release: Release, source: Source | None = None) -> Graph:
    """Return another synthetic graph from a release's private statistics. It costs nothing.

    Raises:
        InputError: when the release is not one of a synthetic graph.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, tulle.synthetic("1k"), unit="edge", epsilon=60.0)
        >>> regenerate(r).edge_count
        9
    """
    model = registry.mechanisms("graph").get(release.mechanism)
    if not isinstance(model, SynthesisModel) or "statistics" not in release.parameters:
        raise InputError(
            f"This release of {release.query} holds no statistics of a synthetic graph. "
            "Release tulle.synthetic(...) and pass that."
        )
    statistics = codec.decode(release.parameters["statistics"])
    made = model.draw(statistics, release.parameters, source)
    if release.parameters.get("names"):
        return with_names(made, release.value.labels.tolist())
    return made


def with_names(made: Graph, labels: list[Any]) -> Graph:
    """Return a synthetic graph with the names of its nodes."""
    return SyntheticGraph.from_edges(made.edges(), labels=labels)


def check_names(asked: Any) -> bool:
    """Return whether names are asked for: true or false, as a value or, from options, as text."""
    known = {True: True, False: False, "true": True, "false": False}
    key = asked.strip().casefold() if isinstance(asked, str) else asked
    if not isinstance(key, str | bool) or key not in known:
        raise InputError(f"names={asked!r} must be true or false.")
    return known[key]
