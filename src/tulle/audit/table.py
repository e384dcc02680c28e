"""The audit's table: every mechanism, question and check, and which broken versions were caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

from tulle.audit.engine.blackbox import lower_bound, power
from tulle.audit.engine.broken import Broken
from tulle.audit.engine.cost import Case, cases_of, check_cost, is_allowed
from tulle.audit.engine.exact import check_exact, check_sampler, sampler_looks
from tulle.audit.engine.exhaustive import check_claims, describe_world
from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.findings import Finding, merge
from tulle.audit.engine.fresh import check_fresh
from tulle.audit.engine.kind import AuditView, is_audited, kind_of
from tulle.audit.engine.world import World
from tulle.audit.faults import broken_versions
from tulle.audit.graphs.truncation import check_leaving, without_one_owner
from tulle.audit.sql.single_owner import totals_findings
from tulle.audit.streams import kind as streams
from tulle.audit.surveys.kind import catch_broken, check_surveys, unexamined
from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism
from tulle.core.query import Query

Verdict = Literal["passed", "FAILED", "caught", "MISSED"]
Progress = Callable[[str], None]

BUDGETS = (
    (Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(3), Fraction(1, 20)),
    (Fraction(30), Fraction(1, 10**6)),
)
"""Every (epsilon, delta) at which claims and output distributions are examined."""

DRAWN_AT = (Fraction(3), Fraction(1, 20))
"""The budget at which runs are drawn and compared with the closed form."""

BLACK_BOX_AT = (Fraction(1), Fraction(1, 1000))
"""The budget of the black box."""

CONFIDENCE = 1 - 1e-6
"""How seldom the black box accuses a mechanism that keeps its promise to the letter."""


@dataclass(frozen=True)
class Effort:
    """How much is done: sizes of the worlds, numbers of runs."""

    sizes: tuple[int, ...]
    runs: int
    samples: int
    watched: int
    """Of how many runs, at most, all draws are priced."""


FAST = Effort(sizes=(2, 3, 4, 5), runs=2000, samples=4000, watched=24)
SLOW = Effort(sizes=(2, 3, 4, 5, 6), runs=40_000, samples=100_000, watched=400)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    kind: str
    mechanism: str
    query: str
    check: str
    cases: int
    figure: str
    verdict: Verdict

    @property
    def about(self) -> str:
        """The registered mechanism that the row is about, also if it is of a broken version."""
        return self.mechanism.removeprefix("broken: ").partition(",")[0]

    @property
    def good(self) -> bool:
        """Whether this is as it should be: real mechanisms pass, broken versions are caught."""
        return self.verdict in ("passed", "caught")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "kind": self.kind,
            "mechanism": self.mechanism,
            "query": self.query,
            "check": self.check,
            "cases": self.cases,
            "figure": self.figure,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class AuditTable:
    """What the audit found."""

    lines: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """Whether every mechanism passed every check and every broken version was caught."""
        return all(row.good for row in self.lines)

    def rows(self) -> list[dict[str, str]]:
        """Return the table as text, one dictionary for each line."""
        return [
            {name: f"{value:,}" if name == "cases" else str(value) for name, value in items}
            for items in (row.to_json().items() for row in self.lines)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {"passed": self.passed, "rows": [row.to_json() for row in self.lines]}

    def __str__(self) -> str:
        rows = self.rows()
        if not rows:
            return "Nothing was audited."
        titles = {name: name for name in rows[0]}
        widths = {name: max(len(row[name]) for row in (titles, *rows)) for name in titles}
        lines = [
            "  ".join(row[name].ljust(widths[name]) for name in titles).rstrip()
            for row in (titles, *rows)
        ]
        return "\n".join(lines)


def run_audit(
    *,
    slow: bool = False,
    mechanisms: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> AuditTable:
    """Examine every registered mechanism of every kind of data, and broken versions of them.

    ``slow`` adds the largest worlds and more draws. ``progress`` is told, in words, what is being
    examined.

    Raises:
        InputError: when a name in ``mechanisms`` is not that of a registered mechanism.
    """
    effort = SLOW if slow else FAST
    tell = progress or (lambda words: None)
    chosen = _chosen(mechanisms)
    lines: list[Row] = []
    for name in dict.fromkeys(mechanism.kind for mechanism in chosen):
        group = [mechanism for mechanism in chosen if mechanism.kind == name]
        lines.extend(row for item in group for row in completeness(item))
        if is_audited(name):
            lines.extend(_audit_kind(kind_of(name), group, effort, tell, whole=mechanisms is None))
    if mechanisms is None:
        tell("survey designs")
        lines.extend(survey_rows())
        tell("streams")
        lines.extend(stream_rows())
    for mechanism in chosen:
        own = [row for row in lines if (row.kind, row.about) == (mechanism.kind, mechanism.name)]
        if own and all(row.good for row in own):
            registry.mark_audited(mechanism)
    return AuditTable(tuple(lines))


def survey_rows() -> list[Row]:
    """Return the rows of survey designs, which hold no data, and of broken ones."""
    rows = [_row("survey", finding) for finding in merge(check_surveys())]
    rows.extend(_caught("survey", finding) for finding in catch_broken())
    return rows + [_without_case("survey", name) for name in unexamined()]


def stream_rows() -> list[Row]:
    """Return the rows of streams, which are paid for once for many answers, and of broken ones."""
    rows = [_row("series", finding) for finding in merge(streams.check_streams())]
    rows.extend(_caught("series", finding) for finding in streams.catch_broken())
    return rows + [_without_case("series", name) for name in streams.unexamined()]


def _without_case(kind: str, name: str) -> Row:
    return Row(kind, name, "", "has a case", 0, "no closed form is known", "FAILED")


def _caught(kind: str, found: Finding) -> Row:
    """Return the row of a broken version that is no registered mechanism's."""
    verdict: Verdict = "MISSED" if found.passed else "caught"
    name = f"broken: {found.mechanism}, {found.query}"
    return Row(kind, name, "", found.check, found.cases, found.figure, verdict)


