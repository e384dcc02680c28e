"""Broken versions of the mechanisms for spectra, three of them as a dissertation prints them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import LaplaceVector, Law
from tulle.audit.faults import BOTH, broken, halve_noise, seed_source
from tulle.audit.graphs.spectra import GaussianVector, worst_iterates
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.spectra.queries import adjacency, decompose, eigenvalues, spectrum
from tulle.noise.xor.patterns import flip_probability

_VECTOR = (spectrum(1),)
_VALUE = (eigenvalues(1),)
_QUARTER = Fraction(1, 4)


def weyl_for_all(honest: Parameters, terms: Terms) -> Parameters:
    """Add noise for a movement of 1, which is what a single eigenvalue moves by."""
    moved = 1 / rational(honest["step"])
    variance = moved**2 / (2 * largest_rho(terms.epsilon, terms.delta))
    return {"sensitivity": text(moved), "variance": text(variance)}


def not_clipped(mechanism: Mechanism, order: int) -> Broken:
    """Leave rows as they are: their typical length is ``levels``, single ones are longer."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        made = []
        for iterate in worst_iterates(settings):
            length = float(np.median(np.linalg.norm(iterate, ord=order, axis=1)))
            rows = np.rint(iterate * (int(settings["levels"]) / max(length, 1e-300)))
            made.append(adjacency(graph) @ rows.astype(np.int64))
        centre = tuple(int(entry) for product in made for entry in product.ravel())
        return {"answer": replace(laws["answer"], centre=centre)}

    fault = "rows are not clipped: the noise follows a typical row, not the longest"
    return broken(mechanism, "not clipped", fault, _VECTOR, BOTH, law=law)


def eigengap_noise(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return LNPP: Laplace noise on an eigenvector, by the eigengap of the graph at hand."""
    levels = int(settings["levels"])
    found = decompose(graph, 2)
    gap = Fraction(max(float(found.values[0] - found.values[1]), 2.0**-20))
    bound = Fraction(math.sqrt(graph.node_count)) / gap * levels
    centre = tuple(np.rint(found.vectors[:, 0] * levels).astype(np.int64).tolist())
    return {"answer": LaplaceVector(centre, (bound / terms.epsilon,) * len(centre), bound)}


def gaussian_called_pure(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return SBMF's eigenvalues: Gaussian noise sigma is said to be 2·sigma·GS-private."""
    variance = (terms.epsilon / 2 / rational(settings["step"])) ** 2
    moved = rational(settings["sensitivity"]) ** 2
    return {"answer": GaussianVector(laws["answer"].centre, variance, moved)}


def twice_the_epsilon(honest: Parameters, terms: Terms) -> Parameters:
    """Flip coins for twice the epsilon, as if the two halves of a matrix had one each."""
    flip = flip_probability(2 * rational(honest["epsilon_pairs"]))
    return {"flip": flip, "keep": 1 - flip, "invent": flip}


def spectra_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return all broken versions."""
    power, pure, eigen = real["power"], real["power_pure"], real["eigen_laplace"]
    eigen_gauss, response = real["eigen_gauss"], real["spectral_response"]
    return [
        halve_noise(power, "variance", _VECTOR, _QUARTER),
        halve_noise(pure, "scale", (spectrum(1), spectrum(2))),
        halve_noise(eigen, "scale", _VALUE),
        halve_noise(eigen_gauss, "variance", _VALUE, _QUARTER),
        broken(
            eigen_gauss,
            "as if for one",
            "two eigenvalues move by sqrt(2) together, not by 1",
            (eigenvalues(2),),
            ("claims",),
            settings=weyl_for_all,
        ),
        not_clipped(power, 2),
        not_clipped(pure, 1),
        broken(
            pure,
            "LNPP as printed",
            "sqrt(n) / eigengap is a local, first-order bound, which neighbours do not share "
            "(chapter 4, result 6)",
            _VECTOR,
            BOTH,
            law=eigengap_noise,
        ),
        broken(
            eigen,
            "SBMF as printed",
            "Gaussian noise has no pure epsilon, and more of it cannot cost more "
            "(chapter 4, claim 4)",
            _VALUE,
            law=gaussian_called_pure,
        ),
        broken(
            response,
            "twice the epsilon",
            "a pair is flipped less often than its epsilon demands",
            _VECTOR,
            settings=twice_the_epsilon,
        ),
        seed_source(power, _VECTOR),
        seed_source(response, _VECTOR),
    ]
