"""Unreasonable sizes are refused at once, before anything is paid or drawn.

Every public callable that takes a number is called with absurd ones in each such place. It answers
or refuses; it neither runs on nor fails with an error of another library. A callable without a line
here fails the test, so that a new one is tried too.
"""

from __future__ import annotations

import inspect
import signal
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal

import numpy as np
import pytest

import tulle
from tulle import attacks, audit, genomes, metrics, models, noise, surveys
from tulle.core import registry, validate
from tulle.core.validate import whole
from tulle.planning.planner import make_plan

SECONDS = 20
ABSURD = (10**30, 10**400, -1, float("nan"), float("inf"))
STRANGE = (np.array([1]), "9" * 5000, -(10**5000), Decimal("sNaN"), 1j, np.True_, b"1")
GRAPH = tulle.Graph.from_edges([(i, (i + s) % 9) for i in range(9) for s in (1, 2)], nodes=9)
TRIPS = tulle.Contributions([1, 2, 3], [0, 1, 0], [0, 0, 1], rows=2, columns=2)
FREE = tulle.Contributions([1, 2, 3], ["a"] * 3, ["b"] * 3)
VOTES = tulle.BinaryMatrix([[0, 1], [1, 1]])
STUDY = tulle.Genotypes([[0, 1], [2, 1]], cases=[1, 0])
PURE = tulle.Guarantee.of("edge", epsilon=1)
LOOSE = tulle.Guarantee.of("edge", epsilon=1, delta="1e-6")
PEOPLE = models.Table({"a": [1.0, 2.0], "b": [0.0, 1.0]}, bounds={"a": (0, 5), "b": (0, 1)})


def edge(query):
    return tulle.release(GRAPH, query, unit="edge", epsilon=1, delta="1e-6")


def person(data, query):
    return tulle.release(data, query, unit="participant", epsilon=1, delta="1e-6")


def series(**declared):
    terms = {"every": "day", "first": "2026-01-05", "steps": 3, "bound": 1, **declared}
    return tulle.Series(["a"], ["2026-01-05"], **terms)


CALLS = {
    **{
        name: lambda n, name=name: edge(getattr(tulle, name)(n))
        for name in (
            *("cliques", "cycles", "paths", "stars", "k_triangles", "eigenvalues", "spectrum"),
            *("degree_of", "triangles_at", "clustering", "joint_degrees"),
        )
    },
    "joint_degrees ratio": lambda n: edge(tulle.joint_degrees(ratio=n)),
    "power": lambda n: tulle.release(
        GRAPH, tulle.spectrum(2), unit="edge", epsilon=1, mechanism="power_pure", iterations=n
    ),
    "Graph.from_edges": lambda n: tulle.Graph.from_edges([(0, 1)], nodes=n),
    "low_rank": lambda n: tulle.low_rank(n),
    "synthetic_per_node": lambda n: tulle.release(
        GRAPH, tulle.synthetic_per_node("city", n), unit="node", epsilon=1
    ),
    "block_partition": lambda n: person(TRIPS, tulle.block_partition(n)),
    "block_partition pieces": lambda n: person(TRIPS, tulle.block_partition(pieces=n)),
    "block_bounds": lambda n: person(TRIPS, tulle.block_bounds(n, [1, 2])),
    "block_bounds error_at": lambda n: person(TRIPS, tulle.block_bounds(None, [1], error_at=n)),
    **{
        f"found_cells {name}": lambda n, name=name: person(
            FREE, tulle.found_cells(**{"cells_per_person": 1, name: n})
        )
        for name in ("cells_per_person", "bound", "minimum", "top")
    },
    **{
        f"weights {name}": lambda n, name=name: person(
            TRIPS, tulle.weights(**{"bound": 1, name: n})
        )
        for name in ("bound", "total", "length", "blocks", "quantile", "step", "about")
    },
    "Contributions": lambda n: tulle.Contributions([1], [0], [0], rows=n, columns=2),
    "Contributions grid": lambda n: tulle.Contributions([1], [0], [0], rows=2**30, columns=2**30),
    "BinaryMatrix": lambda n: tulle.BinaryMatrix([[0, 1]], threshold=n),
    "xor": lambda n: tulle.release(
        VOTES, tulle.xor("general", pi=[[n, 0], [0, n]]), unit="row", epsilon=1
    ),
    "error_curve": lambda n: tulle.error_curve(tulle.edges(), GRAPH, [1], unit="edge", runs=n),
    "Series steps": lambda n: series(steps=n),
    "Series bound": lambda n: series(bound=n),
    "Series first": lambda n: series(first="9999-12-30"),
    "linear gamma": lambda n: person(PEOPLE, models.linear("b", gamma=n)),
    "linear norm": lambda n: person(PEOPLE, models.linear("b", norm=n)),
    "linear bits": lambda n: person(PEOPLE, models.linear("b", bits=n)),
    "logistic": lambda n: models.logistic("b", gamma=n, norm=n),
    "Table": lambda n: models.Table({"a": [1]}, bounds={"a": (0, 1)}, about=n),
    "Table bounds": lambda n: models.Table({"a": [1]}, bounds={"a": (0, n)}),
    "top_snps": lambda n: person(STUDY, genomes.top_snps(n, ratio=1)),
    "top_snps ratio": lambda n: person(STUDY, genomes.top_snps(1, ratio=n)),
    "allele_counts": lambda n: person(STUDY, genomes.allele_counts([n])),
    "plan_design": lambda n: surveys.plan_design(n, epsilon=1),
    "Survey": lambda n: tulle.Survey({"q": n}),
    "LinkForm": lambda n: surveys.LinkForm(n, surveys.RandomizedResponse.of(2, epsilon=1)),
    "belief_limits": lambda n: attacks.belief_limits("0.5", PURE, units=n),
    "success_limit": lambda n: attacks.success_limit("0.5", LOOSE, units=n),
    "success_limit values": lambda n: attacks.success_limit("0.5", PURE, values=n),
    "rate_interval": lambda n: attacks.rate_interval(1, n),
    "betweenness": lambda n: metrics.betweenness(GRAPH, sources=n),
    "measure_distances": lambda n: metrics.measure_distances(GRAPH, sources=n),
    "lower_bound": lambda n: audit.lower_bound(lambda one, k: np.zeros(k), [(0, 1)], samples=n),
    "audit.power": lambda n: audit.power(epsilon=1, samples=n),
    "audit.power epsilon": lambda n: audit.power(epsilon=n, samples=1000),
    "audit.power pairs": lambda n: audit.power(epsilon=1, samples=1000, pairs=n),
    "find_pairs": lambda n: audit.find_pairs(GRAPH, "edge", n),
    "noise.discrete_laplace": lambda n: noise.discrete_laplace(scale=1, size=n),
    "noise.bernoulli": lambda n: noise.bernoulli("1/3", size=n),
    "release": lambda n: tulle.release(GRAPH, tulle.edges(), unit="edge", epsilon=n),
    "interval": lambda n: edge(tulle.edges()).interval(n),
    "sql": lambda n: tulle.sql("SELECT g, COUNT(*) FROM t GROUP BY g", keys_per_person=n),
}


