"""When an account is used up: privacy filters for questions and prices chosen along the way.

A filter sees the debits of an account, one by one, and says whether the next one still fits.
It must hold for *adaptive* prices: who asks may choose the next question, and what to pay for it,
in view of all answers so far. An account of (epsilon, delta) has two filters, and a debit is
admitted when one of them admits it:

* *addition*: the epsilons of all debits add up to at most epsilon;
* *Rényi*: at one order a > 1, fixed when the account is opened, the Rényi divergences of all
  debits add up to at most the limit epsilon - c(a), with
  c(a) = ln(1 - 1/a) - (ln a + ln composition_delta)/(a - 1).

In both, the deltas of the debits themselves add up to at most delta - composition_delta.

Guarantee:
    (epsilon, delta) for everything that the account pays for.

    Let P and Q be the laws of all that is answered, on two neighbours; a path is one outcome of
    it, and says which debits were made. *Leaks.* A run that is (e, d)-private on a pair of
    neighbours is a function of the following (Kairouz, Oh & Viswanath, ICML 2015, theorem 2.1):
    with probability d it tells the neighbour, else it is randomised response with e. On both
    sides it leaks with the same probability d. The deltas along a path add up to at most
    delta - composition_delta, so P leaks anywhere with at most that probability. Let P' and Q' be
    the parts of P and Q without a leak; along a path both have lost the same factor w <= 1.
    *Addition.* Let A be the paths whose epsilons add up to at most epsilon. Without leaks every
    step changes densities by at most exp(e), so P'(S and A) <= exp(epsilon)·Q'(S and A).
    *Rényi.* Let B be the other paths, all admitted by the second filter. An account that has the
    second filter only, and runs without leaks, has a Rényi divergence of order a of at most the
    limit (Feldman & Zrnic, NeurIPS 2021, theorem 3.1: sums that are bounded along every path are
    enough, whatever they depend on), hence is (epsilon, composition_delta)-private (Canonne,
    Kamath & Steinke 2020, proposition 12, whose c(a) is the one above). Paths in B have the same
    probabilities there. An (e, d)-guarantee holds for functions with values in [0, 1], here w on
    S and B: P'(S and B) <= exp(epsilon)·Q'(S and B) + composition_delta.
    The three add up to P(S) <= exp(epsilon)·Q(S) + delta.

    Gaussian noise has no epsilon of its own, and a debit may state less epsilon than its events
    add up to, at a delta that they do not spend: once an account has paid for one of these, only
    the second filter is left. Gaussian noise costs a·rho there and no delta. That the delta for
    composition is fixed beforehand matters: if it were whatever is left when the sum of epsilons is
    passed, who asks could spend delta on the usual paths and have it again, for composition, on the
    unlucky ones.

An account of rho adds up zero-concentrated prices: epsilon²/2 for pure ones, epsilon²/8 for
choices of bounded range (Bun & Steinke 2016; Cesar & Rogers 2021; adaptive by the same theorem
at every order).

What is *left* at a moment, computed from an answer's own luck, is no filter (an odometer): only
prices are added here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tulle.core.events import Pure
from tulle.ledger.divergence import conversion, divergence, largest_pure
from tulle.ledger.totals import Totals


@dataclass(frozen=True)
class Filter:
    """The terms under which an account admits debits: (epsilon, delta), or rho."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    composition_delta: Fraction = Fraction(0)
    order: Fraction | None = None
    rho: Fraction | None = None

    def times(self, count: int) -> Filter:
        """Return the filter of so many budgets together.

        What is set aside for composition is not set aside again: one conversion pays for all.
        """
        if self.rho is not None:
            return replace(self, rho=self.rho * count)
        delta = self.spendable_delta * count + self.composition_delta
        return replace(self, epsilon=self.epsilon * count, delta=delta)

    @property
    def composes(self) -> bool:
        """Whether prices are added up by divergences, so that Gaussian noise costs its rho."""
        return self.rho is not None or self.order is not None

    @property
    def spendable_delta(self) -> Fraction:
        """What the deltas of debits may add up to."""
        return self.delta - self.composition_delta

    @property
    def limit(self) -> Fraction:
        """What the Rényi divergences of debits may add up to; nothing without an order."""
        if self.order is None:
            return Fraction(0)
        return max(self.epsilon - conversion(self.order, self.composition_delta), Fraction(0))

    def admits(self, totals: Totals) -> bool:
        """Say whether an account may have these totals."""
        if self.rho is not None:
            return totals.rho is not None and totals.rho <= self.rho
        added = totals.addable and totals.epsilon <= self.epsilon
        composed = self.order is not None and totals.divergence <= self.limit
        return totals.delta <= self.spendable_delta and (added or composed)

    def admits_debit(self, totals: Totals, body: Mapping[str, Any]) -> bool:
        """Say whether an account with these totals may have this debit."""
        try:
            return self.admits(totals.after("debit", body))
        except ValueError:
            # A price that spends a delta has no rho.
            return False

    def largest_pure(self, totals: Totals) -> Fraction:
        """Return the largest pure epsilon that one more debit may have; rounded down."""
        if self.rho is not None:
            left = max(self.rho - (totals.rho or 0), Fraction(0))
            return Fraction(math.isqrt(int(2 * left * 10**40)), 10**20)
        added = self.epsilon - totals.epsilon if totals.addable else Fraction(0)
        if self.order is None:
            return added
        return max(added, largest_pure(self.limit - totals.divergence, self.order))

    def concentration(self, epsilon: Fraction) -> Fraction | None:
        """Return the rho of Gaussian noise that costs as much as a pure epsilon, or None."""
        if self.rho is not None:
            return epsilon**2 / 2
        if self.order is None:
            return None
        return divergence(Pure(epsilon), self.order)[0] / self.order

    def used(self, before: Totals, after: Totals) -> Fraction:
        """Return which share of the account one debit takes: of what fills up first, the least."""
        if self.rho is not None:
            return ((after.rho or Fraction(0)) - (before.rho or Fraction(0))) / self.rho
        shares = []
        if after.addable:
            shares.append((after.epsilon - before.epsilon) / self.epsilon)
        if self.limit:
            shares.append((after.divergence - before.divergence) / self.limit)
        return min(shares, default=Fraction(1))
