"""Attacks: what someone learns from a release, and the most that its guarantee allows.

All attacks are alike in this, so that results of different attacks can be laid side by side.

* It is a function that takes **releases**, never a dataset, and the adversary's knowledge as
  keyword arguments. The first thing it does is ``known = released(release, "what it needs")``
  (:mod:`tulle.attacks.report`), which refuses sealed data and anything else that was not
  released. A public table that was published without a guarantee (a GWAS catalogue, say) may
  stand in for a release: the report then has ``guarantee=None``.
* It returns one :class:`~tulle.attacks.report.AttackReport`, which says what is guessed, what the
  adversary knows, ``before`` and ``after`` (the same figure without and with the release), an
  interval of ``after`` at a stated level, and ``limits``, the range in which the guarantee keeps
  ``after``. There are two measures. A *belief* is the probability of one stated secret of one
  target: ``after`` is exact (``interval`` is that single point) unless the adversary's own numbers
  are uncertain. A *success* is how often guesses about many targets are right: ``before`` is the
  rate of the best guess without the release, and the interval comes from
  :func:`~tulle.attacks.intervals.rate_interval` (counts) or
  :func:`~tulle.attacks.intervals.mean_interval` (averages).
* ``limits`` come from :mod:`tulle.attacks.limits`: ``belief_limits(before, guarantee, units=k)``,
  ``success_limit(before, guarantee, units=k)``, or ``NO_LIMIT`` when the secret is not what the
  unit protects. ``units`` is by how many units the adversary's hypotheses differ: an edge there or
  not is one unit; one participant with one record or another is two under add-remove, one under
  replace. A guarantee that does not hold (a replayable source) limits nothing.
* It is public (``@public()``), and its name ends in ``_inference``.

An attack draws no randomness and sees no truth. Whether a guess was right is the business of the
caller who knows the truth: attacks that are scored take it as ``truth=``, an array with one entry
per target, and use it for counting only.
"""

from tulle.core.public import exports

__getattr__, __dir__ = exports(__name__)
