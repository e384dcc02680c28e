"""All mechanisms on relations; importing this registers them."""

from tulle.relations.race import Race, RelationRace
from tulle.relations.recursive import Recursive, RelationRecursive

__all__ = ["Race", "Recursive", "RelationRace", "RelationRecursive"]
