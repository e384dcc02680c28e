"""What has to be said about a kind of data so that the audit can examine its mechanisms."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any, ClassVar

from tulle.audit.engine.broken import Broken, name_of
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.laws import Law
from tulle.audit.engine.world import World
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit


@dataclass(frozen=True)
class Description:
    """A run in closed form: independent parts, by name."""

    parts: tuple[tuple[str, Law], ...]
    joint: bool = False
    """Whether post-processing of the answer, the first part, looks at the others."""


@dataclass(frozen=True)
class OwnCase:
    """The case of one mechanism that another distribution brings along.

    A function that returns it registers as ``("audit", "<kind>/<mechanism>", "case")``.
    """

    questions: Sequence[Query]
    """On which it is examined and drawn from."""
    law: Callable[[Terms, Parameters, Any], Description]
    """The closed form of a run."""
    finish: Callable[[Terms, Parameters], Callable[[tuple[Any, ...]], Hashable]]
    """The post-processing, as :meth:`AuditView.finish`."""
    broken: Callable[[], Sequence[Broken]] = tuple
    """Broken versions of its own that the audit must catch, beside those that all have."""


class AuditView(ABC):
    """The audit's view of one kind of data."""

    name: ClassVar[str]

    private: ClassVar[tuple[str, ...]] = ("spread", "slack")
    """Entries of a release that, beside its value, are part of the private answer."""

    alike_sizes: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)
    """The sizes of worlds on which odd questions are asked of neighbours."""

    examined_with: ClassVar[Mapping[str, Sequence[Parameters]]] = {}
    """The options with which mechanisms are examined, by name, where there is a choice."""

    costly: ClassVar[bool] = False
    """Whether checks take so long that faults of every mechanism are shown on few cases."""

    own_checks: ClassVar[Mapping[str, Callable[[], list[Finding]]]] = {}
    """Mechanisms that are examined on worlds of their own: checks, broken versions among them."""

    def priced(self, mechanism: Mechanism) -> Iterator[tuple[Query, Dataset]]:
        """Yield further questions and datasets on which runs are watched for their price."""
        yield from ()

    @abstractmethod
    def world(self, size: int) -> World:
        """Return every dataset of at most, or exactly, this size, with its neighbours."""

    def world_for(self, size: int, query: Query) -> World:
        """Return the world for one question; a kind with several units chooses by the question."""
        return self.world(size)

    def unit_for(self, query: Query, dataset: Dataset) -> Unit:
        """Return the unit under which runs on one question are drawn."""
        return dataset.check_unit(dataset.units[0])

    def questions(self, mechanism: Mechanism) -> Sequence[Query]:
        """Return the questions on which a mechanism is examined; empty when it has no case."""
        if isinstance(mechanism, Broken):
            return mechanism.questions
        own = self.own_case(mechanism.name)
        return self.asked(mechanism) if own is None else own.questions

    def own_case(self, name: str) -> OwnCase | None:
        """Return the case that a mechanism of another distribution brings along, if any."""
        make = registry.find("audit", f"{self.name}/{name}").get("case")
        return None if make is None else make()

    @abstractmethod
    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        """Return the questions on which a registered mechanism is examined."""

    def drawn_questions(self, mechanism: Mechanism) -> Sequence[Query]:
        """Return the questions on which runs are drawn: their answers vary on tiny data."""
        asked = self.questions(mechanism)
        known = self.own_case(name_of(mechanism)) is None
        return self.drawn_of(asked, name_of(mechanism)) if known else asked

    def drawn_of(self, asked: Sequence[Query], name: str) -> Sequence[Query]:
        """Return those of a registered mechanism's questions that are drawn from."""
        return asked

    def describe(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        """Return the closed form of a run of this mechanism on this dataset, fault included."""
        own = self.own_case(name_of(mechanism))
        if isinstance(mechanism, Broken):
            terms = mechanism.seen(terms)
        honest = (
            self.law_of(mechanism, terms, settings, dataset)
            if own is None
            else own.law(terms, settings, dataset)
        )
        if not isinstance(mechanism, Broken):
            return honest
        laws = dict(honest.parts)
        laws.update(mechanism.spoil(laws, terms, settings, dataset))
        return Description(tuple(laws.items()), honest.joint)

    @abstractmethod
    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        """Return the closed form of a run with these settings."""

    def draw(self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any) -> Any:
        """Return a function that runs the mechanism anew with each call, from a source.

        A kind whose runs take long may do once what every run repeats without drawing anything.
        """
        return lambda source=None: mechanism.run(terms, settings, dataset, source)

    @abstractmethod
    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        """Return the post-processing: from one value for each part to what leaves."""

    @abstractmethod
    def observe(self, outcome: Outcome) -> Hashable:
        """Return all that an outcome shows and that depends on the data."""

    @abstractmethod
    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        """Return two tiny neighbours on which a question has a telling answer."""

    @abstractmethod
    def show(self, dataset: Dataset) -> str:
        """Describe a made-up dataset, for a witness."""

    @abstractmethod
    def odd_questions(self) -> Sequence[Query]:
        """Return questions with unusual arguments, for the check of failures."""

    def options(self, mechanism: Mechanism) -> Sequence[Parameters]:
        """Return the options with which a mechanism is examined; draws use the first of them."""
        return self.examined_with.get(name_of(mechanism), ({},))

    def proper(self, query: Query, dataset: Dataset, unit: Unit) -> tuple[Query, Unit]:
        """Return the question that a mechanism gets, and its unit, from one of the audit's own."""
        return query, unit

    def terms(
        self,
        query: Query,
        dataset: Dataset,
        unit: Unit,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
    ) -> Terms:
        """Return what is asked for, with the dataset's public facts."""
        asked, known = self.proper(query, dataset, unit)
        return Terms(asked, known, epsilon, delta, dataset.facts(known))


def is_audited(name: str) -> bool:
    """Say whether the audit has a view of this kind of data."""
    return "view" in registry.find("audit", name)


def kind_of(name: str) -> AuditView:
    """Return the audit's view of a kind of data.

    Raises:
        InputError: when that kind has none: its mechanisms cannot be audited yet.
    """
    if not is_audited(name):
        raise InputError(f"The audit does not know data of kind {name!r}. Add its view to audit/.")
    view: AuditView = registry.find("audit", name)["view"]()
    return view


def classes_without(base: type, room: ModuleType, examined: Collection[type | None]) -> list[str]:
    """Return the classes of a package that derive from one, and that nothing examines.

    For what is paid for otherwise than a mechanism, and so not in the registry.
    """
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        importlib.import_module(module.name)
    found, classes = set(), [base]
    while classes:
        made = classes.pop()
        classes.extend(made.__subclasses__())
        audited = made.__module__.startswith("tulle.audit.")
        if not (inspect.isabstract(made) or made in examined or audited):
            found.add(made.__name__)
    return sorted(found)
