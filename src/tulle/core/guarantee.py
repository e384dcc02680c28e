"""What a release promises, and how promises add up.

All parameters are exact fractions. Sums are exact; conversions that need logarithms are computed
with fifty digits and then rounded outwards, so a guarantee is never stated smaller than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, Overflow, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.unit import Unit
from tulle.core.validate import Number, rational, round_up, text

Measure = Literal["pure", "approximate", "concentrated"]

REPLAYABLE = "drawn from a source that can be replayed: anyone who knows it can undo the noise"


@public("Plan, pay, release")
@dataclass(frozen=True)
class Guarantee:
    """A differential privacy guarantee for one unit.

    Exactly one form is set: (epsilon, delta), where delta = 0 is pure differential privacy, or
    ``rho`` for zero-concentrated differential privacy. ``holds`` is false for releases that were
    drawn from a replayable source, and stays so after every operation.

    Example:
        >>> one = Guarantee.of("edge", epsilon=0.1)
        >>> print(Guarantee.compose([one] * 10))
        epsilon = 1, pure, per edge (add-remove)
    """

    unit: Unit
    epsilon: Fraction | None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    assumptions: tuple[str, ...] = ()
    holds: bool = True

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InputError(
                "A guarantee has either an epsilon or a rho, not both and not neither."
            )

    @classmethod
    def of(
        cls,
        unit: str | Unit,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        assumptions: tuple[str, ...] = (),
    ) -> Guarantee:
        """Build a guarantee from checked parameters: epsilon (and delta), or rho."""
        known = Unit.of(unit)
        checked = validate.delta(delta=delta)
        if rho is not None:
            if epsilon is not None or checked:
                raise InputError("Give either epsilon (and delta) or rho, not both.")
            return cls(known, None, rho=validate.positive(rho=rho), assumptions=assumptions)
        return cls(
            known,
            validate.positive(epsilon=epsilon),
            checked,
            assumptions=assumptions,
        )

    @property
    def measure(self) -> Measure:
        """Which form the guarantee has."""
        if self.rho is not None:
            return "concentrated"
        return "approximate" if self.delta else "pure"

    def void(self) -> Guarantee:
        """Return the same parameters marked as not holding: the noise can be replayed."""
        return replace(self, holds=False)

    def assuming(self, assumptions: Iterable[str]) -> Guarantee:
        """Return the same guarantee with further assumptions."""
        return replace(self, assumptions=tuple(dict.fromkeys((*self.assumptions, *assumptions))))

    def to_concentrated(self) -> Guarantee:
        """Convert pure epsilon to rho = epsilon² / 2 (Bun & Steinke 2016, proposition 1.4)."""
        if self.rho is not None:
            return self
        if self.delta:
            raise InputError(
                "An (epsilon, delta) guarantee with delta > 0 has no zero-concentrated form. "
                "Compose it by its epsilon and delta instead."
            )
        assert self.epsilon is not None
        return replace(self, epsilon=None, rho=self.epsilon**2 / 2)

    def to_approximate(self, delta: Number) -> Guarantee:
        """Convert rho to the least epsilon found at this delta, rounded up.

        Uses epsilon = rho·a + ln(1/(a·delta))/(a - 1) + ln(1 - 1/a), valid for every order a > 1
        (Canonne, Kamath & Steinke 2020, corollary 13); the order is searched, the value at the
        order found is evaluated with outward rounding, so the search can only cost tightness.
        """
        wanted = validate.delta(above_zero=True, delta=delta)
        if self.rho is None:
            if self.delta > wanted:
                raise InputError(
                    f"This guarantee has delta = {text(self.delta)}, above {text(wanted)}."
                )
            return self
        epsilon = epsilon_of_rho(self.rho, wanted)
        return replace(self, epsilon=epsilon, delta=wanted, rho=None)

    @staticmethod
    def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
        """Add up guarantees on the same data, chosen adaptively or not.

        Pure and approximate ones add epsilon and delta; if any is concentrated, the pure ones are
        converted and rho adds. Both sums hold when each question depends on earlier answers.

        Raises:
            InputError: when the units differ, nothing is given, or concentrated guarantees are
                mixed with ones that have delta > 0 (convert those with ``to_approximate`` first).
        """
        items = list(guarantees)
        if not items:
            raise InputError("There is nothing to compose: give at least one guarantee.")
        units = {item.unit for item in items}
        if len(units) > 1:
            names = ", ".join(sorted(unit.name for unit in units))
            raise InputError(f"Guarantees for different units do not add up: {names}.")
        assumptions = tuple(dict.fromkeys(a for item in items for a in item.assumptions))
        holds = all(item.holds for item in items)
        unit = items[0].unit
        if any(item.rho is not None for item in items):
            if any(item.delta for item in items):
                raise InputError(
                    "Concentrated guarantees do not add to ones with delta > 0 without a target "
                    "delta. Convert the concentrated ones first: guarantee.to_approximate(delta)."
                )
            total = sum((item.to_concentrated().rho or Fraction(0) for item in items), Fraction(0))
            return Guarantee(unit, None, rho=total, assumptions=assumptions, holds=holds)
        return Guarantee(
            unit,
            sum((item.epsilon or Fraction(0) for item in items), Fraction(0)),
            sum((item.delta for item in items), Fraction(0)),
            assumptions=assumptions,
            holds=holds,
        )

    def of_group(self, count: int) -> Guarantee | None:
        """Return what holds for so many units at once, or None when nothing does.

        Pure epsilon grows with the count, and rho with its square (Bun & Steinke 2016, proposition
        1.9). delta grows to delta·(1 + e^epsilon + ... + e^((count-1)·epsilon)), which is at most
        count·e^((count-1)·epsilon)·delta.
        """
        count = validate.whole(at_least=1, count=count)
        if self.rho is not None:
            return replace(self, rho=self.rho * count**2)
        assert self.epsilon is not None
        delta = Fraction(0)
        if self.delta:
            with localcontext() as context:
                context.prec, context.rounding = 60, ROUND_CEILING
                context.Emax, context.traps[Overflow] = 10**9, False
                grown = (_decimal(self.epsilon) * (count - 1)).exp() * _decimal(self.delta) * count
                if grown >= 1:
                    return None
                delta = Fraction(grown * (1 + Decimal("1e-50")))
            if delta >= 1:
                return None
        return replace(self, epsilon=self.epsilon * count, delta=delta)

    @property
    def over_time(self) -> str | None:
        """For a unit with a period, what the guarantee means for all of its records over time."""
        from tulle.core.period import MOST_IN_A_YEAR

        period = self.unit.period
        if period is None:
            return None
        most = MOST_IN_A_YEAR[period]
        alone = replace(self, assumptions=(), holds=True)
        said = f"{alone} protects {self.unit.meaning}."
        if most == 1:
            return said
        year = alone.of_group(most)
        whole = "nothing is promised" if year is None else str(year).partition(", per ")[0]
        said += f" For all records of one {self.unit.base} in a calendar year, "
        said += f"at most {most} {period}s"
        count = "k² times in rho" if self.rho is not None else "k times in epsilon"
        return f"{said}: {whole}. k {period}s count {count}."

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; fractions are written as text and read back exactly."""
        return {
            "unit": self.unit.name,
            "relation": self.unit.relation,
            "epsilon": None if self.epsilon is None else text(self.epsilon),
            "delta": text(self.delta),
            "rho": None if self.rho is None else text(self.rho),
            "assumptions": list(self.assumptions),
            "holds": self.holds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Guarantee:
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError, LookupError, TypeError: when it is none, or has a number below zero.
        """
        epsilon, delta, rho = (
            None if data[name] is None else rational(data[name])
            for name in ("epsilon", "delta", "rho")
        )
        if (
            delta is None
            or (epsilon is None) == (rho is None)
            or min(epsilon or rho or 0, delta) < 0
        ):
            raise ValueError("a guarantee has epsilon or rho, and delta, none of them below zero")
        assumptions = tuple(str(said) for said in data["assumptions"])
        return cls(Unit.of(data["unit"]), epsilon, delta, rho, assumptions, data["holds"] is True)

    def __str__(self) -> str:
        who = f"per {self.unit.name} ({self.unit.relation})"
        if self.rho is not None:
            price = f"rho = {display(self.rho)}, zero-concentrated"
        elif self.delta:
            price = f"epsilon = {display(self.epsilon)}, delta = {display(self.delta)}"
        else:
            price = f"epsilon = {display(self.epsilon)}, pure"
        if self.assumptions:
            who += f"; assuming that {'; '.join(self.assumptions)}"
        if not self.holds:
            return f"no guarantee ({REPLAYABLE}); it would be {price}, {who}"
        return f"{price}, {who}"


def display(value: Fraction | None) -> str:
    """Write a parameter for people: exact when short, otherwise rounded up to six digits."""
    if value is None:
        return "-"
    exact = text(value)
    if len(exact) <= 10 and "/" not in exact:
        return exact
    with localcontext() as context:
        context.prec = 6
        context.rounding = ROUND_CEILING
        return f"{Decimal(value.numerator) / Decimal(value.denominator):g}"


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon, rounded up, such that rho-zCDP implies (epsilon, delta)."""
    import math

    r, d = float(min(rho, Fraction(2**1000))), float(delta)
    log_delta = math.log(d) if d > 0 else math.log(delta.numerator) - math.log(delta.denominator)

    def at(order: float) -> float:
        return r * order - (math.log(order) + log_delta) / (order - 1) + math.log1p(-1 / order)

    # The standard order 1 + sqrt(ln(1/delta)/rho) is near the optimum; search around it.
    # Not too near order 1, where sixty digits are few.
    centre = max(math.sqrt(max(-log_delta, 0.0) / r), 1e-10) if r > 0 else 1e6
    low, high = math.log(centre / 100), math.log(centre * 100)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if at(1 + math.exp(left)) < at(1 + math.exp(right)):
            high = right
        else:
            low = left
    order = Fraction(1 + math.exp((low + high) / 2))
    with localcontext() as context:
        context.prec = 60
        a = _decimal(order)
        context.rounding = ROUND_CEILING
        value = _decimal(rho) * a - (a.ln() + _decimal(delta).ln()) / (a - 1) + (1 - 1 / a).ln()
        # Sixty digits and fewer than a dozen operations: 1e-40 relative covers every rounding.
        value += (abs(value) + 1) * Decimal("1e-40")
    exact = max(Fraction(value), Fraction(0))
    return Fraction(round_up(exact))


@lru_cache(maxsize=64)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, as large as is found, such that rho-zCDP implies (epsilon, delta).

    Example:
        >>> 0.01 < largest_rho(Fraction(1), Fraction(1, 10**6)) < 0.03
        True
    """
    # As powers of two; epsilon is at least 1e-9 and at most 10,000.
    low, high = -240.0, 24.0
    for _ in range(60):
        middle = (low + high) / 2
        if epsilon_of_rho(Fraction(2.0**middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    rho = Fraction(2.0**low)
    # What is returned is checked: the search only decides how tight it is.
    while epsilon_of_rho(rho, delta) > epsilon:
        rho = rho * 15 / 16
    return rho


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def floor_to(value: Fraction, digits: int) -> Fraction:
    """Round a budget down to so many decimal digits; what does not divide is left unspent."""
    with localcontext() as context:
        context.prec = max(digits + 20, 40)
        context.rounding = ROUND_FLOOR
        return Fraction(_decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_FLOOR))
