"""What is known about the least deletion of one problem, at all thresholds."""

from __future__ import annotations

from fractions import Fraction

from tulle.lp.deletion_certificate import Line

_KNOWN = 1.5
"""How far apart bounds may be for a guess between them."""


class DeletionRecord:
    """Certificates so far: dual lines, and totals of deletions that are enough at a threshold.

    Deletions that are enough at one threshold are enough at all larger ones, and a dual bound is a
    line that holds at all thresholds, so one decision often settles the next. Custodian side.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.lines: list[Line] = []
        self.totals: list[tuple[float, Fraction]] = []

    def bounds(self, tau: float) -> tuple[Fraction, Fraction]:
        """Return what is known so far about D(tau): a lower and an upper bound."""
        lower = max((line.at(tau) for line in self.lines), default=Fraction(0))
        return max(lower, Fraction(0)), self._mixed(tau)

    def _mixed(self, tau: float) -> Fraction:
        """Return the least total of mixing two deletions on record, one for a larger threshold.

        Loads are convex in the deletions, so a mixture is feasible at the mixed threshold.
        """
        below = [(reached, total) for reached, total in self.totals if reached <= tau]
        best = min((total for _, total in below), default=Fraction(self.count))
        above = [(reached, total) for reached, total in self.totals if reached > tau]
        below.append((0.0, Fraction(self.count)))
        for low, more in below:
            for high, less in above:
                part = (Fraction(high) - Fraction(tau)) / (Fraction(high) - Fraction(low))
                best = min(best, part * more + (1 - part) * less)
        return best

    def decide(self, tau: float, target: Fraction) -> bool | None:
        """Say whether D(tau) <= target, if what is known tells."""
        lower, upper = self.bounds(tau)
        if upper <= target:
            return True
        return False if lower > target else None

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau), if enough is known for one; it decides nothing."""
        lower, upper = self.bounds(tau)
        return float(lower + upper) / 2 if upper <= _KNOWN * lower + 1 else None
