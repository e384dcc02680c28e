"""The model 1k: a private degree sequence, and a random graph that has it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError, QueryError
from tulle.core.guarantee import display
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.isotonic import decreasing, graphical, sorted_sequence
from tulle.graphs.queries.degrees import DegreeDistribution, Degrees
from tulle.graphs.synthesis.generators.realise import realise_degrees
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random

FORMS = {"cumulative": DegreeDistribution(), "sequence": Degrees()}
"""What gets the noise: how many nodes have degree at least 1, 2, ..., or the sorted degrees."""

MOST_INVENTED = 2_000_000
"""A budget at which noise alone makes more edges than this is refused."""


@dataclass(frozen=True)
class Tuning:
    """When noise is smoothed. It helps on facebook_combined (docs/models-graphs.md); whether other
    data had a say is not on record."""

    least_smoothed: Fraction = Fraction(2, 3)
    """From this scale of noise on, steps of the cumulative counts are smoothed."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False, kw_only=True)
class DegreeSettings(ModelSettings):
    """The public settings of noisy degrees."""

    form: str
    sensitivity: int
    scale: Fraction


@registry.offered("synthetic", "1k", "Degrees", "keeps how many links people have")
@registry.mechanism("graph", "synthetic_1k", answers=(Synthetic,), units=("edge",))
class OneK(SynthesisModel):
    """A random simple graph with a private degree sequence.

    Guarantee:
        Pure epsilon per edge. One edge moves two degrees by one each, so the sorted sequence, and
        the number of nodes of degree at least 1, 2, ... n - 1, move by at most 2 in L1. Every
        entry of that public grid gets discrete Laplace noise of scale 2/epsilon.

    Error:
        Degrees and the edge count are as good as ``degrees()``; all that the degrees do not say
        (triangles, communities, who knows whom) is chance.

    Reference:
        Hay et al., ICDM 2009. Wang & Wu, Preserving differential privacy in degree-correlation
        based graph generation, TDP 2013.

    Example:
        >>> import tulle
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=4)
        >>> r = tulle.release(star, tulle.synthetic("1k"), unit="edge", epsilon=60.0)
        >>> sorted(np.bincount(r.value.edges().ravel(), minlength=4).tolist())
        [1, 1, 1, 3]
    """

    model: ClassVar[str] = "1k"
    title: ClassVar[str] = "a random graph with a private degree sequence"
    reference: ClassVar[str] = "Hay et al., ICDM 2009; Wang & Wu, TDP 2013"
    anonymous: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("form",)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        form = options.get("form", "cumulative")
        if not isinstance(form, str) or form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}; got {form!r}.")
        check_noise(nodes, terms.epsilon, terms.epsilon)
        return DegreeSettings(nodes=nodes, form=form, sensitivity=2, scale=2 / terms.epsilon)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        chosen = DegreeSettings.read(settings)
        sequence = sorted_sequence(FORMS[chosen.form], graph)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, size=sequence.shape, source=source)
        return {"degrees": sequence + noise}

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        degrees = consistent_degrees(statistics["degrees"], settings)
        return realise_degrees(degrees, random)


def check_noise(nodes: int, share: Fraction, epsilon: Fraction) -> None:
    """Refuse a budget at which noise alone would make a graph too large to build.

    Noise of scale 2/share on n counts leaves a sum of about its deviation times sqrt(n) after
    isotonic regression, half of it edges. On few nodes there is no room for many.

    Raises:
        QueryError: saying what epsilon would do.
    """
    invented = math.sqrt(2 * nodes) / float(share)
    if min(invented, nodes * (nodes - 1) / 2) > MOST_INVENTED:
        enough = float(epsilon / share) * math.sqrt(2 * nodes) / MOST_INVENTED
        raise QueryError(
            f"At epsilon = {display(epsilon)} noise alone would invent about "
            f"{counted(round(invented), 'edge')} on {counted(nodes, 'node')}. Use an epsilon of at "
            f"least {enough:.2g}, better of 0.1 or more, or ask for single counts instead."
        )


def consistent_degrees(noisy: Wholes, settings: Parameters) -> Wholes:
    """Return the degree sequence, descending, of some simple graph near the noisy statistics."""
    chosen = DegreeSettings.read(settings)
    if chosen.form == "sequence":
        smoothed = np.clip(decreasing(noisy), 0, chosen.nodes - 1)
        return graphical(np.rint(smoothed).astype(np.int64))
    return degrees_from_counts(noisy, chosen.scale)


def degrees_from_counts(noisy: Wholes, scale: Fraction) -> Wholes:
    """Return degrees, descending, from noisy counts of nodes with degree at least 1, 2, ... n - 1.

    The counts are made decreasing by isotonic regression. That leaves steps where noise has
    drowned them, so that many degrees would not occur at all: unless there is little noise, the
    steps are replaced by straight lines through their middles.

    Example:
        >>> degrees_from_counts(np.array([4, 1, 1]), Fraction(1, 10)).tolist()
        [3, 1, 1, 1]
    """
    nodes = len(noisy) + 1
    reached = np.clip(decreasing(noisy), 0, nodes)
    if scale >= _TUNING.least_smoothed:
        reached = _through_middles(reached, nodes)
    counts = np.rint(reached).astype(np.int64)
    # The degree sequence and these counts are conjugate partitions of the number of edge ends.
    ends = np.searchsorted(-counts, -np.arange(1, nodes + 1), side="right")
    return graphical(ends.astype(np.int64))


def _through_middles(reached: Floats, nodes: int) -> Floats:
    starts = np.concatenate([[0], np.flatnonzero(np.diff(reached)) + 1])
    lasts = np.concatenate([starts[1:], [len(reached)]]) - 1
    values = reached[starts]
    kept = values >= 0.5
    if not kept.any():
        return np.zeros_like(reached)
    starts, lasts, values = starts[kept], lasts[kept], values[kept]
    # The last step falls to zero as far behind its end as its middle is before it.
    foot = lasts[-1] + (lasts[-1] - starts[-1]) / 2 + 0.51
    places = np.concatenate([(starts + lasts) / 2, [foot]])
    heights = np.concatenate([values, [0.0]])
    # The first step rises before its middle as it falls behind it: a line from all nodes at degree
    # 0 would invent edges where noise has made that step a long one.
    places = np.concatenate([[2 * places[0] - places[1]], places])
    heights = np.concatenate([[min(2 * heights[0] - heights[1], nodes)], heights])
    line: Floats = np.interp(np.arange(len(reached)), places, heights)
    return line
