"""What every draw costs, added up under a watch: never more than the price, in any branch."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
import pytest

import tulle
from tulle.audit.engine.cost import Case, cases_of, cost_of, unspent, watch_runs
from tulle.core import registry
from tulle.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Disjoint,
    Gaussian,
    Pure,
    price,
)
from tulle.core.events import (
    Laplace as LaplaceEvent,
)
from tulle.core.mechanism import Mechanism, Outcome, Terms
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.genomes.one_shot import OneShot
from tulle.graphs.mechanisms.isotonic import Isotonic
from tulle.graphs.mechanisms.ladder import Ladder, SmoothedLadder
from tulle.graphs.mechanisms.laplace import Laplace
from tulle.graphs.mechanisms.projection import Projection
from tulle.graphs.mechanisms.smooth import Smooth, SmoothPure
from tulle.graphs.spectra.power import Power
from tulle.graphs.synthesis.auto.model import Auto
from tulle.graphs.synthesis.auto.schedule import schedule_of
from tulle.graphs.synthesis.models.topm import Rates, TopM
from tulle.graphs.topology.response import Response
from tulle.noise import discrete_laplace, geometric, post_processing
from tulle.noise.charge import CostError, LaplaceCharge, NoisyMaxCharge, charge
from tulle.noise.watch import disjoint, part, spend, watch

MECHANISMS = list(registry.every_mechanism())
NAMES = [f"{item.kind}-{item.name}" for item in MECHANISMS]

MOST_CASES = 24
"""So many runs of a mechanism are watched every day, of all its cases."""

REMAINDER = 0.01
"""A mechanism that leaves more of epsilon than this unspent gives accuracy away."""

UNSPENT = {
    # Its smoothness is for epsilon up to one: what is beyond it is not used.
    "joint_smooth": 0.5,
    # Both inequalities of its coins are equalities for one number of edges only.
    "synthetic_topm": 0.5,
    # Where no key is found nothing is bought for it; that all is spent where keys are found is
    # tested with the mechanism.
    "partition_selection": 1.0,
    "cell_selection": 1.0,
    # Many draws of one run add up to less than their sum where there is a delta, which the run
    # itself does not count on; without one it spends all (``audit/sql/private_ranges.py``).
    "private_ranges": 0.3,
}
"""Mechanisms that leave more than a hundredth of epsilon, and how much at most."""


@cache
def everyday_cases(place):
    """All cases of a mechanism; to find those that public facts allow takes longer than to run."""
    return list(cases_of(MECHANISMS[place]))


def few(place, count=MOST_CASES):
    """Some of the cases, from all over."""
    cases = everyday_cases(place)
    return cases[:: max(1, len(cases) // count)]


def check(mechanism, cases):
    runs = watch_runs(mechanism, cases)
    assert runs, "no case"
    for run in runs:
        assert run.good, (run.fault or float(run.cost.share), run.case.terms)
    assert unspent(runs) <= UNSPENT.get(mechanism.name, REMAINDER)
    assert any(run.cost.events for run in runs)


@pytest.mark.parametrize("place", range(len(MECHANISMS)), ids=NAMES)
def test_every_draw_is_charged_and_all_of_them_cost_the_price(place):
    check(MECHANISMS[place], few(place))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_every_draw_is_charged_on_all_cases(mechanism, size):
    check(mechanism, cases_of(mechanism, size))


class FarOut(Source):
    """Random bits in long runs of equal ones: draws come from far out in their tails."""

    secure = False

    def __init__(self, seed, runs):
        self.random, self.runs = np.random.default_rng(seed), runs

    def read(self, count):
        drawn = self.random.integers(0, 256, count, dtype=np.uint8)
        flat = np.repeat(self.random.random(-(-count // 8)) < self.runs, 8)[:count]
        drawn[flat] = self.random.choice([0, 255])
        return drawn.tobytes()


def far_out(case, seed):
    return replace(case, source=FarOut(seed, (0.3, 0.8)[seed % 2]))


@pytest.mark.parametrize("place", range(len(MECHANISMS)), ids=NAMES)
def test_no_noise_makes_a_run_fail_or_cost_more(place):
    cases = [far_out(case, seed) for seed, case in enumerate(few(place, 3))]
    assert all(run.good for run in watch_runs(MECHANISMS[place], cases))


@pytest.mark.slow
@pytest.mark.timed(1)
def test_no_noise_makes_any_run_fail_or_cost_more(drawn):
    places = range(len(MECHANISMS))
    for seed in drawn.seeds():
        mechanism = MECHANISMS[seed % len(places)]
        case = drawn.random.choice(everyday_cases(seed % len(places)))
        (run,) = watch_runs(mechanism, [far_out(case, seed)])
        assert run.good, (NAMES[seed % len(places)], seed, run.case.terms)


class Impatient(Laplace):
    """Draws a second time where the first noise was so large that it hardly ever is."""

    def run(self, terms, settings, dataset, source):
        found = super().run(terms, settings, dataset, source)
        if abs(found.value - terms.query.truth(dataset)) * terms.epsilon < 20:
            return found
        return super().run(terms, settings, dataset, source)


class Hasty(Laplace):
    """Fails where noise is as large."""

    def run(self, terms, settings, dataset, source):
        found = super().run(terms, settings, dataset, source)
        if abs(found.value - terms.query.truth(dataset)) * terms.epsilon > 20:
            raise OverflowError("too large")
        return found


@pytest.mark.parametrize("twin", [Impatient(), Hasty()], ids=lambda twin: type(twin).__name__)
def test_what_only_far_noise_shows_is_caught(twin):
    graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=100)
    terms = Terms(tulle.edges(), Unit.of("edge"), Fraction(1), Fraction(0), graph.facts("edge"))
    usual = [Case(terms, {}, graph)] * 200
    assert all(run.good for run in watch_runs(twin, usual))
    far = (far_out(case, seed) for seed, case in enumerate(usual))

    def holds(case):
        try:
            return watch_runs(twin, [case])[0].good
        except OverflowError:
            return False

    assert not all(map(holds, far))


def test_every_kind_and_unit_is_among_the_cases():
    seen = {
        (item.kind, case.terms.unit.name)
        for place, item in enumerate(MECHANISMS)
        if item.kind not in ("table", "contributions")
        for case in few(place, 6)
    }
    assert seen == {
        ("database", "participant"),
        ("graph", "edge"),
        ("graph", "node"),
        ("relation", "participant"),
        ("matrix", "row"),
        ("matrix", "cell"),
        ("genotypes", "row"),
        ("genotypes", "participant"),
    }


# --- auto: what it measures follows from what it measured before ------------------------------


def planted(nodes, groups, seed):
    random = np.random.default_rng(seed)
    pairs = np.array(np.triu_indices(nodes, 1)).T
    alike = pairs[:, 0] * groups // nodes == pairs[:, 1] * groups // nodes
    chance = np.where(alike, 0.9, 0.01)
    return tulle.Graph.from_edges(pairs[random.random(len(pairs)) < chance], nodes=nodes)


AUTO_GRAPHS = [
    planted(300, 6, 1),
    tulle.Graph.from_edges([], nodes=300),
    tulle.Graph.from_edges([(0, other) for other in range(1, 300)], nodes=300),
    tulle.Graph.from_edges([(u, v) for u in range(25) for v in range(u)], nodes=25),
]


@pytest.mark.parametrize("graph", AUTO_GRAPHS, ids=["communities", "empty", "star", "clique"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("options", [{}, {"blocks": "yes"}, {"parts": "reached,stars"}], ids=str)
def test_auto_spends_its_price_in_every_branch(graph, epsilon, options):
    assert auto_cost(graph, epsilon, options)[0] == epsilon


def auto_cost(graph, epsilon, options):
    """What the private part of auto costs, and the schedule that it took."""
    auto, unit = Auto(), Unit.of("edge")
    terms = Terms(tulle.synthetic("auto", **options), unit, epsilon, Fraction(0), graph.facts(unit))
    settings = auto.settings(terms, {})
    with watch() as events:
        seen = auto.measure(terms, settings, graph, None)
    return price(Composed(tuple(events)))[0], schedule_of(seen, settings)


def test_auto_takes_all_of_its_branches(monkeypatch):
    monkeypatch.setattr("tulle.graphs.synthesis.auto.schedule.core_size", lambda *_: 40)
    taken = set()
    for blocks in ("auto", "yes", "core", "no"):
        for epsilon in (Fraction(1), Fraction(40)):
            spent, schedule = auto_cost(AUTO_GRAPHS[0], epsilon, {"blocks": blocks})
            assert spent == epsilon
            taken.add(schedule)
    assert {"blocks", "core"} < taken


# --- broken versions --------------------------------------------------------------------------


def run_on_a_path(mechanism, query, epsilon=Fraction(1), delta=Fraction(0), **options):
    """Watch one run on a small graph."""
    path = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 2)], nodes=5)
    unit = Unit.of("node" if isinstance(mechanism, Projection) else "edge")
    terms = Terms(query, unit, epsilon, delta, path.facts(unit))
    (run,) = watch_runs(mechanism, [Case(terms, options, path)])
    return run


class TwiceDrawn(Laplace):
    """Draws two answers, charges for one and shows their mean."""

    def run(self, terms, settings, dataset, source):
        truth, scale = terms.query.truth(dataset), Fraction(settings["scale"])
        with charge(LaplaceCharge(settings["sensitivity"])):
            drawn = [truth + discrete_laplace(scale=scale, source=source) for _ in range(2)]
        return Outcome(sum(drawn) / 2, None)


class TwiceReleased(Laplace):
    """Charges for each of two answers; the price is for one."""

    def run(self, terms, settings, dataset, source):
        super().run(terms, settings, dataset, source)
        return super().run(terms, settings, dataset, source)


class HalfScale(Laplace):
    """Draws noise of half the scale."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "scale": str(Fraction(found["scale"]) / 2)}


