"""The collector: counts of reports, in bounded memory, and estimates from them as releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.labels import Axis, Labels
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.validate import counted
from tulle.surveys import statistics
from tulle.surveys.bulk import Reports
from tulle.surveys.designs import MatrixDesign
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.form import Form
from tulle.surveys.frequencies import Frequencies, Target, check_target
from tulle.surveys.large import LocalHashing, SupportDesign, UnaryEncoding
from tulle.surveys.likelihood import project_to_simplex
from tulle.surveys.pair_counts import PairCounts
from tulle.surveys.planner import describe
from tulle.surveys.support import count_places, support_counts, support_estimate

Method = Literal["unbiased", "likelihood", "projected"]

MOST_CELLS = 1 << 20
MOST_HASH_CELLS = 1 << 27


@public()
class Collection:
    """Counts of the reports received so far; reports are added in any portions.

    Memory does not grow with the number of reports. Attributes whose reports are categories are
    counted jointly, in one table when it has at most 2**20 cells, or in the ``tables`` asked for.
    Others are counted alone, and in pairs that ``tables`` asks for.

    Guarantee:
        Estimates are computed from reports that were private when they left the clients, so
        they have the form's guarantee, all of them together, and no ledger is debited here: each
        client's budget was spent at the client (:class:`tulle.surveys.account.ClientAccount`).

    Raises:
        InputError: when a table asks for too much, or for more than two attributes of which one
            does not report categories.

    Example:
        >>> from tulle.surveys import Survey, perturb
        >>> form = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)
        >>> smokers = np.arange(100_000) % 4 == 0
        >>> collection = Collection(form)
        >>> collection.add(perturb(form, {"smokes": smokers.astype(int)}))
        >>> estimate = collection.proportions("smokes")
        >>> low, high = estimate.interval(0.999999)
        >>> bool(low[1] < 0.25 < high[1])
        True
    """

    def __init__(self, form: Form, *, tables: Iterable[Sequence[str]] | None = None) -> None:
        self.form = form
        self.responses = 0
        self.replayable = False
        named = dict(zip(form.survey.names, form.designs, strict=True))
        plain = [name for name, design in named.items() if isinstance(design, MatrixDesign)]
        self._tables: dict[tuple[str, ...], Wholes] = {}
        whole, pairs = _split_tables(form, plain, tables)
        self._pairs = {pair: PairCounts(named[pair[0]], named[pair[1]]) for pair in pairs}
        for names in _table_names(form, plain, whole):
            shape = tuple(form.survey[name].size for name in names)
            self._tables[names] = np.zeros(shape, dtype=np.int64)
        self._support: dict[str, Wholes] = {}
        for name, design in named.items():
            if isinstance(design, UnaryEncoding):
                self._support[name] = np.zeros(design.categories, dtype=np.int64)
            elif isinstance(design, LocalHashing):
                cells = design.rows * design.buckets
                if cells > MOST_HASH_CELLS:
                    raise InputError(
                        f"{name!r} has too many categories to count its hashes in memory."
                    )
                self._support[name] = np.zeros(cells, dtype=np.int64)

    def add(self, reports: Reports | Mapping[str, Any]) -> None:
        """Count reports: a batch, or what one client sent.

        Raises:
            InputError: when they are not reports to this form; nothing is counted then.
        """
        if not isinstance(reports, Reports):
            reports = self._single(reports)
        if reports.form != self.form:
            raise InputError("These reports were made for another form.")
        for names, counts in self._tables.items():
            places = np.ravel_multi_index(
                tuple(reports.columns[name] for name in names), counts.shape
            )
            count_places(places, counts.reshape(-1))
        for name, counts in self._support.items():
            design = self.form.design(name)
            assert isinstance(design, SupportDesign)
            support_counts(design, reports.columns[name], counts)
        for (first, second), pair in self._pairs.items():
            pair.add(reports.columns[first], reports.columns[second])
        self.responses += len(reports)
        self.replayable |= reports.replayable

    def _single(self, reports: Mapping[str, Any]) -> Reports:
        if not isinstance(reports, Mapping) or set(reports) != set(self.form.survey.names):
            raise InputError("A client's reports have one entry for each attribute of the form.")
        columns = {}
        for name, design in zip(self.form.survey.names, self.form.designs, strict=True):
            report = design.check_report(reports[name])
            if isinstance(design, UnaryEncoding):
                assert isinstance(report, str)
                bits = np.array([[int(c) for c in report]], dtype=np.uint8)
                columns[name] = np.packbits(bits, axis=1)
            elif isinstance(design, LocalHashing):
                assert isinstance(report, tuple)
                columns[name] = np.array([report[0] * design.buckets + report[1]])
            else:
                columns[name] = np.array([report], dtype=np.int64)
        return Reports(self.form, columns)

    def merge(self, other: Collection) -> None:
        """Add the counts of another collection of the same form and tables."""
        known, given = ((*c._tables, *c._pairs) for c in (self, other))
        if other.form != self.form or known != given:
            raise InputError("Only collections of the same form and tables add up.")
        for names, table in self._tables.items():
            table += other._tables[names]
        for name, counts in self._support.items():
            counts += other._support[name]
        for names, pair in self._pairs.items():
            pair.counts += other._pairs[names].counts
        self.responses += other.responses
        self.replayable |= other.replayable

    # --- estimates ----------------------------------------------------------------------------

    def frequencies(self, *names: str) -> Frequencies:
        """Return the table of report counts over some attributes, with its designs.

        Raises:
            InputError: when these attributes were not counted together, or nothing was.
        """
        if not names:
            raise InputError("Name at least one attribute.")
        designs = [self.form.design(name) for name in names]
        if len(set(names)) != len(names):
            raise InputError("Name each attribute once.")
        self._check_responses()
        for known, counts in self._tables.items():
            if set(names) <= set(known):
                kept = tuple(known.index(name) for name in names)
                rest = tuple(axis for axis in range(len(known)) if axis not in kept)
                summed = counts.sum(axis=rest)
                order = np.argsort(np.argsort(kept))
                table = np.transpose(summed, order)
                return Frequencies(tuple(d for d in designs if isinstance(d, MatrixDesign)), table)
        listed = ", ".join("(" + ", ".join(known) + ")" for known in self._tables) or "none"
        raise InputError(
            f"({', '.join(names)}) was not counted as a table. Tables: {listed}. Name it in "
            "Collection(form, tables=[...]) before collecting."
        )

    def proportions(
        self, *names: str, target: Target = "respondents", method: Method = "unbiased"
    ) -> Release:
        """Estimate the shares of all categories, or of all combinations for several attributes.

        ``target`` says what the interval is to cover: the shares among the respondents, or in
        the population that they were drawn from independently. ``method`` is "unbiased" (may
        leave [0, 1]), "likelihood" (the most likely shares, on the simplex) or "projected" (the
        nearest shares to the unbiased ones; the only other one for unary encoding and hashing).

        *Error.* Normal entries, all covered at once; the standard errors come from the reports.

        Raises:
            InputError: when nothing was collected, or the attributes were not counted together.
        """
        check_target(target)
        if method not in ("unbiased", "likelihood", "projected"):
            raise InputError("method is 'unbiased', 'likelihood' or 'projected'.")
        design = self.form.design(names[0]) if len(names) == 1 else None
        if isinstance(design, SupportDesign):
            self._check_responses()
            value, law = support_estimate(design, self._support[names[0]], self.responses, target)
            if method == "likelihood":
                raise InputError(f"There is no likelihood method for {design.name}; use projected.")
        elif (pair := self._pair(names)) is not None:
            self._check_responses()
            value, law = pair.shares(self.responses), pair.law(self.responses, target)
            if method == "likelihood":
                raise InputError("There is no likelihood method for this pair; use projected.")
        else:
            table = self.frequencies(*names)
            value, law = table.unbiased(), table.law(target)
            if method == "likelihood":
                value = table.likelihood()
        if method == "projected":
            value = project_to_simplex(value)
        details: dict[str, Any] = {"target": target, "method": method}
        if method != "unbiased":
            details["range"] = [0.0, 1.0]
        return self._release("proportions", names, value, law, details)

    def mean(
        self, name: str, scores: Sequence[float], *, target: Target = "respondents"
    ) -> Release:
        """Estimate the mean of a score of each category, without bias."""
        return self._statistic(statistics.mean(self.frequencies(name), scores, target), name)

    def entropy(self, name: str, *, target: Target = "respondents") -> Release:
        """Estimate the entropy of an attribute, in bits."""
        return self._statistic(statistics.entropy(self.frequencies(name), target), name)

    def chi_square(self, first: str, second: str, *, target: Target = "respondents") -> Release:
        """Estimate the chi-square statistic of two attributes, n times the mean square contingency.

        ``parameters["p_value"]`` tests independence, on the reports: they are independent when
        the answers are, so that the ordinary test holds its level at any epsilon.
        """
        found = statistics.chi_square(self.frequencies(first, second), target)
        return self._statistic(found, first, second)

    def mutual_information(
        self, first: str, second: str, *, target: Target = "respondents"
    ) -> Release:
        """Estimate the mutual information of two attributes, in bits."""
        found = statistics.mutual_information(self.frequencies(first, second), target)
        return self._statistic(found, first, second)

    def correlation(
        self,
        first: str,
        second: str,
        *,
        scores: tuple[Sequence[float], Sequence[float]] | None = None,
        target: Target = "respondents",
    ) -> Release:
        """Estimate the correlation of two attributes' scores (0, 1, 2, ... unless given)."""
        found = statistics.correlation(self.frequencies(first, second), scores, target)
        return self._statistic(found, first, second)

    def _statistic(self, found: statistics.Estimate, *names: str) -> Release:
        return self._release(
            found.name, names, found.value, NormalLaw.of(found.sigma), found.details
        )

    def _release(
        self, name: str, names: tuple[str, ...], value: Any, law: NormalLaw, details: dict[str, Any]
    ) -> Release:
        from tulle import __version__

        guarantee = self.form.guarantee()
        if self.replayable:
            guarantee = guarantee.void()
        return Release(
            value=value,
            query=f"{name}({', '.join(names)})",
            mechanism=", ".join(dict.fromkeys(describe(self.form.design(n)) for n in names)),
            guarantee=guarantee,
            error=law,
            parameters={"responses": self.responses, **details},
            versions={"tulle": __version__},
            labels=self._labels(name, names, np.ndim(value)),
            dataset=self.form.survey.name,
        )

    def _labels(self, statistic: str, names: tuple[str, ...], sides: int) -> Labels:
        """Return what an estimate is about; the categories of a survey are public."""
        words, quantity = _WORDS[statistic]
        known = {name: self.form.survey[name].categories for name in names}
        axes = tuple(Axis(n, None if isinstance(c, range) else c) for n, c in known.items())
        return Labels(words.format(" and ".join(names)), quantity, axes if sides else ())

    def _pair(self, names: tuple[str, ...]) -> PairCounts | None:
        """Return what was counted of two attributes together, in either order."""
        for known, pair in self._pairs.items():
            if names in (known, known[::-1]):
                return pair if names == known else pair.turned()
        return None

    def _check_responses(self) -> None:
        if self.responses == 0:
            raise InputError("There are no responses yet: add reports before estimating.")

    def __repr__(self) -> str:
        return f"<Collection of {counted(self.responses, 'response')}: {self.form.survey!r}>"


