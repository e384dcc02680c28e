"""The question about contributions: the total of every cell of the grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import counted
from tulle.matrices.contributions.data import Contributions, check_grid
from tulle.matrices.contributions.labels import PublicArray, read_labels
from tulle.matrices.contributions.reference import Reference, look_up
from tulle.noise import Lattice


class GridQuery(Query):
    """A question with one answer for each cell of the public grid."""

    kind: ClassVar[str] = "contributions"
    shape: ClassVar[Shape] = "object"

    def bound_to(self, facts: Mapping[str, Any]) -> Query:
        check_grid(facts)
        return self

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        names = (public.row_names, public.column_names)
        return tuple(
            Axis(side, None if isinstance(known, range) else list(known))
            for side, known in zip(("row", "column"), names, strict=True)
        )


@dataclass(frozen=True)
class Weights(GridQuery):
    """The totals of all cells, every individual cut down to public bounds."""

    bound: PublicArray | None = None
    """The most in one cell: one number, or one for each cell."""
    total: float | None = None
    """The largest sum of absolute values over all cells."""
    length: float | None = None
    """The largest Euclidean length over all cells."""
    labels: PublicArray | None = None
    block_total: PublicArray | None = None
    block_length: PublicArray | None = None
    blocks: int | str = "auto"
    reference: Reference | None = None
    step: float | None = None
    about: int | None = None
    """About how many people the data has, if that is public: for predictions of clipping."""
    name: ClassVar[str] = "weights"
    words: ClassVar[str] = (
        "How much did everybody contribute to each cell, no one more than the stated bounds?"
    )
    quantity: ClassVar[str] = "total"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Contributions) -> npt.NDArray[np.float64]:
        return dataset.totals()

    def canonical(self) -> dict[str, Any]:
        found: dict[str, Any] = {"query": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                digest = getattr(value, "digest", None)
                found[field.name] = value if digest is None else digest
        return found

    def __str__(self) -> str:
        said = [f"{f.name}={v}" for f in fields(self) if (v := getattr(self, f.name)) is not None]
        return f"weights({', '.join(said)})"


@public("Publish a matrix")
@registry.register("query", "contributions", "weights")
def weights(
    *,
    bound: Any = None,
    total: float | None = None,
    length: float | None = None,
    labels: Any = None,
    block_total: Any = None,
    block_length: Any = None,
    blocks: int | str = "auto",
    reference: Contributions | None = None,
    quantile: float | None = None,
    step: float | None = None,
    about: int | None = None,
) -> Weights:
    """Ask for the total weight of every cell, each individual cut down to public bounds.

    Bounds say how much one individual may contribute; whoever has more is scaled down. They must
    not be read off the same data. Give any of

    * ``bound``: the most in one cell, one number or one for each cell; cells of bound 0 stay 0;
    * ``total``: the largest sum of absolute values over all cells, ``length``: the largest square
      root of the sum of squares;
    * ``labels`` with ``block_total`` (or ``block_length``): a block number for each cell and the
      same limits for each block, for example those that :func:`tulle.block_bounds` released;
    * ``reference``: contributions on the same grid that are public (or of people who are not in
      the data and agreed). Half of its people give the bounds of cells, the other half what one
      person has in a block and in all, at this ``quantile``. When that is left out, the plan takes
      the one at which noise and clipping together are least on the reference: bounds that nobody
      exceeds have far more noise than most people need.

    Without ``labels``, cells are cut into blocks by thresholds on their bounds, so that the
    predicted error is least: into ``blocks`` of them, or as many as are worth it ("auto").

    ``step`` is the power of two of which all released numbers are multiples; it is chosen from
    the bounds when left out. A coarse step rounds down whoever has to be scaled. ``about`` is a
    public guess of how many people the data has, or what :func:`tulle.participants` released. What
    clipping takes away grows with their number, and noise does not: without it, the data are taken
    to have as many as the reference.

    Raises:
        InputError: when a bound is not a number above zero, or shapes do not match.
        QueryError: when nothing bounds an individual, or arguments do not go together.

    Example:
        >>> str(weights(bound=2, total=10))
        'weights(bound=2.0, total=10.0, blocks=auto)'
    """
    if reference is not None and (bound is not None or labels is not None):
        raise QueryError("A reference gives the bounds of cells itself: leave out bound, labels.")
    if labels is None and (block_total is not None or block_length is not None):
        raise QueryError("block_total and block_length need labels=: which cell is in which block.")
    said = (bound, total, length, block_total, block_length, reference)
    if all(bounds is None for bounds in said):
        raise QueryError(
            "Nothing says how much one individual may contribute. Give bound=, total=, length=, "
            "labels= with block_total=, or a public reference=."
        )
    if blocks != "auto":
        blocks = validate.whole(blocks=blocks, at_least=1)
    found = None if labels is None else read_labels(labels)
    count = 0 if found is None else int(found.max()) + 1
    return Weights(
        bound=None if bound is None else _read_bound(bound, found),
        total=_positive("total", total),
        length=_positive("length", length),
        labels=None if found is None else PublicArray(found),
        block_total=_per_block("block_total", block_total, count),
        block_length=_per_block("block_length", block_length, count),
        blocks=count or blocks,
        reference=None if reference is None else look_up(reference, quantile),
        step=None if step is None else float(Lattice(step).step),
        about=None if about is None else validate.whole(about=about, at_least=1),
    )


def _positive(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = float(validate.positive(**{name: value}))
    if not 2.0**-200 < number < 2.0**200:
        raise InputError(f"{name} must lie between 2**-200 and 2**200; got {value!r}.")
    return number


def _read_bound(bound: Any, labels: Any) -> PublicArray:
    array = PublicArray.read(bound, "bound must be a number, or a matrix of numbers.")
    values = array.values
    if values.ndim not in (0, 2) or not values.size:
        raise InputError("bound must be a number, or a matrix with one number for each cell.")
    if not np.isfinite(values).all() or bool((values < 0).any()):
        raise InputError("bound must be finite and not negative in every cell.")
    used = values[values > 0]
    if not used.size or used.min() < 2.0**-200 or used.max() > 2.0**200:
        raise InputError("bound must have a cell above zero, and all between 2**-200 and 2**200.")
    if labels is not None and values.ndim == 2 and values.shape != labels.shape:
        raise InputError(f"bound has shape {values.shape}, but labels {labels.shape}.")
    return array


def _per_block(name: str, values: Any, count: int) -> PublicArray | None:
    if values is None:
        return None
    array = PublicArray.read(values, f"{name} must be a list of numbers.")
    if array.values.shape != (count,):
        raise InputError(
            f"{name} must have one number for each of the {counted(count, 'block')} in labels."
        )
    for value in array.values.tolist():
        if not math.isfinite(value):
            raise InputError(f"{name} must be finite numbers.")
        _positive(name, value)
    return array
