"""From a degree sequence and noisy soft classes to whole joint degrees that some graph has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Truths, Wholes
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses
from tulle.graphs.synthesis.joint_degrees.scores import ScoredEdges
from tulle.noise.post_processing import Random

ROUNDS = 40
"""How often the fit goes over classes and degrees; changes are small long before."""


@dataclass(frozen=True)
class Tuning:
    """How far noisy numbers are believed.

    ``usual`` and ``doubt_beside`` were chosen by the correlation of the joint degrees alone, on
    enron-core-simplices, two parts of facebook_combined and random parts of ca-HepPh, ca-AstroPh
    and email-Enron; what chose ``doubt`` is not on record.
    """

    doubt: float = 4.0
    """By how much more than noise alone cells are drawn towards chance,"""
    doubt_beside: float = 16.0
    """and towards what a correlation says, which is nearer."""
    usual: float = 0.4
    """How far correlations of degrees are from chance in networks."""
    steepest: float = 8.0
    """The strongest slant."""
    halvings: int = 12


_TUNING = Tuning()


class JointDegrees(NamedTuple):
    """How many edges join nodes of each two degrees, for a given number of nodes of each.

    ``edges[i, j]`` is symmetric; its diagonal counts an edge between two nodes of the same degree
    once. A simple graph has them exactly if each row, its diagonal taken twice, adds up to
    ``degrees[i]·nodes[i]``, and no cell has more edges than pairs of nodes.
    """

    degrees: Wholes
    nodes: Wholes
    edges: Wholes

    def table(self, classes: SoftClasses) -> Floats:
        """Return how many edge ends of each soft class lead to each other one."""
        member = classes.memberships(self.degrees)
        ends = self.edges + np.diag(np.diag(self.edges))
        return np.asarray(member.T @ ends @ member)


def fit_joint(
    sequence: Wholes,
    noisy: Floats,
    deviation: float,
    classes: SoftClasses,
    random: Random,
    correlation: ScoredEdges | None = None,
) -> JointDegrees:
    """Return joint degrees with this degree sequence, near the noisy matrix of soft classes.

    Two nodes of degrees k and l are joined with the odds x_k·x_l·exp(t(k, l)): the x make the
    degrees right, and t, a sum over soft classes, the classes as far as their noise of this
    standard deviation can be told from chance. With a ``correlation``, t has a term s·u_k·u_l
    with the degrees' scores u, as far as that can be told from chance, and classes are told from
    this.
    """
    values, counts = np.unique(sequence[sequence > 0], return_counts=True)
    if not len(values):
        empty = np.zeros(0, dtype=np.int64)
        return JointDegrees(empty, empty, np.zeros((0, 0), dtype=np.int64))
    if len(values) == 1:
        # All nodes with an edge have the same degree: there is nothing to fit.
        only = np.array([[int(values[0] * counts[0]) // 2]])
        return JointDegrees(values.astype(np.int64), counts.astype(np.int64), only)
    member = classes.memberships(values)
    pairs = np.outer(counts, counts).astype(np.float64)
    np.fill_diagonal(pairs, counts * (counts - 1.0))
    tilt = np.zeros((classes.count, classes.count))
    weight = values / np.sqrt(float(values @ counts))
    weight, chance = _match_degrees(values, counts, weight, np.ones_like(pairs), 20)
    slant, doubt = np.zeros_like(pairs), _TUNING.doubt
    if correlation is not None:
        doubt = _TUNING.doubt_beside
        slant = _slant(values, counts, weight, chance * pairs, correlation)
        weight, chance = _match_degrees(values, counts, weight, np.exp(slant), 20)
    neutral = member.T @ (chance * pairs) @ member
    target = shrink(noisy, neutral, deviation, doubt)
    for _ in range(ROUNDS):
        made = member.T @ (chance * pairs) @ member
        change = np.log(np.maximum(target, 1e-9) / np.maximum(made, 1e-9))
        if np.abs(change).max() < 1e-3:
            break
        tilt += change
        np.clip(tilt, -20, 20, out=tilt)
        factor = np.exp(slant + member @ tilt @ member.T)
        weight, chance = _match_degrees(values, counts, weight, factor, 4)
    wanted = chance * pairs
    limits = pairs.astype(np.int64)
    np.fill_diagonal(limits, counts * (counts - 1) // 2)
    np.fill_diagonal(wanted, np.diag(wanted) / 2)
    edges = round_joint(np.minimum(wanted, limits), limits, values * counts, random)
    return JointDegrees(values.astype(np.int64), counts.astype(np.int64), edges)


def _slant(
    values: Wholes, counts: Wholes, weight: Floats, chance: Floats, correlation: ScoredEdges
) -> Floats:
    """Return what the sum of products of scores adds to the logarithms of the odds.

    Of its difference from chance as much is believed as noise leaves, when correlations of
    networks differ by ``usual``.
    """
    score = correlation.scores.of(values)
    ends = (values * counts) / float(values @ counts)
    spread = float(ends @ score**2) - float(ends @ score) ** 2
    product = np.outer(score, score)
    plain = float((chance * product).sum()) / 2
    usual = (_TUNING.usual * spread * float(values @ counts) / 2) ** 2
    share = usual / (usual + correlation.noise**2) if usual else 0.0
    wanted = plain + share * (correlation.value - plain)
    pairs = np.outer(counts, counts).astype(np.float64)
    np.fill_diagonal(pairs, counts * (counts - 1.0))
    low, high = -_TUNING.steepest, _TUNING.steepest
    for _ in range(_TUNING.halvings):
        middle = (low + high) / 2
        made = _match_degrees(values, counts, weight, np.exp(middle * product), 10)[1]
        if float((made * pairs * product).sum()) / 2 < wanted:
            low = middle
        else:
            high = middle
    return np.asarray((low + high) / 2 * product)


def shrink(noisy: Floats, neutral: Floats, deviation: float, doubt: float = Tuning.doubt) -> Floats:
    """Return class counts drawn towards what is neutral, chance alone say, the more the noisier.

    A cell keeps the share s² / (s² + doubt·v) of its difference, where s is its size and v the
    variance of its noise: what stands clear of the noise stays, what drowns becomes neutral.
    """
    size = np.maximum(noisy, neutral)
    # An entry off the diagonal is one noisy cell, an entry on it twice one.
    spread = deviation**2 * (1 + 3 * np.eye(len(noisy)))
    kept = size**2 / (size**2 + doubt * spread + 1e-12)
    return np.maximum(neutral + kept * (noisy - neutral), 0.02 * neutral)


def _match_degrees(
    values: Wholes, counts: Wholes, weight: Floats, factor: Floats, rounds: int
) -> tuple[Floats, Floats]:
    """Return weights x, and the chances z / (1 + z) with z = x·x'·factor, that give the degrees."""
    chance = factor
    for _ in range(rounds):
        odds = np.outer(weight, weight) * factor
        chance = odds / (1 + odds)
        made = chance @ counts - np.diag(chance)
        weight = weight * (values / np.maximum(made, 1e-12)) ** 0.7
        np.clip(weight, 1e-12, 1e9, out=weight)
    odds = np.outer(weight, weight) * factor
    return weight, odds / (1 + odds)


