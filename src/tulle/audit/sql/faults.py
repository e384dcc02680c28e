"""Broken versions of the mechanisms on databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law
from tulle.audit.faults import BOTH, broken, draw_less
from tulle.audit.relations.faults import (
    epsilon_per_lane,
    forget_owner,
    free_choice,
    not_truncated,
)
from tulle.audit.sql.kind import (
    COSTS_BY_PLACE,
    DIFFERENCES,
    MEETINGS,
    MEETINGS_BY_PLACE,
    VISITS,
    bound,
    relations,
)
from tulle.audit.sql.single_owner import BROKEN_CUTS, Cut, law_of_totals
from tulle.core import registry
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.sql.mechanisms.truncation import OnDatabase
from tulle.sql.queries import SqlQuery


def cut_otherwise(mechanism: OnDatabase, what: str, cut: Cut) -> Broken:
    """Cut contributions of one owner each in another way."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, data: Any
    ) -> Mapping[str, Law]:
        assert isinstance(terms.query, SqlQuery)
        signed = mechanism.signed(bound(terms.query))
        totals = SingleOwnerRows(relations(terms.query, data), signed=signed)
        return {
            "answer": law_of_totals(
                RecursiveSettings.read(settings), totals, cut=cut, signed=signed
            )
        }

    fault = "one participant moves the totals by more than the threshold that noise follows"
    return broken(mechanism, what, fault, (COSTS_BY_PLACE,), BOTH, law=law)


def whole_epsilon_for_each_group(mechanism: Mechanism) -> Broken:
    """Let every group spend all of epsilon, where a participant may be in all of them."""
    return broken(
        mechanism,
        "all of epsilon for each group",
        "a participant is in every group, and each group costs epsilon",
        (MEETINGS_BY_PLACE,),
        shares=lambda self, query: 1,
    )


@registry.register("audit", "database", "faults")
def database_faults() -> list[Broken]:
    """Return all broken versions."""
    recursive, race = (_of(name) for name in ("recursive", "race"))
    return [
        not_truncated(recursive, (MEETINGS, DIFFERENCES)),
        forget_owner(recursive, (MEETINGS,)),
        free_choice(recursive, (VISITS, MEETINGS)),
        draw_less(recursive, "epsilon_answer", (VISITS,), method="run_totals"),
        whole_epsilon_for_each_group(recursive),
        *(cut_otherwise(recursive, what, cut) for what, cut in BROKEN_CUTS.items()),
        not_truncated(race, (MEETINGS, DIFFERENCES)),
        forget_owner(race, (MEETINGS,)),
        epsilon_per_lane(race, (VISITS, MEETINGS)),
        draw_less(race, "epsilon", (VISITS,), method="run_parts"),
        whole_epsilon_for_each_group(race),
    ]


def _of(name: str) -> OnDatabase:
    made = registry.make_mechanism("database", name)
    assert isinstance(made, OnDatabase)
    return made
