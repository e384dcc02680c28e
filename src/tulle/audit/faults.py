"""Faults as functions: each takes a mechanism and returns a broken version of it.

``broken`` changes settings, methods or the law of a run; the others are the faults that are made
again and again. Each room lists its own in ``faults.py``, those printed in papers among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import AuditView
from tulle.audit.engine.laws import Law
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.validate import rational, text
from tulle.noise import SeededSource

Questions = Sequence[Query]
ChangeSettings = Callable[[Parameters, Terms], Parameters]
"""From the real settings to those that are wrong."""
ChangeLaw = Callable[[Mapping[str, Any], Terms, Parameters, Any], Mapping[str, Law]]
"""From the laws of a real run, by part, its terms, settings and data, to those that are wrong."""

EXACT = ("exact",)
BOTH = ("claims", "exact")

HALF, TWICE = Fraction(1, 2), Fraction(2)


def broken(
    mechanism: Mechanism,
    what: str,
    fault: str,
    questions: Questions,
    caught_by: tuple[str, ...] = EXACT,
    *,
    settings: ChangeSettings | None = None,
    law: ChangeLaw | None = None,
    **members: Any,
) -> Broken:
    """Return a mechanism with a fault in its settings, in the law of its runs, or in methods.

    ``members`` replace methods and class variables of the real mechanism.
    """
    real = type(mechanism)

    def wrong_settings(self: Broken, terms: Terms, options: Parameters) -> Parameters:
        honest = real.settings(self, self.seen(terms), options)
        return {**honest, **settings(honest, terms)} if settings else honest

    if law is not None:
        spoil = law
        members["spoil"] = lambda self, *run: spoil(*run)
    members |= {
        "settings": wrong_settings,
        "__doc__": f"{fault[:1].upper()}{fault[1:]}.",
        "name": f"{mechanism.name}, {what}",
        "mimics": mechanism.name,
        "fault": fault,
        "questions": tuple(questions),
        "caught_by": caught_by,
    }
    made: Broken = type(f"Broken{real.__name__}", (Broken, real), members)()
    return made


def scaled(settings: Parameters, names: Sequence[str], factor: Fraction | int) -> dict[str, Any]:
    """Return some settings, numbers or lists of them, multiplied."""

    def times(value: Any) -> Any:
        if isinstance(value, list):
            return [times(entry) for entry in value]
        return text(rational(value) * factor)

    return {name: times(settings[name]) for name in names}


def halve_noise(
    mechanism: Mechanism,
    setting: str | Sequence[str],
    questions: Questions,
    factor: Fraction | int = HALF,
    *,
    what: str = "half the noise",
    fault: str = "a fraction of the noise that the guarantee needs",
    caught_by: tuple[str, ...] = EXACT,
) -> Broken:
    """Multiply the settings that noise follows: scales by a half, variances by a quarter,
    epsilons and rates by two.
    """
    names = (setting,) if isinstance(setting, str) else setting
    return broken(
        mechanism,
        what,
        fault,
        questions,
        caught_by,
        settings=lambda honest, _: scaled(honest, names, factor),
    )


def draw_less(
    mechanism: Mechanism,
    setting: str,
    questions: Questions,
    factor: Fraction | int = TWICE,
    method: str = "run",
) -> Broken:
    """Leave the settings right and draw as if one of them were another.

    ``method`` is what draws; its second argument are the settings.
    """

    def draw(self: Mechanism, first: Any, settings: Parameters, *rest: Any) -> Any:
        wrong = {**settings, **scaled(settings, (setting,), factor)}
        return getattr(type(mechanism), method)(self, first, wrong, *rest)

    fault = "the code draws less noise than its stated settings say"
    members: dict[str, Any] = {method: draw}
    return broken(mechanism, "half the scale drawn", fault, questions, ("sampler",), **members)


def broken_versions(kind: AuditView) -> list[Broken]:
    """Return the broken versions of a kind's mechanisms: their own, and those that all have."""
    found: list[Broken] = [*registry.find("audit", kind.name)["faults"]()]
    for name, mechanism in registry.mechanisms(kind.name).items():
        own = kind.own_case(name)
        found.extend(own.broken() if own is not None else ())
        found.extend(general_faults(kind, mechanism))
    return found


def general_faults(kind: AuditView, mechanism: Mechanism) -> list[Broken]:
    """Return what can go wrong with any mechanism: every one with a case gets these by itself."""
    drawn = kind.drawn_questions(mechanism)
    if not drawn:
        return []
    asked = drawn if kind.costly else kind.questions(mechanism)
    fresh = ("fresh noise",) if kind.costly else ("fresh noise", "sampler")
    return [
        overspend(mechanism, asked),
        seed_source(mechanism, drawn[:1], fresh),
        answer_twice(mechanism, drawn[:1]),
    ]


