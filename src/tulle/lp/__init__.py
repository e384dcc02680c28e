"""The packing LP and the deletion LP of truncation mechanisms, solved to certified bounds."""

from tulle.lp.alternatives import WaysProblem
from tulle.lp.alternatives_deletion import WaysOracle
from tulle.lp.deletion import DeletionOracle, decide_deletion
from tulle.lp.problem import PackingProblem
from tulle.lp.solver import Bracket, solve

__all__ = [
    "Bracket",
    "DeletionOracle",
    "PackingProblem",
    "WaysOracle",
    "WaysProblem",
    "decide_deletion",
    "solve",
]
