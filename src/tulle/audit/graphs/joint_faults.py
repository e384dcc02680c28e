"""Broken twins of the mechanisms for joint degrees, one of them as a dissertation prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.graphs.joint import (
    SmoothVector,
    describe_joint_laplace,
    describe_joint_smooth,
    describe_joint_soft,
    smooth_vector,
)
from tulle.core.exact import rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.smooth import smooth_bound
from tulle.graphs.synthesis.joint_degrees.mechanisms import JointLaplace, JointSmooth, JointSoft
from tulle.graphs.synthesis.joint_degrees.queries import JointDegreeQuery, joint_degrees


class NonZeroJoint(Twin, JointLaplace):
    """Noise on the cells that happen to hold an edge, zero elsewhere."""

    name: ClassVar[str] = "joint_laplace, non-zero cells"
    mimics: ClassVar[str] = "joint_laplace"
    fault: ClassVar[str] = "a zero without noise says that no edge is there"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (joint_degrees(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        ((name, law),) = describe_joint_laplace(terms, settings, dataset).parts
        assert isinstance(law, LaplaceVector)
        pairs = zip(law.centre, law.scales, strict=True)
        scales = tuple(scale if cell else Fraction(0) for cell, scale in pairs)
        return Description(((name, replace(law, scales=scales)),))


class CutJoint(Twin, JointLaplace):
    """A grid that ends at the largest degree of the graph at hand."""

    name: ClassVar[str] = "joint_laplace, cut at the largest degree"
    mimics: ClassVar[str] = "joint_laplace"
    fault: ClassVar[str] = "the size of the grid shows the true maximum degree"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (joint_degrees(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        largest = max(int(degrees(dataset).max(initial=1)), 1)
        ((name, law),) = describe_joint_laplace(terms, settings, dataset).parts
        assert isinstance(law, LaplaceVector)
        kept = largest * (largest + 1) // 2
        return Description(
            ((name, replace(law, centre=law.centre[:kept], scales=law.scales[:kept])),)
        )


class PrintedJoint(Twin, JointSmooth):
    """DP-2K as printed: the bound 2·(d_i + d_j) - 3 + 2s, which holds for deletions."""

    name: ClassVar[str] = "joint_smooth, as printed"
    mimics: ClassVar[str] = "joint_smooth"
    fault: ClassVar[str] = (
        "joining two nodes that are not joined moves 2·(d_i + d_j) + 1 (chapter 3, claim 2)"
    )
    caught_by: ClassVar[tuple[str, ...]] = ("claims",)
    questions: ClassVar[Sequence[Query]] = (joint_degrees(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        assert isinstance(terms.query, JointDegreeQuery)
        most = terms.query.edge_sensitivity(int(settings["nodes"]))
        top = int(np.sort(degrees(dataset))[-2:].sum())
        profile = [min(max(2 * top - 3 + 2 * s, 1), most) for s in range(2 * most)]
        bound = smooth_bound(profile, most, rational(settings["beta"]))
        return Description((("answer", smooth_vector(terms, settings, dataset, bound)),))


class LocalJoint(Twin, JointSmooth):
    """Noise by the local bound of the graph at hand, which neighbours do not share."""

    name: ClassVar[str] = "joint_smooth, local"
    mimics: ClassVar[str] = "joint_smooth"
    fault: ClassVar[str] = "the scale of the noise tells neighbours apart"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (joint_degrees(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        ((name, law),) = describe_joint_smooth(terms, settings, dataset).parts
        assert isinstance(law, SmoothVector)
        top = int(np.sort(degrees(dataset))[-2:].sum())
        return Description(((name, replace(law, bound=Fraction(2 * top + 1))),))


class HalfSoft(Twin, JointSoft):
    """Half the noise: as if only one end of an edge changed its class."""

    name: ClassVar[str] = "joint_soft, one end"
    mimics: ClassVar[str] = "joint_soft"
    fault: ClassVar[str] = "both ends of an edge move between classes, and one is charged"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (joint_degrees(ratio=2),)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        half = rational(honest["sensitivity"]) / 2
        return {**honest, "sensitivity": text(half), "scale": text(half / terms.epsilon)}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_joint_soft(terms, settings, dataset)


def joint_twins() -> list[Twin]:
    """Return one of each twin."""
    return [NonZeroJoint(), CutJoint(), PrintedJoint(), LocalJoint(), HalfSoft()]
