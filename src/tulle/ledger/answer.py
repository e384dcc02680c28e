"""The one way from data to a release: look up what is public, plan, draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from math import isinf
from typing import Any, NamedTuple

from tulle.core import registry
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, forget
from tulle.core.mechanism import Outcome
from tulle.core.plan import Offer, Plan
from tulle.core.public import public
from tulle.core.query import Composite, Expression, Query
from tulle.core.release import Release, noisy_values
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import Number, today
from tulle.planning.planner import make_plan


@public("Plan, pay, release")
def release(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    source: Source | None = None,
    **options: Any,
) -> Release:
    """Answer one question about a dataset, without a ledger.

    Nobody adds up what was spent this way; use :class:`tulle.Ledger` when more than one answer
    about the same data will be published.

    Guarantee:
        (epsilon, delta) for the unit named, as written in ``release.guarantee``.

    Raises:
        InputError: for arguments out of range; its subclasses say what is allowed.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
        >>> print(r.guarantee)
        epsilon = 1, pure, per edge (add-remove)
    """
    check_stand_in(dataset, query, like)
    held = protect(dataset, unit)
    made = _plan(held, query, epsilon, delta, mechanism, like, options)
    return _draw(made, held, source, debit=None, day=today())


@public("Plan, pay, release")
def plan(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    people: Any = None,
    rows_per_person: Any = None,
    values: Any = None,
    **options: Any,
) -> Plan:
    """Show which mechanisms could answer a question, their price and predicted error.

    Nothing is spent, and nothing private is looked at: a plan is the same on all data with the same
    public facts.

    ``like`` is a dataset that you declare public, similar to the one at hand: errors that depend on
    the data are predicted on it, and the way to answer is chosen by it; give it to ``release`` too.

    Without it, errors of a question in SQL are predicted on a database that is made up of the
    schema, the declared ranges, the public groups, and the constants of the statement. What else it
    rests on is an assumption, which the plan states: ``people`` is how many there are, by kind if
    there are several (``{"customer": 5000, "shop": 40}``); ``rows_per_person`` in how many rows of
    a table each of them is on average, by table if they differ (``{"orders": 10}``), and the most
    of anybody if few have far more (``{"orders": (10, 400)}``); ``values`` what columns hold: a
    number of different values, a list, a pair of ends (``{"orders.day": ("2024-01-01",
    "2024-12-31")}``), or a formula of other columns (``{"line.cost": "= pieces * price"}``). An
    assumption changes what is predicted, and never what is done.

    Raises:
        InputError: for arguments out of range; its subclasses say what is allowed.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> tulle.plan(square, tulle.edges(), unit="edge", epsilon=1.0).mechanism
        'laplace'
    """
    check_stand_in(dataset, query, like)
    return plan_for(
        dataset,
        query,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        like=like,
        options=options,
        assumed={"people": people, "rows_per_person": rows_per_person, "values": values},
    )


def check_stand_in(dataset: Dataset, query: Query, like: Dataset | None) -> None:
    """Refuse the dataset itself as its stand-in, or as a reference within the question.

    Whether two datasets have the same records is not looked at: that would tell about them.

    Raises:
        InputError: when it is the same object, was made of it, or is no dataset.
    """
    if like is not None and not isinstance(like, Dataset):
        raise InputError(f"like= is a dataset that is public; got {type(like).__name__}.")
    given = [*([] if like is None else [like]), *_datasets(query)]
    if any(one.origin is dataset.origin for one in given):
        raise InputError(
            "The stand-in is the dataset itself: what is planned on it would be read off its "
            "records, and no epsilon covers that. Give like= (or reference=) other data that is "
            "public, or leave it out."
        )


def _datasets(value: Any) -> Iterator[Dataset]:
    """Yield the datasets that a question holds."""
    if isinstance(value, Dataset):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _datasets(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _datasets(part)


class Protected(NamedTuple):
    """A dataset as it is protected under a unit, and what is public about it then."""

    dataset: Dataset
    unit: Unit
    facts: Facts
    public: Any


def protect(dataset: Dataset, unit: str | Unit) -> Protected:
    """Look up what is public about a dataset under a unit; whatever follows works with that.

    Raises:
        InputError: when it is no sealed dataset, or has no such unit.
    """
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"A sealed dataset is needed, such as tulle.Graph.read(...); got "
            f"{type(dataset).__name__}."
        )
    known = dataset.check_unit(unit)
    dataset = dataset.under(known)
    return Protected(dataset, known, dataset.facts(known), dataset.public_side(known))


def _plan(
    held: Protected,
    query: Query,
    epsilon: Number,
    delta: Number,
    mechanism: str | None,
    like: Dataset | None,
    options: Mapping[str, Any] | None,
    composed: bool = False,
) -> Plan:
    return make_plan(
        query,
        kind=held.dataset.kind,
        facts=held.facts,
        public=held.public,
        assumptions=held.dataset.assumptions(held.unit),
        unit=held.unit,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        like=like.under(held.unit) if isinstance(like, Dataset) else like,
        options=options,
        composed=composed,
    )


def plan_for(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    options: Mapping[str, Any] | None = None,
    composed: bool = False,
    assumed: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a question about a dataset from its public facts; nothing is spent.

    ``composed`` says that an account adds the price up by divergences. With ``assumed``, which may
    be empty, errors are predicted also where no ``like`` is given.
    """
    held = protect(dataset, unit)
    made = _plan(held, query, epsilon, delta, mechanism, like, options, composed)
    if assumed is None:
        return made
    if like is not None:
        said = [f"{name}=" for name, value in assumed.items() if value is not None]
        if said:
            raise InputError(
                f"{', '.join(said)} and like= exclude each other: errors are predicted either on "
                "what is assumed or on a dataset that is given."
            )
        return made
    from tulle.planning.preview import preview

    return preview(made, facts=held.facts, public=held.public, unit=held.unit, assumed=assumed)


