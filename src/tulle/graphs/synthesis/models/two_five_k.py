"""The model 2.5k: joint degrees, and how much nodes of each degree cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import text
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees, triangles_per_node
from tulle.graphs.mechanisms.ladder import TUNING as LADDER
from tulle.graphs.mechanisms.ladder import draw_ladder, smooth_widths
from tulle.graphs.queries.counts import Triangles
from tulle.graphs.sensitivity.counts import Profile, public_length
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees
from tulle.graphs.synthesis.generators.kinds import sort_by_kind
from tulle.graphs.synthesis.generators.realise_joint import place_edges
from tulle.graphs.synthesis.generators.tuning import Aim, Aims, tune
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses, soft_classes
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.models.one_k import check_noise
from tulle.graphs.synthesis.models.two_k import (
    JointSettings,
    joint_degrees_of,
    joint_settings,
    measure_joint,
)
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise.charge import LadderCharge, charge
from tulle.noise.post_processing import Random

WORK_PER_EDGE = 1_000
"""Neighbours looked at per edge while swapping, at most."""

MOST_WORK = 1_000_000_000


def cluster(
    joint: JointDegrees, wanted: float, by_class: Floats, classes: SoftClasses, random: Random
) -> Wholes:
    """Return edges with these degrees, nearly these joint degrees, and the triangles wanted.

    ``by_class`` says how the triangles are divided among the classes of degrees; only its shape
    is used, as the total is known better.
    """
    kinds, _ = sort_by_kind(joint, np.repeat(joint.degrees, joint.nodes), random)
    between, sizes, room, _ = kinds
    if int(np.triu(between).sum()) < 4 or wanted <= 0:
        return place_edges(between, room, sizes, random, 0.0)
    member = classes.memberships(room)
    of_kind = classes.memberships(np.rint(kinds.middle).astype(np.int64))
    share = by_class + 1e-3 * wanted / max(len(by_class), 1) + 1e-9
    target = 3 * wanted * share / share.sum()
    tilt = np.full(classes.count, -1.0)
    best: tuple[float, Wholes] | None = None
    for _ in range(8 if len(room) * float(room.mean()) < 1e6 else 5):
        local = 1 / (1 + np.exp(-(of_kind @ tilt)))
        edges = place_edges(between, room, sizes, random, local)
        triangles = triangles_per_node(Graph.from_edges(edges, nodes=len(room)))
        made = member.T @ triangles
        off = float(np.abs(made - target).sum())
        if best is None or off < best[0]:
            best = off, edges
        tilt += 1.5 * np.clip(np.log((target + 1) / (made + 1)), -2, 2)
        np.clip(tilt, -12, 12, out=tilt)
    assert best is not None
    edges = best[1]
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    work = min(WORK_PER_EDGE * len(edges), MOST_WORK)
    joined = float(room[edges].prod(axis=1).sum())
    aims = Aims(triangles=Aim(wanted), products=Aim(joined, _TUNING.kept * joined))
    return tune(edges, blocks, aims, work, random)


@dataclass(frozen=True)
class Tuning:
    """What holds unless the user says otherwise; which data chose it is not on record."""

    degree_share: Fraction = Fraction(9, 20)
    joint_share: Fraction = Fraction(3, 20)
    triangle_share: Fraction = Fraction(1, 5)
    class_share: Fraction = Fraction(1, 5)
    """How epsilon is divided."""
    class_ratio: Fraction = Fraction(8)
    """How far apart the grid points of the clustering are."""
    smoothing_share: Fraction = LADDER.smoothing_share
    """Part of a ladder's epsilon that smooths its widths: as for counts of triangles."""
    kept: float = 0.001
    """How far, relatively, swaps may move the sum of products of degrees. Not chosen on data: too
    little to be seen in the assortativity."""


_TUNING = Tuning()
_SHARES = ("degree_share", "joint_share", "triangle_share", "class_share")


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusteredSettings(JointSettings):
    """The public settings of one run: of the ladders of all triangles, and of those of a class."""

    class_ratio: Fraction
    decay: Fraction
    smoothing: Fraction
    class_decay: Fraction
    class_smoothing: Fraction