class SlightlyLess(Laplace):
    """Draws noise that is too small by a part in a thousand million."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "scale": str(Fraction(found["scale"]) * (1 - Fraction(1, 10**9)))}


class SkippedCharge(Laplace):
    """Has a branch for graphs with triangles in which nothing is charged."""

    def run(self, terms, settings, dataset, source):
        if tulle.triangles().truth(dataset) == 0:
            return super().run(terms, settings, dataset, source)
        noise = discrete_laplace(scale=Fraction(settings["scale"]), source=source)
        return Outcome(terms.query.truth(dataset) + noise, None)


class ExtraDraw(Laplace):
    """Adds a second, finer answer in a branch that few datasets take."""

    def run(self, terms, settings, dataset, source):
        found = super().run(terms, settings, dataset, source)
        if tulle.triangles().truth(dataset):
            discrete_laplace(scale=Fraction(1, 100), source=source)
        return found


class NeverCharged(Mechanism):
    """A new mechanism whose author forgot the charge."""

    name, kind = "forgotten", "graph"

    def supports(self, query, unit):
        return True

    def settings(self, terms, options):
        return {}

    def predict(self, terms, settings, like):
        raise NotImplementedError

    def run(self, terms, settings, dataset, source):
        scale = 1 / terms.epsilon
        return Outcome(dataset.edge_count + discrete_laplace(scale=scale, source=source), None)


class Peeking(Laplace):
    """Draws ordinary random numbers where records are at hand."""

    def run(self, terms, settings, dataset, source):
        found = super().run(terms, settings, dataset, source)
        return Outcome(found.value + post_processing(source).integers(2) * dataset.edge_count, None)


class LateLook(Laplace):
    """Looks at the data again when post-processing has begun."""

    def run(self, terms, settings, dataset, source):
        self.process(source)
        return super().run(terms, settings, dataset, source)

    def process(self, source):
        post_processing(source)


class NothingDrawn(Laplace):
    """Opens a charge and gives the truth."""

    def run(self, terms, settings, dataset, source):
        with charge(LaplaceCharge(1)):
            return Outcome(terms.query.truth(dataset), None)


class OtherNoise(Laplace):
    """Draws noise of another kind than it charges for."""

    def run(self, terms, settings, dataset, source):
        with charge(LaplaceCharge(1)):
            noise = geometric(scale=1 / terms.epsilon, source=source)
        return Outcome(terms.query.truth(dataset) + noise, None)


class SteeperSteep(SmoothedLadder):
    """Decays by all of epsilon beside the smoothing."""

    def rates(self, epsilon, options):
        decay, smoothing = super().rates(epsilon, options)
        return decay + smoothing, smoothing


class RoughSteep(SmoothedLadder):
    """Pays for smoothing and leaves the widths as they are."""

    def run(self, terms, settings, dataset, source):
        from tulle.graphs.mechanisms import ladder

        with patched(ladder, "smooth_widths", lambda profile, most, smoothing: [1] * len(profile)):
            return super().run(terms, settings, dataset, source)


@contextmanager
def patched(module, name, value):
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


class WholeLadder(Ladder):
    """Forgets that the sum of weights moves too."""

    def rates(self, epsilon, options):
        return epsilon, Fraction(0)


class RoughSmooth(Smooth):
    """Takes the paper's beta at a large epsilon, where it is too large."""

    def rates(self, epsilon, delta):
        alpha, beta = super().rates(epsilon, delta)
        return alpha, beta * Fraction(11, 10)


