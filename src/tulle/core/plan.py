"""Before anything is spent: which mechanisms could answer, at what price, how wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tulle.core import registry, validate
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, QueryError
from tulle.core.exact import Number, text
from tulle.core.guarantee import Guarantee, display, floor_to
from tulle.core.mechanism import Mechanism, Parameters, Prediction, Terms
from tulle.core.query import Expression, Query, enclose, kind_of
from tulle.core.unit import Unit


@dataclass(frozen=True)
class Offer:
    """One mechanism's way to answer: its settings, its price and the error to expect."""

    terms: Terms
    mechanism: str
    title: str
    settings: Parameters
    guarantee: Guarantee
    prediction: Prediction

    def to_json(self, chosen: bool) -> dict[str, Any]:
        """Return a JSON-able form."""
        typical, bound = self.prediction.typical, self.prediction.bound
        return {
            "mechanism": self.mechanism,
            "title": self.title,
            "chosen": chosen,
            "guarantee": self.guarantee.to_json(),
            "settings": dict(self.settings),
            "median_error": self.prediction.rank(),
            "half_width_95": None if typical is None else typical.half_width(0.95),
            "half_width_95_on_any_data": None if bound is None else bound.half_width(0.95),
        }


@dataclass(frozen=True)
class Plan:
    """What answering would take. Made from public facts only; making it spends nothing.

    ``offers`` are sorted, the best first: that one is chosen. For an expression, ``parts`` has a
    plan for each leaf and ``offers`` is empty.
    """

    query: Query
    unit: Unit
    guarantee: Guarantee
    offers: tuple[Offer, ...]
    refused: tuple[tuple[str, str], ...]
    parts: tuple[Plan, ...] = ()
    stand_in: str | None = None
    """What the typical error was computed on, in words; None when nothing was needed."""
    stand_in_values: Mapping[str, float] | None = None
    """For an expression: the stand-in's true answers to the leaves. Public, as the stand-in is."""

    @property
    def chosen(self) -> Offer:
        """The offer that will be used."""
        return self.offers[0]

    @property
    def mechanism(self) -> str:
        """Name of the chosen mechanism; for an expression, of each leaf's."""
        if self.parts:
            return " & ".join(dict.fromkeys(part.mechanism for part in self.parts))
        return self.chosen.mechanism

    def canonical(self) -> dict[str, Any]:
        """Return what identifies the question, its price and its settings: equal means same."""
        if self.parts:
            return {
                "query": self.query.canonical(),
                "parts": [part.canonical() for part in self.parts],
            }
        chosen = self.chosen
        return {
            "query": self.query.canonical(),
            "mechanism": chosen.mechanism,
            "settings": dict(chosen.settings),
            "epsilon": text(chosen.terms.epsilon),
            "delta": text(chosen.terms.delta),
        }

    def rows(self) -> list[dict[str, str]]:
        """Return the plan as a table: one row for each offer, the chosen ones marked."""
        if self.parts:
            return [row for part in self.parts for row in part.rows()]
        return [
            {
                "chosen": "→" if offer is self.chosen else "",
                "query": str(self.query),
                "mechanism": offer.mechanism,
                "price": _price(offer.guarantee),
                "median error": _figure(offer.prediction.rank()),
                "95 % within": _width(offer.prediction.typical),
                "on any data": _width(offer.prediction.bound),
            }
            for offer in self.offers
        ]

    def half_width(self, level: float) -> float | None:
        """Return how far off the answer would be on the stand-in, with this probability.

        For an expression it is half the range over the leaves' own ranges around the stand-in's
        true values. None when there is no stand-in to tell.
        """
        if not self.parts:
            law = self.chosen.prediction.typical
            return None if law is None else law.half_width(level)
        share = 1 - (1 - level) / len(self.parts)
        widths = {str(part.query): part.half_width(share) for part in self.parts}
        if self.stand_in_values is None or any(width is None for width in widths.values()):
            return None
        ranges = {
            name: (max(value - (widths[name] or 0.0), 0.0), value + (widths[name] or 0.0))
            for name, value in self.stand_in_values.items()
        }
        assert isinstance(self.query, Expression)
        low, high = enclose(self.query.tree(), ranges)
        return (high - low) / 2

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form, numbers as numbers."""
        return {
            "query": str(self.query),
            "guarantee": self.guarantee.to_json(),
            "mechanism": self.mechanism,
            "half_width_95": self.half_width(0.95),
            "offers": [offer.to_json(offer is self.chosen) for offer in self.offers],
            "refused": [{"mechanism": name, "reason": why} for name, why in self.refused],
            "stand_in": self.stand_in,
            "parts": [part.to_json() for part in self.parts],
        }

    def notes(self) -> list[str]:
        """Return the sentences that belong below the table."""
        lines = [f"{name}: {why}" for name, why in self.refused]
        for part in self.parts:
            lines.extend(part.notes())
        if self.stand_in:
            lines.append(f"Typical errors are those of {self.stand_in}.")
        return list(dict.fromkeys(lines))

    def __repr__(self) -> str:
        rows = self.rows()
        titles = {name: "" if name == "chosen" else name for name in rows[0]}
        widths = {name: max(len(row[name]) for row in (titles, *rows)) for name in titles}
        lines = [
            "  ".join(row[name].ljust(widths[name]) for name in titles).rstrip()
            for row in (titles, *rows)
        ]
        head = f"Plan for {self.query}: {self.guarantee}; nothing is spent yet"
        return "\n".join([head, *lines, *self.notes()])

    def _repr_html_(self) -> str:
        import html

        rows = self.rows()
        head = "".join(f"<th>{html.escape(n)}</th>" for n in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(v)}</td>" for v in row.values()) + "</tr>"
            for row in rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes())
        caption = html.escape(f"Plan for {self.query}: {self.guarantee}; nothing is spent yet")
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>{notes}"


def make_plan(
    query: Query,
    *,
    kind: str,
    facts: Facts,
    unit: Unit,
    epsilon: Number,
    delta: Number = 0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a question from public facts, and from ``like``, a dataset that is declared public.

    Raises:
        QueryError: when no mechanism answers the question under the unit and guarantee.
        InputError: when epsilon or delta is out of range, or an option is not known.
    """
    if not isinstance(query, Query):
        raise QueryError(
            f"A question is needed, such as tulle.triangles(); got {type(query).__name__}."
        )
    epsilon = validate.epsilon(epsilon=epsilon)
    delta = validate.delta(delta=delta)
    if kind_of(query) != kind:
        raise QueryError(f"{query} asks about a {kind_of(query)}, but the data is a {kind}.")
    if like is not None and like.kind != kind:
        raise InputError(f"like= must be a public {kind}; got a {like.kind}.")
    if like is None:
        like, described = _stand_in(kind, unit, facts)
    else:
        described = "the public stand-in given as like="
    terms = Terms(query, unit, epsilon, delta, facts)
    if isinstance(query, Expression):
        return _plan_expression(query, terms, mechanism, like, described, options or {})
    return _plan_leaf(terms, kind, mechanism, like, described, options or {})


