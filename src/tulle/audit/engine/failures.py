"""Neighbours fail alike: the same error or none, the same plan, the same public words."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView
from tulle.audit.engine.world import World
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.ledger.answer import plan_for, release
from tulle.noise import SeededSource

ALIKE = "neighbours fail alike"


def speak(act: Callable[[], Any]) -> str:
    """Return what an act says: its result's text or its error, and its warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            said = f"gives {act()}"
        except Exception as error:  # noqa: BLE001 - any error at all must be the same
            said = f"raises {type(error).__name__}: {error}"
    return " | ".join([said, *(str(warning.message) for warning in warned)])


def public_words(dataset: Dataset, unit: str) -> list[str]:
    """Return all that a sealed dataset says about itself without being asked for a release."""
    return [
        speak(lambda: repr(dataset)),
        speak(lambda: str(dataset)),
        speak(lambda: f"{dataset:>40}"),
        speak(lambda: pickle.dumps(dataset)),
        speak(lambda: copy.copy(dataset)),
        speak(lambda: copy.deepcopy(dataset)),
        speak(lambda: dataset.facts(dataset.check_unit(unit))),
    ]


def public_part(answer: Release, private: Sequence[str]) -> str:
    """Return all of a release but the private answer and other entries that are private."""
    return repr(_without_answers(answer.to_json(), {"value", *private}))


def _without_answers(written: dict[str, Any], private: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in written.items() if name not in private}
    for part in ("error", "parameters"):
        if kept.get(part) is not None:
            kept[part] = {n: v for n, v in kept[part].items() if n not in private}
    kept["parts"] = {n: _without_answers(part, private) for n, part in kept["parts"].items()}
    return kept


def check_alike(
    kind: AuditView,
    world: World,
    questions: Sequence[Query],
    budgets: Sequence[tuple[Any, Any]],
    mechanisms: Sequence[str | None],
) -> Finding:
    """Ask every dataset the same odd questions; neighbours must give the same words.

    Compared are the plan's text, the error's type and text, warnings, and of a release all but
    the private numbers. Runs are drawn from a replayable source, which voids their guarantee.
    """
    asked = [(q, e, d, m) for q in questions for e, d in budgets for m in mechanisms]
    said = [_all_words(kind, dataset, world.unit.name, asked) for dataset in world.datasets]
    differing = [
        (a, b)
        for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True)
        if said[a] != said[b]
    ]
    figure, witness = f"{len(asked)} questions each", ""
    if differing:
        a, b = differing[0]
        pair = next(pair for pair in zip(said[a], said[b], strict=True) if pair[0] != pair[1])
        figure = f"{pair[0]!r} but {pair[1]!r}"
        witness = f"{kind.show(world.datasets[a])} | {kind.show(world.datasets[b])}"
    return Finding(
        "all",
        "odd questions",
        ALIKE,
        len(world.first) * len(asked),
        float("inf") if differing else 0.0,
        not differing,
        figure,
        witness,
    )


def _all_words(
    kind: AuditView,
    dataset: Dataset,
    unit: str,
    asked: Sequence[tuple[Query, Any, Any, str | None]],
) -> list[str]:
    words = public_words(dataset, unit)
    known = registry.mechanisms(kind.name)
    for query, epsilon, delta, mechanism in asked:
        terms: dict[str, Any] = {
            "unit": unit,
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": mechanism,
        }
        options = {} if mechanism is None else kind.options(known[mechanism])[0]
        words.append(speak(partial(plan_for, dataset, query, **terms, options=options)))
        words.append(speak(partial(_public_release, kind, dataset, query, {**terms, **options})))
    return words


def _public_release(kind: AuditView, dataset: Dataset, query: Query, terms: dict[str, Any]) -> str:
    return public_part(release(dataset, query, source=SeededSource(1), **terms), kind.private)
