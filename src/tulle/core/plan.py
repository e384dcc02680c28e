"""What a plan is: offers of mechanisms, sorted, with price and predicted error, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tulle.core.error_law import ErrorLaw
from tulle.core.events import Composed, Event
from tulle.core.guarantee import Guarantee, display
from tulle.core.mechanism import Parameters, Prediction, Terms
from tulle.core.public import public
from tulle.core.query import Expression, Query
from tulle.core.unit import Unit
from tulle.core.validate import text


@dataclass(frozen=True)
class Offer:
    """One mechanism's way to answer: its settings, its price and the error to expect."""

    terms: Terms
    mechanism: str
    title: str
    settings: Parameters
    guarantee: Guarantee
    prediction: Prediction
    event: Event
    """What the run does to one unit's privacy, for whoever adds runs up."""
    plan: Plan | None = None
    """For an answer put together from other questions: the plan of that expression."""

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


@public("Plan, pay, release")
@dataclass(frozen=True)
class Plan:
    """What answering would take. Made from public facts only; making it spends nothing.

    ``offers`` are sorted, the best first: that one is chosen. For an expression, ``parts`` has a
    plan for each leaf and ``offers`` is empty. A question that can also be put together from
    others has an offer ``decomposed``; when that is chosen, ``parts`` are the plans of these.
    """

    query: Query
    unit: Unit
    guarantee: Guarantee
    offers: tuple[Offer, ...]
    refused: tuple[tuple[str, str], ...]
    parts: tuple[Plan, ...] = ()
    stand_in: str | None = None
    """What the typical error was computed on, in words; None when nothing was needed."""
    predicted: ErrorLaw | None = None
    """For an expression: the error to expect on the stand-in."""
    shares: tuple[Fraction, ...] = ()
    """For an expression: which part of the budget each leaf gets."""
    columns: tuple[tuple[str, ErrorLaw | None], ...] = ()
    """For a table: its columns, and the error to expect in each where a stand-in tells."""
    unpredicted: str | None = None
    """Why no error is predicted, in words, where one was looked for."""
    account: str | None = None
    """What the price means to the account that would pay it, in words."""

    @property
    def event(self) -> Event:
        """What answering does to one unit's privacy."""
        if self.offers:
            return self.chosen.event
        return Composed(tuple(part.event for part in self.parts))

    @property
    def chosen(self) -> Offer:
        """The offer that will be used."""
        return self.offers[0]

    @property
    def mechanism(self) -> str:
        """Name of the chosen mechanism; for an expression, of each leaf's."""
        if not self.offers:
            return " & ".join(dict.fromkeys(part.mechanism for part in self.parts))
        return self.chosen.mechanism

    @property
    def expression(self) -> Expression | None:
        """How the answer is put together from the parts; None when it is drawn as a whole."""
        if not self.offers:
            return self.query if isinstance(self.query, Expression) else None
        return None if self.chosen.plan is None else self.chosen.plan.expression

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
        if not self.offers:
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
            | self._of_columns(offer)
            for offer in self.offers
        ]

    def _of_columns(self, offer: Offer) -> dict[str, str]:
        """Return the errors of a table that is drawn as a whole, or where they stand."""
        known = [law for _, law in self.columns if law is not None]
        if offer is not self.chosen or offer.prediction.typical is not None or not known:
            return {}
        if len(self.columns) > 1:
            return dict.fromkeys(("median error", "95 % within"), "by column, below")
        return {"median error": _median(known[0]), "95 % within": _width(known[0])}

    def half_width(self, level: float) -> float | None:
        """Return how far off the answer would be on the stand-in, with this probability.

        None when there is no stand-in to tell.
        """
        law = self.chosen.prediction.typical if self.offers else self.predicted
        return None if law is None else law.half_width(level)

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
            "unpredicted": self.unpredicted,
            "account": self.account,
            "not_in_the_error": self.left_out(),
            "expected": list(self.chosen.prediction.notes) if self.offers else [],
            "parts": [part.to_json() for part in self.parts],
            "shares": [text(share) for share in self.shares],
            "columns": [
                {
                    "column": name,
                    "median_error": None if law is None else _finite(law.of_one().half_width(0.5)),
                    "half_width_95": None if law is None else _finite(law.half_width(0.95)),
                }
                for name, law in self.columns
            ],
        }

    def notes(self) -> list[str]:
        """Return the sentences that belong below the table."""
        lines = [f"{name}: {why}" for name, why in self.refused]
        for part in self.parts:
            lines.extend(part.notes())
        for plan in (*(offer.plan for offer in self.offers if offer.plan), self):
            # A table's parts stand above with their prices.
            if plan.shares and not plan.columns:
                lines.append(_divided(plan))
        if any(law is not None for _, law in self.columns):
            errors = ", ".join(f"{name} {_width(law)}" for name, law in self.columns)
            lines.append(f"Error to expect (95 %): {errors}.")
            medians = ", ".join(f"{name} {_median(law)}" for name, law in self.columns)
            lines.append(f"Median error: {medians}.")
        lines.extend(self.chosen.prediction.notes if self.offers else ())
        lines.extend(self.left_out())
        if self.stand_in and self._predicts():
            lines.append(f"Typical errors are those of {self.stand_in}.")
        if self.unpredicted:
            lines.append(self.unpredicted)
        if self.account:
            lines.append(self.account)
        return list(dict.fromkeys(lines))

    def _predicts(self) -> bool:
        """Say whether any error is known beforehand, of the whole or of a part."""
        known = [offer.prediction.rank() for offer in self.offers]
        laws = [self.predicted, *(law for _, law in self.columns)]
        return (
            any(size < float("inf") for size in known)
            or any(law is not None for law in laws)
            or any(part._predicts() for part in self.parts)
        )

    def left_out(self) -> list[str]:
        """Return what the errors of the chosen offer do not cover, such as clipping."""
        if not self.offers:
            return []
        prediction = self.chosen.prediction
        laws = (prediction.bound, prediction.typical)
        return list(dict.fromkeys(law.leaves_out for law in laws if law and law.leaves_out))

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


def _divided(plan: Plan) -> str:
    shares = ", ".join(
        f"{part.query} {float(share):.0%}"
        for part, share in zip(plan.parts, plan.shares, strict=True)
    )
    return f"{plan.query}: the budget is divided as {shares}."


def _price(guarantee: Guarantee) -> str:
    if guarantee.rho is not None:
        return f"rho {display(guarantee.rho)}"
    price = f"epsilon {display(guarantee.epsilon)}"
    return f"{price}, delta {display(guarantee.delta)}" if guarantee.delta else price


def _width(law: Any) -> str:
    if law is None:
        return "not known"
    return f"± {_figure(law.half_width(0.95))}"


def _median(law: ErrorLaw | None) -> str:
    return "not known" if law is None else _figure(law.of_one().half_width(0.5))


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _figure(value: float) -> str:
    if value == float("inf"):
        return "not known"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