@registry.offered(
    "synthetic",
    "2.5k",
    "Joint degrees and clustering",
    "keeps joint degrees and how links close into triangles",
)
@registry.mechanism("graph", "synthetic_2.5k", answers=(Synthetic,), units=("edge",))
class TwoFiveK(SynthesisModel):
    """A random graph with private degrees, joint degrees and degree-dependent clustering.

    To the statistics of ``2k`` come the number of triangles, and how many triangles the nodes of
    each soft class of degrees are in. The graph is placed on a ring so that near nodes share
    neighbours, as much as the triangles of each class demand; swaps on the synthetic graph, which
    keep degrees and joint degrees, bring the rest.

    Guarantee:
        Pure epsilon per edge, divided by the four shares. The triangle count comes from a steep
        ladder. So does each class count T = sum of u(d_v)·t_v over nodes v in t_v triangles,
        with membership u and a share of epsilon of its own: joining i and j, which have c common
        neighbours, adds c to t_i and t_j and one to each of the c others, at most 3c in all; and
        the memberships of i and j move by u(d + 1) - u(d), which moves T by at most
        k·t / d <= k·a / 2 each, where k is the largest d·\\|u(d + 1) - u(d)\\| of the public table
        and t_i <= d_i·a / 2, because i shares at most a = a(G) neighbours with each of its d_i.
        So T moves by at most (3 + k)·a(G), and one more for rounding; one edge changes a(G) by
        at most one, which makes (3 + k)·(a + t) + 1 a ladder.

    Error:
        As ``2k`` for degrees; triangles to about a(G) / (share·epsilon).

    Reference:
        Gjoka, Kurant & Markopoulou, 2.5K-graphs: from sampling to generation, INFOCOM 2013; the
        private statistics are our own.

    Example:
        >>> import tulle
        >>> ring = [(i, (i + 1) % 9) for i in range(9)] + [(i, (i + 2) % 9) for i in range(9)]
        >>> graph = Graph.from_edges(ring, nodes=9)
        >>> r = tulle.release(graph, tulle.synthetic("2.5k"), unit="edge", epsilon=400.0)
        >>> r.value.edge_count
        18
    """

    model: ClassVar[str] = "2.5k"
    title: ClassVar[str] = "a random graph with private joint degrees and clustering"
    reference: ClassVar[str] = "after Gjoka et al., INFOCOM 2013"
    anonymous: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("ratio", "step", "class_ratio", *_SHARES)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        shares = {
            name: validate.share(**{name: options.get(name, getattr(_TUNING, name))})
            for name in _SHARES
        }
        if sum(shares.values()) > 1:
            raise InputError(
                f"The shares of epsilon ({', '.join(shares)}) must add up to at most 1; they add "
                f"up to {text(sum(shares.values(), Fraction(0)))}."
            )
        epsilon = terms.epsilon
        check_noise(nodes, epsilon * shares["degree_share"], epsilon)
        ratio = validate.positive(class_ratio=options.get("class_ratio", _TUNING.class_ratio))
        if ratio < Fraction(3, 2):
            raise InputError(f"class_ratio must be at least 1.5; got {text(ratio)}.")
        each = epsilon * shares["class_share"] / soft_classes(nodes, ratio).count
        total = epsilon * shares["triangle_share"]
        joint = joint_settings(
            nodes, epsilon * shares["degree_share"], epsilon * shares["joint_share"], options
        )
        return ClusteredSettings(
            **joint.typed(),
            class_ratio=ratio,
            decay=total * (1 - _TUNING.smoothing_share),
            smoothing=total * _TUNING.smoothing_share,
            class_decay=each * (1 - _TUNING.smoothing_share),
            class_smoothing=each * _TUNING.smoothing_share,
        )

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        chosen = ClusteredSettings.read(settings)
        found = measure_joint(settings, graph, source)
        decay = chosen.decay
        widths, most = triangle_widths(settings, graph), Triangles().cap(graph.node_count)
        with charge(LadderCharge(chosen.smoothing)):
            drawn = draw_ladder(widths, most, decay, source)
        widths, most = class_widths(settings, graph)
        centres = class_triangles(settings, graph)
        decay = chosen.class_decay
        noisy = []
        for count in centres.tolist():
            with charge(LadderCharge(chosen.class_smoothing)):
                noisy.append(count + draw_ladder(widths, most, decay, source))
        return {
            **found,
            "triangles": Triangles().truth(graph) + drawn,
            "class_triangles": [int(count) for count in noisy],
        }

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        joint = joint_degrees_of(statistics, settings, random)
        return cluster(
            joint,
            float(max(statistics["triangles"], 0)),
            np.maximum(np.array(statistics["class_triangles"], dtype=np.float64), 0.0),
            classes_of_triangles(settings),
            random,
        )


def classes_of_triangles(settings: Parameters) -> SoftClasses:
    """Return the public grid of the clustering."""
    chosen = ClusteredSettings.read(settings)
    return soft_classes(chosen.nodes, chosen.class_ratio)


def class_triangles(settings: Parameters, graph: Graph) -> Wholes:
    """Return in how many triangles the nodes of each class are, rounded. Custodian side."""
    classes = classes_of_triangles(settings)
    degree, triangles = degrees(graph), triangles_per_node(graph)
    held = degree > 0
    place = degree[held] - 1
    totals = [0] * (classes.count + 1)
    values, inverse = np.unique(place, return_inverse=True)
    # Triangles of equal degrees are added up first: the products are then few and exact.
    sums = np.bincount(inverse.reshape(-1), weights=triangles[held], minlength=len(values))
    lower, upper = classes.lower[values], classes.upper[values]
    for count, low, part in zip(sums.tolist(), lower.tolist(), upper.tolist(), strict=True):
        totals[low] += int(count) * (classes.unit - part)
        totals[low + 1] += int(count) * part
    half = Fraction(1, 2)
    whole = [math.floor(Fraction(total, classes.unit) + half) for total in totals]
    return np.array(whole[: classes.count], dtype=np.int64)


def triangle_widths(settings: Parameters, graph: Graph) -> Profile:
    """Return the widths of the triangle count's ladder. Custodian side."""
    chosen = ClusteredSettings.read(settings)
    decay, smoothing = chosen.decay, chosen.smoothing
    nodes = graph.node_count
    length = public_length(Triangles(), nodes, decay)
    profile = Triangles().measure(graph, length).profile
    return smooth_widths(profile, Triangles().cap(nodes), smoothing)


def class_widths(settings: Parameters, graph: Graph) -> tuple[Profile, int]:
    """Return the widths of the class counts' ladders and their global bound. Custodian side."""
    nodes = graph.node_count
    factor = 3 + classes_of_triangles(settings).entry_change()
    common, chosen = Triangles().measure(graph, 1).spread, ClusteredSettings.read(settings)
    decay = chosen.class_decay
    length = public_length(Triangles(), nodes, decay)
    bounds = [_bound(factor, min(common + t, max(nodes - 2, 0))) for t in range(length)]
    most = _bound(factor, max(nodes - 2, 0))
    return smooth_widths(bounds, most, chosen.class_smoothing), most


def _bound(factor: Fraction, common: int) -> int:
    return math.ceil(factor * common) + 1
