"""The error to expect of a plan, on a made-up dataset, where nobody gave one that is like the data.

A plan is made as if nothing were known; then each of its offers is asked for the error that it
would have on made-up data. So what is assumed changes what a plan says, and never what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tulle.core import registry
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, QueryError
from tulle.core.expression_error import predict_error
from tulle.core.plan import Offer, Plan
from tulle.core.query import Composite, Expression, kind_of
from tulle.core.unit import Unit


@dataclass(frozen=True)
class Preview:
    """A made-up dataset, and what it is in words."""

    dataset: Dataset
    words: str
    known: dict[str, Any] = field(default_factory=dict)
    """What was worked out on it for other plans."""

    def once(self, what: str, work: Callable[[], Any]) -> Any:
        """Return something that depends on this dataset and on its name alone, from memory."""
        if what not in self.known:
            self.known[what] = work()
        return self.known[what]


def preview(
    plan: Plan,
    *,
    facts: Facts,
    public: Any = None,
    unit: Unit,
    assumed: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan with errors predicted on data made up of public facts and assumptions.

    Nothing is read from the data, and nothing about the plan changes but what it predicts.

    Raises:
        InputError: when this kind of data has no such assumptions, or they do not fit.
    """
    kind = kind_of(plan.query)
    given = {name: value for name, value in (assumed or {}).items() if value is not None}
    makers = registry.find("preview", kind)
    if not makers:
        if given:
            raise InputError(
                f"{', '.join(f'{name}=' for name in given)} is for databases; a {kind} that is "
                "like the data is given as like=."
            )
        return plan
    (make,) = makers.values()
    try:
        made: Preview = make(plan.query, facts, public, unit, given)
        return replace(predicted_on(plan, made), stand_in=made.words)
    except QueryError as error:
        return replace(plan, unpredicted=f"Errors are not predicted: {error}")


def predicted_on(plan: Plan, made: Preview) -> Plan:
    """Return the plan with the errors that its offers would have on a made-up dataset."""
    offers = tuple(_offer_on(offer, made) for offer in plan.offers)
    parts = tuple(predicted_on(part, made) for part in plan.parts)
    known = replace(plan, offers=offers, parts=parts)
    query = plan.query
    if plan.offers:
        offer = plan.chosen
        item = registry.make_mechanism(kind_of(query), offer.mechanism)
        columns = made.once(
            f"columns {_named(offer)}",
            lambda: item.predict_columns(offer.terms, offer.settings, made.dataset),
        )
        return replace(known, columns=columns or plan.columns)
    laws = {}
    for part in parts:
        prediction = part.chosen.prediction
        laws[str(part.query)] = prediction.typical or prediction.bound
    if isinstance(query, Composite) and not query.weighed:
        return known
    values = {
        str(leaf): made.once(f"answer to {leaf}", partial(leaf.expected, made.dataset))
        for leaf in query.parts()
        if leaf is not query
    }
    if isinstance(query, Composite):
        return replace(known, columns=query.predict(values, laws))
    if isinstance(query, Expression) and all(law is not None for law in laws.values()):
        numbers = {name: float(value) for name, value in values.items()}
        sure = {name: law for name, law in laws.items() if law is not None}
        return replace(known, predicted=predict_error(query.tree(), numbers, sure))
    return known


def _offer_on(offer: Offer, made: Preview) -> Offer:
    item = registry.make_mechanism(kind_of(offer.terms.query), offer.mechanism)
    prediction = made.once(
        _named(offer), lambda: item.predict(offer.terms, offer.settings, made.dataset)
    )
    return replace(offer, prediction=prediction)


def _named(offer: Offer) -> str:
    """Return all that a prediction on one dataset depends on, as a text."""
    terms = offer.terms
    return repr((offer.mechanism, str(terms.query), terms.epsilon, terms.delta, offer.settings))
