"""The spread value in whole numbers, for graphs on which floats show no progress.

The search of :mod:`tulle.graphs.spectra.spread`, with 200 binary places after the point, which
rounding does not use up: of n terms that are added n·2^-200 is lost at most, and what a round gains
is a public amount far above it. So the search ends within its tolerance on every graph.

*Largest eigenvalues* of a matrix B without negative entries, row sums of s at most, need no proof
of their own. Let m steps of x -> (B + s·I)·x begin with x = 1. The vector of the largest eigenvalue
v has no negative entry, so its product with the start is one or more, and all other parts have size
sqrt(n) together. Those of eigenvalues below v - e/2 fall behind by exp(-m·e/4s), so with
m = (4s/e)·ln(sqrt(4·n·s/e)) the quotient of x is no further than e below v. The greatest entry of
Bx/x is never below v (Collatz), which often shows it sooner.

It is slow, and memory grows with the number of edges as Python's numbers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Floats, Wholes

_PLACES = 200
_ONE = 1 << _PLACES

Numbers = np.ndarray[tuple[int], np.dtype[Any]]
"""Python's whole numbers, each so many times 2^-200."""


class ExactProblem:
    """The graph, with what its edges and shares are in whole numbers."""

    def __init__(self, nodes: int, edges: Wholes, cap: Fraction, soft: Fraction) -> None:
        self.nodes, self.cap, self.soft = nodes, cap, soft
        self.first, self.second = edges[:, 0], edges[:, 1]

    def bounds(self, shares: Floats, near: Callable[[float], float]) -> tuple[float, float]:
        """Return numbers between which g lies, as near to each other as is said of the lower."""
        held = self.shares(shares)
        low = self.solve(held)
        while True:
            wanted = int(near(float(Fraction(low, _ONE))) * _ONE)
            over, direction = self.above(held, low, wanted // 4)
            if over <= wanted:
                # The solution is rounded down, what is above it up.
                return float(Fraction(low, _ONE)), float(Fraction(low + over, _ONE))
            held, low = self.step(held, low, direction)

    def shares(self, shares: Floats) -> Numbers:
        """Return shares that add up to one or hardly less."""
        whole = [int(Fraction(share) * _ONE) for share in np.maximum(shares, 0).tolist()]
        return _objects([share * _ONE // sum(whole) for share in whole])

    def products(self, shares: Numbers) -> Numbers:
        """Return the geometric mean of the shares of each edge's ends."""
        return _objects(
            [math.isqrt(product) for product in shares[self.first] * shares[self.second]]
        )

    def level(self, estimate: int) -> int:
        """Return the cap that goes with an estimate of g."""
        return self.cap.numerator * _ONE * _ONE // (self.cap.denominator * estimate)

    def solve(self, shares: Numbers) -> int:
        """Return the solution of e = the sum over edges of 2·cap(s, c/e)."""
        products = self.products(shares)
        low, high = 1, 2 * int(products.sum()) + 2
        while high - low > 1:
            middle = (low + high) // 2
            larger = 2 * int(self.capped(products, self.level(middle)).sum()) > middle
            low, high = (middle, high) if larger else (low, middle)
        return low

    def beyond(self, products: Numbers, level: int) -> tuple[Numbers, int]:
        """Return how far each product is into the part where the cap is felt, and its length."""
        length = int(2 * self.soft * level)
        begin = int((1 - self.soft) * level)
        return np.minimum(np.maximum(products - begin, 0), length), length

    def capped(self, products: Numbers, level: int) -> Numbers:
        """Return cap(s, t) for each product."""
        felt, length = self.beyond(products, level)
        most = int((1 + self.soft) * level)
        made: Numbers = np.minimum(products, most) - felt * felt // (2 * length)
        return made

    def above(self, shares: Numbers, low: int, margin: int) -> tuple[int, Numbers]:
        """Return how far above g may be, and the shares to move to."""
        products, level = self.products(shares), self.level(low)
        felt, length = self.beyond(products, level)
        weights = _ONE - felt * _ONE // length
        rest = 2 * int(self.capped(products, level).sum())
        rest -= 2 * int((weights * products).sum()) // _ONE
        value, vector = self.largest(weights, margin)
        squares = vector * vector
        return (
            max(value + margin + rest - low, 0),
            squares * _ONE // int(squares.sum()),
        )

    def largest(self, weights: Numbers, margin: int) -> tuple[int, Numbers]:
        """Return a number up to the margin below the largest eigenvalue, and its vector."""
        vector = _objects([_ONE] * self.nodes)
        shift = int(self.times(weights, vector).max()) + 1
        parts = float(Fraction(4 * shift, margin))
        for _ in range(math.ceil(parts * math.log(math.sqrt(self.nodes * parts)))):
            image = self.times(weights, vector)
            value = int((vector * image).sum()) * _ONE // int((vector * vector).sum())
            if bool((image * _ONE <= vector * (value + margin // 2)).all()):
                break
            vector = image * _ONE + shift * vector
            vector = vector * _ONE // int(vector.max()) + 1
        image = self.times(weights, vector)
        return int((vector * image).sum()) * _ONE // int((vector * vector).sum()), vector

    def times(self, weights: Numbers, vector: Numbers) -> Numbers:
        """Return the product of the matrix of the weights and a vector."""
        made = _objects([0] * self.nodes)
        for one, other in ((self.first, self.second), (self.second, self.first)):
            np.add.at(made, one, weights * vector[other] // _ONE)
        return made

    def step(self, shares: Numbers, low: int, direction: Numbers) -> tuple[Numbers, int]:
        """Return the best shares found on the way to the direction, and their bound."""
        best, kept = low, shares
        for halved in range(_PLACES):
            made = shares + (direction - shares) // 2**halved
            reached = self.solve(made)
            if reached > best:
                best, kept = reached, made
            elif kept is not shares:
                break
        return kept, best


def _objects(values: list[int]) -> Numbers:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
