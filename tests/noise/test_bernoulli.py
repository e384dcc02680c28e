"""Coins in bulk, also where a draw ties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tulle import noise
from tulle.noise import TapeExhausted, TapeSource
from tulle.noise.source import exp_bounds


def test_bulk_bernoulli_exactly():
    """All tapes up to two bytes: True on floor(p * 2**16) of 2**16, and one left open."""
    for p in (Fraction(1, 3), Fraction(1, 10), Fraction(3, 4)):
        masses = {True: Fraction(0), False: Fraction(0)}
        tapes = [b""]
        undecided = 0
        while tapes:
            tape = tapes.pop()
            try:
                outcome = noise.bernoulli(p, size=1, source=TapeSource(tape))
            except TapeExhausted:
                if len(tape) == 2:
                    undecided += 1
                else:
                    tapes += [tape + bytes([digit]) for digit in range(256)]
                continue
            masses[bool(outcome[0])] += Fraction(1, 256 ** len(tape))
        assert undecided == (p.denominator != 4)
        assert masses[True] == Fraction(int(p * 2**16), 2**16)


def test_bulk_bernoulli_exp_at_a_tie():
    x = Fraction(3, 7)
    floor = exp_bounds(x, 64)[0]
    finer = exp_bounds(x, 128)[0] - (floor << 64)
    for extension, outcome in ((finer - 1, True), (finer + 1, False)):
        tape = floor.to_bytes(8, "little") + extension.to_bytes(8, "big")
        drawn = noise.bernoulli_exp(np.array([3]), denominator=7, source=TapeSource(tape))
        assert drawn.tolist() == [outcome]
    # Just outside the tie, no further bits are read.
    for word, outcome in ((floor - 2**30, True), (floor + 2**30, False)):
        tape = TapeSource(word.to_bytes(8, "little"))
        assert noise.bernoulli_exp(x, size=1, source=tape).tolist() == [outcome]
