"""What all attacks share: they take releases, and the command line knows them by a word."""

from __future__ import annotations

from typing import Any

from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.release import Release

ATTACKS: dict[str, str] = {
    "edge": "tulle.attacks.edges:edge_inference",
    "count": "tulle.attacks.edges:count_inference",
    "trait": "tulle.attacks.traits:trait_inference",
    "identity": "tulle.attacks.traits:identity_inference",
    "new_trait": "tulle.attacks.traits:new_trait_inference",
    "membership": "tulle.attacks.membership:membership_inference",
    "inversion": "tulle.attacks.model_inversion:feature_inference",
}
"""Where each attack lives, by the word that the command line uses."""


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