class RunsOnError(BaseException):
    """No Exception: the audit takes those of what it tests for answers, and goes on."""


@contextmanager
def in_time():
    """Stop what runs on."""

    def stop(number, frame):
        raise RunsOnError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", CALLS)
def test_absurd_numbers_are_refused_or_answered_at_once(name):
    for number in (*ABSURD, *STRANGE):
        with in_time():
            try:
                CALLS[name](number)
            except tulle.TulleError as error:
                # A long number is not written out; a text may be a name.
                assert len(str(error)) < 1000 or isinstance(number, str)  # noqa: PT017


def test_a_size_without_a_limit_would_be_caught(monkeypatch):
    monkeypatch.setattr(validate, "whole", lambda *, at_least, at_most=None, **named: whole(
        at_least=at_least, at_most=None, **named))  # fmt: skip
    monkeypatch.setattr(f"{__name__}.SECONDS", 2)
    caught = 0
    for name in ("cliques", "lower_bound", "find_pairs", "noise.bernoulli", "Contributions"):
        try:
            test_absurd_numbers_are_refused_or_answered_at_once(name)
        except (RunsOnError, Exception):  # noqa: BLE001 - it runs on, or fails with whatever it is
            caught += 1
    assert caught >= 3


def leaves(value):
    """Yield what a question or the settings of a run hold."""
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def plans(name, number, monkeypatch):
    """Return the plans that a call makes before anything is drawn."""
    made = []

    def watched(*given, **named):
        made.append(make_plan(*given, **named))
        raise tulle.TulleError("Nothing is drawn here.")

    monkeypatch.setattr("tulle.ledger.answer.make_plan", watched)
    with suppress(tulle.TulleError), in_time():
        CALLS[name](number)
    return made


def test_numbers_of_numpy_do_not_reach_a_mechanism(monkeypatch):
    """They run over: 16 to the power of one is 0, and so is what noise is scaled by."""
    looked = 0
    for name in CALLS:
        for number in (np.int8(4), np.int64(16), np.uint8(2), np.float32(0.5)):
            for plan in plans(name, number, monkeypatch):
                looked += 1
                settings = [offer.settings for offer in plan.offers]
                found = [item for item in leaves([plan.query, settings]) if type(item) in KEPT]
                assert not found, (name, number)
    assert looked > 60


KEPT = {np.int8, np.int64, np.uint8, np.float32}


def test_a_question_that_keeps_what_it_was_given_would_be_caught(monkeypatch):
    asked = replace(models.linear("b"), bits=np.int8(4))
    assert {type(item) for item in leaves(asked)} & KEPT
    with pytest.raises((ValueError, ArithmeticError)):
        person(PEOPLE, asked)


NUMBERS = {"int", "Number", "float"}


def numbered(item) -> list[str]:
    """Return the parameters of a callable that are written as numbers."""
    try:
        parameters = inspect.signature(item).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if set(str(p.annotation).split(" | ")) & NUMBERS]


def test_every_question_that_takes_a_number_is_tried():
    """Made-up values, and what only holds released ones, need no line."""
    tried = {name.split()[0].split(".")[-1] for name in CALLS}
    questions = {
        name
        for kind in ("graph", "contributions", "matrix", "table", "genotypes")
        for name in registry.find("query", kind)
        if numbered(registry.find("query", kind)[name])
    }
    assert questions
    assert questions <= tried, questions - tried
