"""All numbers of the model auto that were set by hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class BudgetTuning:
    """How epsilon is divided by what parts are expected to gain."""

    tail: float = 0.4
    """What the sorted degrees get of the degrees' budget where there is much noise."""
    noises: tuple[float, float] = (0.8, 4.8)
    """Up to this scale of noise they get nothing, from that one on all of it."""
    drowned: float = 0.25
    """Sorted degrees with noise of a larger scale than this part of all nodes are not measured."""
    few: float = 8.0
    """What the number of edges gets at least, for each node and epsilon of one: on few nodes
    nothing else tells it."""
    worth_it: float = 0.05
    """A smaller part than this is not measured at all."""
    nominal: float = 0.3
    """A part is judged by the noise that it would have with so much of what is left."""
    correlation: float = 2.0
    mixing: float = 2.5
    """What the correlation of degrees and edges between their classes weigh.

    Chosen with ``ModelTuning.reach`` on the networks that ``joint_fit.Tuning`` names, polblogs and
    one more part of facebook_combined, by all six measures of ``benchmarks.synthetic_ratios``.
    """
    hopeless: float = 0.3
    """A part whose weight falls to so little, for its noise, is not measured."""


@dataclass(frozen=True)
class Schedule:
    """What is measured, and what the search for a core costs."""

    first_smoothing: Fraction = Fraction(1, 4)
    """What the first count of triangles spends on smoothing, when degrees are not known yet."""
    ample: Fraction = Fraction(3)
    """From this epsilon on a core takes less of it."""
    most: Fraction = Fraction(11, 20)
    """So many of the nodes must have enough neighbours to be placed by a core."""
    fewest_searched: int = 64
    """A graph of fewer nodes is not searched for a core."""
    telling: float = 0.2
    """How much more modularity than chance shows the public order must have to be used."""
    deviations: float = 3.0
    """And by how many deviations of what chance shows."""
    most_ranges: int = 128
    rich: float = 20_000.0
    """So many edges, times epsilon, must be there for a core to be searched.

    It takes half of epsilon. With fewer edges, degrees, triangles and mixing need all there is.
    """


@dataclass(frozen=True)
class Core:
    """The core of nodes of high degree, and how others are placed by it."""

    smallest_core: int = 200
    """Fewer nodes than this are no core, except in a small graph."""
    reach: float = 2.5
    """By how much the degree of a node must exceed the noise of the core that it is taken into.

    By more than once, since only part of its edges lead into the core, and not all of those to its
    community. Of planted communities a core of half the size that 1.5 gives shows more, everywhere.
    """
    ordinary: int = 250
    """How many nodes a community has, as far as nothing is known of it."""
    telling_scales: int = 4
    """So many scales of its noise a number of neighbours must have to tell something."""
    most_communities: int = 20
    nodes_per_community: int = 8
    sure: float = 2.5
    """From so many scales of the noise on, a first count of neighbours is trusted."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of nodes."""

    shown: float = 0.05
    """Blocks with less modularity than this are not worth keeping apart."""


@dataclass(frozen=True)
class DegreeTuning:
    """The degrees, from several noisy views of them."""

    steady: float = 12.0
    """A density is averaged until it holds so many standard deviations of noise."""
    exact: float = 0.1
    """Noise of less than this counts as so much: what is rounded is not better known."""
    step: float = 1e-3
    """By how much, as a logarithm, the weight of the largest degree is moved in a trial."""
    close: float = 0.05
    """Sums that are met within so many standard deviations are met."""
    poor: float = 0.25
    """Where a step leaves more than this, uncertainties are looked at again."""
    steps: int = 20


@dataclass(frozen=True)
class ModelTuning:
    """What is left for what, and how coarse the mixing is."""

    shared: Fraction = Fraction(1, 20)
    """At least this much of epsilon is left after the degrees."""
    ratio: Fraction = Fraction(4)
    """How far apart classes of degrees are: finer ones have more noise than they tell."""
    reach: float = 1.5
    """Over how many deviations of the degrees, as logarithms, scores go from 0 to 1;"""
    narrowest: float = 0.7
    """and over which logarithm at least."""
    noisy_picks: float = 0.03
    """How much noise, beside all picked pairs that are joined, a larger limit may bring."""
    fewest_in_order: int = 4


@dataclass(frozen=True)
class Likely:
    """What networks are like, as far as nothing was counted.

    Chosen on enron-core-simplices, polblogs, lastfm-asia, bcspwr10, gemat12, p2p-Gnutella25,
    wiki-Vote, deezer-europe, ca-CondMat, ca-HepPh, facebook_combined and three parts of it: their
    triangles are at .06 to .85 of the way from chance to the most there can be, evenly, their
    clustering .0 to .22 further.
    """

    below_chance: float = 0.05
    """How likely a network has fewer triangles than chance brings."""
    clustered: float = 0.1
    """How much further than the triangles clustering is on that way,"""
    spread: float = 0.08
    """give or take so much."""
    caution: float = 0.25
    """By which power of it a number is the less likely chosen; 0 would be the median.

    At epsilon = .2, triangles are off by .44, .58, .75 on bcspwr10 with 0, 1/4, 1/2, and by 2.5,
    1.9, 1.5 on gemat12.
    """
    clear: float = 0.002
    """Counts with less noise than this, relatively, are taken as they are."""


@dataclass(frozen=True)
class Fit:
    """The graph that shows all of this."""

    large: int = 400_000
    """From so many edges on, fewer graphs are tried."""
    work_per_edge: int = 6_000
    """How long swaps may look for better ones, in looked-at neighbours for each edge;"""
    least_work: int = 200_000_000
    """at least so many in all,"""
    most_work: int = 4_000_000_000
    """and at most so many."""
    near: float = 1.6
    """How strongly other edges stay near, for a clustering of one."""
    unlike: tuple[float, float, float, float, float] = (0.06, 0.15, 0.4, 1.0, 2.4)
    """How far, as a logarithm, degrees in one group may be apart."""
    steering: int = 5
    """How many swaps are tried for each edge to bring about the mixing, while knobs are turned."""
    last_steering: int = 6
    """And once they are set."""
    reached: float = 0.75
    """The part of triangles and clustering that circles within circles must have without swaps."""
    renumbered: int = 4
    """Under how many other numberings picks are counted."""
    within: float = 0.25
    """Swaps need not come nearer than this part of the noise."""
    correlated: float = 0.0025
    """Nor nearer than this to the correlation of degrees."""
    coarse: Fraction = Fraction(4)
    """How far apart classes of degrees are, where no mixing was measured."""
    loose: float = -2.0
    """How strongly ends stay near in a graph whose triangles are made by swaps.

    Chosen with ``as_near`` on ca-CondMat and ca-HepPh, given exact counts; ca-HepTh, ca-GrQc and
    netscience were seen, too.
    """
    as_near: float = 0.15
    """How much further off, in relative errors, it may be than groups are."""
    misfit_weight: float = 0.02
    """What a standard deviation in the mixing counts beside relative errors."""


@dataclass(frozen=True)
class Tuning:
    """What auto was tuned by; privacy rests on none of it.

    Which networks chose these numbers is on record for planted communities only, so what
    ``benchmarks/synthetic.py`` reports counts as in-sample.
    """

    budget: BudgetTuning = BudgetTuning()
    schedule: Schedule = Schedule()
    core: Core = Core()
    blocks: Blocks = Blocks()
    degrees: DegreeTuning = DegreeTuning()
    model: ModelTuning = ModelTuning()
    likely: Likely = Likely()
    fit: Fit = Fit()


TUNING = Tuning()