def _stand_in(kind: str, unit: Unit, facts: Facts) -> tuple[Dataset | None, str | None]:
    for make in registry.find("stand-in", kind).values():
        made: tuple[Dataset, str] | None = make(unit, facts)
        if made is not None:
            return made
    return None, None


def _plan_leaf(
    terms: Terms,
    kind: str,
    mechanism: str | None,
    like: Dataset | None,
    described: str | None,
    options: Mapping[str, Any],
) -> Plan:
    known = registry.mechanisms(kind)
    if mechanism is not None and mechanism not in known:
        raise QueryError(
            f"There is no mechanism {mechanism!r} for a {kind}. Known: {', '.join(known)}."
        )
    _check_answerable(terms, known)
    offers: list[Offer] = []
    refused: list[tuple[str, str]] = []
    for name, item in known.items():
        if mechanism is None and not item.offers(terms.query, terms.unit):
            continue
        if mechanism is not None and name != mechanism:
            continue
        reason = _refusal(item, terms, options if mechanism is not None else {})
        if reason is not None:
            if mechanism is not None:
                raise QueryError(f"Mechanism {name!r} cannot answer {terms.query}: {reason}.")
            if item.supports(terms.query, terms.unit):
                refused.append((name, reason))
            continue
        item.check_options(options if mechanism is not None else {})
        try:
            settings = item.settings(terms, options if mechanism is not None else {})
        except QueryError as error:
            if mechanism is not None:
                raise
            # What one mechanism cannot do by the public facts, another may.
            refused.append((name, str(error)))
            continue
        offers.append(
            Offer(
                terms,
                name,
                item.title,
                settings,
                item.guarantee(terms, settings),
                item.predict(terms, settings, like),
            )
        )
    if options and mechanism is None:
        raise InputError(
            f"Options ({', '.join(options)}) belong to a mechanism: name it with mechanism=."
        )
    if not offers:
        reasons = list(dict.fromkeys(reason for _, reason in refused))
        if len(reasons) == 1 and len(refused) > 1:
            raise QueryError(reasons[0])
        why = "; ".join(f"{name}: {reason}" for name, reason in refused)
        raise QueryError(f"No mechanism answers {terms.query} at this guarantee ({why}).")
    offers.sort(key=lambda offer: offer.prediction.rank())
    needed = any(o.prediction.typical != o.prediction.bound for o in offers)
    return Plan(
        terms.query,
        terms.unit,
        offers[0].guarantee,
        tuple(offers),
        tuple(refused),
        stand_in=described if needed else None,
    )


