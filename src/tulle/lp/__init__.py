"""The packing LP and the deletion LP of truncation mechanisms, solved to certified bounds."""

from tulle.lp.alternatives import AlternativesProblem
from tulle.lp.alternatives_deletion import AlternativesOracle, solve_alternatives
from tulle.lp.deletion import DeletionOracle, decide_deletion
from tulle.lp.problem import PackingProblem
from tulle.lp.solver import Bracket, solve

__all__ = [
    "AlternativesOracle",
    "AlternativesProblem",
    "Bracket",
    "DeletionOracle",
    "PackingProblem",
    "decide_deletion",
    "solve",
    "solve_alternatives",
]