def _chosen(names: Sequence[str] | None) -> list[Mechanism]:
    known = list(registry.every_mechanism())
    if names is None:
        return known
    missing = set(names) - {mechanism.name for mechanism in known}
    if missing:
        listed = ", ".join(dict.fromkeys(mechanism.name for mechanism in known))
        raise InputError(f"No mechanism is called {', '.join(sorted(missing))}. Known: {listed}.")
    return [mechanism for mechanism in known if mechanism.name in names]


def _audit_kind(
    kind: AuditView, group: Sequence[Mechanism], effort: Effort, tell: Progress, *, whole: bool
) -> list[Row]:
    named = {item.name for item in group}
    found: list[Finding] = []
    # Questions in the outer loop: mechanisms share what is measured for one question.
    asked = list(dict.fromkeys(query for item in group for query in kind.questions(item)))
    seen = set()
    for size, query in product(effort.sizes, asked):
        world = kind.world_for(size, query)
        if (world.name, query) in seen:
            # Some kinds have no larger world than this.
            continue
        seen.add((world.name, query))
        tell(f"{world.name}: {query}")
        for item in group:
            if query in kind.questions(item):
                found.extend(closed_form(kind, item, query, world))
    for item in group:
        if item.name in kind.own_checks:
            tell(f"{kind.name}: {item.name}")
            found.extend(kind.own_checks[item.name]())
        tell(f"drawing from {item.name}")
        found.extend(drawn(kind, item, effort))
        cases = list(cases_of(item))
        found.extend(check_cost(item, cases[:: -(-len(cases) // effort.watched) or 1]))
    found.extend(_besides(kind, named, effort, tell))
    caught: dict[str, list[Row]] = {item.name: [] for item in group}
    for item in broken_versions(kind):
        if item.mimics in named:
            tell(f"broken: {item.name}")
            caught[item.mimics].append(_broken_row(kind, item))
    verdicts = merge(found)
    rows: list[Row] = []
    for name in caught:
        rows.extend(_row(kind.name, finding) for finding in verdicts if finding.mechanism == name)
        rows.extend(caught[name])
    if whole:
        tell("odd questions to neighbours")
        names: list[str | None] = [None, *(item.name for item in group)]
        alike = [
            check_alike(kind, kind.world(size), kind.odd_questions(), [(1.0, 1e-6)], names)
            for size in kind.alike_sizes
        ]
        rows.extend(_row(kind.name, finding) for finding in merge(alike))
    return rows


def _besides(kind: AuditView, named: set[str], effort: Effort, tell: Progress) -> list[Finding]:
    """Return what is checked besides the closed forms: what truncation stands on."""
    if "recursive" not in named:
        return []
    if kind.name == "graph":
        tell("removal from a graph and from its relation")
        return leaving(max(effort.sizes) - 1)
    if kind.name == "database":
        tell("contributions of one owner each")
        return totals_findings()
    return []


def closed_form(kind: AuditView, mechanism: Mechanism, query: Query, world: World) -> list[Finding]:
    """Return the findings that need no draw: claims, and exact output distributions."""
    return merge(list(_closed_forms(kind, mechanism, query, world)))


def _closed_forms(
    kind: AuditView, mechanism: Mechanism, query: Query, world: World
) -> Iterator[Finding]:
    """Yield claims and exact output distributions under one budget after the other.

    A broken version that refuses a budget, as one that takes it for a larger one may, is looked at
    under the others.
    """
    for (epsilon, delta), options in product(BUDGETS, kind.options(mechanism)):
        if isinstance(mechanism, Broken):
            asked = kind.terms(query, world.datasets[0], world.unit, epsilon, delta)
            if not is_allowed(mechanism, Case(asked, options, world.datasets[0])):
                continue
        described = describe_world(kind, mechanism, query, world, epsilon, delta, options)
        yield from check_claims(kind, mechanism, query, world, described)
        terms = kind.terms(query, world.datasets[0], world.unit, epsilon, delta)
        guarantee = mechanism.guarantee(terms, mechanism.settings(terms, options))
        yield check_exact(kind, mechanism, query, world, described, guarantee)


def leaving(nodes: int) -> list[Finding]:
    """Return the findings on relations of graphs, and on broken ones that must be caught."""
    found = [check_leaving("recursive", unit, nodes) for unit in ("node", "edge")]
    return found + [
        check_leaving("recursive", unit, 3, without_one_owner).of_broken(
            f"a forgotten owner, per {unit}"
        )
        for unit in ("node", "edge")
    ]


def drawn(kind: AuditView, mechanism: Mechanism, effort: Effort) -> list[Finding]:
    """Return the findings that need draws: the sampler's law, fresh noise, the black box."""
    epsilon, delta = DRAWN_AT
    found: list[Finding] = []
    asked = kind.drawn_questions(mechanism)
    for query in asked:
        found.append(
            check_sampler(kind, mechanism, query, epsilon=epsilon, delta=delta, runs=effort.runs)
        )
        found.append(check_fresh(kind, mechanism, query, epsilon=Fraction(1), delta=delta))
    if asked:
        found.append(check_black_box(kind, mechanism, asked[0], effort.samples))
    return found


def check_black_box(kind: AuditView, mechanism: Mechanism, query: Query, samples: int) -> Finding:
    """Bound epsilon from below by draws alone; the figure says what would have been noticed."""
    one, other = kind.small(query)
    unit = kind.unit_for(query, one)
    terms = kind.terms(query, one, unit, *BLACK_BOX_AT)
    settings = mechanism.settings(terms, kind.options(mechanism)[0])
    guarantee = mechanism.guarantee(terms, settings)
    assert guarantee.epsilon is not None
    claimed, delta = float(guarantee.epsilon), float(guarantee.delta)

    def draw(dataset: Any, size: int) -> list[Any]:
        again = kind.draw(mechanism, terms, settings, dataset)
        return [kind.observe(again()) for _ in range(size)]

    evidence = lower_bound(
        draw, [(one, other)], samples=samples, delta=delta, confidence=CONFIDENCE
    )
    noticed = power(epsilon=claimed, samples=samples, delta=delta, confidence=CONFIDENCE)
    return Finding(
        mechanism.name,
        str(query),
        "black box",
        2 * samples,
        max(evidence.epsilon_at_least, 0.0) / claimed,
        evidence.epsilon_at_least <= claimed,
        f"epsilon >= {evidence.epsilon_at_least:.3g} of {claimed:g}; "
        f"would notice {noticed:.3g} ({evidence.event})",
        f"{kind.show(one)} | {kind.show(other)}",
    )


def catch(kind: AuditView, broken: Broken) -> dict[str, Finding | None]:
    """Return, for each check that must reject a broken version, the first finding that does.

    The checks are those of the real mechanisms, on all graphs of four nodes or the like. One that
    rejects nothing stays None; one that has rejected is not made again.
    """
    caught: dict[str, Finding | None] = dict.fromkeys(broken.caught_by)
    for query in kind.questions(broken):
        for checks, findings in (
            (("claims", "exact"), _closed_forms(kind, broken, query, kind.world_for(4, query))),
            (("sampler",), _looks(kind, broken, query)),
            (("fresh noise",), _fresh(kind, broken, query)),
            (("cost",), _costs(kind, broken, query)),
        ):
            if not _open(caught, checks):
                continue
            for finding in findings:
                check = finding.check.partition(":")[0]
                if check in caught and caught[check] is None and not finding.passed:
                    caught[check] = finding
                    if not _open(caught, checks):
                        break
    return caught


def _open(caught: Mapping[str, Finding | None], checks: Sequence[str]) -> bool:
    """Whether one of these checks must still reject."""
    return any(check in caught and caught[check] is None for check in checks)


def _looks(kind: AuditView, broken: Broken, query: Query) -> Iterator[Finding]:
    """Yield what the sampler's check says of ever more runs."""
    epsilon, delta = DRAWN_AT
    yield from sampler_looks(kind, broken, query, epsilon=epsilon, delta=delta, runs=FAST.runs)


def _fresh(kind: AuditView, broken: Broken, query: Query) -> Iterator[Finding]:
    yield check_fresh(kind, broken, query, epsilon=Fraction(1), delta=DRAWN_AT[1])


def _costs(kind: AuditView, broken: Broken, query: Query) -> Iterator[Finding]:
    dataset = kind.small(query)[0]
    terms = kind.terms(query, dataset, kind.unit_for(query, dataset), *DRAWN_AT)
    yield from check_cost(broken, [Case(terms, kind.options(broken)[0], dataset)])


def _broken_row(kind: AuditView, broken: Broken) -> Row:
    caught = catch(kind, broken)
    missed = [check for check, finding in caught.items() if finding is None]
    shown = [finding for finding in caught.values() if finding is not None]
    return Row(
        kind.name,
        f"broken: {broken.name}",
        " ".join(dict.fromkeys(finding.query for finding in shown)),
        " + ".join(caught),
        sum(finding.cases for finding in shown),
        "; ".join(finding.figure for finding in shown)
        + (f"; not seen by {', '.join(missed)}" if missed else ""),
        "MISSED" if missed else "caught",
    )


def completeness(mechanism: Mechanism) -> Iterator[Row]:
    """Yield a failure for a mechanism that nothing examines, or whose checks nothing tests."""
    kind = kind_of(mechanism.kind) if is_audited(mechanism.kind) else None
    broken = [] if kind is None else [item.mimics for item in broken_versions(kind)]
    for check, figure, known in (
        ("has a case", "no closed form is known", kind and kind.questions(mechanism)),
        ("is drawn from", "no question is", kind and kind.drawn_questions(mechanism)),
        ("has a broken version", "none is known", mechanism.name in broken),
    ):
        if not known and not (kind and mechanism.name in kind.own_checks):
            yield Row(mechanism.kind, mechanism.name, "", check, 0, figure, "FAILED")


def _row(kind: str, finding: Finding) -> Row:
    return Row(
        kind,
        finding.mechanism,
        finding.query,
        finding.check,
        finding.cases,
        finding.figure if finding.passed else f"{finding.figure} [{finding.witness}]",
        "passed" if finding.passed else "FAILED",
    )