class RoughSmoothPure(SmoothPure):
    """Forgets the part of the scale."""

    def rates(self, epsilon, delta):
        alpha, beta = super().rates(epsilon, delta)
        return alpha * Fraction(3, 2), beta


class LoudProjection(Projection):
    """Chooses the bound with twice the epsilon that was put aside for it."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "epsilon_bound": str(2 * Fraction(found["epsilon_bound"]))}


class HalfPower(Power):
    """Draws half the variance."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "variance": str(Fraction(found["variance"]) / 2)}


class BothHalves(Response):
    """Draws the coins of both halves of the matrix."""

    def run(self, terms, settings, dataset, source):
        super().run(terms, settings, dataset, source)
        return super().run(terms, settings, dataset, source)


class KeenTopM(TopM):
    """Keeps edges more often than its coins allow."""

    def rates(self, settings, edges):
        rates = super().rates(settings, edges)
        return Rates(rates.skip, rates.keep + (1 - rates.keep) * Fraction(3, 4))


class ForgottenDelta(Laplace):
    """Fails with a probability that nobody pays for."""

    def run(self, terms, settings, dataset, source):
        spend(Approximate(Fraction(0), Fraction(1, 10**9)))
        return super().run(terms, settings, dataset, source)


SPECTRUM = tulle.spectrum(1)
BROKEN = [
    (TwiceDrawn(), tulle.triangles(), {}),
    (TwiceReleased(), tulle.triangles(), {}),
    (HalfScale(), tulle.triangles(), {}),
    (SlightlyLess(), tulle.triangles(), {}),
    (SkippedCharge(), tulle.triangles(), {}),
    (ExtraDraw(), tulle.triangles(), {}),
    (NeverCharged(), tulle.edges(), {}),
    (Peeking(), tulle.edges(), {}),
    (LateLook(), tulle.edges(), {}),
    (NothingDrawn(), tulle.edges(), {}),
    (OtherNoise(), tulle.edges(), {}),
    (ForgottenDelta(), tulle.edges(), {}),
    (SteeperSteep(), tulle.triangles(), {}),
    (RoughSteep(), tulle.triangles(), {}),
    (WholeLadder(), tulle.triangles(), {}),
    (RoughSmooth(), tulle.triangles(), {"delta": Fraction(1, 10**6)}),
    (RoughSmoothPure(), tulle.triangles(), {}),
    (LoudProjection(), tulle.degree_distribution(), {"largest": 4}),
    (HalfPower(), SPECTRUM, {"delta": Fraction(1, 10**6)}),
    (BothHalves(), tulle.topology(), {}),
    (KeenTopM(), tulle.synthetic("topm", edges=4), {}),
]