def overspend(mechanism: Mechanism, questions: Questions, times: int = 2) -> Broken:
    """Draw as for so many times the epsilon that is promised."""
    real = type(mechanism)

    def seen(terms: Terms) -> Terms:
        return replace(terms, epsilon=times * terms.epsilon)

    def guarantee(self: Mechanism, terms: Terms, settings: Parameters) -> Guarantee:
        stated = real.guarantee(self, seen(terms), settings)
        assert stated.epsilon is not None
        return replace(stated, epsilon=stated.epsilon / times)

    return broken(
        mechanism,
        "half the noise",
        "a fraction of the noise that the guarantee needs",
        questions,
        seen=lambda self, terms: seen(terms),
        run=lambda self, terms, *more: real.run(self, seen(terms), *more),
        guarantee=guarantee,
    )


def seed_source(
    mechanism: Mechanism,
    questions: Questions,
    caught_by: tuple[str, ...] = ("fresh noise", "sampler"),
) -> Broken:
    """Draw from a generator with a seed of its own, whatever source is passed."""

    def run(
        self: Mechanism, terms: Terms, settings: Parameters, data: Dataset, source: Source | None
    ) -> Outcome:
        return type(mechanism).run(self, terms, settings, data, SeededSource(7))

    fault = "noise from a seeded source: who knows the seed can undo it"
    return broken(mechanism, "seeded", fault, questions, caught_by, run=run)


def answer_twice(mechanism: Mechanism, questions: Questions) -> Broken:
    """Draw two answers, as one that shows the better of them does, at the price of one."""

    def run(self: Mechanism, *run: Any) -> Outcome:
        type(mechanism).run(self, *run)
        return type(mechanism).run(self, *run)

    fault = "a second answer is drawn, and nobody pays for it"
    return broken(mechanism, "two answers", fault, questions, ("cost",), run=run)


def forget_delta(mechanism: Mechanism, questions: Questions) -> Broken:
    """Promise a pure epsilon where the noise needs a delta."""

    def guarantee(self: Mechanism, terms: Terms, settings: Parameters) -> Guarantee:
        return Guarantee(terms.unit, terms.epsilon, Fraction(0))

    fault = "the noise fails with probability delta, and nobody is told"
    return broken(mechanism, "delta forgotten", fault, questions, guarantee=guarantee)


def read_support_from_data(
    mechanism: Mechanism,
    questions: Questions,
    part: str = "answer",
    *,
    what: str = "non-zero cells",
) -> Broken:
    """Add noise only where the true answer is not zero."""
    fault = "exact zeros show where nobody is"
    return _noise_where(mechanism, what, fault, questions, part, lambda law: map(bool, law.centre))


def skip_first_entry(mechanism: Mechanism, questions: Questions, part: str = "answer") -> Broken:
    """Leave the first entry of a vector as it is."""
    return _noise_where(
        mechanism,
        "skipped entry",
        "the first entry gets no noise",
        questions,
        part,
        lambda law: (place > 0 for place in range(len(law.centre))),
    )


def leave_open(mechanism: Mechanism, part: str, questions: Questions, fault: str) -> Broken:
    """Release one part of the answer without noise."""
    return _noise_where(
        mechanism,
        f"open {part}",
        fault,
        questions,
        part,
        lambda law: (False for _ in law.centre),
    )


def _noise_where(
    mechanism: Mechanism,
    what: str,
    fault: str,
    questions: Questions,
    part: str,
    noisy: Callable[[Any], Any],
) -> Broken:
    def law(laws: Mapping[str, Any], *_: Any) -> Mapping[str, Law]:
        honest = laws[part]
        kept = zip(honest.scales, noisy(honest), strict=True)
        scales = tuple(scale if drawn else Fraction(0) for scale, drawn in kept)
        return {part: replace(honest, scales=scales)}

    return broken(mechanism, what, fault, questions, law=law)


def cut_at_data(
    mechanism: Mechanism,
    questions: Questions,
    end: Callable[[Any], int],
    caught_by: tuple[str, ...] = BOTH,
    *,
    part: str = "answer",
    what: str = "cut at the largest degree",
) -> Broken:
    """Let the answer end where the data do: ``end`` says after how many entries."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, data: Any
    ) -> Mapping[str, Law]:
        kept = end(data)
        honest = laws[part]
        return {part: replace(honest, centre=honest.centre[:kept], scales=honest.scales[:kept])}

    fault = "the length of the answer tells the largest value"
    return broken(mechanism, what, fault, questions, caught_by, law=law)
