"""What an engine's SQL is like, as far as statements are written differently for it.

Whatever differs between engines is said here and nowhere else: by a class derived from
:class:`Dialect` in the engine's own folder (``sql/engines/<name>/dialect.py``), registered by
``@registry.register("dialect", "database", name)``. Nothing has a default, so a dialect that leaves
something unsaid cannot be built, and what it has no form for is refused when a question is built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tulle.core import registry

if TYPE_CHECKING:
    from tulle.sql.expressions.conversions import Typed
    from tulle.sql.expressions.kinds import Kind

DEFAULT = "duckdb"
"""The engine that holds frames and files, and in whose SQL a question is written unless it says."""

Form = Callable[[Any, "list[Typed]", "Dialect"], "Typed"]
"""Returns an expression with its kind, given the parsed one and its arguments, which are total."""


class Dialect(ABC):
    """The SQL of one engine: facts, and forms in which it gives a value or NULL for every row."""

    # Facts

    @property
    @abstractmethod
    def name(self) -> str:
        """What the parser calls it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the engine is called."""

    @property
    @abstractmethod
    def forms(self) -> Mapping[str, Form]:
        """For entries of :mod:`tulle.sql.expressions`, by name, a form that cannot fail.

        It gives a value or NULL for all arguments of the kinds that the entry takes, or raises
        Impossible, from kinds and constants alone. An entry that is not here is refused.
        """

    @property
    @abstractmethod
    def usual_schema(self) -> str:
        """The schema in which tables are, where it was not said when connecting."""

    @property
    @abstractmethod
    def value_names(self) -> tuple[str, int]:
        """How the columns of VALUES are called, with {} for a number, and the first number."""

    @property
    @abstractmethod
    def sunday(self) -> int:
        """Which number Sunday has where a question asks for the day of a week: 0 or 1."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether decimals have as many digits as they need; otherwise at most 38."""

    @property
    @abstractmethod
    def wide(self) -> str:
        """A type of whole numbers whose sums are exact."""

    @property
    @abstractmethod
    def widens_sums(self) -> bool:
        """Whether whole numbers of 64 bits, and decimals, are added in a wider type than theirs."""

    @property
    @abstractmethod
    def owner_collation(self) -> str | None:
        """The collation in which texts that identify owners are compared, as SQL writes it.

        None where columns are compared so anyway, or those that are not are of no known kind.
        """

    @property
    @abstractmethod
    def text_collation(self) -> str | None:
        """The collation that columns of texts are read in, as SQL writes it.

        None where those with one of their own are of no known kind, or are refused when they meet:
        elsewhere two that meet end a statement at the first row on which they do.
        """

    @property
    @abstractmethod
    def key_collation(self) -> str:
        """The collation, as SQL writes it, in which texts are equal if all characters are."""

    @property
    @abstractmethod
    def writes_offsets(self) -> bool:
        """Whether timestamps with time zone are written with their offset, so that no two of them
        are one text: an hour is there twice where clocks are set back."""

    @property
    @abstractmethod
    def pattern_end(self) -> str:
        """The regular expression for the very end of a text."""

    @property
    @abstractmethod
    def interval_times(self) -> int:
        """How many times 4,000 years, or as much in other units, is the longest interval."""

    @property
    @abstractmethod
    def guards_functions(self) -> bool:
        """Whether functions that a user vouches for can be kept from failing."""

    # Forms

    @abstractmethod
    def convert(self, given: Typed, kind: Kind, target: Any) -> Typed:
        """Return a value of another kind, as this type, or NULL where there is none.

        That the conversion means something has been checked.

        Raises:
            Impossible: when the engine may fail on it.
        """

    @abstractmethod
    def cast_target(self, to: Any) -> Any:
        """Return the type that a question's CAST means."""

    @abstractmethod
    def whole_constant(self, digits: int) -> Kind:
        """Return the kind of a whole number that is written into a statement."""

    @abstractmethod
    def function(self, made: Any, argument: Any) -> Any:
        """Return the call of a user's function so that it cannot fail; one argument is from a row.

        It is not called unless :attr:`guards_functions`.
        """

    @abstractmethod
    def same_value(self, given: Typed) -> Typed:
        """Return a number or a text in the one form of all that are equal to it."""

    @abstractmethod
    def ordered_sum(self, value: str) -> str:
        """Return a sum of doubles in which the least is added first, whatever the order of rows."""

    @abstractmethod
    def listed(self, texts: str) -> str:
        """Return texts that are apart by commas as a table of text (h) and place (p), from 0."""

    @abstractmethod
    def nearest(self, value: str) -> str:
        """Return a whole double that is nearest to a double; any of two that are as near."""

    @abstractmethod
    def whole_sum(self, value: str) -> str:
        """Return the exact sum of whole numbers of 64 bits."""

    @abstractmethod
    def step_sum(self, value: str) -> str:
        """Return the same as a double, rounded alike whatever the order of the rows."""

    @property
    @abstractmethod
    def gathers_first(self) -> bool:
        """Whether rows are best brought together by owner before they are added up by group.

        What is added up by owner afterwards is then not moved once more.
        """

    def type_name(self, name: str) -> str:
        """Return how a type is written, such as DOUBLE."""
        from sqlglot import exp

        return str(exp.DataType.build(name).sql(dialect=self.name))


@cache
def dialect_of(name: str) -> Dialect:
    """Return the SQL of an engine by the name that its schema has for it."""
    made: Dialect = registry.find("dialect", "database")[name]()
    return made


def guarding() -> str:
    """Return the engines that can be kept from failing on a user's function, for reading."""
    known = (dialect_of(name) for name in registry.find("dialect", "database"))
    return " or ".join(dialect.title for dialect in known if dialect.guards_functions)
