"""The audit of survey designs: exact laws of every report, for all answers and all neighbours.

Survey designs run at the client and are no mechanisms on sealed data: they hold none. Each is
checked in the same way all the same, in fractions, without rounding: for any two answers of one
client, or two graphs that differ in a link, no report's probabilities differ by more than
exp(epsilon). The same check must reject broken designs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from tulle import surveys
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import classes_without
from tulle.surveys.designs import Design, DesignMatrix, RandomizedResponse
from tulle.surveys.exact import ratio_is_within
from tulle.surveys.large import LocalHashing, UnaryEncoding
from tulle.surveys.link_reports import links_to_keep
from tulle.surveys.links_client import LinkForm

Exact = Mapping[Any, Fraction]
Links = frozenset[tuple[int, int]]

EPSILONS = ("0.5", "1", "3")
CATEGORIES = (2, 3, 5)


@dataclass(frozen=True)
class Laws:
    """The exact law of each input, and which inputs are neighbours."""

    epsilon: Fraction
    laws: Mapping[Hashable, Exact]
    neighbours: Sequence[tuple[Hashable, Hashable]]
    design: type[Design] | None = None
    """The class of the design that the laws are of."""


def worst_ratio(found: Laws) -> Fraction | None:
    """Return the largest ratio over all reports and neighbours; None when it is infinite."""
    worst = Fraction(1)
    for law in found.laws.values():
        assert sum(law.values()) == 1
        assert min(law.values()) >= 0
    for one, other in found.neighbours:
        for first, second in ((one, other), (other, one)):
            for report, chance in found.laws[first].items():
                against = found.laws[second].get(report, Fraction(0))
                if chance and not against:
                    return None
                if chance:
                    worst = max(worst, chance / against)
    return worst


def is_private(found: Laws) -> bool:
    """Tell, with certainty, whether every ratio is at most exp(epsilon)."""
    worst = worst_ratio(found)
    return worst is not None and ratio_is_within(worst, found.epsilon)


def laws_of(design: Design) -> Laws:
    """Return the laws of a design: any two answers are neighbours."""
    answers = range(design.categories)
    laws: dict[Hashable, Exact] = {answer: design.law(answer) for answer in answers}
    return Laws(design.epsilon, laws, list(combinations(answers, 2)), type(design))


def joint(first: Exact, second: Exact) -> dict[Any, Fraction]:
    """Return the law of two independent reports."""
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


# --- links ------------------------------------------------------------------------------------


def all_graphs(nodes: int) -> tuple[list[Links], list[tuple[Links, Links]]]:
    """Return every graph on so many nodes, and all pairs that differ in one edge."""
    pairs = list(combinations(range(nodes), 2))
    graphs = [
        frozenset(pair for pair, there in zip(pairs, bits, strict=True) if there)
        for bits in product((0, 1), repeat=len(pairs))
    ]
    return graphs, [(g, g | {pair}) for g in graphs for pair in pairs if pair not in g]


def link_law(form: LinkForm, graph: Links, reporters: Callable[..., Sequence[int]]) -> Exact:
    """Return the law of all reports when ``reporters(i, j)`` speak about each pair."""
    law: dict[Any, Fraction] = {(): Fraction(1)}
    for pair in combinations(range(form.nodes), 2):
        truth = int(pair in graph)
        for _ in reporters(*pair):
            law = {
                (*reports, said): chance * form.design.probability(said, truth)
                for reports, chance in law.items()
                for said in (0, 1)
            }
    return law


def graph_law(form: LinkForm, graph: Links, keep: Callable[[int, Links], int]) -> Exact:
    """Return the law of the rebuilt graph when ``keep(reported, truth)`` links are kept."""
    pairs = list(combinations(range(form.nodes), 2))
    found: dict[Any, Fraction] = {}
    for reports, chance in link_law(form, graph, lambda i, j: (i,)).items():
        ones = [pair for pair, said in zip(pairs, reports, strict=True) if said]
        zeros = [pair for pair, said in zip(pairs, reports, strict=True) if not said]
        wanted = keep(len(ones), graph)
        first, rest = (ones, []) if wanted <= len(ones) else (zeros, ones)
        options = list(combinations(first, wanted - len(rest)))
        for option in options:
            key = frozenset([*option, *rest])
            found[key] = found.get(key, Fraction(0)) + chance / len(options)
    return found


def _links(epsilon: str, law: Callable[[LinkForm, Links], Exact]) -> Laws:
    form = LinkForm.of(3, epsilon=epsilon)
    graphs, neighbours = all_graphs(3)
    return Laws(form.epsilon, {graph: law(form, graph) for graph in graphs}, neighbours)


# --- what is examined -------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, str, Laws]]:
    """Yield every design at several epsilons: its name, what is asked, and its laws."""
    for epsilon, size in product(EPSILONS, CATEGORIES):
        asked = f"{size} categories"
        yield "randomized response", asked, laws_of(RandomizedResponse.of(size, epsilon=epsilon))
        yield "unary encoding", asked, laws_of(UnaryEncoding.of(size, epsilon=epsilon))
        hashing = LocalHashing.of(size, epsilon=epsilon, buckets=min(size, 3))
        yield "local hashing", asked, laws_of(hashing)
    own = DesignMatrix.of([["4/5", "2/5"], ["1/5", "3/5"]])
    yield "a matrix of one's own", "2 categories", laws_of(own)
    for epsilon in EPSILONS:
        yield (
            "two attributes",
            "3 and 2 categories",
            _pair_of_attributes(
                RandomizedResponse.of(3, epsilon=epsilon), RandomizedResponse.of(2, epsilon=epsilon)
            ),
        )
        once = _links(epsilon, lambda f, g: link_law(f, g, lambda i, j: (f.reporter(i, j),)))
        yield "link reports", "3 clients", once
        keep = _links(epsilon, lambda f, g: graph_law(f, g, lambda said, _: links_to_keep(f, said)))
        yield "rebuilt graph", "3 clients", keep


def _pair_of_attributes(first: RandomizedResponse, second: RandomizedResponse) -> Laws:
    answers = list(product(range(first.categories), range(second.categories)))
    laws: dict[Hashable, Exact] = {(a, b): joint(first.law(a), second.law(b)) for a, b in answers}
    return Laws(first.epsilon + second.epsilon, laws, list(combinations(answers, 2)))


def broken() -> Iterator[tuple[str, str, Laws]]:
    """Yield broken designs: what they look like, what is wrong, and their laws."""
    both = _links("1", lambda f, g: link_law(f, g, lambda i, j: (i, j)))
    yield "link reports", "both ends report", both
    true_m = _links("1", lambda f, g: graph_law(f, g, lambda _, truth: len(truth)))
    yield "rebuilt graph", "the true number of links is used", true_m
    yield "randomized response", "half the noise", _half_noise(3)
    yield "unary encoding", "one bit is sent as it is", _unflipped(3)
    yield "local hashing", "the bucket is sent as it is", _plain_hash(4)
    pair = _pair_of_attributes(*(RandomizedResponse.of(2, epsilon=1) for _ in range(2)))
    yield "two attributes", "only one is paid for", Laws(Fraction(1), pair.laws, pair.neighbours)
    yield "client account", "a new report when the answer changes", _memo_by_value()


def _half_noise(size: int) -> Laws:
    real = RandomizedResponse.of(size, epsilon=1)
    wrong = real.other / 2
    laws: dict[Hashable, Exact] = {
        v: {u: wrong if u != v else 1 - (size - 1) * wrong for u in range(size)}
        for v in range(size)
    }
    return Laws(real.epsilon, laws, list(combinations(range(size), 2)))


def _unflipped(size: int) -> Laws:
    real = UnaryEncoding.of(size, epsilon=1)
    laws: dict[Hashable, Exact] = {}
    for answer in range(size):
        law: dict[Any, Fraction] = {}
        for report, chance in real.law(answer).items():
            sent = str(report)[:-1] + ("1" if answer == size - 1 else "0")
            law[sent] = law.get(sent, Fraction(0)) + chance
        laws[answer] = law
    return Laws(real.epsilon, laws, list(combinations(range(size), 2)))


def _plain_hash(size: int) -> Laws:
    real = LocalHashing.of(size, epsilon=1, buckets=2)
    laws: dict[Hashable, Exact] = {
        x: {(a, real.bucket(a, x)): Fraction(1, real.rows) for a in range(real.rows)}
        for x in range(size)
    }
    return Laws(real.epsilon, laws, list(combinations(range(size), 2)))


def _memo_by_value() -> Laws:
    """Two waves at the price of one: a report per answer is kept, and drawn anew on change."""
    design = RandomizedResponse.of(2, epsilon=1)
    laws: dict[Hashable, Exact] = {}
    for first, second in product(range(2), repeat=2):
        if first == second:
            laws[first, second] = {(r, r): p for r, p in design.law(first).items()}
        else:
            laws[first, second] = joint(design.law(first), design.law(second))
    return Laws(design.epsilon, laws, list(combinations(laws, 2)))


def check_surveys() -> list[Finding]:
    """Return one finding for each design and epsilon."""
    return [_finding(name, asked, laws) for name, asked, laws in cases()]


def catch_broken() -> list[Finding]:
    """Return the finding on each broken design; all of them must fail."""
    return [_finding(name, fault, laws) for name, fault, laws in broken()]


def unexamined() -> list[str]:
    """Return the names of designs, of those that exist, that no case is about."""
    known = {laws.design for _, _, laws in cases() if laws.design is not None}
    return classes_without(Design, surveys, known)


def _finding(name: str, asked: str, found: Laws) -> Finding:
    worst = worst_ratio(found)
    loss = math.inf if worst is None else math.log(worst)
    return Finding(
        name,
        asked,
        "exact",
        2 * sum(len(found.laws[one]) for one, _ in found.neighbours),
        loss / float(found.epsilon),
        is_private(found),
        f"loss {loss:.6g} of {float(found.epsilon):.6g}",
        "all answers and neighbours",
    )
