"""The questions that a table answers: a linear or a logistic model of one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.arrays import Floats
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import Number, rational, text
from tulle.models.data import Table


@dataclass(frozen=True)
class Regression(Query):
    """A model of one column by others: the intercept, then one coefficient for each feature."""

    target: str
    features: tuple[str, ...] | None = None
    """The columns to predict from; None for all others."""
    sensitive: tuple[str, ...] = ()
    gamma: str = "1"
    """The budget of monomials with a sensitive feature, relative to the others'; as text."""
    intercept: bool = True
    norm: float | None = None
    """The largest Euclidean length of a row after scaling to [-1, 1]; longer rows shrink."""
    bits: int | None = None
    """Rows are rounded to multiples of 2**-bits after scaling; None chooses from public facts."""
    kind: ClassVar[str] = "table"
    of_classes: ClassVar[bool]
    """Whether the target is one of two classes, instead of a number."""
    shape: ClassVar[Shape] = "vector"
    integral: ClassVar[bool] = False

    def canonical(self) -> dict[str, Any]:
        found: dict[str, Any] = {"query": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        features = parameters.get("model", {}).get("features", ())
        return (Axis("feature", ["intercept", *features]),)

    @property
    def ratio(self) -> Fraction:
        """Gamma as an exact number."""
        return rational(self.gamma)

    def __str__(self) -> str:
        features = "all others" if self.features is None else ", ".join(self.features)
        said = [f"{self.target} ~ {features}"]
        if self.sensitive:
            said.append(f"sensitive={'+'.join(self.sensitive)}, gamma={self.gamma}")
        if not self.intercept:
            said.append("no intercept")
        if self.norm is not None:
            said.append(f"norm={self.norm:g}")
        if self.bits is not None:
            said.append(f"bits={self.bits}")
        return f"{self.name}({', '.join(said)})"


@dataclass(frozen=True)
class Linear(Regression):
    """Least squares."""

    name: ClassVar[str] = "linear"
    words: ClassVar[str] = "How does {target} depend on the other columns (least squares)?"
    quantity: ClassVar[str] = "coefficient"
    of_classes: ClassVar[bool] = False

    def truth(self, dataset: Table) -> Floats:
        from tulle.models.fitting import fit_linear

        return fit_linear(self, dataset)


@dataclass(frozen=True)
class Logistic(Regression):
    """Logistic regression of a column with two classes."""

    name: ClassVar[str] = "logistic"
    words: ClassVar[str] = (
        "How does the chance of {target} depend on the other columns (logistic regression)?"
    )
    quantity: ClassVar[str] = "coefficient"
    of_classes: ClassVar[bool] = True

    def truth(self, dataset: Table) -> Floats:
        from tulle.models.fitting import fit_logistic

        return fit_logistic(self, dataset)


@public()
@registry.register("query", "table", "linear")
def linear(
    target: str,
    features: Iterable[str] | None = None,
    *,
    sensitive: Iterable[str] = (),
    gamma: Number = 1,
    intercept: bool = True,
    norm: float | None = None,
    bits: int | None = None,
) -> Linear:
    """Ask for a least-squares model of one column; the answer is intercept and coefficients.

    Values are clipped to the table's declared bounds first. ``sensitive`` names features whose
    coefficients get 1/``gamma`` times the noise of the others (0 < gamma <= 1); for what that
    protects see the guide. ``norm`` shortens rows that are longer than it after every column is
    scaled to [-1, 1]: less noise, some bias. ``bits`` is the resolution to which scaled values are
    rounded.

    Raises:
        InputError: when gamma, norm or bits is out of range.
        QueryError: when a sensitive column is not among the features.

    Example:
        >>> str(linear("weight", ["height", "age"]))
        'linear(weight ~ height, age)'
    """
    return Linear(*_read(target, features, sensitive, gamma, intercept, norm, bits))


@public()
@registry.register("query", "table", "logistic")
def logistic(
    target: str,
    features: Iterable[str] | None = None,
    *,
    sensitive: Iterable[str] = (),
    gamma: Number = 1,
    intercept: bool = True,
    norm: float | None = None,
    bits: int | None = None,
) -> Logistic:
    """Ask for a logistic model of a column with two declared classes; see :func:`linear`.

    Example:
        >>> str(logistic("smokes", sensitive=["income"], gamma=0.1))
        'logistic(smokes ~ all others, sensitive=income, gamma=0.1)'
    """
    return Logistic(*_read(target, features, sensitive, gamma, intercept, norm, bits))


def _read(
    target: Any, features: Any, sensitive: Any, gamma: Any, intercept: Any, norm: Any, bits: Any
) -> tuple[Any, ...]:
    listed = None if features is None else _names("features", features)
    hidden = _names("sensitive", sensitive)
    if listed is not None:
        if not listed:
            raise QueryError("A model needs at least one feature.")
        if target in listed:
            raise QueryError(f"{target!r} cannot be both the target and a feature.")
        missing = [name for name in hidden if name not in listed]
        if missing:
            raise QueryError(f"The sensitive column {missing[0]!r} is not among the features.")
    if target in hidden:
        raise QueryError(f"The target {target!r} cannot be a sensitive feature.")
    ratio = validate.positive(gamma=gamma)
    if not Fraction(1, 10**6) <= ratio <= 1:
        raise InputError(f"gamma must lie between 0.000001 and 1; got {gamma!r}.")
    if norm is not None:
        length = validate.positive(norm=norm)
        if not Fraction(1, 2**10) <= length <= 2**20:
            raise InputError(f"norm must lie between 2**-10 and 2**20; got {norm!r}.")
        norm = float(length)
    if bits is not None:
        # As Python's number: powers of one of numpy's run over, and noise is scaled by them.
        bits = validate.whole(bits=bits, at_least=0, at_most=16)
    return target, listed, hidden, text(ratio), bool(intercept), norm, bits


def _names(what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise QueryError(f"{what} must be a list of names of columns.")
    listed = tuple(str(name) for name in given)
    if len(set(listed)) != len(listed):
        raise QueryError(f"{what} names a column twice.")
    return listed
