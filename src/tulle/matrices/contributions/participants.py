"""How many people contribute: what a plan needs to know to tell what clipping will take away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.public import public
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.matrices.contributions.data import Contributions, check_grid
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@dataclass(frozen=True)
class Participants(Query):
    """The number of people who have a record in the grid."""

    name: ClassVar[str] = "participants"
    kind: ClassVar[str] = "contributions"
    words: ClassVar[str] = "How many people contribute anything?"
    quantity: ClassVar[str] = "people"

    def bound_to(self, facts: Mapping[str, Any]) -> Query:
        check_grid(facts)
        return self

    def truth(self, dataset: Contributions) -> int:
        return dataset.individuals()

    def limits(self) -> tuple[float, float]:
        return 0.0, float("inf")


@public("Publish a matrix")
@registry.register("query", "contributions", "participants")
def participants() -> Participants:
    """Ask how many people contribute, as ``about`` for ``weights``.

    Example:
        >>> str(participants())
        'participants()'
    """
    return Participants()


@dataclass(frozen=True, eq=False)
class ParticipantsSettings(Settings):
    """The public settings of one run."""

    scale: Fraction


@registry.mechanism(
    "contributions", "participants_laplace", answers=(Participants,), units=("participant",)
)
class ParticipantsLaplace(Mechanism):
    """Add discrete Laplace noise to the number of people.

    Guarantee:
        Pure epsilon per participant: one participant more or less moves the number by one at most,
        whatever their records are.

    Error:
        The noise itself: the law in the release is exact.

    Reference:
        Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity, TCC 2006.

    Example:
        >>> import tulle
        >>> trips = tulle.Contributions(range(900), [0] * 900, [0] * 900, rows=3, columns=3)
        >>> r = tulle.release(trips, tulle.participants(), unit="participant", epsilon=1.0)
        >>> 800 < r.value < 1000
        True
    """

    title: ClassVar[str] = "noise on the number of people"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return ParticipantsSettings(1 / terms.epsilon)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = LaplaceLaw(ParticipantsSettings.read(settings).scale)
        return Prediction(law, law)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        scale = ParticipantsSettings.read(settings).scale
        with charge(LaplaceCharge(1)):
            noisy = dataset.individuals() + int(discrete_laplace(scale=scale, source=source))
        return Outcome(max(noisy, 0), LaplaceLaw(scale))
