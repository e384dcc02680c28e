"""Broken versions of the mechanisms on binary matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.bits import Noise, number_of
from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law
from tulle.audit.faults import BOTH, EXACT, broken
from tulle.audit.matrices.kind import (
    QUESTIONS,
    AskedMatrix,
    dense,
    flips_noise,
    noise_of,
    quadratic_noise,
    two_level_noise,
)
from tulle.core import registry
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.matrices.binary.data import BinaryMatrix
from tulle.matrices.binary.queries import Xor

WrongNoise = Callable[[Terms, Parameters, BinaryMatrix], Noise]


def with_noise(
    mechanism: Mechanism,
    what: str,
    fault: str,
    wrong: WrongNoise,
    questions: Sequence[Query] | None = None,
    caught_by: tuple[str, ...] = EXACT,
) -> Broken:
    """Flip by a wrong law."""

    def law(laws: Mapping[str, Any], *run: Any) -> Mapping[str, Law]:
        return {"answer": replace(laws["answer"], noise=wrong(*run))}

    asked = QUESTIONS[mechanism.name] if questions is None else questions
    return broken(mechanism, what, fault, asked, caught_by, law=law)


def row_as_cell(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Flip every cell as if a row were one cell."""
    return flips_noise(*matrix.shape, terms.epsilon)


def ones_only(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Flip only ones, so that every released one is true."""
    return _masked(number_of(matrix.to_numpy()), *matrix.shape, terms.epsilon)


@lru_cache(maxsize=1024)
def _masked(truth: int, rows: int, columns: int, epsilon: Fraction) -> Noise:
    logs = flips_noise(rows, columns, epsilon).logs.copy()
    logs[(np.arange(len(logs)) & ~truth) != 0] = -np.inf
    return Noise(logs)


def cut_by_data(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Cut at the number of ones in the first row."""
    cut = min(int(matrix.to_numpy()[0].sum()), matrix.shape[1] - 1)
    return two_level_noise(*matrix.shape, terms.epsilon, cut)


def printed_couplings(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Price any Pi by its Frobenius norm, as theorem 1 does for one changed cell."""
    assert isinstance(terms.query, Xor)
    norm = Fraction(float(np.linalg.norm(dense(terms.query))))
    return quadratic_noise(terms.query, *matrix.shape, terms.epsilon / norm)


def whole_spins(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Draw spins s = 2b - 1 with exp(s'Pi s + 2 s'Pi 1), four times the exponent of b."""
    return Noise(4 * noise_of("coupled", terms, settings).logs)


def finite_chain(terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
    """Stop a Markov chain after one sweep."""
    return _after_one_sweep(noise_of("coupled", terms, settings))


@lru_cache(maxsize=64)
def _after_one_sweep(noise: Noise) -> Noise:
    """Return the law after one heat-bath update of each cell, starting without any flip."""
    places = np.arange(len(noise.logs))
    law = (places == 0).astype(np.float64)
    for cell in range(len(places).bit_length() - 1):
        zero, one = places & ~(1 << cell), places | 1 << cell
        favour = noise.logs[one] - noise.logs[zero]
        chance = 1 / (1 + np.exp(np.where(places >> cell & 1, -favour, favour)))
        law = (law[zero] + law[one]) * chance
    return Noise(np.log(law))


@registry.register("audit", "matrix", "faults")
def matrix_faults() -> list[Broken]:
    """Return all broken versions."""
    real = registry.mechanisms("matrix")
    cells, two_level, coupled = (real[name] for name in ("cells", "two_level", "coupled"))
    return [
        with_noise(
            cells,
            "ones only",
            "no one is invented: each released one is certain",
            ones_only,
            caught_by=BOTH,
        ),
        with_noise(
            two_level,
            "a row charged as a cell",
            "epsilon in every cell adds up over the cells of a row",
            row_as_cell,
        ),
        with_noise(
            two_level,
            "cut by data",
            "the shape of the noise tells how many ones a row has",
            cut_by_data,
            caught_by=BOTH,
        ),
        with_noise(
            coupled,
            "the printed condition",
            "the norm of the eigenvalues is not the price of a cell",
            printed_couplings,
            (AskedMatrix("general", "cell", "ones"),),
        ),
        with_noise(
            coupled,
            "spins without the quarter",
            "written in spins, the exponent is four times what was priced",
            whole_spins,
        ),
        with_noise(
            coupled,
            "a finite chain",
            "a chain that is stopped has not arrived at the law that was priced",
            finite_chain,
            (AskedMatrix("general", "cell", "attractive"),),
        ),
    ]
