"""Questions: frozen, without data, and combinable with + - * /."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from inspect import isabstract, signature
from typing import Any, ClassVar, Literal

from tulle.core import validate
from tulle.core.errors import QueryError, raise_alone
from tulle.core.labels import Axis, Labels
from tulle.core.validate import rational, text

Shape = Literal["scalar", "vector", "object"]
Operator = Literal["+", "-", "*", "/"]
Tree = Any
"""An expression as nested lists: [sign, left, right], a leaf's text, or {"number": text}."""


def vouched(functions: Iterable[str]) -> tuple[str, ...]:
    """Return what a question assumes that vouches for functions of the database's own.

    Example:
        >>> vouched(["level"])
        ('level(...) follows from its arguments alone, as the question says',)
    """
    return tuple(
        f"{name}(...) follows from its arguments alone, as the question says" for name in functions
    )


@dataclass(frozen=True)
class Query(ABC):
    """A question about one kind of data. It validates itself when built and holds no records."""

    name: ClassVar[str]
    """The word for this question in Python, on the command line and in ledgers."""

    kind: ClassVar[str]
    """The kind of dataset that it asks about."""

    shape: ClassVar[Shape] = "scalar"
    """Whether the answer is one number, one number per place, or an object such as a graph."""

    integral: ClassVar[bool] = True
    """Whether every entry of the true answer is a whole number."""

    words: ClassVar[str] = ""
    """The question in plain words for people; names of its fields in braces are filled in."""

    quantity: ClassVar[str] = "value"
    """What the numbers of the answer are, such as "triangles"."""

    bounds: ClassVar[tuple[str, ...]] = ()
    """Names of the members that say how far one unit moves the answer, here and in all bases."""

    parts_when_named: ClassVar[bool] = False
    """Whether the route through simpler questions is taken only when it is named."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a question with a new answer and the bound of another: it would be a leak."""
        super().__init_subclass__(**options)
        if "truth" not in cls.__dict__:
            return
        for base in cls.__mro__[1:]:
            if issubclass(base, Query) and not isabstract(base):
                stated = {name for one in cls.__mro__ for name in getattr(one, "bounds", ())}
                missing = sorted(stated - set(cls.__dict__))
                if missing or not stated:
                    # A question that states none is one whose bound its mechanisms know.
                    kept = ", ".join(missing) or "what its mechanisms know of one unit's influence"
                    raise TypeError(
                        f"{cls.__name__} changes the answer of {base.__name__} and takes over "
                        f"{kept}. State the bounds anew, or derive from a base without an answer."
                    )

    @abstractmethod
    def truth(self, dataset: Any) -> Any:
        """Return the true answer. Custodian side: this value is not private."""

    def expected(self, stand_in: Any) -> Any:
        """Return the answer to expect, from that on public data, which may be of smaller size."""
        return self.truth(stand_in)

    def in_words(self) -> str:
        """Return the question as one plain sentence, or nothing where its text says it best."""
        return self.words.format(**{f.name: getattr(self, f.name) for f in fields(self)})

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        """Return what the sides of a released array are, from the public side of the data.

        ``parameters`` are the public settings of the run. For a single number there are none.
        """
        return ()

    def labelled(self, public: Any, parameters: Mapping[str, Any]) -> Labels:
        """Return the labels of a release: all of them public."""
        return Labels(self.in_words(), self.quantity, self.axes(public, parameters))

    def asked_of(self, kind: str) -> Query:
        """Return the question as it is put to this kind of data: itself, unless it says so."""
        return self

    def bind(self, public: Any, facts: Mapping[str, Any]) -> Query:
        """Return the question bound to a dataset, by its public side and its public facts.

        This happens once, before anything is paid: what the public side can refuse is refused
        here, and whatever follows works on the bound question.

        Raises:
            QueryError: when the public side does not fit the question.
        """
        reason = self.objection(public)
        if reason is not None:
            raise QueryError(reason)
        return self.bound_to(facts)

    def bound_to(self, facts: Mapping[str, Any]) -> Query:
        """Return the question bound to public facts alone, where no dataset is at hand."""
        return self

    def canonical(self) -> dict[str, Any]:
        """Return a JSON-able form; equal questions have equal forms."""
        return {"query": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}

    def parts(self) -> tuple[Query, ...]:
        """Return the distinct questions that must be asked of the data to answer this one."""
        return (self,)

    def decomposition(self) -> Expression | None:
        """Return simpler questions, joined by + - * /, that answer this one too, if there are any.

        Plans compare both routes: noise on the answer itself, and noise on the parts.
        """
        return None

    def assumptions(self) -> tuple[str, ...]:
        """Return in words what a guarantee rests on if this is asked, beside what is checked."""
        return ()

    def limits(self) -> tuple[float, float]:
        """Return public ends between which the true answer lies."""
        return -float("inf"), float("inf")

    def objection(self, dataset: Any) -> str | None:
        """Return why the public side of a dataset does not fit the question, or None.

        It is asked before anything is paid: for example, the question may name a node that the
        graph does not have.
        """
        return None

    def __str__(self) -> str:
        # Texts in quotes: a node named "1" is not the node 1, and an expression's leaves are told
        # apart by what they read like.
        given = (getattr(self, f.name) for f in fields(self))
        arguments = ", ".join(repr(one) if isinstance(one, str) else str(one) for one in given)
        return f"{self.name}({arguments})"

    def __add__(self, other: Any) -> Query:
        return _combine("+", self, other)

    def __radd__(self, other: Any) -> Query:
        return _combine("+", other, self)

    def __sub__(self, other: Any) -> Query:
        return _combine("-", self, other)

    def __rsub__(self, other: Any) -> Query:
        return _combine("-", other, self)

    def __mul__(self, other: Any) -> Query:
        return _combine("*", self, other)

    def __rmul__(self, other: Any) -> Query:
        return _combine("*", other, self)

    def __truediv__(self, other: Any) -> Query:
        return _combine("/", self, other)

    def __rtruediv__(self, other: Any) -> Query:
        return _combine("/", other, self)


