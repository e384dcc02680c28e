"""Before anything is spent: which mechanisms could answer, at what price, how wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tulle.core import registry, validate
from tulle.core.dataset import Dataset, Facts
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Composed, noise_of, price
from tulle.core.guarantee import Guarantee, display, epsilon_of_rho, floor_to, largest_rho
from tulle.core.mechanism import Mechanism, Prediction, Terms
from tulle.core.plan import Offer, Plan
from tulle.core.query import Composite, Expression, Query, Tree, kind_of
from tulle.core.unit import Unit
from tulle.core.validate import Number, counted

if TYPE_CHECKING:
    from tulle.planning.budget_split import Split

GIVEN = "the public stand-in given as like="

VAGUE, SURE = 0.5, 0.25
"""Which part of a budget is divided evenly among the parts of a table."""

DECOMPOSED = "decomposed"
"""The name of the route that answers a question through the expression that equals it."""


def make_plan(
    query: Query,
    *,
    kind: str,
    facts: Facts,
    public: Any = None,
    assumptions: tuple[str, ...] = (),
    unit: Unit,
    epsilon: Number,
    delta: Number = 0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    options: Mapping[str, Any] | None = None,
    composed: bool = False,
) -> Plan:
    """Plan a question from public facts, and from ``like``, a dataset that is declared public.

    The question is bound here, once: to ``public``, the public side of the dataset, or to the facts
    alone where there is none at hand. ``assumptions`` are what every guarantee about the data rests
    on, in words. ``composed`` says that an account adds the price up by divergences.

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
    query = query.asked_of(kind)
    if kind_of(query) != kind:
        raise QueryError(f"{query} asks about a {kind_of(query)}, but the data is a {kind}.")
    query = query.bound_to(facts) if public is None else query.bind(public, facts)
    if like is not None and like.kind != kind:
        raise InputError(f"like= must be a public {kind}; got a {like.kind}.")
    if like is None:
        like, described = _stand_in(kind, unit, facts)
    else:
        described = GIVEN
    said = (each for part in (query, *query.parts()) for each in part.assumptions())
    terms = Terms(query, unit, epsilon, delta, facts, (*assumptions, *said), composed)
    if isinstance(query, Expression):
        return _plan_expression(query, terms, mechanism, like, described, options or {})
    if isinstance(query, Composite):
        return _plan_composite(query, terms, mechanism, like, described, options or {})
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
    known = registry.mechanisms(kind, terms.query, terms.unit.base)
    named = registry.find("mechanism", kind)
    route = terms.query.decomposition()
    together = route is not None and (
        mechanism == DECOMPOSED or (mechanism is None and not terms.query.parts_when_named)
    )
    if mechanism is not None and mechanism not in named and not together:
        raise QueryError(
            f"There is no mechanism {mechanism!r} for a {kind}.{validate.meant(mechanism, named)} "
            f"Known: {', '.join(named)}."
        )
    if mechanism is not None and mechanism in named:
        known |= {mechanism: registry.make_mechanism(kind, mechanism)}
    if not together:
        _check_answerable(terms, kind, known)
    offers: list[Offer] = []
    refused: list[tuple[str, str]] = []
    if route is not None and together:
        try:
            offers.append(_offer_route(route, terms, like, described, options))
        except QueryError as error:
            if mechanism is not None:
                raise
            refused.append((DECOMPOSED, str(error)))
    for name, item in known.items():
        if mechanism is None and not item.offers(terms.query, terms.unit):
            continue
        if mechanism is not None and (name != mechanism or together):
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
            chosen = options if mechanism is not None else {}
            if like is not None:
                chosen = chosen if described == GIVEN else item.usual(terms, chosen)
                chosen = item.tune(terms, chosen, like)
            settings = item.settings(terms, chosen)
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
                item.guarantee(terms, settings).assuming(
                    (*terms.assumptions, *registry.caveat(item))
                ),
                item.predict(terms, settings, like),
                item.event(terms, settings),
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
    offers.sort(key=lambda offer: (offer.prediction.rank(), offer.prediction.relative))
    needed = any(o.prediction.typical != o.prediction.bound for o in offers)
    return Plan(
        terms.query,
        terms.unit,
        offers[0].guarantee,
        tuple(offers),
        tuple(refused),
        () if offers[0].plan is None else offers[0].plan.parts,
        stand_in=described if needed else None,
    )


def _offer_route(
    route: Expression,
    terms: Terms,
    like: Dataset | None,
    described: str | None,
    options: Mapping[str, Any],
) -> Offer:
    """Return the offer to answer a question through the expression that equals it."""
    if options:
        raise InputError(f"The route {DECOMPOSED!r} has no options; got {', '.join(options)}.")
    limits = terms.query.limits()
    plan = _plan_expression(
        route, replace(terms, query=route), None, like, described, {}, limits=limits
    )
    return Offer(
        terms,
        DECOMPOSED,
        str(route),
        {"expression": route.tree()},
        plan.guarantee,
        Prediction(None, plan.predicted),
        plan.event,
        plan,
    )


