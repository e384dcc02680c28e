"""What an attack found: the common form of all attacks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.public import public
from tulle.core.release import Release

Measure = Literal["belief", "success"]

TOLERANCE = 1e-9
"""What floating-point may add to a probability."""

CERTAIN = 1 - 1e-6
"""The level at which a release is accused of breaking its guarantee."""


@public()
@dataclass(frozen=True)
class AttackReport:
    """One attack on releases: what the adversary knows, gains, and could gain at most.

    Raises:
        InputError: when a figure is not a probability or an interval is the wrong way round.

    Example:
        >>> found = AttackReport(
        ...     attack="edge", secret="(0, 1) is an edge", knows=("the flip probability",),
        ...     measure="belief", before=0.5, after=0.7, interval=(0.7, 0.7), level=1.0,
        ...     limits=(0.27, 0.73), reason="odds move by at most exp(epsilon)", guarantee=None)
        >>> round(found.gain, 2), round(found.most, 2), found.within
        (0.2, 0.23, True)
    """

    attack: str
    """The word for the attack."""
    secret: str
    """What is guessed."""
    knows: tuple[str, ...]
    """What the adversary knows besides the release, in words."""
    measure: Measure
    """``belief`` in one secret of one target, or rate of ``success`` over targets."""
    before: float
    """The figure without the release."""
    after: float
    """The figure with the release."""
    interval: tuple[float, float]
    """Where the true ``after`` lies at this level; a single point when it is exact."""
    level: float
    limits: tuple[float, float]
    """The least and the largest ``after`` that the guarantee allows; (0, 1) if it says nothing."""
    reason: str
    """Why the limits are these, in one sentence."""
    guarantee: Guarantee | None
    """What the attacked releases promise together; None for tables published without one."""
    trials: int = 1
    """How many targets were guessed."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further figures of this attack, JSON-able."""
    wide: tuple[float, float] | None = None
    """The interval at level ``CERTAIN``, by which ``within`` judges; None: the interval itself."""

    def __post_init__(self) -> None:
        figures = self.before, self.after, *self.interval, *self.limits
        if not all(-TOLERANCE <= figure <= 1 + TOLERANCE for figure in figures):
            raise InputError("The figures of an attack are probabilities, from 0 to 1.")
        for low, high in (self.interval, self.limits, self.wide or (0.0, 1.0)):
            if low > high:
                raise InputError("An interval of an attack must have its lower end first.")

    @property
    def gain(self) -> float:
        """How much the release moved the figure; negative when a belief went down."""
        return self.after - self.before

    @property
    def most(self) -> float:
        """The largest gain that the guarantee allows."""
        return self.limits[1] - self.before

    @property
    def bounded(self) -> bool:
        """Whether the guarantee says anything about this secret."""
        return self.limits[0] > 0 or self.limits[1] < 1

    @property
    def within(self) -> bool:
        """Whether what was found is compatible with the guarantee: the interval meets the limits.

        False accuses the release: the guarantee is not what it says. A good attack reaches the
        limits, so the interval at ``level`` would accuse one honest release in forty; where the
        figure was counted, a far wider one decides.
        """
        low, high = self.wide or self.interval
        return low <= self.limits[1] + TOLERANCE and high >= self.limits[0] - TOLERANCE

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "attack": self.attack,
            "secret": self.secret,
            "knows": list(self.knows),
            "measure": self.measure,
            "before": self.before,
            "after": self.after,
            "interval": list(self.interval),
            "level": self.level,
            "gain": self.gain,
            "most_gain": self.most,
            "limits": list(self.limits),
            "bounded": self.bounded,
            "within": self.within,
            "reason": self.reason,
            "guarantee": None if self.guarantee is None else self.guarantee.to_json(),
            "trials": self.trials,
            "details": dict(self.details),
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return the report as names and sentences, for a table."""
        low, high = self.interval
        spread = "" if low == high else f" ({low:.4g} to {high:.4g} at {100 * self.level:g} %)"
        most = f"{self.limits[1]:.4g}: a gain of {self.most:+.4g}" if self.bounded else "anything"
        why = self.reason
        if self.guarantee is not None and not self.guarantee.holds:
            why = "the noise can be replayed, so the guarantee does not hold"
        promise = "none: it was published as it is" if self.guarantee is None else self.guarantee
        return [
            ("secret", self.secret),
            ("adversary knows", "; ".join(self.knows) or "nothing else"),
            ("before", f"{self.before:.4g}"),
            ("after", f"{self.after:.4g}{spread}"),
            ("gain", f"{self.gain:+.4g}"),
            ("at most", f"{most} ({why})"),
            ("guarantee", str(promise)),
        ]

    def __repr__(self) -> str:
        rows = "\n".join(f"  {name:<17}{content}" for name, content in self.lines())
        return f"Attack {self.attack!r}: {self.measure}\n{rows}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(content)}</td></tr>"
            for name, content in self.lines()
        )
        title = html.escape(f"{self.attack}: {self.measure}")
        return f"<table><caption>Attack <b>{title}</b></caption>{rows}</table>"


def released(thing: Any, needs: str) -> Release:
    """Return a release, and refuse everything that was not released.

    Raises:
        InputError: for sealed data, a bare value, or anything else.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1)], nodes=3)
        >>> released(graph, "a release of tulle.topology()")
        Traceback (most recent call last):
        ...
        tulle.core.errors.InputError: An attack runs on what was released, not on sealed data. \
Give a release of tulle.topology().
    """
    if isinstance(thing, Release):
        return thing
    if isinstance(thing, Dataset):
        raise InputError(f"An attack runs on what was released, not on sealed data. Give {needs}.")
    raise InputError(f"An attack runs on a Release; got {type(thing).__name__}. Give {needs}.")