@pytest.mark.parametrize(("twin", "query", "terms"), BROKEN, ids=lambda x: type(x).__name__)
def test_twins_are_caught(twin, query, terms):
    assert not run_on_a_path(twin, query, **terms).good
    real = next(kind for kind in type(twin).__mro__[1:] if kind.__module__.startswith("tulle."))
    if real is not Mechanism:
        assert run_on_a_path(real(), query, **terms).good


def test_a_twin_that_charges_less_for_a_choice():
    class Cheap(OneShot):
        def choose(self, scores, count, settings, source):
            with charge(NoisyMaxCharge(settings["sensitivity"], count)):
                noise = geometric(
                    scale=Fraction(settings["selection_scale"]) / count, size=len(scores),
                    source=source,
                )  # fmt: skip
            return np.argsort(-(scores + noise))[:count]

    cases = [case for case in cases_of(OneShot()) if case.terms.query.count > 1]
    assert all(run.good for run in watch_runs(OneShot(), cases))
    assert not any(run.good for run in watch_runs(Cheap(), cases))


def test_parts_that_are_not_apart():
    """Two draws on the same data, called disjoint in no part of it."""
    with (
        pytest.raises(CostError, match="none of the separate parts"),
        watch(),
        disjoint(),
        charge(LaplaceCharge(1)),
    ):
        discrete_laplace(scale=1)
    with pytest.raises(CostError, match="outside of disjoint"), watch(), part("one"):
        pass
    both = LaplaceCharge(1)
    with pytest.raises(CostError, match="inside another"), watch(), charge(both), charge(both):
        pass


