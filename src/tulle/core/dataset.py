"""Sealed records with declared public facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, ClassVar, NoReturn

from tulle.core.errors import SealedError, UnitError, forgetful
from tulle.core.unit import Unit

Facts = Mapping[str, Any]
"""Public facts: JSON-able values that anyone may know, by name."""


class Dataset(ABC):
    """Base of all kinds of data. Its records leave only through a mechanism.

    ``repr``, ``format``, ``pickle`` and ``copy`` show nothing. Methods that hand records to the
    custodian are named for it in each kind (for example ``Graph.edges``).
    """

    def __init_subclass__(cls, *, only_assigns: bool = False, **options: Any) -> None:
        """Let no error of whatever makes the data keep records in the frames it came through.

        ``only_assigns`` says that the constructor cannot fail.
        """
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if isinstance(member, classmethod) and not name.startswith("_"):
                setattr(cls, name, classmethod(forgetful(member.__func__)))
            elif name == "__init__" and not only_assigns:
                setattr(cls, name, forgetful(member))

    kind: ClassVar[str]
    """The word for this kind of data in queries, plans and ledgers."""

    units: ClassVar[tuple[str, ...]]
    """Names of the units that this kind of data can be protected under."""

    _origin: object

    stands_for: float = 1.0
    """How many real participants each one stands for: above 1 in large made-up data alone."""

    @property
    def origin(self) -> object:
        """What all datasets share that were made of the same records, and no others."""
        return vars(self).setdefault("_origin", object())

    @abstractmethod
    def facts(self, unit: Unit) -> Facts:
        """Return what is public under ``unit``; equal on all neighbours, by construction."""

    def public_side(self, unit: Unit) -> Any:
        """Return what a question may look at when it objects: by default the dataset itself.

        Kinds of data whose facts differ between units return what is public under this one.
        """
        return self

    def under(self, unit: Unit) -> Dataset:
        """Return the dataset as it is protected under this unit: by default itself.

        Where whose a record is depends on the unit, it is a dataset with the same records.
        """
        return self

    def of_days(self, first: date, last: date) -> Dataset:
        """Return the dataset with the records of these days alone.

        Raises:
            UnitError: when nobody knows of which day a record is.
        """
        raise UnitError(
            f"A budget that renews, with a unit that has a period, needs to know of which day each "
            f"record is; a {self.kind} does not. Open the account for ever, or with another unit."
        )

    def assumptions(self, unit: Unit) -> tuple[str, ...]:
        """Return in words what every guarantee about this data rests on."""
        return ()

    @abstractmethod
    def neighbours(self, unit: Unit) -> Iterator[Dataset]:
        """Yield all neighbours under ``unit``. For small datasets: the audit needs them all."""

    def check_unit(self, unit: str | Unit) -> Unit:
        """Return the unit if this kind of data knows it.

        Raises:
            UnitError: when it does not.
        """
        known = Unit.of(unit)
        if known.name not in self.units:
            allowed = ", ".join(self.units)
            raise UnitError(
                f"A {self.kind} cannot be protected per {known.name}. Units for a {self.kind}: "
                f"{allowed}."
            )
        return known

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: sealed>"

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SealedError(
            f"A {type(self).__name__} is sealed and cannot be pickled or copied: its records would "
            "leave without a debit. Read it again where it is needed, or release from it."
        )

    def __reduce__(self) -> Any:
        # Some libraries that write objects down ask for this, or for the next one.
        return self.__reduce_ex__(2)

    def __getstate__(self) -> Any:
        return self.__reduce_ex__(2)
