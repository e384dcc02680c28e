"""Conditions on the attributes of a pattern's nodes and edges, as text and as comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tulle.core.errors import QueryError
from tulle.core.validate import rational

_NAMES = "abcde"
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<edge>[A-Za-z_]\w*\s*-\s*[A-Za-z_]\w*\s*\.\s*[A-Za-z_]\w*)
    | (?P<node>[A-Za-z_]\w*\s*\.\s*[A-Za-z_]\w*)
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>!=|<=|>=|==|=|<>|<|>)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class ConstantTerm:
    """A number, text or truth value, kept with its kind: 1 and true are not the same question."""

    kind: str
    value: str | int | float | bool

    def __str__(self) -> str:
        if isinstance(self.value, str):
            quote = '"' if "'" in self.value else "'"
            return f"{quote}{self.value}{quote}"
        return str(self.value).lower()


@dataclass(frozen=True, order=True)
class AttributeTerm:
    """An attribute of one node of the pattern, or of the edge between two."""

    place: tuple[int, ...]
    name: str

    def __str__(self) -> str:
        return "-".join(_NAMES[node] for node in self.place) + f".{self.name}"

    def renumbered(self, image: Sequence[int]) -> AttributeTerm:
        """Return the same attribute when node v is called image[v]."""
        return AttributeTerm(tuple(sorted(image[node] for node in self.place)), self.name)


@dataclass(frozen=True)
class AttributeComparison:
    """One comparison: an attribute with another one or with a constant."""

    left: AttributeTerm
    sign: str
    right: AttributeTerm | ConstantTerm

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"

    def key(self) -> tuple[Any, ...]:
        """Return something to sort comparisons by."""
        return (self.left, self.sign, isinstance(self.right, AttributeTerm), str(self.right))

    def renumbered(self, image: Sequence[int]) -> AttributeComparison:
        """Return the same comparison when node v is called image[v]."""
        left = self.left.renumbered(image)
        if not isinstance(self.right, AttributeTerm):
            return AttributeComparison(left, self.sign, self.right)
        return _compared(left, self.sign, self.right.renumbered(image))


@dataclass(frozen=True)
class Conditions:
    """Alternatives, of which one must hold; each is a list of comparisons that must all hold.

    No alternatives means no condition.
    """

    alternatives: tuple[tuple[AttributeComparison, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alternatives)

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, parts)) for parts in self.alternatives)

    def __iter__(self) -> Iterator[tuple[AttributeComparison, ...]]:
        return iter(self.alternatives)

    def key(self) -> Any:
        """Return something to sort conditions by."""
        return tuple(tuple(part.key() for part in parts) for parts in self.alternatives)

    def renumbered(self, image: Sequence[int]) -> Conditions:
        """Return the same conditions when node v is called image[v]."""
        return _ordered([[part.renumbered(image) for part in parts] for parts in self.alternatives])


NO_CONDITIONS = Conditions()


def read_conditions(
    text: str, names: Mapping[Any, int], edges: Sequence[tuple[int, int]]
) -> Conditions:
    """Read conditions on a pattern whose nodes are numbered by ``names``.

    Raises:
        QueryError: with the place, and what can be written there.
    """
    if not isinstance(text, str):
        raise QueryError(f"where is text such as 'a.dept = b.dept'; got {text!r}.")
    tokens = list(_tokens(text))
    alternatives: list[list[AttributeComparison]] = [[]]
    while True:
        if len(tokens) < 3:
            raise _unreadable(text, "a comparison such as a.age < 30 is missing")
        left, (kind, sign), right = (tokens.pop(0) for _ in range(3))
        if kind != "sign":
            raise _unreadable(text, f"{sign!r} is not one of = != < <= > >=")
        sides = [_operand(side, text, names, edges) for side in (left, right)]
        alternatives[-1].append(
            _compared(sides[0], {"==": "=", "<>": "!="}.get(sign, sign), sides[1])
        )
        if not tokens:
            return _ordered(alternatives)
        kind, word = tokens.pop(0)
        if word.lower() == "or":
            alternatives.append([])
        elif word.lower() != "and":
            raise _unreadable(text, f"{word!r} stands where 'and' or 'or' is expected")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            raise _unreadable(text, f"{text[place:].strip()!r} is not understood")
        place = found.end()
        yield str(found.lastgroup), str(found[str(found.lastgroup)])


def _operand(
    token: tuple[str, str], text: str, names: Mapping[Any, int], edges: Sequence[tuple[int, int]]
) -> AttributeTerm | ConstantTerm:
    kind, word = token
    if kind == "number":
        exact = rational(word)
        whole = exact.denominator == 1
        return ConstantTerm(kind, int(exact) if whole else float(exact))
    if kind == "text":
        return ConstantTerm(kind, word[1:-1])
    if kind == "word" and word.lower() in ("true", "false"):
        return ConstantTerm("truth value", word.lower() == "true")
    if kind not in ("node", "edge"):
        raise _unreadable(text, f"{word!r} is neither an attribute (a.age) nor a constant")
    owner, name = (part.strip() for part in word.rsplit(".", 1))
    known = {str(node): number for node, number in names.items()}
    ends = [part.strip() for part in owner.split("-")] if kind == "edge" else [owner]
    for end in ends:
        if end not in known:
            raise _unreadable(text, f"the pattern has no node {end!r}")
    place = tuple(sorted(known[end] for end in ends))
    if kind == "edge" and place not in edges:
        raise _unreadable(text, f"the pattern has no edge {owner!r}")
    return AttributeTerm(place, name)


def _compared(
    left: AttributeTerm | ConstantTerm, sign: str, right: AttributeTerm | ConstantTerm
) -> AttributeComparison:
    """Build a comparison with its sides in a fixed order, so that equal ones are equal."""
    if not isinstance(left, AttributeTerm):
        if not isinstance(right, AttributeTerm):
            raise QueryError(f"{left} {sign} {right} compares two constants.")
        left, sign, right = right, _MIRRORED[sign], left
    elif isinstance(right, AttributeTerm) and right < left:
        left, sign, right = right, _MIRRORED[sign], left
    return AttributeComparison(left, sign, right)


def _ordered(alternatives: Sequence[Sequence[AttributeComparison]]) -> Conditions:
    parts = [tuple(sorted(set(each), key=AttributeComparison.key)) for each in alternatives]
    return Conditions(tuple(sorted(set(parts), key=lambda each: [part.key() for part in each])))


def _unreadable(text: str, reason: str) -> QueryError:
    return QueryError(
        f"where={text!r} cannot be read: {reason}. Write for example "
        "'a.dept = b.dept and a.age < 30' or 'a-b.weight >= 2'."
    )
