"""The running totals of an account: what all its entries so far add up to.

Every entry states the totals up to and with itself, under its digest. What is left of a budget is
read off the last entry of an account, however long its history is; verification adds up again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tulle.core import exact

# The same few prices and sums come again and again when a long ledger is added up.
rational = lru_cache(1024)(exact.rational)
text = lru_cache(1024)(exact.text)

LONGEST = 1024
"""Bits of the longest denominator. Sums of unlike fractions would grow with every debit."""


@dataclass(frozen=True)
class Totals:
    """How many entries and debits an account has, and what the debits cost together.

    Example:
        >>> debit = {"guarantee": {"epsilon": "0.1", "delta": "0"}}
        >>> Totals().after("debit", debit).after("debit", debit).to_json()["epsilon"]
        '0.2'
    """

    entries: int = 0
    debits: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def after(self, kind: str, body: Mapping[str, Any]) -> Totals:
        """Return the totals with one more entry.

        Raises:
            ValueError, LookupError, TypeError: when the entry is a debit whose price is none.
        """
        if kind != "debit":
            return Totals(self.entries + 1, self.debits, self.epsilon, self.delta)
        price = body.get("guarantee", {"epsilon": 0, "delta": 0})
        epsilon, delta = rational(price["epsilon"]), rational(price["delta"])
        if epsilon < 0 or delta < 0:
            raise ValueError("a price is below zero")
        return Totals(
            self.entries + 1,
            self.debits + 1,
            _shortened(self.epsilon + epsilon),
            _shortened(self.delta + delta),
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; the sums are exact."""
        return {
            "entries": self.entries,
            "debits": self.debits,
            "epsilon": text(self.epsilon),
            "delta": text(self.delta),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Totals:
        """Read back what :meth:`to_json` wrote."""
        return cls(
            int(data["entries"]),
            int(data["debits"]),
            rational(data["epsilon"]),
            rational(data["delta"]),
        )


def _shortened(spent: Fraction) -> Fraction:
    """Round what was spent up, should its denominator be very long: a budget is rounded down."""
    if spent.denominator.bit_length() <= LONGEST:
        return spent
    return Fraction(math.ceil(spent * 2 ** (LONGEST - 1)), 2 ** (LONGEST - 1))