def _check_answerable(terms: Terms, kind: str, known: Mapping[str, Mechanism]) -> None:
    if any(item.supports(terms.query, terms.unit) for item in known.values()):
        return
    from tulle.core.unit import UNITS

    known = registry.mechanisms(kind, terms.query)
    others = [
        unit.name
        for unit in UNITS.values()
        if unit.period is None and any(item.supports(terms.query, unit) for item in known.values())
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
    *,
    limits: tuple[float, float] = (-float("inf"), float("inf")),
) -> Plan:
    from tulle.core.expression_error import slopes, slopes_nearby, variance_of
    from tulle.planning.budget_split import Split, choose_split, deviations_of, even_shares

    leaves = query.parts()
    kind = kind_of(query)
    tree = query.tree()
    # A generated stand-in is a guess at the data; one that the user gives is meant to be like it.
    vague = described != GIVEN
    # Each leaf's truth is asked of the public stand-in once.
    values = None if like is None else {str(leaf): float(leaf.truth(like)) for leaf in leaves}

    def plan_leaf(leaf: Query, share: Fraction) -> Plan:
        part = _part_of(terms, leaf, share, len(leaves))
        return _plan_leaf(part, kind, mechanism, like, described, options)

    def plan(shares: Sequence[Fraction]) -> Split:
        parts = tuple(plan_leaf(leaf, share) for leaf, share in zip(leaves, shares, strict=True))
        law = _predict(tree, values, parts, limits)
        error = float("inf") if law is None else law.half_width(0.5)
        return Split(tuple(shares), parts, error, law)

    def deviations(split: Split) -> list[float]:
        laws = _laws(split.plans)
        if laws is None or values is None:
            return [float("inf")] * len(leaves)
        variances = {name: variance_of(law) for name, law in laws.items()}
        slope = slopes_nearby(tree, values) if vague else slopes(tree, values)
        return deviations_of(slope, variances, [str(leaf) for leaf in leaves])

    if values is None:
        split = plan(even_shares(len(leaves)))
    else:
        split = choose_split(len(leaves), plan, deviations, vague=vague)
    parts = split.plans
    return Plan(
        query,
        terms.unit,
        Guarantee.compose(part.guarantee for part in parts),
        (),
        (),
        parts,
        next((part.stand_in for part in parts if part.stand_in), None),
        split.law,
        split.shares,
    )


def _part_of(terms: Terms, leaf: Query, share: Fraction, count: int) -> Terms:
    """Return the terms of one of several questions, at its share of the budget.

    Shares are rounded down, so the parts never add up to more than was asked.
    """
    part = replace(
        terms,
        query=leaf,
        epsilon=floor_to(terms.epsilon * share, 12),
        delta=terms.delta * share,
    )
    if part.epsilon < validate.LEAST_EPSILON:
        raise InputError(
            f"epsilon = {display(terms.epsilon)} is too small to divide among "
            f"{counted(count, 'question')}."
        )
    return part


def _plan_composite(
    query: Composite,
    terms: Terms,
    mechanism: str | None,
    like: Dataset | None,
    described: str | None,
    options: Mapping[str, Any],
) -> Plan:
    """Plan every part at its share; the shares are those with the least error to expect."""
    from tulle.core.expression_error import variance_of
    from tulle.planning.budget_split import best_shares, even_shares, rounded

    leaves = query.parts()
    kind = kind_of(query)
    known = like is not None and query.weighed
    values = {str(leaf): leaf.truth(like) for leaf in leaves} if known else None

    def named(leaf: Query) -> str | None:
        """Return the mechanism that the user named, if it answers this part."""
        known = registry.find("mechanism", kind)
        if mechanism is None or mechanism not in known or len(leaves) == 1:
            return mechanism
        made = registry.make_mechanism(kind, mechanism)
        answered = [made.supports(one, terms.unit) for one in leaves]
        return mechanism if made.supports(leaf, terms.unit) or not any(answered) else None

    def plan_parts(shares: Sequence[Fraction]) -> tuple[Plan, ...]:
        found = []
        for leaf, share in zip(leaves, shares, strict=True):
            part = _part_of(terms, leaf, share, len(leaves))
            chosen = named(leaf)
            given = options if chosen is not None or mechanism is None else {}
            found.append(_plan_leaf(part, kind, chosen, like, described, given))
        return tuple(found)

    shares = even_shares(len(leaves))
    laws = None if values is None else _laws(plan_parts(shares))
    if len(leaves) > 1:
        if laws is None:
            deviations = query.spreads(None, None)
        else:
            deviations = query.spreads(
                values, {n: variance_of(law) ** 0.5 for n, law in laws.items()}
            )
        best = best_shares([float(share) for share in shares], deviations, [1.0] * len(leaves))
        # What a part does to the whole is known to first order, and without a stand-in that is
        # meant to be like the data, a guess: then no part gets less than half of an equal share.
        mixed = SURE if described == GIVEN and laws is not None else VAGUE
        even = 1 / len(leaves)
        shares = rounded([(1 - mixed) * one + mixed * even for one in best])
    parts = plan_parts(shares)
    price = Guarantee.compose(part.guarantee for part in parts)
    concentrated = None
    if terms.delta and len(leaves) > 1 and not options:
        named_by_user = [named(leaf) or mechanism for leaf in leaves]
        concentrated = _plan_concentrated(terms, parts, shares, named_by_user, like, described)
    if concentrated is not None:
        parts, price = concentrated
    predicted = {str(part.query): part.chosen.prediction for part in parts}
    expected = {name: found.typical or found.bound for name, found in predicted.items()}
    return Plan(
        query,
        terms.unit,
        price,
        (),
        (),
        parts,
        next((part.stand_in for part in parts if part.stand_in), None),
        None,
        shares,
        query.predict(values, expected),
    )