def kind_of_source(source: Source | None) -> str:
    """Say whether answers from this source keep their guarantee, as ledgers book it.

    Raises:
        InputError: when it is none.
    """
    if source is not None and not isinstance(source, Source):
        raise InputError(f"source must be a Source or None; got {type(source).__name__}.")
    return "secure" if source is None or type(source).secure else "replayable"


def draw(
    plan: Plan,
    dataset: Dataset,
    source: Source | None,
    *,
    debit: str | None,
    day: str | None = None,
) -> Release:
    """Draw what a plan says. The price has been paid when this is called.

    The answer is dated ``day``, by default today's. It is the day on which drawing began: that on
    which it ended, and any finer time, would tell how long the answer took.
    """
    return _draw(plan, protect(dataset, plan.unit), source, debit=debit, day=day or today())


def _draw(
    plan: Plan, held: Protected, source: Source | None, *, debit: str | None, day: str
) -> Release:
    guarantee = plan.guarantee
    if kind_of_source(source) != "secure":
        guarantee = guarantee.void()
    parts: dict[str, Release] = {}
    if plan.parts or isinstance(plan.query, Expression | Composite):
        parts = {
            str(part.query): _draw(part, held, source, debit=debit, day=day) for part in plan.parts
        }
        mechanism, outcome = plan.mechanism, _put_together(plan, parts)
        parameters = outcome.details
    else:
        offer = plan.offers[0]
        mechanism, outcome = offer.mechanism, _run(offer, held.dataset, source)
        parameters = {**offer.settings, **outcome.details}
    return Release(
        value=outcome.value,
        query=str(plan.query),
        mechanism=mechanism,
        guarantee=guarantee,
        error=outcome.error,
        parameters=parameters,
        debit=debit,
        versions=_versions(),
        parts=parts,
        labels=plan.query.labelled(held.public, parameters),
        date=day,
    )


def _put_together(plan: Plan, parts: Mapping[str, Release]) -> Outcome:
    """Compute an answer from those of its parts."""
    expression = plan.expression
    if expression is None:
        assert isinstance(plan.query, Composite)
        table, parameters = plan.query.assemble(parts)
        return Outcome(table, None, parameters)
    from tulle.core.expression_error import estimate

    tree = expression.tree()
    low, high = plan.query.limits()
    value = min(max(estimate(tree, *noisy_values(parts)), low), high)
    ends = {} if isinf(low) else {"range": [low, high]}
    return Outcome(value, None, {"expression": tree} | ends)


def _run(offer: Offer, dataset: Dataset, source: Source | None) -> Outcome:
    """Let the mechanism draw."""
    import numpy as np

    mechanism = registry.make_mechanism(offer.terms.query.kind, offer.mechanism)
    try:
        # Whether a number overflows on the way may depend on records; nobody outside is told.
        with np.errstate(all="ignore"):
            return mechanism.run(offer.terms, offer.settings, dataset, source)
    except BaseException as error:
        forget(error)  # the frames that it came through hold records
        raise


def _versions() -> dict[str, str]:
    import platform

    import numpy

    import tulle

    return {
        "tulle": tulle.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }
