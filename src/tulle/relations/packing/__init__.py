"""The packing LP and the deletion LP of truncation mechanisms, solved to certified bounds."""

from tulle.relations.packing.deletion import DeletionOracle, decide_deletion
from tulle.relations.packing.problem import PackingProblem
from tulle.relations.packing.solver import Bracket, solve
from tulle.relations.packing.ways import WaysProblem
from tulle.relations.packing.ways_deletion import WaysOracle

__all__ = [
    "Bracket",
    "DeletionOracle",
    "PackingProblem",
    "WaysOracle",
    "WaysProblem",
    "decide_deletion",
    "solve",
]
