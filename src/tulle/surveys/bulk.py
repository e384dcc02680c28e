"""Bulk perturbation, for simulations and for a custodian who holds the answers already.

The same laws as the client's, drawn by ``noise`` for whole arrays, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError, forgetful
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise import bernoulli, uniform_below
from tulle.noise.source import resolve
from tulle.noise.tables import Bounds, SamplingTable, TableLaw
from tulle.surveys.data import Attribute, Survey
from tulle.surveys.designs import Design, DesignMatrix, RandomizedResponse
from tulle.surveys.form import Form
from tulle.surveys.large import LocalHashing, UnaryEncoding

_CHUNK = 1 << 20
_CHUNK_BITS = 1 << 24


@public()
@dataclass(frozen=True, eq=False)
class Reports:
    """Perturbed answers of many clients, by attribute. They are private already.

    A column holds numbers of categories; for local hashing the number row·g + bucket; for unary
    encoding rows of packed bits.
    """

    form: Form
    columns: Mapping[str, Array]
    replayable: bool = False
    """Whether they were drawn from a source that can be replayed, which voids the guarantee."""

    def __post_init__(self) -> None:
        names = self.form.survey.names
        if tuple(self.columns) != names:
            raise InputError(f"Reports have exactly the columns {', '.join(names)}, in order.")
        if len({len(column) for column in self.columns.values()}) != 1:
            raise InputError("All columns of reports have the same length.")
        for name, column in self.columns.items():
            _check_column(name, self.form.design(name), column)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def encode(survey: Survey, answers: Mapping[str, Any]) -> dict[str, Array]:
    """Return answers, lists of categories by attribute, as numbers of categories.

    Raises:
        InputError: when an attribute has no answers; naming the attribute, not the answer, when
            one is none of the categories.

    Example:
        >>> encode(Survey({"smokes": ["no", "yes"]}), {"smokes": ["yes", "no"]})["smokes"]
        array([1, 0])
    """
    missing = [a.name for a in survey if a.name not in answers]
    if missing:
        raise InputError(f"There are no answers to {missing[0]!r}.")
    return {
        a.name: np.array([a.number(x) for x in answers[a.name]], dtype=np.int64) for a in survey
    }


@public()
@forgetful
def perturb(form: Form, codes: Mapping[str, Any], *, source: Source | None = None) -> Reports:
    """Perturb the answers of many clients at once; answers are numbers of categories.

    Guarantee:
        That of the form, for each client, from the secure source.

    Raises:
        InputError: when a column is missing, or holds something else than category numbers.

    Example:
        >>> form = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)
        >>> len(perturb(form, {"smokes": np.zeros(1000, dtype=int)}))
        1000
    """
    checked = _checked(form, codes)
    drawn = resolve(source)
    columns = {
        name: _perturb_column(form.design(name), column, drawn) for name, column in checked.items()
    }
    return Reports(form, columns, not type(drawn).secure)


def _checked(form: Form, codes: Mapping[str, Any]) -> dict[str, Array]:
    missing = [name for name in form.survey.names if name not in codes]
    if missing or len(codes) != len(form.survey.names):
        raise InputError(f"Give one column for each of {', '.join(form.survey.names)}.")
    columns = {a.name: _check_codes(a, codes[a.name]) for a in form.survey}
    if len({len(column) for column in columns.values()}) != 1:
        raise InputError("All columns have the same length: one entry for each client.")
    return columns


def _check_codes(attribute: Attribute, given: Any) -> Array:
    column = np.asarray(given)
    good = column.ndim == 1 and column.dtype.kind in "iu" and not np.ma.is_masked(given)
    if good and len(column):
        good = bool(int(column.min()) >= 0 and int(column.max()) < attribute.size)
    if not good and not (column.ndim == 1 and len(column) == 0):
        raise InputError(
            f"The column of {attribute.name!r} must hold whole numbers from 0 to "
            f"{attribute.size - 1}, one for each client."
        )
    return column.astype(np.int64, copy=False)


def _check_column(name: str, design: Design, column: Array) -> None:
    if isinstance(design, UnaryEncoding):
        good = (
            column.ndim == 2
            and column.dtype == np.uint8
            and column.shape[1] == -(-design.categories // 8)
        )
    else:
        most = (
            design.rows * design.buckets if isinstance(design, LocalHashing) else design.categories
        )
        good = column.ndim == 1 and column.dtype.kind in "iu"
        if good and len(column):
            good = bool(int(column.min()) >= 0 and int(column.max()) < most)
    if not good:
        raise InputError(f"The reports of {name!r} are not ones that its design can give.")


def _perturb_column(design: Design, codes: Array, source: Source) -> Array:
    if isinstance(design, UnaryEncoding):
        width = -(-design.categories // 8)
        packed = np.empty((len(codes), width), dtype=np.uint8)
        for part in _parts(len(codes), max(1, _CHUNK_BITS // design.categories)):
            packed[part] = _unary(design, codes[part], source)
        return packed
    out = np.empty(len(codes), dtype=np.int64 if isinstance(design, LocalHashing) else np.int32)
    for part in _parts(len(codes), _CHUNK):
        if isinstance(design, RandomizedResponse):
            out[part] = _randomize(codes[part], design.categories, design.other, source)
        elif isinstance(design, LocalHashing):
            out[part] = _hash(design, codes[part], source)
        else:
            assert isinstance(design, DesignMatrix)
            out[part] = _by_column(design, codes[part], source)
    return out


def _parts(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _randomize(codes: Array, size: int, other: Fraction, source: Source) -> Array:
    """Replace each entry, with probability size·other, by a uniform one."""
    out = codes.copy()
    places = np.flatnonzero(bernoulli(size * other, size=len(codes), source=source))
    out[places] = uniform_below(size, size=len(places), source=source)
    return out


def _hash(design: LocalHashing, codes: Array, source: Source) -> Array:
    rows = uniform_below(design.rows, size=len(codes), source=source)
    g = design.buckets
    # Narrow words: division is what takes the time.
    width = np.uint32 if design.rows < 2**32 else np.uint64
    total: Array = np.zeros(len(codes), dtype=width)
    left: Array = rows.astype(width)
    right: Array = codes.astype(width)
    for _ in range(design.digits):
        total += (left % g) * (right % g)
        left //= g
        right //= g
    return rows * g + _randomize((total % g).astype(np.int64), g, design.other, source)


def _unary(design: UnaryEncoding, codes: Array, source: Source) -> Array:
    shape = (len(codes), design.categories)
    bits = bernoulli(design.other, size=shape, source=source)
    bits[np.arange(len(codes)), codes] = bernoulli(
        design.support_true, size=len(codes), source=source
    )
    return np.packbits(bits, axis=1)


@dataclass(frozen=True)
class AnswerColumn(TableLaw):
    """One column of a design matrix as a law that the tables of ``noise`` can draw from."""

    finite: ClassVar[bool] = True
    probabilities: tuple[Fraction, ...]

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the sums of probabilities; they are rational, so floor and ceiling."""
        total = Fraction(0)
        for probability in self.probabilities:
            total += probability
            scaled = total.numerator << precision
            yield scaled // total.denominator, -(-scaled // total.denominator)


@lru_cache(maxsize=1024)
def _table(probabilities: tuple[Fraction, ...]) -> SamplingTable:
    return SamplingTable.of((AnswerColumn(probabilities),), (0,))


def _by_column(design: DesignMatrix, codes: Array, source: Source) -> Array:
    out = np.empty(len(codes), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=design.categories)
    start = 0
    for answer, size in enumerate(sizes.tolist()):
        if size:
            drawn = _table(design.columns[answer]).draw(size, "magnitude", source)
            out[order[start : start + size]] = drawn
        start += size
    return out
