"""Functions of texts and patterns, each in a form that cannot fail.

Texts may grow: those that a function makes longer are cut to a length first, on all engines alike,
so that no row fills the memory.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.expressions.conversions import Impossible, Typed, call, number, text
from tulle.sql.expressions.entry import (
    ALL,
    Entry,
    Form,
    always,
    filled,
    means,
    names,
    said,
    text_constant,
    whole_constant,
)
from tulle.sql.expressions.kinds import BOOLEAN, TEXT, WHOLE, Kind
from tulle.sql.expressions.patterns import translated

LONGEST_TEXT = 65536
"""What a function could make longer is cut so that the result has at most so many characters."""

_ONE = (names(TEXT),)
_TWO = (names(TEXT),) * 2


def _check_pattern(node: Any, given: list[Kind], dialect: str) -> None:
    pattern = node.expression
    if dialect == "duckdb":
        return
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or "\\" in pattern.name:
        raise Impossible("a pattern must be a constant without \\, such as LIKE 'a%'")


def _check_substring(node: Any, given: list[Kind], dialect: str) -> None:
    for name, value in node.args.items():
        if name == "this" or value is None:
            continue
        literal = isinstance(value, exp.Literal) and value.is_int and int(value.name) < 2**31
        if name not in {"start", "length"} or not literal:
            raise Impossible("its further arguments must be written as numbers")
        if name == "start" and int(value.name) == 0:
            raise Impossible("the first character is number 1, and what 0 is engines disagree on")


def _check_trim(node: Any, given: list[Kind], dialect: str) -> None:
    if node.args.get("collation"):
        raise Impossible("it takes a text and the characters to cut off")


def _count(node: Any, name: str) -> int:
    return whole_constant(node.args[name], 0, 2**31 - 1, "how many characters")


def _left(node: Any) -> Any:
    count = exp.Literal.number(_count(node, "expression"))
    return exp.Substring(this=node.this.copy(), start=exp.Literal.number(1), length=count)


def _grown(gives: str) -> Any:
    return lambda given, node, dialect: Kind(gives, joined=True)


def _each(text_of: Any, *, cut: Any = None) -> dict[str, Form | str]:
    """Return forms that depend on constants.

    ``text_of(node, dialect)`` gives the engine's SQL, and constants for what is not in the row.
    """

    def form_of(dialect: str) -> Form:
        def form(node: Any, given: list[Typed]) -> Any:
            value = given[0].node
            if cut is not None and cut(node) < LONGEST_TEXT:
                value = call("SUBSTRING", value, number(1), number(cut(node)))
            written, *constants = text_of(node, dialect)
            return filled(written, dialect, [value, *map(text, constants)])

        return form

    return {dialect: form_of(dialect) for dialect in ALL}


def _replaced(node: Any, dialect: str) -> tuple[str, ...]:
    return "REPLACE({0}, {1}, {2})", node.expression.name, node.args["replacement"].name


def _shrunk(node: Any) -> int:
    """Return to how many characters to cut a text in which something is replaced by more."""
    old, new = len(node.expression.name), len(node.args["replacement"].name)
    return LONGEST_TEXT if new <= old else LONGEST_TEXT * old // new


def _check_replace(node: Any, given: list[Kind], dialect: str) -> None:
    text_constant(node.expression, "what is replaced")
    new = node.args.get("replacement")
    if not (isinstance(new, exp.Literal) and new.is_string and len(new.name) <= 1000):
        raise Impossible("the replacement must be written as a text of at most 1000 characters")


def _check_pad(node: Any, given: list[Kind], dialect: str) -> None:
    whole_constant(node.expression, 0, 1000, "the length")
    text_constant(node.args.get("fill_pattern"), "what is filled in")


def _padded(node: Any, dialect: str) -> tuple[str, ...]:
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    return f"{name}({{0}}, {node.expression.name}, {{1}})", node.args["fill_pattern"].name


def _check_split(node: Any, given: list[Kind], dialect: str) -> None:
    text_constant(node.args["delimiter"], "the delimiter")
    whole_constant(node.args["part_index"], 1, 1000, "which part")


def _split(node: Any, dialect: str) -> tuple[str, ...]:
    place = node.args["part_index"].name
    return f"SPLIT_PART({{0}}, {{1}}, {place})", node.args["delimiter"].name


_MATCHING = {
    "duckdb": "REGEXP_MATCHES({0}, {1})",
    "postgres": '{0} COLLATE "C" ~ {1}',
    "spark": "RLIKE({0}, {1})",
}


def _matching(node: Any, dialect: str) -> tuple[str, ...]:
    flag = node.args.get("flag")
    if flag is not None and flag.name not in {"i", "c", ""}:
        raise Impossible("of the options of patterns there is 'i', for any case")
    pattern = translated(
        text_constant(node.expression, "the pattern"),
        dialect,
        any_case=isinstance(node, exp.RegexpILike) or (flag is not None and flag.name == "i"),
        whole=isinstance(node, exp.RegexpFullMatch),
    )
    return _MATCHING[dialect], pattern


def _check_matching(node: Any, given: list[Kind], dialect: str) -> None:
    _matching(node, dialect)


def _function(node: type[Any], written: str, gives: Any, **more: Any) -> Entry:
    return Entry(node, written, _ONE, gives, parts=("this",), **more)


def _pattern(node: type[Any], written: str) -> Entry:
    return _function(
        node,
        written,
        always(BOOLEAN),
        forms=_each(_matching),
        constants=_check_matching,
        also=("expression", "flag"),
    )


ENTRIES: tuple[Entry, ...] = (
    _function(exp.Lower, "LOWER({})", always(TEXT), cannot_fail=True),
    _function(exp.Upper, "UPPER({})", always(TEXT), cannot_fail=True),
    _function(exp.Length, "LENGTH({})", always(WHOLE, 19), cannot_fail=True),
    Entry(
        exp.Trim,
        "TRIM({})",
        _TWO,
        always(TEXT),
        constants=_check_trim,
        also=("position",),
    ),
    *(
        _function(
            exp.Substring,
            written,
            always(TEXT),
            constants=_check_substring,
            also=("start", "length"),
        )
        for written in ("SUBSTRING({}, 2)", "SUBSTRING({}, 1, 3)")
    ),
    Entry(exp.Left, "LEFT({}, 2)", _ONE, expands=_left),
    _function(
        exp.Right,
        "RIGHT({}, 2)",
        always(TEXT),
        forms=_each(lambda node, dialect: (f"RIGHT({{0}}, {_count(node, 'expression')})",)),
        also=("expression",),
    ),
    _function(
        exp.Replace,
        "REPLACE({}, 'a', 'bcd')",
        _grown(TEXT),
        forms=_each(_replaced, cut=_shrunk),
        constants=_check_replace,
        also=("expression", "replacement"),
    ),
    *(
        _function(
            exp.Pad,
            written,
            always(TEXT),
            forms=_each(_padded),
            constants=_check_pad,
            also=("expression", "fill_pattern", "is_left"),
        )
        for written in ("LPAD({}, 5, '0')", "RPAD({}, 5, 'ab')")
    ),
    _function(
        exp.SplitPart,
        "SPLIT_PART({}, '-', 2)",
        always(TEXT),
        forms=_each(_split),
        constants=_check_split,
        also=("delimiter", "part_index"),
    ),
    Entry(
        exp.StrPosition,
        "STRPOS({}, {})",
        _TWO,
        always(WHOLE, 19),
        said(
            duckdb="STRPOS({0}, {1})",
            postgres='STRPOS({0} COLLATE "C", {1} COLLATE "C")',
            spark="INSTR({0}, {1})",
        ),
        ("this", "substr"),
    ),
    Entry(
        exp.Contains,
        "CONTAINS({}, {})",
        _TWO,
        expands=means("this", "expression", text="STRPOS({0}, {1}) > 0"),
    ),
    Entry(exp.StartsWith, "STARTS_WITH({}, {})", _TWO, always(BOOLEAN)),
    Entry(
        exp.EndsWith,
        "ENDS_WITH({}, {})",
        _TWO,
        always(BOOLEAN),
        said(
            duckdb="SUFFIX({0}, {1})",
            postgres="STARTS_WITH(REVERSE({0}), REVERSE({1}))",
            spark="ENDSWITH({0}, {1})",
        ),
    ),
    *(
        Entry(
            node,
            f"{{}} {word} 'a%'",
            _TWO,
            always(BOOLEAN),
            constants=_check_pattern,
            cannot_fail=True,
            also=("negate",),
        )
        for node, word in ((exp.Like, "LIKE"), (exp.ILike, "ILIKE"))
    ),
    _pattern(exp.RegexpLike, "REGEXP_MATCHES({}, '^[a-z]+[0-9]{{2}}$')"),
    _pattern(exp.RegexpLike, "REGEXP_MATCHES({}, 'x|.1', 'i')"),
    _pattern(exp.RegexpFullMatch, "REGEXP_FULL_MATCH({}, '(?:ab)?.*')"),
    _pattern(exp.RegexpILike, "REGEXP_MATCHES({}, 'e', 'i')"),
)
"""Functions of texts."""
