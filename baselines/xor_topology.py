"""The XOR mechanism's families ``paper`` and ``general`` on a graph, with their exact price.

Each pair of nodes is one bit, the bit of the later node's line; ``optimal``, one coin for each
pair, is never worse (:mod:`tulle.graphs.topology.response`). Kept to be compared with.

*Guarantee.* Pure epsilon per edge: an edge is one bit. ``paper``: the pairs of node v with the
nodes before it are a column of length v, drawn by the law of :func:`column_law`, scaled so that one
bit of a column of that length costs epsilon; columns are independent. ``general``: weight
exp(b'Πb) over all pairs, scaled by the exact price of one bit.

Reference: Ji et al., An XOR Mechanism, PVLDB 14(5), 2021, algorithms 1 and 3; algorithm 3 draws
both halves of the matrix and pays for one.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from baselines.xor_columns import column_law
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.graphs.data import Graph
from tulle.graphs.topology.response import Topology, topology
from tulle.matrices.binary.families import read_entries
from tulle.noise.charge import PatternCharge, charge
from tulle.noise.watch import disjoint, part
from tulle.noise.xor.general import Couplings
from tulle.noise.xor.laws import Coupled
from tulle.noise.xor.patterns import exchangeable_bits

LARGEST = 400
"""Each node has a law of its own, with as many exact weights as there are nodes before it."""


def line_law(length: int, alpha: Fraction, epsilon: Fraction) -> Coupled:
    """Return the law of the flips of one node's pairs with the nodes before it."""
    return column_law(length, 1, alpha, epsilon, "cell")


def xor_paper(
    graph: Graph, epsilon: Number, alpha: Number = Fraction(7, 10), source: Source | None = None
) -> Topology:
    """Return a topology whose flips attract each other within each node's line.

    Raises:
        InputError: for more than 400 nodes.
    """
    nodes = graph.node_count
    if nodes > LARGEST:
        raise InputError(f"At most {LARGEST} nodes are handled; got {nodes:,}.")
    flips = np.zeros((nodes, nodes), dtype=np.uint8)
    with disjoint():
        for length in range(1, nodes):
            law = line_law(length, rational(alpha), rational(epsilon))
            with part(str(length)), charge(PatternCharge(_price)):
                flips[:length, length] = exchangeable_bits(law, 1, source)[0]
    return _flipped(graph, flips[np.triu_indices(nodes, 1)])


def xor_general(graph: Graph, epsilon: Number, pi: Any, source: Source | None = None) -> Topology:
    """Return a topology with noise of weight exp(b'Πb) over all pairs, in a topology's order.

    Raises:
        InputError: when ``pi`` does not have a row for each pair, or cannot be drawn from exactly.
    """
    size, entries = read_entries(pi)
    if size != comb(graph.node_count, 2):
        raise InputError(f"pi must have {comb(graph.node_count, 2)} rows; got {size}.")
    couplings = Couplings.of(size, [(i, j, rational(value)) for i, j, value in entries])
    scale = rational(epsilon) / couplings.price_of_bit()
    with charge(
        PatternCharge(lambda draw: draw.parameters["law"].price_of_bit() * draw.exact("scale"))
    ):
        flips = couplings.draw(scale, 1, source)[0]
    return _flipped(graph, flips)


def _price(draw: Any) -> Fraction:
    found: Fraction = draw.parameters["law"].price()
    return found


def _flipped(graph: Graph, flips: Wholes) -> Topology:
    bits = topology().truth(graph).bits() ^ np.asarray(flips, dtype=np.uint8)
    return Topology(graph.node_count, np.packbits(bits))
