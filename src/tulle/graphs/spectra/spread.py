"""The largest eigenvalue as far as it is spread: on a scale of its own one edge moves it by one.

One edge can move the largest eigenvalue v of a graph by one, but does so only where its two ends
hold the whole vector. In cliques, stars and nearly every network the entries of no two linked nodes
have a product above 1/v. What lies beyond is cut off here:

    f(t) = max over y of the sum over edges of 2·cap(sqrt(y_i·y_j), t),  y >= 0, sum of y = 1,

where cap(s, t) is s up to t·(1 - h), never more than t, and smooth and concave between. Without the
cap it is v, for y the squares of its vector. **The spread value** g is the one solution of
g = f(c/g): the cap follows the value itself. It is at most v, and equal to it where no edge has a
product above c·(1 - h)/v.

*One edge moves it little.* With an edge more, f(t) grows by 0 to 2t, and by no more than 1, since
sqrt(y_i·y_j) <= 1/2. Let g and g' be the values without and with it, so g' >= g. Since f grows
with t,

    g' = f'(c/g') <= f(c/g') + 2c/g' <= f(c/g) + 2c/g' = g + 2c/g',

so g'·(g' - g) <= 2c, and g' - g <= 1 likewise. **The scale** s(g) = g up to 2c and c + g²/4c from
there on grows by max(1, g/2c) for each one of g. So s(g') - s(g) <= (g' - g)·max(1, g'/2c) <= 1.

*How it is found.* sqrt(y_i·y_j) is concave in y and the cap is concave and grows, so the problem is
concave. A linear bound of the cap at any y, with slopes w, bounds f from above by the largest
eigenvalue of the matrix of these slopes and a sum over edges; its vector is the direction in which
to move y (Frank & Wolfe). Any estimate e of g with f(c/e) between L and U tells
min(e, L) <= g <= max(e, U).

*Proof.* That m exceeds the largest eigenvalue of a matrix B without negative entries is shown by
any z > 0 with B·z < m·z (Collatz & Wielandt). Conjugate gradients solve (m - B)·z = b for it, where
b > 0 is about the vector sought: z is then about b/(m - v), and m·z - B·z everywhere as large a
part of m·z as m is above v, so that rounding hides it nowhere. If they find a direction d with
d'(m - B)d <= 0, or a z with negative entries, whose negative part is such a direction, m was too
small, and the search goes on there. So nothing is missed, on any graph.

*It ends.* (1) A proof of m is given up after some restarts; m then grows, by more each time, and
the largest sum of a row of B needs no proof. (2) Let d be what the bounds of f(t) at y are apart,
for the vector x of B exactly. With a part p of the way to the squares of x, the products of edges
are at least (1 - p)·s + p·x_i·x_j (Cauchy & Schwarz), the squares of what moves add up to p² or
less, and cap'' >= -1/(2ht). So f gains p·d - p²/(2ht), at p = d·h·t half of d²·h·t, and e a third
of that at least: e' = f'(c/e') >= f'(c/e)·e/e'. While d is above what is tolerated, each round
gains a public amount, and e never passes the number of nodes: the rounds are finite. Parts p are
halved until below the best one. (3) Where numbers of 53 bits show no gain any more, or after ROUNDS
rounds, numbers of 200 binary places go on (:mod:`tulle.graphs.spectra.spread_exact`), which show
every gain. How long it takes depends on the graph and is not hidden.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.spectra.queries import public_signs
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

CAP = Fraction(5, 4)
"""c, at least: products of entries above so many times 1/v are cut off.

