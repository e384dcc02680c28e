"""What a mechanism is: a way to answer some questions, its price and its error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

from tulle.core.dataset import Dataset, Facts
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import InputError
from tulle.core.events import Approximate, Event, Gaussian, Pure
from tulle.core.guarantee import Guarantee, largest_rho
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import rational, text

Parameters = Mapping[str, Any]
"""A mechanism's public, JSON-able settings: exact numbers are written as text."""

_READ: Mapping[str, Callable[[Any], Any]] = {
    "Fraction": rational,
    "float": float,
    "int": int,
    "bool": bool,
    "str": str,
    "Any": lambda stored: stored,
}
"""How a field of :class:`Settings` is read from JSON, by its declared type."""


def _read(kind: str, stored: Any) -> Any:
    """Read a field of one of these types, of several in a tuple, or of none."""
    if kind.endswith(" | None"):
        return None if stored is None else _read(kind.removesuffix(" | None"), stored)
    if kind.startswith("tuple["):
        entry = kind.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_read(entry, one) for one in stored)
    return _READ[kind](stored)


def _stored(value: Any) -> Any:
    """Return the JSON form of a field."""
    if isinstance(value, tuple):
        return [_stored(one) for one in value]
    return text(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True, eq=False)
class Settings(Mapping[str, Any]):
    """The public settings of one run, as typed fields of a frozen subclass.

    As a mapping they are their JSON form, which plans show, ledgers book and releases keep: exact
    numbers as text, tuples as lists. A field that need not be set is left out where it is not.
    :meth:`read` is the way back.
    """

    def __getitem__(self, name: str) -> Any:
        if name not in self._set():
            raise KeyError(name)
        return _stored(getattr(self, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._set())

    def __len__(self) -> int:
        return len(self._set())

    def __hash__(self) -> int:
        return hash(tuple((name, str(value)) for name, value in self.items()))

    def _set(self) -> list[str]:
        """Return the names of all fields that are set."""
        known = self.__dataclass_fields__
        return [
            name
            for name, one in known.items()
            if one.default is not None or getattr(self, name) is not None
        ]

    def typed(self) -> dict[str, Any]:
        """Return the fields by name, as they are."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def read(cls, stored: Parameters) -> Self:
        """Return settings from their JSON form, such as a release's; unchanged if typed already.

        Raises:
            KeyError: when one is missing.
        """
        if isinstance(stored, cls):
            return stored
        return cls(
            **{
                one.name: _read(str(one.type), stored[one.name])
                for one in fields(cls)
                if one.default is MISSING or one.name in stored
            }
        )


@dataclass(frozen=True)
class Terms:
    """What is asked for: the question, who is protected, what may be spent, what is public."""

    query: Query
    unit: Unit
    epsilon: Fraction
    delta: Fraction
    facts: Facts
    assumptions: tuple[str, ...] = ()
    """What every guarantee about the data rests on, in words."""
    composed: bool = False
    """Whether the price is added up with others by divergences: Gaussian noise is then sized by
    its rho, since that is what is booked, and not for one answer by itself."""


@dataclass(frozen=True)
class Prediction:
    """The error to expect, from public facts and, where given, a public stand-in dataset.

    ``bound`` holds for every dataset with these facts; ``typical`` is what the stand-in would
    see. For noise that does not depend on the data the two are equal.
    """

    bound: ErrorLaw | None
    typical: ErrorLaw | None
    mean_error: float | None = None
    """For vectors: the typical mean absolute error of an entry, if it is less than the law says."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what to expect besides."""
    relative: float = float("inf")
    """Where no error is known beforehand, since noise follows what the data will show: the noise in
    parts of that. It compares mechanisms for one question, and is shown to nobody."""

    def rank(self) -> float:
        """Return the figure by which mechanisms for one question are compared: less is better."""
        if self.mean_error is not None:
            return self.mean_error
        law = self.typical or self.bound
        return float("inf") if law is None else law.half_width(0.5)


@dataclass(frozen=True)
class Outcome:
    """What a mechanism gives back: a private value and the public law of its error."""

    value: Any
    error: ErrorLaw | None
    details: Mapping[str, Any] = field(default_factory=dict)


class Mechanism(ABC):
    """A way to answer some questions under some units.

    Subclasses are stateless; an instance is registered under its name. ``settings`` and
    ``guarantee`` see public facts only, ``run`` alone sees records.
    """

    name: ClassVar[str]
    """The word a user names it with."""

    kind: ClassVar[str]
    """The kind of data it works on."""

    title: ClassVar[str]
    """What it does, in a few words."""

    reference: ClassVar[str]
    """Where it comes from."""

    needs_delta: ClassVar[bool] = False
    """Whether its guarantee needs a delta above zero."""

    concentrated: ClassVar[bool] = False
    """Whether all its noise is Gaussian; its event then says which."""

    options: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that a user may choose."""

    needs_options: ClassVar[tuple[str, ...]] = ()
    """Options without which it cannot run, since nothing public could stand in for them."""

    answers: ClassVar[tuple[type[Query], ...]] = ()
    """Classes of the questions that it may answer; from its registration, as name and kind."""

    units: ClassVar[tuple[str, ...]] = ()
    """Names of the units under which it answers them."""

    named_only: ClassVar[Mapping[str, tuple[type[Query], ...]]] = {}
    """By unit, questions that it answers only when a user names it; from its registration."""

    def supports(self, query: Query, unit: Unit) -> bool:
        """Say whether it answers this question under this unit."""
        return isinstance(query, self.answers) and unit.base in self.units

    def offers(self, query: Query, unit: Unit) -> bool:
        """Say whether plans should consider it when nobody names it: false where it is known to be
        worse than another, and slow to predict.
        """
        return not isinstance(query, self.named_only.get(unit.base, ()))

    @abstractmethod
    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        """Return all public settings of one run, checked.

        Raises:
            InputError: for an option it does not know or cannot use.
        """

    def usual(self, terms: Terms, options: Parameters) -> Parameters:
        """Return options to start from where the stand-in was made up: it may be unlike the data.

        What is left open is then tuned on it; with a stand-in that was declared, all is.
        """
        return options

    def tune(self, terms: Terms, options: Parameters, like: Dataset) -> Parameters:
        """Return the options, those that the user left open chosen on a public stand-in."""
        return options

    @abstractmethod
    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Return the error to expect, from public facts and a public stand-in."""

    def predict_columns(
        self, terms: Terms, settings: Parameters, like: Dataset
    ) -> tuple[tuple[str, ErrorLaw | None], ...]:
        """Return, for an answer that is a table, the error to expect in each of its columns."""
        return ()

    @abstractmethod
    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        """Draw a private answer. The price has been paid when this is called."""

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        """Return what a run with these settings guarantees; at most what the terms allow."""
        spent_delta = terms.delta if self.needs_delta else Fraction(0)
        return Guarantee(terms.unit, terms.epsilon, spent_delta)

    def event(self, terms: Terms, settings: Parameters) -> Event:
        """Return what a run does to one unit's privacy, in the terms of who adds runs up."""
        if self.concentrated:
            # Those that size their noise more closely say so themselves.
            return Gaussian(largest_rho(terms.epsilon, terms.delta))
        stated = self.guarantee(terms, settings)
        assert stated.epsilon is not None
        return Approximate(stated.epsilon, stated.delta) if stated.delta else Pure(stated.epsilon)

    def check_options(self, options: Parameters) -> None:
        """Refuse options that this mechanism does not have.

        Raises:
            InputError: naming the option and those that exist.
        """
        for name in options:
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise InputError(
                    f"Mechanism {self.name!r} has no option {name!r}. Its options: {known}."
                )
