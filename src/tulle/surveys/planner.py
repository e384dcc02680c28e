"""Which design to use for one attribute: the one with the least predicted variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.validate import Number, counted, text
from tulle.surveys.designs import Design, RandomizedResponse
from tulle.surveys.exact import checked_epsilon
from tulle.surveys.large import LocalHashing, UnaryEncoding

LONGEST_REPORT = 1024
"""Reports longer than so many bits are only made when the design is asked for by name."""

MAKERS: dict[str, Callable[..., Design]] = {
    RandomizedResponse.name: RandomizedResponse.of,
    UnaryEncoding.name: UnaryEncoding.of,
    LocalHashing.name: LocalHashing.of,
}


@public()
@dataclass(frozen=True)
class DesignPlan:
    """The candidates for one attribute, best first, and why.

    Example:
        >>> print(plan_design(6, epsilon=1))
        design               standard error   report
        randomized response  1.508/sqrt(n)    3 bits    chosen
        unary encoding       1.919/sqrt(n)    6 bits
        local hashing        1.942/sqrt(n)    5 bits
    """

    candidates: tuple[Design, ...]

    @property
    def chosen(self) -> Design:
        """The design to use."""
        return self.candidates[0]

    def standard_error(self, responses: int) -> float:
        """Return the predicted standard error that privacy costs a rare category's share."""
        return sqrt(self.chosen.variance() / validate.whole(responses=responses, at_least=1))

    def __str__(self) -> str:
        lines = [f"{'design':<20} {'standard error':<16} report"]
        for design in self.candidates:
            size = counted(design.report_bits, "bit")
            error = f"{sqrt(design.variance()):.4g}/sqrt(n)"
            note = "chosen" if design is self.chosen else ""
            lines.append(f"{design.name:<20} {error:<16} {size:<9} {note}".rstrip())
        return "\n".join(lines)


@public()
def plan_design(categories: int, *, epsilon: Number) -> DesignPlan:
    """Compare the designs for so many categories at this epsilon.

    Randomized response is best below about 3·exp(epsilon) + 2 categories; above, unary encoding
    and local hashing have nearly the same variance, and hashing the far shorter report.

    Example:
        >>> plan_design(100, epsilon=1).chosen.name
        'unary encoding'
        >>> plan_design(100_000, epsilon=1).chosen.name
        'local hashing'
    """
    categories = validate.whole(categories=categories, at_least=2)
    exact = checked_epsilon(epsilon)
    designs: list[Design] = [
        RandomizedResponse.of(categories, epsilon=exact),
        UnaryEncoding.of(categories, epsilon=exact),
        LocalHashing.of(categories, epsilon=exact),
    ]
    designs.sort(key=lambda d: (d.report_bits > LONGEST_REPORT, d.variance(), d.report_bits))
    return DesignPlan(tuple(designs))


def design_named(name: str, categories: int, epsilon: Number | None) -> Design:
    """Return the design of that name."""
    if name not in MAKERS:
        known = ", ".join(repr(known) for known in MAKERS)
        raise InputError(f"There is no design {name!r}. Known: {known}; or give a Design.")
    if epsilon is None:
        raise InputError("epsilon must be given: nothing that costs privacy has a default.")
    return MAKERS[name](categories, epsilon=checked_epsilon(epsilon))


def describe(design: Design) -> str:
    """Say in a few words what a design is."""
    return f"{getattr(design, 'label', design.name)} at epsilon {text(design.epsilon)}"