def _plan_concentrated(
    terms: Terms,
    parts: Sequence[Plan],
    shares: Sequence[Fraction],
    named: Sequence[str | None],
    like: Dataset | None,
    described: str | None,
) -> tuple[tuple[Plan, ...], Guarantee] | None:
    """Plan all parts with Gaussian noise, which adds up by rho; None if that is worse for one.

    Each part gets its share of the rho that implies (epsilon, delta), where by itself it would get
    the rho of its share of epsilon: a share of k parts is about k times as much. The price of all
    parts is worked out from what they state to be added.
    """
    from tulle.core.gaussian import largest_rho_alone

    # By itself the noise of all parts costs less than its rho says, if it is wide enough; how
    # wide it is, and with that the price, is known when the parts are.
    least = largest_rho(terms.epsilon, terms.delta)
    wide = least if terms.composed else largest_rho_alone(terms.epsilon, terms.delta, _WIDE)
    for part in (Fraction(1, 100), Fraction(1, 8), Fraction(1, 2), Fraction(1)):
        rho = wide + (least - wide) * (part if wide > least else 1)
        found = _plan_at_rho(terms, rho, parts, shares, named, like, described)
        if found is None:
            # Less rho would be worse still.
            return None
        spent, _ = price(Composed(tuple(plan.event for plan in found)), terms.delta)
        if spent <= terms.epsilon:
            stated = Guarantee(terms.unit, spent, terms.delta)
            return found, stated.assuming(
                assumed for plan in found for assumed in plan.guarantee.assumptions
            )
        if rho == least:
            break
    return None


def _plan_at_rho(
    terms: Terms,
    rho: Fraction,
    parts: Sequence[Plan],
    shares: Sequence[Fraction],
    named: Sequence[str | None],
    like: Dataset | None,
    described: str | None,
) -> tuple[Plan, ...] | None:
    """Plan all parts with Gaussian noise of this rho in all; None if that is worse for one."""
    found = []
    for part, share, name in zip(parts, shares, named, strict=True):
        # A little less, since a part finds its own rho again from epsilon and delta.
        epsilon = floor_to(epsilon_of_rho(rho * share * (1 - _MARGIN), terms.delta), 12)
        if epsilon < validate.LEAST_EPSILON:
            return None
        kind = kind_of(part.query)
        known = registry.mechanisms(kind, part.query, terms.unit.base)
        offered = [
            one
            for one, item in known.items()
            if item.concentrated and name in (None, one) and item.supports(part.query, terms.unit)
        ]
        own = replace(terms, query=part.query, epsilon=epsilon, composed=True)
        plans = []
        for one in offered:
            with suppress(QueryError):
                plans.append(_plan_leaf(own, kind, one, like, described, {}))
        best = min(plans, key=_order, default=None)
        if best is None or _order(best) > _order(part):
            return None
        found.append(best)
    all_gaussian = all(noise_of(plan.event) is not None for plan in found)
    return tuple(found) if all_gaussian else None


_MARGIN = Fraction(1, 10**6)
_WIDE = Fraction(10**9)
"""The square of a sensitivity at which noise on whole numbers is as good as continuous."""


def _order(plan: Plan) -> tuple[float, float]:
    """Return what plans for one question are compared by: less is better."""
    return plan.chosen.prediction.rank(), plan.chosen.prediction.relative


def _laws(parts: Sequence[Plan]) -> dict[str, ErrorLaw] | None:
    """Return the error law to expect for each leaf, or None when one is not known."""
    found = {}
    for part in parts:
        prediction = part.chosen.prediction
        law = prediction.typical or prediction.bound
        if law is None:
            return None
        found[str(part.query)] = law
    return found


def _predict(
    tree: Tree,
    values: Mapping[str, float] | None,
    parts: Sequence[Plan],
    limits: tuple[float, float],
) -> ErrorLaw | None:
    from tulle.core.expression_error import predict_error

    laws = _laws(parts)
    if values is None or laws is None:
        return None
    return predict_error(tree, values, laws, limits)