With SOFT it leaves products up to 1/v alone, those of cliques and stars. Set after a look at what
is cut off on sixteen networks: 1/500 or less of v, and a 40th on as20000102.
"""
SOFT = 0.2
"""h: from this part below the cap on it is felt. A fifth, as near as a float is."""

TOLERANCE = Fraction(1, 64)
"""How near to its exact value a computed s(g) is."""

STEPS = 256
"""Into how many parts one is divided when s(g) is rounded."""

ROUNDS = 5000
"""So many rounds are made in floats at most; graphs that were tried needed 40."""

_NEAR = float(TOLERANCE) * (1 - 2.0**-20)
_POWERS = 30
_HALVINGS = 60
_LANCZOS_CYCLES = 60
_RESTARTS = 8
_BLOCK = 64


def scaled(value: float, cap: Fraction = CAP) -> float:
    """Return s(g): one edge moves it by one at most.

    Example:
        >>> scaled(2.0), scaled(2.5), scaled(10.0)
        (2.0, 2.5, 21.25)
    """
    bend = 2 * float(cap)
    return value if value <= bend else bend / 2 + value**2 / (2 * bend)


def unscaled(place: float, cap: Fraction = CAP) -> float:
    """Return the value at a place of the scale, zero below it.

    Example:
        >>> unscaled(-3.0), unscaled(2.0), unscaled(21.25)
        (0.0, 2.0, 10.0)
    """
    bend = 2 * float(cap)
    if place <= bend:
        return max(place, 0.0)
    return math.sqrt((place - bend / 2) * 2 * bend)


def scale_sensitivity(steps: int = STEPS) -> int:
    """Return by how much one edge moves the computed and rounded s(g), in so many parts of one.

    Example:
        >>> scale_sensitivity()
        265
    """
    exact = steps * (1 + 2 * TOLERANCE) + 1
    return -(-exact.numerator // exact.denominator)


def measured_square(graph: Graph, epsilon: Fraction, source: Source | None) -> tuple[float, float]:
    """Return g² with Laplace noise, pure epsilon per edge, and the deviation of the noise."""
    moved = scale_sensitivity()
    with charge(LaplaceCharge(moved)):
        noisy = rounded_place(graph) + int(discrete_laplace(scale=moved / epsilon, source=source))
    # As if the scale were that of squares all the way: noise is large beside its lower end.
    each = 4 * float(CAP) / STEPS
    return each * noisy - 4 * float(CAP) ** 2, math.sqrt(2) * float(moved / epsilon) * each


def rounded_place(graph: Graph, steps: int = STEPS, cap: Fraction = CAP) -> int:
    """Return s(g) in so many parts of one. Custodian side."""
    return round(scaled(spread_value(graph.node_count, graph.edges(), cap), cap) * steps)


def capped(ratio: Floats) -> Floats:
    """Return cap(s, t)/t for s/t: the ratio itself, then less, then one.

    Example:
        >>> capped(np.array([0.5, 0.8, 1.0, 1.2, 9.0])).round(3).tolist()
        [0.5, 0.8, 0.95, 1.0, 1.0]
    """
    beyond = np.clip(ratio - (1 - SOFT), 0.0, 2 * SOFT)
    made: Floats = np.minimum(ratio, 1 + SOFT) - beyond**2 / (4 * SOFT)
    return made


def slope(ratio: Floats) -> Floats:
    """Return how fast the cap grows with s: one, then less, then zero."""
    made: Floats = 1 - np.clip(ratio - (1 - SOFT), 0.0, 2 * SOFT) / (2 * SOFT)
    return made


def spread_value(nodes: int, edges: Wholes, cap: Fraction = CAP) -> float:
    """Return g, with s(g) within TOLERANCE of the exact one.

    Example:
        >>> round(spread_value(4, np.array([[0, 1], [0, 2], [0, 3]])), 2)
        1.73
    """
    if not len(edges):
        return 0.0
    low, high = proved_bounds(nodes, edges, cap)
    return (low + high) / 2


def proved_bounds(nodes: int, edges: Wholes, cap: Fraction = CAP) -> tuple[float, float]:
    """Return numbers between which g lies, for a graph with edges."""
    problem = _Problem(nodes, edges, float(cap))
    shares = problem.start()
    low, high = 0.0, math.inf
    for _ in range(ROUNDS):
        shares = problem.powers(shares)
        bounds = problem.bounds(shares)
        # Each of them holds by itself.
        low, high = max(low, bounds.low), min(high, bounds.high)
        if scaled(high, cap) - scaled(low, cap) <= _NEAR:
            return low, high
        moved = problem.step(shares, bounds.direction)
        if moved is shares:
            break
        shares = moved
    return _exact_bounds(nodes, edges, cap, shares)


def _exact_bounds(nodes: int, edges: Wholes, cap: Fraction, shares: Floats) -> tuple[float, float]:
    from tulle.graphs.spectra.spread_exact import ExactProblem

    def near(value: float) -> float:
        # Where the scale is no steeper than it is a little above the value.
        return _NEAR / max(1.0, (value + 1) / (2 * float(cap)))

    return ExactProblem(nodes, edges, cap, Fraction(str(SOFT))).bounds(shares, near)


class _Bounds(NamedTuple):
    low: float
    high: float
    direction: Floats
    """The squared entries of the vector to move to."""


class _Found(NamedTuple):
    proved: bool
    vector: Floats
    """Where to look for a larger eigenvalue, if it is not."""


class _Problem:
    """The graph as a matrix whose weights follow the cap."""

    def __init__(self, nodes: int, edges: Wholes, cap: float) -> None:
        from scipy.sparse import coo_matrix

        self.nodes, self.cap = nodes, cap
        self.first, self.second = edges[:, 0], edges[:, 1]
        number = np.arange(1, len(edges) + 1)
        both = coo_matrix(
            (np.tile(number, 2), (np.r_[self.first, self.second], np.r_[self.second, self.first])),
            shape=(nodes, nodes),
        ).tocsr()
        self.edge = both.data - 1
        self.matrix: Any = both.astype(np.float64)
        degree = max(int(np.diff(both.indptr).max()), 1)
        self.levels = 1
        while _BLOCK**self.levels < degree:
            self.levels += 1
        self.rounding = (_BLOCK * self.levels + 4) * 2.0**-52
        self.weigh(np.ones(len(edges)))

    def weigh(self, weights: Floats) -> None:
        """Set the weights of the edges."""
        self.matrix.data = weights[self.edge]

    def start(self) -> Floats:
        """Return the squares of what should be near the vector of the largest eigenvalue."""
        return self.leading(1e-3)[1] ** 2

    def products(self, shares: Floats) -> Floats:
        """Return the geometric mean of the shares of each edge's ends."""
        root = np.sqrt(shares)
        made: Floats = root[self.first] * root[self.second]
        return made

    def solve(self, products: Floats) -> float:
        """Return the solution of e = the sum over edges of 2·cap(s, c/e): a lower bound of g."""
        # The right side falls as e grows, so the solution is no larger than it is without a cap.
        low, high = 0.0, 2 * float(products.sum())
        felt = products * high > self.cap * (1 - SOFT)
        free, few = 2 * float(products[~felt].sum()), products[felt]
        while len(few) and high - low > 2.0**-48 * high:
            middle = (low + high) / 2
            level = self.cap / middle
            larger = free + 2 * level * float(capped(few / level).sum()) > middle
            low, high = (middle, high) if larger else (low, middle)
        return low if len(few) else high

    def powers(self, shares: Floats) -> Floats:
        """Return shares after multiplications by the matrix of slopes, as long as they gain."""
        products = self.products(shares)
        best = self.solve(products)
        for _ in range(_POWERS):
            weights = slope(products * (best / self.cap))
            if bool((weights == 1).all()):
                break
            self.weigh(weights)
            root = np.sqrt(shares)
            image = self.matrix @ root + best * root
            made = image**2 / float(image @ image)
            products = self.products(made)
            reached = self.solve(products)
            if reached <= best * (1 + 1e-12):
                break
            shares, best = made, reached
        return shares

    def bounds(self, shares: Floats) -> _Bounds:
        """Return what is proved of g, and where to go from these shares."""
        products = self.products(shares)
        estimate = self.solve(products)
        level = self.cap / estimate
        weights = slope(products / level)
        self.weigh(weights)
        rest = 2 * level * float(capped(products / level).sum()) - 2 * float(weights @ products)
        margin = float(TOLERANCE) / (8 * max(1.0, estimate / (2 * self.cap)))
        largest, vector = self.proved(margin, np.sqrt(shares))
        # Rounding: sums of so many numbers, each right to the last digit.
        error = estimate * 2.0**-40
        high = max(largest + rest, estimate) + error
        return _Bounds(max(estimate - error, 0.0), high, vector**2)

    def step(self, shares: Floats, direction: Floats) -> Floats:
        """Return the best shares found on the way from these to the direction."""
        best, kept = self.solve(self.products(shares)), shares
        part = 1.0
        for _ in range(_HALVINGS):
            made = (1 - part) * shares + part * direction
            reached = self.solve(self.products(made))
            if reached > best:
                best, kept = reached, made
            elif kept is not shares:
                break
            part /= 2
        return kept  # as given where nothing is gained

    def leading(self, residual: float, start: Floats | None = None) -> tuple[float, Floats]:
        """Return about the largest eigenvalue and a vector without negative entries."""
        from scipy.sparse.linalg import eigsh

        begin = np.ones(self.nodes) if start is None else start
        begin = begin + np.abs(public_signs(self.nodes, 1)[:, 0]) * 1e-3 * begin.max()
        vector = begin
        size = max(float(np.abs(self.matrix.sum(axis=1)).max()), 1e-9)
        if self.nodes > 2:
            try:
                vector = eigsh(
                    self.matrix,
                    k=1,
                    which="LA",
                    v0=begin,
                    tol=residual / size,
                    maxiter=_LANCZOS_CYCLES,
                )[1][:, 0]
            except (RuntimeError, ValueError, np.linalg.LinAlgError):
                # It may stop; nothing depends on it but time.
                vector = self.matrix @ begin + begin
        if not np.isfinite(vector).all() or not vector.any():
            vector = begin
        # Without signs the quotient is no less, as no entry of the matrix is negative.
        vector = np.abs(vector) / np.linalg.norm(vector)
        return float(vector @ (self.matrix @ vector)), vector

    def proved(self, margin: float, start: Floats) -> tuple[float, Floats]:
        """Return a number above the largest eigenvalue, by about the margin, and a vector.

        Where the search found no larger one and there is no proof, the number grows, to the largest
        sum of a row at most.
        """
        value, vector = self.leading(margin / 2, start)
        limit, more = value + margin, margin
        largest = float(self.times(np.ones(self.nodes)).max()) * (1 + self.rounding)
        while limit < largest and not (found := self.refuted(limit, value, vector)).proved:
            held = found.vector / np.linalg.norm(found.vector)
            tried = [self.leading(margin / 2, held), (float(held @ (self.matrix @ held)), held)]
            best = max([*tried, (value, vector)], key=lambda one: one[0])
            # A larger value is progress; without any, the next limit is further off.
            more = margin if best[0] > value else 2 * more
            value, vector = best
            limit = max(value, limit) + more
        return min(limit, largest), vector

    def times(self, column: Floats) -> Floats:
        """Return the product with a column without negative entries, right to ``rounding``.

        Terms are added in blocks, and the sums of blocks again: in whichever order, each level
        adds the errors of a block's numbers only, however many neighbours a node has.
        """
        terms = self.matrix.data * column[self.matrix.indices]
        starts = self.matrix.indptr
        for _ in range(self.levels):
            counts = -(-np.diff(starts) // _BLOCK)
            after = np.r_[0, np.cumsum(counts)]
            block = np.arange(after[-1]) - np.repeat(after[:-1], counts)
            first = np.repeat(starts[:-1], counts) + block * _BLOCK
            terms = np.add.reduceat(terms, first) if len(first) else terms
            starts = after
        made = np.zeros(self.nodes)
        made[np.diff(starts) > 0] = terms
        return made

    def refuted(self, limit: float, value: float, vector: Floats) -> _Found:
        """Look for a proof of the limit, or for a vector whose quotient is at least the limit."""

        def times(column: Floats) -> Floats:
            made: Floats = limit * column - self.matrix @ column
            return made

        # About the vector; more than nothing where that is nothing.
        aim = vector + self.nodes**-0.5
        made = vector * (float(vector @ aim) / (limit - value))
        for _ in range(_RESTARTS):
            rest = aim - times(made)
            direction, size = rest.copy(), float(rest @ rest)
            for _ in range(self.nodes + 10):
                if bool((np.abs(rest) < 0.5 * aim).all()):
                    break
                image = times(direction)
                curve = float(direction @ image)
                if curve <= 0:
                    return _Found(False, np.abs(direction))
                made = made + (size / curve) * direction
                rest = rest - (size / curve) * image
                before, size = size, float(rest @ rest)
                direction = rest + (size / before) * direction
            if float(made.min()) > 0:
                if bool((limit * made * (1 - self.rounding) > self.times(made)).all()):
                    return _Found(True, vector)
            elif float(times(made).min()) > 0:
                return _Found(False, np.maximum(-made, 0.0))
        return _Found(False, vector)