def test_disjoint_parts_cost_the_dearest():
    with watch() as events, disjoint():
        for name, scale in (("a", 4), ("b", 2), ("a", 4), ("a", 1)):
            with part(name), charge(LaplaceCharge(1)):
                discrete_laplace(scale=scale)
    assert price(Composed(tuple(events))) == (Fraction(3, 2), 0)


# --- what events cost -------------------------------------------------------------------------


def test_price_adds_up():
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert price(Composed((LaplaceEvent(half), Pure(third)))) == (half + third, 0)
    assert price(Composed((Approximate(half, third), Pure(half)))) == (1, third)
    assert price(Disjoint((Pure(half), Composed((Pure(third), Pure(third)))))) == (2 * third, 0)
    # A part that fails with some probability fails with it, whatever the other parts are.
    apart = Disjoint((Approximate(third, half), Pure(half), Approximate(third, third)))
    assert price(apart) == (half, half)
    many = Composed((BoundedRange(Fraction(1, 10)),) * 200)
    assert price(many) == (20, 0)
    assert price(many, Fraction(1, 10**6))[0] < 5
    with pytest.raises(ValueError, match="delta"):
        price(Gaussian(half))


def test_price_is_above_the_truth():
    """Brute force: the exact loss of k responses, and of the exponential mechanism, of bits."""
    for k, epsilon in ((3, Fraction(1, 2)), (40, Fraction(1, 10))):
        keep = 1 / (1 + np.exp(-float(epsilon)))
        kept = np.arange(k + 1)
        one = np.array([comb(k, j) * keep**j * (1 - keep) ** (k - j) for j in kept])
        for delta in (Fraction(1, 10**6), Fraction(1, 1000)):
            # A response is a choice between two: its log-ratios span 2·epsilon.
            claimed, _ = price(Composed((BoundedRange(2 * epsilon),) * k), delta)
            excess = np.maximum(one - np.exp(float(claimed)) * one[::-1], 0).sum()
            assert excess <= delta


def test_nothing_is_kept_when_nobody_watches():
    """With the watch off a charge is one shared empty context, whatever it says."""
    assert charge(LaplaceCharge(1)) is charge(NoisyMaxCharge(2, 3)) is disjoint() is part("x")


def test_mechanisms_take_no_bits_themselves():
    """Only samplers read a source: else bits could be taken that no report tells of."""
    root = Path(tulle.__file__).parent
    taking = re.compile(r"noise\.bits|\bBits\(|source\.read\([^c]|urandom")
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        if room not in ("noise", "audit"):
            assert not taking.search(path.read_text()), path


def test_a_run_keeps_its_law_under_the_watch():
    """A seeded run gives the same under a watch: it listens, and changes nothing."""
    graph = AUTO_GRAPHS[3]
    unit = Unit.of("edge")
    terms = Terms(tulle.degrees(), unit, Fraction(1), Fraction(0), graph.facts(unit))
    mechanism = Isotonic()
    settings = mechanism.settings(terms, {})
    plain = mechanism.run(terms, settings, graph, tulle.noise.SeededSource(5)).value
    with watch():
        heard = mechanism.run(terms, settings, graph, tulle.noise.SeededSource(5)).value
    assert plain.tolist() == heard.tolist()
    assert cost_of(mechanism, Case(terms, {}, graph)).share == 1
