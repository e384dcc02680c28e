"""Functions of texts and patterns: what is supported, and with which constants.

Texts may grow: those that a function makes longer are cut to a length first, on all engines alike,
so that no row fills the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tulle.sql.dialect import Dialect, Form
from tulle.sql.expressions.conversions import Impossible, Typed, call, number, text
from tulle.sql.expressions.entry import (
    Entry,
    filled,
    means,
    names,
    text_constant,
    whole_constant,
)
from tulle.sql.expressions.kinds import BOOLEAN, TEXT, Kind
from tulle.sql.expressions.patterns import translated

LONGEST_TEXT = 65536
"""What a function could make longer is cut so that the result has at most so many characters."""

_ONE = (names(TEXT),)
_TWO = (names(TEXT),) * 2


def check_plain_pattern(node: Any) -> None:
    """Refuse LIKE with a pattern from a row, or with an escape: some end in an error.

    Raises:
        Impossible: saying what a pattern may be.
    """
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or "\\" in pattern.name:
        raise Impossible("a pattern must be a constant without \\, such as LIKE 'a%'")


def _check_substring(node: Any, given: list[Kind]) -> None:
    for name, value in node.args.items():
        if name == "this" or value is None:
            continue
        literal = isinstance(value, exp.Literal) and value.is_int and int(value.name) < 2**31
        if name not in {"start", "length"} or not literal:
            raise Impossible("its further arguments must be written as numbers")
        if name == "start" and int(value.name) == 0:
            raise Impossible("the first character is number 1, and what 0 is engines disagree on")


def _check_trim(node: Any, given: list[Kind]) -> None:
    if node.args.get("collation"):
        raise Impossible("it takes a text and the characters to cut off")


def _count(node: Any, name: str) -> int:
    return whole_constant(node.args[name], 0, 2**31 - 1, "how many characters")


def _left(node: Any) -> Any:
    count = exp.Literal.number(_count(node, "expression"))
    return exp.Substring(this=node.this.copy(), start=exp.Literal.number(1), length=count)


def _with_constants(
    text_of: Callable[[Any], tuple[str, ...]],
    gives: Kind,
    cut: Callable[[Any], int] | None = None,
) -> Form:
    """Return a form that depends on constants.

    ``text_of(node)`` gives the engine's SQL, and constants for what is not in the row.
    """

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        value = given[0].node
        if cut is not None and cut(node) < LONGEST_TEXT:
            value = call("SUBSTRING", value, number(1), number(cut(node)))
        written, *constants = text_of(node)
        return Typed(filled(written, dialect.name, [value, *map(text, constants)]), gives)

    return form


def _replaced(node: Any) -> tuple[str, ...]:
    return "REPLACE({0}, {1}, {2})", node.expression.name, node.args["replacement"].name


def _shrunk(node: Any) -> int:
    """Return to how many characters to cut a text in which something is replaced by more."""
    old, new = len(node.expression.name), len(node.args["replacement"].name)
    return LONGEST_TEXT if new <= old else LONGEST_TEXT * old // new


def _check_replace(node: Any, given: list[Kind]) -> None:
    text_constant(node.expression, "what is replaced")
    new = node.args.get("replacement")
    if not (isinstance(new, exp.Literal) and new.is_string and len(new.name) <= 1000):
        raise Impossible("the replacement must be written as a text of at most 1000 characters")


def _check_pad(node: Any, given: list[Kind]) -> None:
    whole_constant(node.expression, 0, 1000, "the length")
    text_constant(node.args.get("fill_pattern"), "what is filled in")


def _padded(node: Any) -> tuple[str, ...]:
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    return f"{name}({{0}}, {node.expression.name}, {{1}})", node.args["fill_pattern"].name


def _check_split(node: Any, given: list[Kind]) -> None:
    text_constant(node.args["delimiter"], "the delimiter")
    whole_constant(node.args["part_index"], 1, 1000, "which part")


def _split(node: Any) -> tuple[str, ...]:
    place = node.args["part_index"].name
    return f"SPLIT_PART({{0}}, {{1}}, {place})", node.args["delimiter"].name


RIGHT = _with_constants(lambda node: (f"RIGHT({{0}}, {_count(node, 'expression')})",), Kind(TEXT))
REPLACE = _with_constants(_replaced, Kind(TEXT, joined=True), _shrunk)
PAD = _with_constants(_padded, Kind(TEXT))
SPLIT = _with_constants(_split, Kind(TEXT))


def matching(written: str) -> Form:
    """Return whether a text has a pattern in it, as the engine writes it over ``{0}``, ``{1}``."""

    def form(node: Any, given: list[Typed], dialect: Dialect) -> Typed:
        flag = node.args.get("flag")
        if flag is not None and flag.name not in {"i", "c", ""}:
            raise Impossible("of the options of patterns there is 'i', for any case")
        pattern = translated(
            text_constant(node.expression, "the pattern"),
            dialect.pattern_end,
            any_case=isinstance(node, exp.RegexpILike) or (flag is not None and flag.name == "i"),
            whole=isinstance(node, exp.RegexpFullMatch),
        )
        return Typed(filled(written, dialect.name, [given[0].node, text(pattern)]), Kind(BOOLEAN))

    return form


def _function(name: str, node: type[Any], written: str, **more: Any) -> Entry:
    return Entry(name, node, written, _ONE, ("this",), **more)


def _pattern(node: type[Any], written: str) -> Entry:
    return _function("match", node, written, also=("expression", "flag"))


ENTRIES: tuple[Entry, ...] = (
    _function("lower", exp.Lower, "LOWER({})"),
    _function("upper", exp.Upper, "UPPER({})"),
    _function("length", exp.Length, "LENGTH({})"),
    Entry("trim", exp.Trim, "TRIM({})", _TWO, constants=_check_trim, also=("position",)),
    *(
        _function(
            "substring",
            exp.Substring,
            written,
            constants=_check_substring,
            also=("start", "length"),
        )
        for written in ("SUBSTRING({}, 2)", "SUBSTRING({}, 1, 3)")
    ),
    Entry("left", exp.Left, "LEFT({}, 2)", _ONE, expands=_left),
    _function("right", exp.Right, "RIGHT({}, 2)", also=("expression",)),
    _function(
        "replace",
        exp.Replace,
        "REPLACE({}, 'a', 'bcd')",
        constants=_check_replace,
        also=("expression", "replacement"),
    ),
    *(
        _function(
            "pad",
            exp.Pad,
            written,
            constants=_check_pad,
            also=("expression", "fill_pattern", "is_left"),
        )
        for written in ("LPAD({}, 5, '0')", "RPAD({}, 5, 'ab')")
    ),
    _function(
        "split",
        exp.SplitPart,
        "SPLIT_PART({}, '-', 2)",
        constants=_check_split,
        also=("delimiter", "part_index"),
    ),
    Entry("position", exp.StrPosition, "STRPOS({}, {})", _TWO, ("this", "substr")),
    Entry(
        "contains",
        exp.Contains,
        "CONTAINS({}, {})",
        _TWO,
        expands=means("this", "expression", text="STRPOS({0}, {1}) > 0"),
    ),
    Entry("starts with", exp.StartsWith, "STARTS_WITH({}, {})", _TWO),
    Entry("ends with", exp.EndsWith, "ENDS_WITH({}, {})", _TWO),
    *(
        Entry("like", node, f"{{}} {word} 'a%'", _TWO, also=("negate",))
        for node, word in ((exp.Like, "LIKE"), (exp.ILike, "ILIKE"))
    ),
    _pattern(exp.RegexpLike, "REGEXP_MATCHES({}, '^[a-z]+[0-9]{{2}}$')"),
    _pattern(exp.RegexpLike, "REGEXP_MATCHES({}, 'x|.1', 'i')"),
    _pattern(exp.RegexpFullMatch, "REGEXP_FULL_MATCH({}, '(?:ab)?.*')"),
    _pattern(exp.RegexpILike, "REGEXP_MATCHES({}, 'e', 'i')"),
)
"""Functions of texts."""
