"""One supported function or operator: what it takes, and how a user writes it.

Most entries are one line of a table (:mod:`numbers`, :mod:`texts`, :mod:`dates`). There are two
ways to say what an entry does:

- its *form* on each engine, by the entry's name, in that engine's folder
  (``sql/engines/<name>/forms.py``): an expression that gives a value or NULL for all arguments, as
  a function or, by :func:`said`, as SQL with ``{0}`` and ``{1}`` for the arguments. An engine that
  has none refuses the entry;
- ``expands``: an expression made of other entries, by :func:`means`. It is total because they are,
  and has one value on all engines because they have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from tulle.sql.dialect import DEFAULT, Dialect, Form
from tulle.sql.expressions.conversions import Impossible, Typed, call, convert
from tulle.sql.expressions.kinds import DECIMAL, DOUBLE, WHOLE, Kind

LONGEST = 2000
"""Parts that an expansion writes several times have at most so many nodes: nesting multiplies."""

Hold = Callable[[Any], Any]
"""Keeps a double within the domain of a function: returns it, or NULL."""


@dataclass(frozen=True)
class Entry:
    """One function or operator over arguments of given kinds; see the module's text."""

    name: str
    """By which engines say their form of it."""
    node: type[Any]
    written: str
    takes: tuple[frozenset[str], ...]
    parts: tuple[str, ...] = ("this", "expression")
    """Which arguments of the parsed expression are values of the row."""
    constants: Callable[[Any, list[Kind]], None] | None = None
    """Checks the other arguments, from the schema alone; raises Impossible."""
    also: tuple[str, ...] = ()
    """Which other arguments are understood; with any more of them it is refused."""
    expands: Callable[[Any], Any] | None = None
    """Returns what it stands for, made of other entries; None if it stands for itself."""

    def check_arguments(self, node: Any) -> None:
        """Refuse arguments that nobody looks at: leaving one out would change the meaning.

        Raises:
            Impossible: naming them.
        """
        known = {*self.parts, *self.also}
        unknown = [name for name, value in node.args.items() if value and name not in known]
        if unknown:
            listed = ", ".join(name.replace("_", " ") for name in unknown)
            raise Impossible(f"it is supported without the argument: {listed}")


def names(*listed: str) -> frozenset[str]:
    """Return kinds that an argument may have."""
    return frozenset(listed)


def doubles(given: list[Typed], dialect: Dialect) -> list[Typed]:
    """Return numbers as doubles."""
    return [convert(one, Kind(DOUBLE), dialect) for one in given]


def any_double(given: list[Typed]) -> bool:
    """Say whether a number among these is neither whole nor decimal."""
    return any(one.kind.name not in {WHOLE, DECIMAL} for one in given)


_CALL = re.compile(r"\b(?!(?:CAST|EXTRACT|IN)\b)([A-Z_0-9]+)\(")


@lru_cache(maxsize=512)
def _parsed(text: str, dialect: str, verbatim: bool) -> Any:
    named = text.format(*(f"__tulle_argument_{place}" for place in range(3)))
    if verbatim:
        named = _CALL.sub(r"__tulle_call_\1(", named)
    found = sqlglot.parse_one(f"SELECT {named}", dialect=dialect).expressions[0]
    for function in found.find_all(exp.Anonymous):
        function.set("this", function.name.removeprefix("__tulle_call_"))
    return found


def filled(text: str, dialect: str, arguments: list[Any], *, verbatim: bool = True) -> Any:
    """Return the expression that a text stands for, with arguments in place of ``{0}``, ``{1}``.

    Calls are ``verbatim``: the engine's own functions, whatever the parser knows by that name.
    """
    whole = exp.Paren(this=_parsed(text, dialect, verbatim).copy())
    for found in list(whole.find_all(exp.Column)):
        if found.name.startswith("__tulle_argument_"):
            given = arguments[int(found.name.rpartition("_")[2])].copy()
            plain = isinstance(given, exp.Column | exp.Literal | exp.Func | exp.Paren)
            found.replace(given if plain else exp.Paren(this=given))
    inner = whole.this
    return whole if isinstance(inner, exp.Binary) else inner


def said(text: str, gives: Kind, hold: Hold | None = None, *, nests: bool = True) -> Form:
    """Return a form that is written in the engine's SQL.

    With ``hold``, arguments are made doubles and each is passed through it first. ``nests`` says
    that the engine writes out NULLIF(a, b) with a twice, so that few may be within each other.
    """

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        arguments = [one.node for one in given]
        if hold is not None:
            if nests:
                _check_nesting(arguments)
            arguments = [hold(one.node) for one in doubles(given, dialect)]
        return Typed(filled(text, dialect.name, arguments), gives)

    return form


def function(name: str, gives: Kind) -> Form:
    """Return the call of a function of the engine's over the arguments as they are."""
    return lambda node, given, dialect: Typed(call(name, *(one.node for one in given)), gives)


def as_written(gives: Kind, *parts: str) -> Form:
    """Return the expression as it is, which cannot fail, over arguments of these names."""

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        return Typed(with_arguments(node, given, *parts), gives)

    return form


def with_arguments(node: Any, given: list[Typed], *parts: str) -> Any:
    """Return an expression over other arguments."""
    made = node.copy()
    for name, one in zip(parts, given, strict=False):
        made.set(name, one.node)
    return exp.Paren(this=made) if isinstance(made, exp.Binary) else made


def _check_nesting(arguments: list[Any]) -> None:
    """Refuse functions deep within each other, where NULLIF(a, b) is written out with a twice.

    Raises:
        Impossible: when so much would be written that the engine takes minutes to read it.
    """
    calls = [c for one in arguments for c in one.find_all(exp.Anonymous) if c.name == "NULLIF"]
    if len(calls) > 10:
        raise Impossible("functions are nested too deeply; work one out in a sub-select")


def means(*parts: str, text: str) -> Callable[[Any], Any]:
    """Return an expansion, written in the default SQL over the arguments of these names."""

    def expand(node: Any) -> Any:
        return expanded(text, [node.args[name] for name in parts])

    return expand


def expanded(text: str, arguments: list[Any]) -> Any:
    """Return an expansion of a text in the default SQL.

    Raises:
        Impossible: when arguments that are written more than once are long.
    """
    check_length(arguments)
    return filled(text, DEFAULT, arguments, verbatim=False)


def check_length(arguments: list[Any]) -> None:
    """Refuse long arguments, before they are written several times.

    Raises:
        Impossible: when there are more than :data:`LONGEST` nodes in them.
    """
    if sum(1 for one in arguments for _ in one.walk()) > LONGEST:
        raise Impossible("its arguments are too long; work them out in a sub-select")


def whole_constant(node: Any, low: int, high: int, what: str) -> int:
    """Return a whole number that is written into a statement.

    Raises:
        Impossible: when it is not one, or out of bounds.
    """
    literal = node.this if isinstance(node, exp.Neg) else node
    if isinstance(literal, exp.Literal) and literal.is_int:
        value = -int(literal.name) if isinstance(node, exp.Neg) else int(literal.name)
        if low <= value <= high:
            return value
    raise Impossible(f"{what} must be written as a number, from {low} to {high}")


def text_constant(node: Any, what: str) -> str:
    """Return a text that is written into a statement, which is not empty.

    Raises:
        Impossible: when it is not a constant.
    """
    if isinstance(node, exp.Literal) and node.is_string and node.name:
        return str(node.name)
    raise Impossible(f"{what} must be written as a text that is not empty, such as 'a'")