@dataclass(frozen=True)
class Constant(Query):
    """A number inside an expression; it costs nothing."""

    value: Fraction
    name: ClassVar[str] = "constant"
    kind: ClassVar[str] = "any"

    def truth(self, dataset: Any) -> Fraction:
        return self.value

    def canonical(self) -> dict[str, Any]:
        return {"query": self.name, "value": text(self.value)}

    def parts(self) -> tuple[Query, ...]:
        return ()

    def __str__(self) -> str:
        return text(self.value)


@dataclass(frozen=True)
class Expression(Query):
    """Two questions joined by an arithmetic sign; only its leaves are asked of the data."""

    operator: Operator
    left: Query
    right: Query
    name: ClassVar[str] = "expression"
    kind: ClassVar[str] = "any"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Any) -> float:
        """Return the expression of the true answers; a quotient by zero is 0."""
        values = {part: part.truth(dataset) for part in self.parts()}
        return self.evaluate(values)

    def tree(self) -> Tree:
        """Return the expression as nested JSON-able lists whose leaves are questions as text."""
        return [self.operator, _tree(self.left), _tree(self.right)]

    def evaluate(self, values: Mapping[Query, Any]) -> float:
        """Return the expression's value when its leaves have these values."""
        return evaluate(self.tree(), {str(leaf): value for leaf, value in values.items()})

    def bind(self, public: Any, facts: Mapping[str, Any]) -> Query:
        return self._of({part: part.bind(public, facts) for part in self.parts()})

    def bound_to(self, facts: Mapping[str, Any]) -> Query:
        return self._of({part: part.bound_to(facts) for part in self.parts()})

    def _of(self, parts: Mapping[Query, Query]) -> Expression:
        """Return the same expression of other questions; each is bound once, however often used."""
        left, right = (
            side._of(parts) if isinstance(side, Expression) else parts.get(side, side)
            for side in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    def canonical(self) -> dict[str, Any]:
        return {
            "query": self.name,
            "operator": self.operator,
            "left": self.left.canonical(),
            "right": self.right.canonical(),
        }

    def in_words(self) -> str:
        """Return the questions that it is computed from, in words."""
        return " ".join(
            ("Computed from:", *(part.in_words() or str(part) for part in self.parts()))
        )

    def parts(self) -> tuple[Query, ...]:
        return tuple(dict.fromkeys((*self.left.parts(), *self.right.parts())))

    def objection(self, dataset: Any) -> str | None:
        found = (part.objection(dataset) for part in self.parts())
        return next((reason for reason in found if reason is not None), None)

    def __str__(self) -> str:
        return f"{_bracket(self.left, self.operator)} {self.operator} " + _bracket(
            self.right, self.operator, right=True
        )


class Composite(Query):
    """A question whose answer is put together from those of others; only these ask the data.

    Bound to public facts it has :meth:`parts`. Each of them gets a share of the budget.
    """

    weighed: ClassVar[bool] = True
    """Whether shares and errors follow the parts' answers on a stand-in."""

    def single(self) -> Query | None:
        """Return the one question whose answer it shows as it is; None if it is more than that."""
        return None

    @abstractmethod
    def spreads(
        self, values: Mapping[str, Any] | None, deviations: Mapping[str, float] | None
    ) -> list[float]:
        """Return what the noise of each part does to the whole answer, as a share of it.

        ``values`` are the parts' answers on a public stand-in and ``deviations`` the standard
        deviations of their noise there, by question; without them, public facts have to do.
        """

    @abstractmethod
    def predict(
        self, values: Mapping[str, Any] | None, laws: Mapping[str, Any]
    ) -> tuple[tuple[str, Any], ...]:
        """Return each column with the error law to expect, when the parts have these.

        The law is None where ``values``, the parts' answers on a stand-in, or a law is missing.
        """

    @abstractmethod
    def assemble(self, parts: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the answer and its public parameters, from the parts' releases by question."""


_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def _bracket(side: Query, operator: Operator, *, right: bool = False) -> str:
    if not isinstance(side, Expression):
        return str(side)
    loose = _RANK[side.operator] < _RANK[operator]
    tie = right and _RANK[side.operator] == _RANK[operator]
    return f"({side})" if loose or tie else str(side)


def _tree(side: Query) -> Tree:
    if isinstance(side, Expression):
        return side.tree()
    return {"number": text(side.value)} if isinstance(side, Constant) else str(side)


def evaluate(tree: Tree, values: Mapping[str, Any]) -> float:
    """Return the value of an expression's tree, given the values of its leaves by their text."""
    if isinstance(tree, str):
        return float(values[tree])
    if isinstance(tree, Mapping):
        return float(rational(tree["number"]))
    operator, left, right = tree
    return _apply(operator, evaluate(left, values), evaluate(right, values))


def enclose(tree: Tree, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the range of an expression's tree when each leaf lies anywhere in its own range."""
    if isinstance(tree, str):
        return ranges[tree]
    if isinstance(tree, Mapping):
        number = float(rational(tree["number"]))
        return number, number
    operator, *sides = tree
    (low_left, high_left), (low_right, high_right) = (enclose(side, ranges) for side in sides)
    if operator == "+":
        return low_left + low_right, high_left + high_right
    if operator == "-":
        return low_left - high_right, high_left - low_right
    if operator == "/" and low_right <= 0 <= high_right:
        # A range that touches zero from one side still bounds the quotient from one side.
        if low_left >= 0 and low_right == 0 < high_right:
            return min(0.0, low_left / high_right), float("inf")
        return -float("inf"), float("inf")
    corners = [
        _apply(operator, x, y) for x in (low_left, high_left) for y in (low_right, high_right)
    ]
    return min(corners), max(corners)


def _apply(operator: Operator, left: float, right: float) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    # A quotient with a zero denominator is 0, as transitivity without triples is by custom.
    return left / right if right else 0.0


def _combine(operator: Operator, left: Any, right: Any) -> Query:
    sides: list[Query] = []
    for side in (left, right):
        if isinstance(side, Query):
            sides.append(side)
            continue
        try:
            sides.append(Constant(rational(side)))
        except ValueError:
            raise_alone(
                QueryError(
                    f"A question combines with questions and finite numbers, not with {side!r}."
                )
            )
    for side in sides:
        if side.shape != "scalar":
            raise QueryError(
                f"{side} gives more than one number; only single-number questions combine with "
                f"{operator}. Release it and compute with release.value instead."
            )
    if operator == "/" and isinstance(sides[1], Constant) and sides[1].value == 0:
        raise QueryError(f"{sides[0]} / 0 has no value.")
    kinds = {part.kind for side in sides for part in side.parts()}
    if len(kinds) > 1:
        raise QueryError(f"One question cannot ask about {' and '.join(sorted(kinds))} at once.")
    return Expression(operator, sides[0], sides[1])


def kind_of(query: Query) -> str:
    """Return the kind of dataset that a question, or the leaves of an expression, ask about.

    Raises:
        QueryError: for an expression of constants only, which asks nothing.
    """
    for part in query.parts():
        return part.kind
    raise QueryError(f"{query} asks nothing of the data.")


def parse(source: str, names: Mapping[str, Callable[..., Query]]) -> Query:
    """Read a question from text such as ``3 * triangles() / stars(2)``.

    Only the given names, whole numbers, decimals and + - * / are understood; brackets may be
    left off after a name without arguments.

    Raises:
        QueryError: with the place and the names that are known.
    """
    text = source.strip()
    if len(text) > _LONGEST:
        raise QueryError(f"A question has at most {_LONGEST:,} characters; got {len(text):,}.")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        place = getattr(error, "offset", None)
        raise_alone(
            QueryError(
                f"{text!r} is not a question{f' (near column {place})' if place else ''}. "
                f"Write for example: triangles, stars(2), 3 * triangles / stars(2)."
            )
        )
    built = _build(tree, names)
    return built if isinstance(built, Query) else Constant(rational(built))


_LONGEST = 2_000


_SIGNS: dict[type[ast.operator], Operator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}


def _build(node: ast.AST, names: Mapping[str, Callable[..., Query]]) -> Any:
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = _build(node.left, names), _build(node.right, names)
        return _combine(_SIGNS[type(node.op)], left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _build(node.operand, names)
        return _combine("*", -1, operand) if isinstance(operand, Query) else -operand
    if isinstance(node, ast.Constant):
        try:
            return rational(node.value)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            raise_alone(QueryError(f"{ast.unparse(node)} is not a number for a question."))
    if isinstance(node, ast.Name):
        return _call(node, node.id, [], {}, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        arguments = list(_arguments(node.args))
        if any(keyword.arg is None for keyword in node.keywords):
            raise QueryError(f"{ast.unparse(node)}: write the arguments out one by one.")
        keywords = {str(k.arg): v for k in node.keywords for v in _arguments([k.value])}
        return _call(node, node.func.id, arguments, keywords, names)
    raise QueryError(f"{ast.unparse(node)!r} is not part of a question.")


def _call(
    node: ast.AST,
    name: str,
    arguments: list[Any],
    keywords: Mapping[str, Any],
    names: Mapping[str, Callable[..., Query]],
) -> Query:
    if name not in names:
        raise QueryError(
            f"There is no question {name!r}.{validate.meant(name, names)} Known: "
            f"{', '.join(sorted(names))}."
        )
    try:
        return names[name](*arguments, **keywords)
    except TypeError:
        raise_alone(
            QueryError(
                f"{ast.unparse(node)!r} does not fit the question, which is written "
                f"{_signature(name, names[name])}."
            )
        )


def _signature(name: str, make: Callable[..., Query]) -> str:
    """Return how a question is written, its arguments by name.

    Example:
        >>> def stars(k: int, *, least: int = 0) -> Query: ...
        >>> _signature("stars", stars)
        'stars(k, least=0)'
    """
    written = []
    for item in signature(make).parameters.values():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            written.append("...")
        else:
            written.append(item.name + ("" if item.default is item.empty else f"={item.default}"))
    return f"{name}({', '.join(written)})"


def _arguments(nodes: list[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        try:
            yield ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            raise_alone(QueryError(f"{ast.unparse(node)!r} must be a plain number or text."))