def _check_answerable(terms: Terms, known: Mapping[str, Mechanism]) -> None:
    if any(item.supports(terms.query, terms.unit) for item in known.values()):
        return
    from tulle.core.unit import UNITS

    others = [
        unit.name
        for unit in UNITS.values()
        if any(item.supports(terms.query, unit) for item in known.values())
    ]
    instead = f"It can be asked per {', '.join(others)}." if others else "No unit is supported yet."
    raise QueryError(f"{terms.query} cannot be answered per {terms.unit.name}. {instead}")


def _refusal(item: Mechanism, terms: Terms, options: Mapping[str, Any]) -> str | None:
    if not item.supports(terms.query, terms.unit):
        return f"it does not answer {terms.query.name} per {terms.unit.name}"
    if item.needs_delta and terms.delta == 0:
        return "it needs a delta above zero"
    missing = [name for name in item.needs_options if name not in options]
    if missing:
        return f"it needs {', '.join(f'{name}=' for name in missing)}"
    return None


def _plan_expression(
    query: Expression,
    terms: Terms,
    mechanism: str | None,
    like: Dataset | None,
    described: str | None,
    options: Mapping[str, Any],
) -> Plan:
    leaves = query.parts()
    kind = kind_of(query)

    def plan_leaf(leaf: Query, share: Fraction) -> Plan:
        # Shares are rounded down, so the parts never add up to more than was asked.
        part = replace(
            terms,
            query=leaf,
            epsilon=floor_to(terms.epsilon * share, 12),
            delta=terms.delta * share,
        )
        if part.epsilon < validate.LEAST_EPSILON:
            raise InputError(
                f"epsilon = {display(terms.epsilon)} is too small to divide among "
                f"{len(leaves)} questions."
            )
        return _plan_leaf(part, kind, mechanism, like, described, options)

    shares = split(
        query, terms, [plan_leaf(leaf, Fraction(1, len(leaves))) for leaf in leaves], like
    )
    parts = tuple(plan_leaf(leaf, shares[leaf]) for leaf in leaves)
    return Plan(
        query,
        terms.unit,
        Guarantee.compose(part.guarantee for part in parts),
        (),
        (),
        parts,
        next((part.stand_in for part in parts if part.stand_in), None),
        None if like is None else {str(leaf): float(leaf.truth(like)) for leaf in leaves},
    )


def split(
    query: Expression, terms: Terms, equal: list[Plan], like: Dataset | None
) -> dict[Query, Fraction]:
    """Choose each leaf's share of the budget so that the expression's predicted error is least.

    With noise of spread c_i / share_i on leaf i and slope s_i of the expression in it, the
    variance is the sum of (s_i·c_i / share_i)², least at shares proportional to
    (s_i·c_i)^(2/3). Slopes and spreads come from the public stand-in; without one, or where the
    slopes vanish, the shares are equal. No share is below a fiftieth.
    """
    leaves = query.parts()
    even = {leaf: Fraction(1, len(leaves)) for leaf in leaves}
    if len(leaves) == 1 or like is None:
        return even
    values = {leaf: float(leaf.truth(like)) for leaf in leaves}
    weights: dict[Query, float] = {}
    for leaf, plan in zip(leaves, equal, strict=True):
        spread = plan.chosen.prediction.rank()
        nudge = max(abs(values[leaf]), 1.0) * 1e-4
        up = query.evaluate(values | {leaf: values[leaf] + nudge})
        down = query.evaluate(values | {leaf: values[leaf] - nudge})
        weights[leaf] = (abs(up - down) / (2 * nudge) * spread) ** (2 / 3)
    total = sum(weights.values())
    if not 0 < total < float("inf"):
        return even
    floored = {leaf: max(weight / total, 0.02) for leaf, weight in weights.items()}
    scale = sum(floored.values())
    shares = {leaf: Fraction(int(1000 * w / scale), 1000) for leaf, w in floored.items()}
    # What rounding down left over goes to the first leaf, so that the shares add up to one.
    shares[leaves[0]] += 1 - sum(shares.values())
    return shares


def _price(guarantee: Guarantee) -> str:
    if guarantee.rho is not None:
        return f"rho {display(guarantee.rho)}"
    price = f"epsilon {display(guarantee.epsilon)}"
    return f"{price}, delta {display(guarantee.delta)}" if guarantee.delta else price


def _width(law: Any) -> str:
    if law is None:
        return "not known"
    return f"± {_figure(law.half_width(0.95))}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