def round_joint(wanted: Floats, limits: Wholes, ends: Wholes, random: Random) -> Wholes:
    """Return whole edges near the wanted ones whose rows, diagonal twice, add up to the ends.

    Entries are rounded up or down by chance, then rows that are off are put right by single
    edges, in pairs where that is possible and through a third degree where it is not.
    """
    upper = np.triu(np.floor(wanted + random.random(wanted.shape)))
    edges = np.minimum((upper + np.triu(upper, 1).T).astype(np.int64), limits)
    missing = ends - edges.sum(axis=1) - np.diag(edges)
    _repair(edges, limits, missing, random)
    return edges


def _change(edges: Wholes, missing: Wholes, one: int, other: int, by: int) -> None:
    edges[one, other] += by
    if one != other:
        edges[other, one] += by
    missing[one] -= by
    missing[other] -= by


def _repair(edges: Wholes, limits: Wholes, missing: Wholes, random: Random) -> None:
    """Make every row add up; the total missing is even, as both totals of ends are.

    No kernel: rows are off by little, and each edge that is put right takes a few steps on rows.
    """
    for sign in (1, -1):
        for one in np.flatnonzero(missing * sign > 0).tolist():
            for other in random.permutation(np.flatnonzero(missing * sign > 0)).tolist():
                if other != one:
                    room = limits[one, other] - edges[one, other] if sign > 0 else edges[one, other]
                    by = min(missing[one] * sign, missing[other] * sign, room)
                    _change(edges, missing, one, other, sign * by)
            room = limits[one, one] - edges[one, one] if sign > 0 else edges[one, one]
            _change(edges, missing, one, one, sign * min(missing[one] * sign // 2, room))
    # What is left is of both signs, or cannot be placed directly: go through a third degree.
    for one in np.flatnonzero(missing).tolist():
        while missing[one] and _detour(edges, limits, missing, one, random):
            pass


def _detour(edges: Wholes, limits: Wholes, missing: Wholes, one: int, random: Random) -> bool:
    """Bring the row nearer by two changes that leave a third row as it is; say whether it did."""
    sign = 1 if missing[one] > 0 else -1

    def may(row: int, by: int) -> Truths:
        """Say in which columns a row may gain an edge, or lose one."""
        return np.asarray(edges[row] < limits[row] if by > 0 else edges[row] > 0)

    for other in random.permutation(np.flatnonzero(missing)).tolist():
        # The other row must gain what this one lacks, or share its lack.
        if other == one and abs(missing[one]) < 2:
            continue
        third_may = may(one, sign)
        if missing[other] * sign < 0:
            # one - third gains, other - third loses.
            third_may &= may(other, -sign)
            third_may[[one, other]] = False
            for third in random.permutation(np.flatnonzero(third_may))[:1].tolist():
                _change(edges, missing, one, third, sign)
                _change(edges, missing, other, third, -sign)
                return True
            continue
        third_may[[one, other]] = False
        # Both lack: an edge third - fourth goes over to one - third and other - fourth.
        for third in random.permutation(np.flatnonzero(third_may)).tolist():
            fourth_may = may(other, sign) & may(third, -sign)
            fourth_may[[one, other, third]] = False
            for fourth in random.permutation(np.flatnonzero(fourth_may))[:1].tolist():
                _change(edges, missing, third, fourth, -sign)
                _change(edges, missing, one, third, sign)
                _change(edges, missing, other, fourth, sign)
                return True
    return False
