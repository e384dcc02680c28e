"""What the terms on a page mean, in one line each: the lines of the guide's glossary."""

from __future__ import annotations

from tulle.core.guarantee import Guarantee

TERMS = {
    "add-remove": "neighbours differ by one unit more or less",
    "approximate": "a guarantee with a delta above zero",
    "clipping": "moving a value to the nearer end of its declared range or bound",
    "debit": "the entry that pays for one answer; it is on disk before any noise is drawn",
    "delta": (
        "about the probability with which the bound by epsilon may fail; zero is the strictest"
    ),
    "epsilon": (
        "the price: with one unit more or less, odds change by a factor of e^epsilon at most"
    ),
    "interval": (
        "the range that holds the truth at a stated rate, 19 of 20 unless you say otherwise"
    ),
    "mechanism": (
        "a way to answer some questions under some units, with its guarantee and error law"
    ),
    "pure": "a guarantee with delta = 0",
    "replace": "neighbours differ in the values of one unit",
    "rho": "the price of a zCDP guarantee",
}
"""Terms that stand on pages about releases."""


def guarantee_terms(guarantee: Guarantee) -> list[str]:
    """Return the terms that a guarantee is written with."""
    kind = ["rho"] if guarantee.rho is not None else ["epsilon"]
    if guarantee.rho is None:
        kind += ["delta", "approximate"] if guarantee.delta else ["pure"]
    return [*kind, guarantee.unit.relation]
