"""The exponential mechanism over all numbers of a range, by how near their rank is to a target.

Everyone's rows have integer weights, so small that one person's add up to at most T over all
groups. In one group let W be the sum of weights, F(k) that of rows at or below the point k of a
lattice over the declared range, F(k-) that of rows below it. A point is as good as its ranks
[F(k-), F(k)] are near a target R:

    d(k) = max(0, s·F(k-) - R, R - s·F(k)),        s = 2·denominator of the quantile q,

drawn with probability proportional to exp(-epsilon·d(k) / (2·D)). Points between two values that
occur have one d, so there are few different ones however fine the lattice is.

*Target.* R = s·q·W, but at least s·R0 and at most s·(W - R0) (and where W is below 2·R0, between
that and the middle): what lies beyond all data is as good as the very least value, and MIN is
looked for a few rows inside. R0 is W/32 (rounded down) between two public ends, so it rises with
W, by at most as much as W does. So do W - R0 and R: R rises with W, by at most s for each unit of
weight. For the median R = s·W/2 throughout.

*Sensitivity.* When somebody joins with weight v in this group, F(k-) and F(k) rise by amounts in
[0, v], and R by an amount in [0, s·v]. So d(k) moves by at most s·v; for the median, where R rises
by exactly s·v/2, by at most s·v/2. With D = s·T (median: s·T/2) the log-ratio of probabilities in
this group is at most 2·(v/T)·epsilon/2, and over all groups, whose v add up to at most T, at most
epsilon. Cutting d at a public cap moves it by no more.

*Error.* With probability 1 - beta, d is at most 2·D·ln(points/beta)/epsilon: the rank is off by
2·T·ln(points/beta)/epsilon units of weight, half of that for the median.

*Ends.* A point that is below the true quantile with probability 1 - beta is drawn likewise, from a
coarser lattice of N points (so that beta costs less) and one point more, below all of them: with
the target R - S in the place of R, S = s·shift public, and d of the extra point max(0, R - S). A
point above the row of the quantile has s·F(k-) >= R - s·UNIT (a row weighs at most UNIT, and
interpolation takes one of two rows), so d >= S - s·UNIT; and there is always a point with d = 0:
where R >= S one of the lattice, else the extra one. So the former have at most (N +
1)·exp(-epsilon·(S - s·UNIT)/(2·D)) of the probability, which S makes beta. The extra point stands
for "no end is known". It is added as a row of public weight S/s at the extra point, which changes
no F(k) but by that constant. The upper end is the mirror image. Nothing is looked for inside, so R
moves by s·q·v exactly, s·F(k) - R by at most s·max(q, 1 - q)·v, and D = s·max(q, 1 - q)·T.

Reference: Smith, Privacy-preserving statistical estimation, STOC 2011, section 2 (the exponential
mechanism on intervals); weights and targets as above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.noise import choose_log_weights, uniform_below
from tulle.noise.charge import ChoicesCharge, charge
from tulle.sql.compile.value_rows import Values

UNIT = 1024
"""The weight of a row of somebody with few rows."""

FEWEST = 2**40
"""A lattice of anything but whole numbers has at least so many points, and at most twice that."""

MOST_WHOLE = 2**50
"""Whole numbers that are more than this are treated as others are."""

INSIDE = 8
PART = 32
FAR = 3.0
"""How far inside a least value is looked for: a part of all rows, but no less than INSIDE times
what one person weighs over epsilon, so that single points beyond all data have exp(-4) of the
weight; and no more than is needed for all points beyond together to have about exp(-FAR) of it."""

COARSE = 2**16
"""At most so many points has the lattice of the ends of an interval."""

SURE = 40
"""Whatever is cut at the cap together has less than exp(-SURE) of the probability."""


@dataclass(frozen=True)
class Points:
    """The lattice: ``first`` + k·``step`` for k below ``count``. Public."""

    first: float
    step: float
    count: int

    @classmethod
    def over(cls, low: float, high: float, *, whole: bool) -> Points:
        """Return the whole numbers of a range, or a lattice so fine that nobody minds."""
        if whole and math.floor(high) - math.ceil(low) < MOST_WHOLE and abs(low) < 2**52:
            first = math.ceil(low)
            return cls(float(first), 1.0, max(math.floor(high) - first + 1, 1))
        if high <= low:
            return cls(low, 1.0, 1)
        step = 2.0 ** math.floor(math.log2(high - low) - math.log2(FEWEST))
        return cls(low, step, int((high - low) / step) + 1)

    @classmethod
    def coarse(cls, low: float, high: float, *, whole: bool) -> Points:
        """Return a lattice over the range with few points, for the ends of an interval."""
        fine = cls.over(low, high, whole=whole)
        if fine.count <= COARSE:
            return fine
        step = 2.0 ** math.ceil(math.log2(high - low) - math.log2(COARSE // 2))
        return cls(low, step, int((high - low) / step) + 2)

    def places(self, values: npt.NDArray[np.float64]) -> Wholes:
        """Return the nearest point of each value; each row is moved by itself."""
        steps = np.rint((values - self.first) / self.step)
        places: Wholes = np.clip(steps, 0, self.count - 1).astype(np.int64)
        return places

    def value(self, place: int) -> float:
        """Return the number at a place."""
        return self.first + place * self.step


@dataclass(frozen=True)
class RankRule:
    """All public numbers of one draw: which quantile, what one person weighs, what is paid."""

    at: Fraction
    most: int
    """T: what the rows of one person weigh at most, over all groups, in units."""
    epsilon: Fraction
    points: Points

    @property
    def scale(self) -> int:
        """s."""
        return 2 * self.at.denominator

    def inside(self, weight: int) -> int:
        """Return R0 for a group of this weight, in units: a share of it between public ends."""
        least = max(math.ceil(INSIDE * self.most / self.epsilon), UNIT // 2)
        far = 2 * (math.log(self.points.count) + FAR) * self.most / self.epsilon
        return min(max(weight // PART, least), max(math.ceil(far), least))

    @property
    def moves(self) -> int:
        """D: what one person moves d by, all groups together."""
        return self.scale * self.most // (2 if self.at == Fraction(1, 2) else 1)

    @property
    def rate(self) -> Fraction:
        """What a step of d takes off the logarithm of a weight."""
        return self.epsilon / (2 * self.moves)

    @property
    def cap(self) -> int:
        """The largest d: beyond, all are equally bad."""
        return min(math.ceil((math.log(self.points.count) + SURE) / self.rate), 2**62)

    def target(self, weight: int) -> int:
        """Return R for a group of this weight."""
        scale, inside = self.scale, self.inside(weight)
        middle = scale // 2 * weight
        least = min(scale * inside, middle)
        most = max(scale * (weight - inside), middle)
        return min(max(2 * self.at.numerator * weight, least), most)


@dataclass(frozen=True)
class EndRule(RankRule):
    """The same for a lower (``side`` -1) or upper (1) end of what the quantile lies between.

    ``points`` has the extra point in it: the first for a lower end, the last for an upper one.
    """

    side: int
    beta: float
    """With which probability the quantile lies beyond the end, at most."""

    @property
    def moves(self) -> int:
        """D: what one person moves d by, all groups together."""
        return 2 * max(self.at.numerator, self.at.denominator - self.at.numerator) * self.most

    @property
    def cap(self) -> int:
        """The largest d: all points that have it miss with probability beta together at most."""
        sure = math.log(self.points.count) - math.log(self.beta)
        return min(math.ceil(sure / self.rate), 2**62)

    @property
    def extra(self) -> int:
        """The weight of the extra point, so that S is ``scale`` times that."""
        return -(-self.cap // self.scale) + UNIT

    def target(self, weight: int) -> int:
        """Return the target for a group of this weight, that of the extra point included."""
        rank = 2 * self.at.numerator * (weight - self.extra)
        # Below, the extra weight is counted in all F(k): it makes up for the shift.
        return rank if self.side < 0 else rank + self.scale * self.extra


def end_options(
    groups: Wholes, places: Wholes, weights: Wholes, size: int, rule: EndRule
) -> list[Options]:
    """Return the points for an end of each group, the extra point among them.

    Rows come in the order of groups.
    """
    below = rule.side < 0
    everyone = np.arange(size)
    # Before or after all rows of the group, which keeps rows in order if they are.
    at = np.searchsorted(groups, everyone, side="left" if below else "right")
    extra = 0 if below else rule.points.count - 1
    return options_by_group(
        np.insert(groups, at, everyone),
        np.insert(places + int(below), at, extra),
        np.insert(weights, at, rule.extra),
        size,
        rule,
    )


def weights_of(values: Values, most: int, unit: int = UNIT) -> Wholes:
    """Return the weight of each row; everyone's add up to at most ``most``, public rows have 1.

    ``unit`` is the weight of a row of somebody with few rows, and of a public one.

    Whole numbers throughout: no rounding adds to what somebody weighs.
    """
    each = np.minimum(unit, most // np.maximum(values.loads, 1))
    return np.where(values.loads > 0, each, unit)


@dataclass(frozen=True)
class Options:
    """Points of one group that are equally good next to each other, in order."""

    starts: Wholes
    counts: Wholes
    badness: Wholes
    """d, cut at the cap."""


def options_of(places: Wholes, weights: Wholes, rule: RankRule) -> Options:
    """Return all points of the lattice for the rows of one group, with their d."""
    (only,) = options_by_group(np.zeros(len(places), dtype=np.int64), places, weights, 1, rule)
    return only


def in_order(groups: Any, places: Any) -> bool:
    """Say whether rows are in the order of groups, and in each in that of places."""
    same = groups[1:] == groups[:-1]
    return bool(((groups[1:] > groups[:-1]) | (same & (places[1:] >= places[:-1]))).all())


def options_by_group(
    groups: Wholes, places: Wholes, weights: Wholes, size: int, rule: RankRule
) -> list[Options]:
    """Return all points of the lattice for each of ``size`` groups, with their d."""
    if not in_order(groups, places):
        order = np.lexsort((places, groups))
        groups, places, weights = groups[order], places[order], weights[order]
    new = np.ones(len(places), dtype=bool)
    new[1:] = (places[1:] != places[:-1]) | (groups[1:] != groups[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(weights, first) if len(first) else weights[:0]
    # The known points of all groups one after the other, and where those of each begin and end.
    known, group = places[first], groups[first]
    ends = np.searchsorted(group, np.arange(size + 1))
    reached = np.append(0, np.cumsum(sums))
    begin = reached[ends[:-1]]
    targets = np.array(
        [rule.target(int(total)) for total in reached[ends[1:]] - begin], dtype=np.int64
    )
    after = rule.scale * (reached[1:] - begin[group]) - targets[group]
    before = after - rule.scale * sums
    # Of each group a gap, a value, a gap, ..., a gap: each has one gap more than values.
    at = np.arange(len(known)) * 2 + group + 1
    gaps = np.arange(size) + 2 * ends[:-1]
    starts, badness = (np.empty(2 * len(known) + size, dtype=np.int64) for _ in range(2))
    starts[gaps], starts[at], starts[at + 1] = 0, known, known + 1
    badness[gaps] = np.abs(targets)
    badness[at] = np.maximum(np.maximum(before, -after), 0)
    badness[at + 1] = np.abs(after)
    stops = np.append(starts[1:], rule.points.count)
    stops[gaps[1:] - 1] = rule.points.count
    counts = stops - starts
    there = counts > 0
    cuts = np.append(0, np.cumsum(there))[np.append(gaps, len(starts))][1:-1]
    parts = (starts[there], counts[there], np.minimum(badness[there], rule.cap))
    return [Options(*one) for one in zip(*(np.split(p, cuts) for p in parts), strict=True)]


def _levels(options: Options, cap: int) -> tuple[Wholes, Wholes]:
    """Return the different d of a group, and how many points have each; the cap comes last."""
    near = options.badness < cap
    listed, inverse = np.unique(options.badness[near], return_inverse=True)
    sizes = np.zeros(len(listed), dtype=np.int64)
    np.add.at(sizes, inverse, options.counts[near])
    far = int(options.counts.sum()) - int(sizes.sum())
    return (np.append(listed, cap), np.append(sizes, far)) if far else (listed, sizes)


def draw_places(options: list[Options], rule: RankRule, source: Source | None) -> list[int]:
    """Return a point for each group, drawn as the module says.

    Guarantee:
        Pure rule.epsilon per participant for all groups together; see the module's text.
    """
    levels = [_levels(one, rule.cap) for one in options]
    drawn = []
    scores = tuple(tuple(listed.tolist()) for listed, _ in levels)
    with charge(ChoicesCharge(rule.moves, scores, 1 / rule.rate)):
        for one, (listed, sizes) in zip(options, levels, strict=True):
            chosen = choose_log_weights(
                listed.tolist(), per=rule.rate, multiplicities=sizes.tolist(), source=source
            )
            rest = uniform_below(int(sizes[chosen]), source=source)
            mine = np.flatnonzero(one.badness == listed[chosen])
            ends = np.cumsum(one.counts[mine])
            place = int(np.searchsorted(ends, rest, side="right"))
            into = rest - (int(ends[place - 1]) if place else 0)
            drawn.append(int(one.starts[mine[place]]) + into)
    return drawn


def places_at(options: Options, rule: RankRule, fractions: Any) -> Any:
    """Return the places, about, that such parts of all draws of a group are below.

    For predictions.
    """
    logs = np.log(options.counts) - options.badness * float(rule.rate)
    reached = np.cumsum(np.exp(logs - logs.max()))
    ends = np.append(options.starts, rule.points.count)
    found = np.floor(np.interp(fractions, np.append(0.0, reached / reached[-1]), ends))
    return np.minimum(found, rule.points.count - 1)
