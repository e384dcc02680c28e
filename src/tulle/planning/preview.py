"""The error to expect of a plan, on a made-up dataset, where nobody gave one that is like the data.

A plan is made as if nothing were known; then each of its offers is asked for the error that it
would have on made-up data. So what is assumed changes what a plan says, and never what is done.

Where an answer would drown in its noise, the error follows from few records, and whether made-up
data have those is a matter of chance. There several datasets are made up, as large as is possible,
and the error is that of all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset, Facts
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import InputError, QueryError
from tulle.core.expression_error import SampledLaw, predict_error
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
    others: tuple[Callable[[], Preview], ...] = ()
    """What makes up other datasets, larger ones if need be, by the same assumptions."""

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
        known = predicted_on(plan, made)
        if made.others and _drowns(known, made):
            # One after the other: together they may be large.
            known = _together([predicted_on(plan, other()) for other in made.others])
        return replace(known, stand_in=made.words)
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


def _drowns(plan: Plan, made: Preview) -> bool:
    """Say whether a quarter of all errors, or more, are as large as the answer to some part."""
    if not plan.offers:
        return any(_drowns(part, made) for part in plan.parts)
    law = plan.chosen.prediction.typical
    if law is None:
        return False
    expected = partial(plan.query.expected, made.dataset)
    answer = made.once(f"answer to {plan.query}", expected)
    try:
        sizes = np.abs(np.asarray(answer, dtype=np.float64))
    except (TypeError, ValueError):
        return False
    known = sizes[~np.isnan(sizes)]
    return bool(len(known)) and bool(np.median(known) <= law.of_one().half_width(0.75))


def _together(plans: list[Plan]) -> Plan:
    """Return a plan whose errors are those of several plans for the same question alike."""
    first = plans[0]
    if len(plans) == 1:
        return first
    offers = tuple(
        replace(
            offer,
            prediction=replace(
                offer.prediction,
                typical=_mixture([plan.offers[i].prediction.typical for plan in plans]),
            ),
        )
        for i, offer in enumerate(first.offers)
    )
    parts = tuple(_together([plan.parts[i] for plan in plans]) for i in range(len(first.parts)))
    columns = tuple(
        (name, _mixture([dict(plan.columns).get(name) for plan in plans]))
        for name, _ in first.columns
    )
    mixed = replace(first, offers=offers, parts=parts, columns=columns)
    return replace(mixed, predicted=_mixture([plan.predicted for plan in plans]))


@dataclass(frozen=True)
class MixedLaw(SampledLaw):
    """The errors of several laws, one as likely as the other. For predictions only."""

    one: SampledLaw | None = None
    """Those of one entry, where the law is that of many at once."""
    name: ClassVar[str] = "mixed"

    def of_one(self) -> ErrorLaw:
        """Return the law of one entry."""
        return self if self.one is None else self.one


_LEVELS = 257
"""At so many levels laws are looked at, to mix them."""


def _mixture(laws: list[ErrorLaw | None]) -> ErrorLaw | None:
    known = [law for law in laws if law is not None]
    if not known or len({id(law) for law in known}) == 1:
        return known[0] if known else None
    return MixedLaw(_sizes(known), SampledLaw(_sizes([law.of_one() for law in known])))


def _sizes(laws: list[ErrorLaw]) -> tuple[float, ...]:
    levels = [(place + 0.5) / _LEVELS for place in range(_LEVELS)]
    return tuple(sorted(law.half_width(level) for law in laws for level in levels))


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
