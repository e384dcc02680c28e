"""What a generated graph should show, with the noise in it."""

from __future__ import annotations

from typing import NamedTuple

from tulle.graphs.synthesis.generators.steering import Mixing


class Target(NamedTuple):
    """A private count and the standard deviation of its noise; None where it was not measured."""

    value: float
    noise: float


class Targets(NamedTuple):
    """What the graph should show."""

    triangles: Target | None
    closure: Target | None
    closure_limit: int
    mixing: Mixing | None
    """The sum, over edges, of the product of the degrees of both ends."""