_WORDS = {
    "proportions": ("Which share of people gave each answer to {}?", "share"),
    "mean": ("What is the mean score of {}?", "score"),
    "entropy": ("How evenly are the answers to {} spread, in bits?", "bits"),
    "chi_square": ("How strongly do the answers to {} depend on each other?", "chi-square"),
    "mutual_information": ("How much do {} tell about each other, in bits?", "bits"),
    "correlation": ("How are the scores of {} correlated?", "correlation"),
}
"""For each estimate the question in words, and what its numbers are."""


def _split_tables(
    form: Form, plain: list[str], tables: Iterable[Sequence[str]] | None
) -> tuple[list[tuple[str, ...]] | None, list[tuple[str, str]]]:
    """Return the tables of categories, and the pairs in which something reports by support."""
    if tables is None:
        return None, []
    whole: list[tuple[str, ...]] = []
    pairs: list[tuple[str, str]] = []
    for names in tables:
        chosen = (names,) if isinstance(names, str) else tuple(names)
        sizes = [form.survey[name].size for name in chosen]
        if len(chosen) == 2 and len(set(chosen)) == 2 and not set(chosen) <= set(plain):
            if prod(sizes) > MOST_CELLS:
                raise InputError(f"The table ({', '.join(chosen)}) has too many cells.")
            pairs.append((chosen[0], chosen[1]))
        else:
            whole.append(chosen)
    return whole, pairs


def _table_names(
    form: Form, plain: list[str], tables: Iterable[Sequence[str]] | None
) -> list[tuple[str, ...]]:
    if tables is None:
        if plain and prod(form.survey[name].size for name in plain) <= MOST_CELLS:
            return [tuple(plain)]
        return [(name,) for name in plain]
    chosen = [(names,) if isinstance(names, str) else tuple(names) for names in tables]
    for names in chosen:
        for name in names:
            form.survey[name]
            if name not in plain:
                raise InputError(
                    f"{name!r} reports by {form.design(name).name} and is counted alone or in "
                    "pairs. Ask for a larger combination as one attribute to learn about it."
                )
        if prod(form.survey[name].size for name in names) > MOST_HASH_CELLS:
            raise InputError(f"The table ({', '.join(names)}) has too many cells.")
    covered = {name for names in chosen for name in names}
    return chosen + [(name,) for name in plain if name not in covered]
