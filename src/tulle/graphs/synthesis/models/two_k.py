"""The model 2k: private degrees and joint degrees, and a random graph that has them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import text
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.queries.degrees import DegreeDistribution
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees, fit_joint
from tulle.graphs.synthesis.generators.realise_joint import place_edges
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses, soft_classes, unpack
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.models.one_k import check_noise, degrees_from_counts
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random
from tulle.noise.tables import check_scale

STEP = Fraction(1, 1024)
"""The lattice of the joint degrees, in edges."""


@dataclass(frozen=True)
class Tuning:
    """What holds unless the user says otherwise; which data chose it is not on record."""

    ratio: Fraction = Fraction(4)
    """How far apart the grid points of the joint degrees are."""
    joint_share: Fraction = Fraction(1, 4)
    """Part of epsilon for the joint degrees; the rest is for the degrees."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False, kw_only=True)
class JointSettings(ModelSettings):
    """The public settings of noisy degrees and noisy joint degrees."""

    ratio: Fraction
    """By how much each class of degrees is wider than the one before."""
    step: Fraction
    scale: Fraction
    joint_sensitivity: Fraction
    joint_scale: Fraction


@registry.offered(
    "synthetic", "2k", "Joint degrees", "keeps who links with whom by number of links"
)
@registry.mechanism("graph", "synthetic_2k", answers=(Synthetic,), units=("edge",))
class TwoK(SynthesisModel):
    """A random simple graph with private degrees and private joint degrees.

    The joint degrees are released on a coarse public grid with soft classes, where one edge
    moves them by a constant (see ``joint_classes``); between the grid points they are
    interpolated by odds that fit the private degrees. The whole numbers that come out are the
    joint degrees of a simple graph, which is then drawn.

    Guarantee:
        Pure epsilon per edge. Three quarters of it, unless ``joint_share`` says otherwise, buy
        the degrees as in ``1k``. The rest buys discrete Laplace noise on every cell of the grid,
        of scale sensitivity / epsilon: one edge moves all cells together by at most 2·c + 1 edges
        in L1, where c, the largest d·|u(d + 1) - u(d)| over all degrees d and memberships u, is
        computed from the public table; rounding to the lattice adds one step per cell.

    Error:
        Degrees as in ``1k``. Assortativity to a few per cent from some thousand edges on; what
        drowns in the noise is set to what chance would give.

    Reference:
        Gjoka, Tillman & Markopoulou, INFOCOM 2015. Wang & Wu, TDP 2013, released every cell of
        the degree grid, where one edge moves up to 4n - 7.

    Example:
        >>> import tulle
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=4)
        >>> r = tulle.release(star, tulle.synthetic("2k"), unit="edge", epsilon=90.0)
        >>> sorted(np.bincount(r.value.edges().ravel(), minlength=4).tolist())
        [1, 1, 1, 3]
    """

    model: ClassVar[str] = "2k"
    title: ClassVar[str] = "a random graph with private joint degrees"
    reference: ClassVar[str] = "Gjoka et al., INFOCOM 2015; Wang & Wu, TDP 2013"
    anonymous: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("ratio", "joint_share", "step")

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        share = validate.share(joint_share=options.get("joint_share", _TUNING.joint_share))
        check_noise(nodes, terms.epsilon * (1 - share), terms.epsilon)
        return joint_settings(nodes, terms.epsilon * (1 - share), terms.epsilon * share, options)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        return measure_joint(settings, graph, source)

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        joint = joint_degrees_of(statistics, settings, random)
        room = np.repeat(joint.degrees, joint.nodes)
        return place_edges(joint.edges, room, joint.nodes, random, 0.0)


def joint_settings(
    nodes: int, epsilon_degrees: Fraction, epsilon_joint: Fraction, options: Parameters
) -> JointSettings:
    """Return the public settings of noise on degrees and on joint degrees.

    Raises:
        InputError: when the grid would be too fine.
    """
    ratio = validate.positive(ratio=options.get("ratio", _TUNING.ratio))
    if ratio < Fraction(3, 2):
        raise InputError(f"ratio must be at least 1.5; got {text(ratio)}.")
    step = Lattice(validate.positive(step=options.get("step", STEP))).step
    classes = soft_classes(nodes, ratio)
    moved = classes.sensitivity() / step + classes.cells
    # Before the price: what cannot be drawn is refused when it is drawn, too.
    for scale in (2 / epsilon_degrees, moved / epsilon_joint):
        check_scale(scale)
    return JointSettings(
        nodes=nodes,
        ratio=ratio,
        step=step,
        scale=2 / epsilon_degrees,
        joint_sensitivity=moved,
        joint_scale=moved / epsilon_joint,
    )


def measure_joint(settings: Parameters, graph: Graph, source: Source | None) -> dict[str, Wholes]:
    """Return noisy counts of nodes by degree and noisy joint degrees, in lattice steps."""
    chosen = JointSettings.read(settings)
    counts = sorted_sequence(DegreeDistribution(), graph)
    cells = classes_of(settings).measure(graph, chosen.step)
    scale, joint_scale = chosen.scale, chosen.joint_scale
    with charge(LaplaceCharge(2)):
        noisy = counts + discrete_laplace(scale=scale, size=counts.shape, source=source)
    with charge(LaplaceCharge(chosen.joint_sensitivity)):
        joint = cells + discrete_laplace(scale=joint_scale, size=cells.shape, source=source)
    return {"degrees": noisy, "joint": joint}


def classes_of(settings: Parameters) -> SoftClasses:
    """Return the public grid of these settings."""
    chosen = JointSettings.read(settings)
    return soft_classes(chosen.nodes, chosen.ratio)


def joint_degrees_of(statistics: Statistics, settings: Parameters, random: Random) -> JointDegrees:
    """Return whole joint degrees of some simple graph from the noisy statistics."""
    chosen = JointSettings.read(settings)
    sequence = degrees_from_counts(statistics["degrees"], chosen.scale)
    classes = classes_of(settings)
    step = float(chosen.step)
    deviation = float(chosen.joint_scale) * step * np.sqrt(2)
    noisy = unpack(statistics["joint"] * step, classes.count)
    return fit_joint(sequence, noisy, deviation, classes, random)
