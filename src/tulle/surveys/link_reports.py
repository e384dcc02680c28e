"""The collector's side of link reports: unbiased counts with their variances, and a graph.

With a = (y - q) / (p - q) for each reported bit y, the a are independent and unbiased, and have
the same variance s² = pq / (p - q)². Counts of subgraphs are sums of products of different a, so
replacing links by a leaves them unbiased; expanding a = link + error gives their variances.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import comb, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError, forgetful
from tulle.core.labels import Axis, Labels
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.noise import bernoulli, permutation
from tulle.noise.source import resolve
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.links_client import LinkForm

_CHUNK = 1 << 22


@public()
class LinkReports:
    """What clients said about their links, one bit for each pair, and estimates from it.

    Guarantee:
        All estimates together have the form's guarantee per edge: they are computed from
        reports that were private when they left the clients.

    Example:
        >>> form = LinkForm.of(3, epsilon=1)
        >>> reports = LinkReports(form)
        >>> for client, linked in enumerate([[2], [0], [1]]):
        ...     reports.add(client, linked)
        >>> round(reports.edges().value, 3)
        4.746
    """

    def __init__(self, form: LinkForm) -> None:
        self.form = form
        self.replayable = False
        self._bits = np.zeros((form.nodes, form.nodes), dtype=np.bool_)
        self._reported = np.zeros(form.nodes, dtype=np.bool_)

    @classmethod
    def _of(cls, form: LinkForm, upper: npt.NDArray[np.bool_], replayable: bool) -> LinkReports:
        made = cls(form)
        made._bits = upper
        made._bits |= upper.T
        made._reported[:] = True
        made.replayable = replayable
        return made

    def add(self, client: int, linked: Iterable[int]) -> None:
        """Take one client's reports.

        Raises:
            InputError: when the client has reported before, or reports a pair of someone else.
        """
        client = validate.whole(client=client, at_least=0)
        if client >= self.form.nodes:
            raise InputError(f"client must be below {self.form.nodes}; got {client}.")
        if self._reported[client]:
            raise InputError(f"Client {client} has reported already; a second report would count.")
        partners = sorted({validate.whole(partner=partner, at_least=0) for partner in linked})
        if not set(partners) <= set(self.form.partners(client)):
            raise InputError(
                f"Client {client} reports a pair that is not theirs: each pair has one reporter. "
                "See form.partners(client)."
            )
        self._bits[client, partners] = self._bits[partners, client] = True
        self._reported[client] = True
        self.__dict__.pop("_counts", None)

    # --- estimates ----------------------------------------------------------------------------

    @property
    def _same(self) -> float:
        return float(self.form.design.same)

    @property
    def _flip(self) -> float:
        return float(self.form.design.other)

    @property
    def _gap(self) -> float:
        return float(self.form.design.same - self.form.design.other)

    @property
    def _noise(self) -> float:
        """The variance of one unbiased bit."""
        return self._same * self._flip / self._gap**2

    def _degrees(self) -> Wholes:
        missing = int(np.count_nonzero(~self._reported))
        if missing:
            raise InputError(
                f"{missing} of {counted(self.form.nodes, 'client')} have not reported yet: their "
                "pairs are unknown."
            )
        result: Wholes = self._bits.sum(axis=1, dtype=np.int64)
        return result

    @cached_property
    def _counts(self) -> tuple[Wholes, Floats]:
        """Triangles among the reports at each node, and sums of squared common counts."""
        from tulle.surveys import link_kernels  # numba is slow to import

        degrees = self._degrees()
        packed = np.packbits(self._bits, axis=1, bitorder="little")
        width = -(-packed.shape[1] // 8) * 8
        padded = np.zeros((self.form.nodes, width), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        words = padded.view("<u8").astype(np.uint64, copy=False)
        doubled, squares = link_kernels.common_counts(words, degrees, self._flip)
        return doubled // 2, squares

    def edges(self) -> Release:
        """Estimate the number of links, without bias."""
        value = self._edge_estimate(int(self._degrees().sum()) // 2)
        law = NormalLaw.of(self._edge_sigma(), 1 / self._gap, known=True)
        return self._release("edges()", value, law)

    def _edge_estimate(self, reported: int) -> float:
        return (reported - self.form.pairs * self._flip) / self._gap

    def degrees(self) -> Release:
        """Estimate every degree, without bias."""
        value = self._degree_estimates()
        sigma = sqrt((self.form.nodes - 1) * self._noise)
        law = NormalLaw.of(np.full(self.form.nodes, sigma), 1 / self._gap, known=True)
        return self._release("degrees()", value, law)

    def _degree_estimates(self) -> Floats:
        reported = self._degrees()
        return np.asarray((reported - (self.form.nodes - 1) * self._flip) / self._gap)

    def two_stars(self) -> Release:
        """Estimate the number of pairs of links at a node, over all nodes, without bias.

        *Error.* A link's error enters with the links next to it: variance
        s²·sum over pairs of (d_i + d_j - 2 x_ij)² + s⁴·n·C(n - 1, 2), estimated from the reports
        and raised by the standard error of that estimate. Where few links matter, such as those of
        one hub, a lost one is rare and counts for many: the interval is widened by the skewness.
        """
        n, noise = self.form.nodes, self._noise
        reported, degree = self._degrees(), self._degree_estimates()
        q, p = self._flip, 1 - self._flip
        # The square of one unbiased bit is (1 - q)² or q², over (p - q)².
        own = (reported * p**2 + (n - 1 - reported) * q**2) / self._gap**2
        value = float(np.sum(degree**2 - own)) / 2
        squares = float(np.sum(degree**2))
        linear = (n - 6) * squares + float(degree.sum()) ** 2 + 2 * float(own.sum())
        linear -= self.form.pairs * 2 * (n - 2) * noise
        rest = noise**2 * n * comb(n - 1, 2)
        # The variance is estimated, and comes out small when the value does: by its own standard
        # error more, it is rarely too small. The sum of squared degrees is twice the value and
        # more, that of the degrees twice the links.
        spread = 2 * abs(n - 6) * sqrt(noise * max(linear, 0.0) + rest)
        spread += 4 * abs(float(degree.sum())) * self._edge_sigma()
        variance = noise * (max(linear, 0.0) + spread) + rest
        # A link's error has the third moment s², up to its sign, and enters with its neighbours.
        cubes = 0.0
        for start in range(0, n, 512):
            beside = degree[start : start + 512, None] + degree[None, :]
            beside -= 2 * (self._bits[start : start + 512] - q) / self._gap
            beside[np.arange(len(beside)), np.arange(start, start + len(beside))] = 0.0
            cubes += float(np.sum(np.abs(beside) ** 3)) / 2
        # So has a product of two errors s⁴: what two invented links bring together.
        skew = (noise * cubes + rest) / variance
        return self._release("stars(2)", value, NormalLaw.of(sqrt(variance), skew, known=True))

    def _edge_sigma(self) -> float:
        return sqrt(self.form.pairs * self._noise)

    def triangles(self) -> Release:
        """Estimate the number of triangles, without bias.

        *Error.* Variance s²·sum over pairs of c_ij² + s⁴·m·(n - 2) + s⁶·C(n, 3), with c_ij the
        common neighbours and m the links, both estimated from the reports and raised by the
        standard errors of these estimates, and widened by the skewness as for two-stars.
        """
        n, noise = self.form.nodes, self._noise
        value = float(self._triangle_estimates().sum()) / 3
        common = float(self._common_squares().sum()) / 2
        links = max(float(self._degree_estimates().sum()) / 2, 0.0)
        # Each part is estimated, and more by its own standard error, as for two-stars. A common
        # count has the variance v, its square without bias about 2v² + 4c²v.
        each = noise * 4 * links / n + noise**2 * (n - 2)
        spread = sqrt(2 * self.form.pairs * each**2 + 4 * max(common, 0.0) * each)
        links += self._edge_sigma()
        invented = noise**2 * links * (n - 2) + noise**3 * comb(n, 3)
        variance = noise * (max(common, 0.0) + spread) + invented
        # The third moment is s²·sum c³, taken as if all that share friends shared as many; of what
        # two or three errors make together it is as large as the variance.
        shared = max(common, 0.0) / max(self.two_stars().value, 1.0)
        skew = (noise * max(common, 0.0) * min(shared, n - 2.0) + invented) / variance
        return self._release("triangles()", value, NormalLaw.of(sqrt(variance), skew, known=True))

    def triangles_by_node(self) -> Release:
        """Estimate how many triangles each node is in, without bias.

        *Error.* For node i, the variance s²·(sum over others of c_ij² + C(d_i, 2)) + s⁴·pairs
        + s⁶·C(n - 1, 2), with its common neighbours and the pairs of links that one more link would
        close at i. As for all triangles, what is estimated is raised by its standard error, and
        the interval is widened by the skewness: an error in one link of a hub is rare and counts
        for many triangles.
        """
        n, noise = self.form.nodes, self._noise
        degree = np.maximum(self._degree_estimates(), 0.0)
        each = noise * (degree + float(degree.mean())) + noise**2 * (n - 2)
        links = max(float(degree.sum()) / 2, 0.0) + self._edge_sigma()
        common = np.maximum(self._common_squares(), 0.0)
        # One report of i enters its common counts with everyone; by Cauchy-Schwarz with no more
        # than all links have ends.
        common += np.sqrt(2 * (n - 1) * each**2 + 4 * common * (each + 2 * noise * links))
        others = np.maximum(degree - 1, 0.0)
        degree = np.minimum(degree + sqrt((n - 1) * noise), n - 1.0)
        beside = degree * (degree - 1).clip(0.0) / 2
        pairs = np.maximum(links - degree, 0.0) + degree * (n - 2)
        invented = noise**2 * pairs + noise**3 * comb(n - 1, 2)
        variance = noise * (common + beside) + invented
        # As if all that share friends with i shared as many, and none more than i has.
        shared = np.minimum(common / np.maximum(self._bits @ others, 1.0), degree)
        skew = (noise * (common * shared + beside) + invented) / variance
        law = NormalLaw.of(np.sqrt(variance), skew, known=True)
        return self._release("triangles_by_node()", self._triangle_estimates(), law)

    def _triangle_estimates(self) -> Floats:
        """Return the sum of a_ij·a_ik·a_jk over the pairs j, k of others, for each node i."""
        n, q = self.form.nodes, self._flip
        degree = self._degrees().astype(np.float64)
        links = degree.sum() / 2
        closed = self._counts[0]
        # In blocks: the product takes the bits as floats.
        beside = np.concatenate([self._bits[i : i + 512] @ (degree - 1) for i in range(0, n, 512)])
        two = degree * (degree - 1) / 2 + beside
        one = degree * (n - 2) + links - degree
        result: Floats = (closed - q * two + q**2 * one - q**3 * comb(n - 1, 2)) / self._gap**3
        return result

    def _common_squares(self) -> Floats:
        """Estimate, for each node, the sum over others of the squared number of common friends."""
        n, noise = self.form.nodes, self._noise
        degree = self._degree_estimates()
        # Over the n - 1 others j: the variance of a common count is s²(d_i + d_j - 2 x_ij)
        # + s⁴(n - 2); sums of unbiased parts are unbiased.
        extra = noise * ((n - 2) * degree + degree.sum() - 2 * degree)
        extra = extra + noise**2 * (n - 1) * (n - 2)
        result: Floats = self._counts[1] / self._gap**4 - extra
        return result

    def graph(self, *, source: Source | None = None) -> Release:
        """Rebuild a graph: as many links as estimated, drawn among the reported ones.

        All reported pairs are equally likely to be links, and likelier than the others; if more
        are wanted than were reported, the rest comes from the others. The number of links is
        **estimated from the reports**: the true number would be one more thing told.

        The value is an array with two columns. It has no error law: it is a picture.
        """
        reported = int(self._degrees().sum()) // 2
        wanted = links_to_keep(self.form, reported)
        ones = np.argwhere(np.triu(self._bits, k=1))
        chosen = ones[permutation(len(ones), source)[:wanted]]
        if wanted > len(ones):
            zeros = np.argwhere(np.triu(~self._bits, k=1))
            more = zeros[permutation(len(zeros), source)[: wanted - len(ones)]]
            chosen = np.concatenate([chosen, more])
        order = np.lexsort((chosen[:, 1], chosen[:, 0]))
        return self._release("graph()", chosen[order], None)

    def _release(self, query: str, value: Any, law: NormalLaw | None) -> Release:
        from tulle import __version__

        guarantee = self.form.guarantee()
        return Release(
            value=value,
            query=query,
            mechanism="randomized response on links",
            guarantee=guarantee.void() if self.replayable else guarantee,
            error=law,
            parameters={"nodes": self.form.nodes, "reports": self.form.pairs},
            versions={"tulle": __version__},
            labels=Labels(_WORDS[query], axes=_AXES.get(query, ())),
        )

    def __repr__(self) -> str:
        done = int(np.count_nonzero(self._reported))
        return f"<LinkReports of {done:,} of {counted(self.form.nodes, 'client')}>"


_WORDS = {
    "edges()": "How many links are there?",
    "degrees()": "How many links does each person have?",
    "stars(2)": "How many pairs of links meet in one person?",
    "triangles()": "How many triangles are there: three people who are all linked?",
    "triangles_by_node()": "How many triangles is each person part of?",
    "graph()": "A network rebuilt from the reports: a picture, each link of which is doubtful.",
}
_AXES = {
    "degrees()": (Axis("node"),),
    "triangles_by_node()": (Axis("node"),),
    "graph()": (Axis("link"), Axis("end")),
}


def links_to_keep(form: LinkForm, reported: int) -> int:
    """Return how many links a rebuilt graph has: the estimate, within what is possible."""
    design = form.design
    estimate = (reported - form.pairs * design.other) / (design.same - design.other)
    return min(max(round(estimate), 0), form.pairs)


@public()
@forgetful
def perturb_links(form: LinkForm, edges: Any, *, source: Source | None = None) -> LinkReports:
    """Make the reports of all clients at once, for simulations; ``edges`` has two columns.

    Raises:
        InputError: when the edges are not pairs of different nodes of the form.

    Example:
        >>> form = LinkForm.of(100, epsilon=2)
        >>> perturb_links(form, [(0, 1), (1, 2)])
        <LinkReports of 100 of 100 clients>
    """
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    kind = pairs.dtype.kind
    if pairs.ndim != 2 or pairs.shape[1] != 2 or kind not in "iu" or np.ma.is_masked(edges):
        raise InputError("edges is an array of whole numbers with two columns.")
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    if len(pairs) and (int(low.min()) < 0 or int(high.max()) >= form.nodes or (low == high).any()):
        raise InputError(f"edges join different nodes from 0 to {form.nodes - 1}.")
    drawn = resolve(source)
    upper = np.zeros((form.nodes, form.nodes), dtype=np.bool_)
    upper[low, high] = True
    start = 0
    while start < form.nodes - 1:
        # As many rows of the upper triangle as have about a chunk of pairs.
        stop = start + max(1, _CHUNK // (form.nodes - 1 - start))
        stop = min(stop, form.nodes - 1)
        above = np.arange(form.nodes)[None, :] > np.arange(start, stop)[:, None]
        flips = bernoulli(form.design.other, size=int(np.count_nonzero(above)), source=drawn)
        upper[start:stop][above] ^= flips
        start = stop
    return LinkReports._of(form, upper, not type(drawn).secure)
