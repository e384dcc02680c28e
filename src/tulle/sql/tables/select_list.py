"""The parts of a statement with several aggregates, before any schema is known.

HAVING, ORDER BY, LIMIT and whatever is computed with aggregates are taken off the statement: they
are worked out on the noisy table. What is left says which rows there are, and each aggregate is
asked of those rows by itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self

from sqlglot import Dialect, exp

from tulle.core.dataset import Facts
from tulle.core.errors import QueryError
from tulle.core.query import Query, Shape
from tulle.sql.question.aggregate import SPREADS, Groups, is_named_quantile, quantile_of
from tulle.sql.question.check import check_group, check_statement, refuse
from tulle.sql.question.parse import SqlQuestion, parse_statement
from tulle.sql.question.scalars import as_written, check_scalar

Kind = Literal["count", "sum", "average", "variance", "quantile"]

AGGREGATES = (
    "COUNT, COUNT_IF, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, MIN, MAX, MEDIAN, "
    "QUANTILE_CONT(x, q) and PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)"
)

_AFTER = ("having", "qualify", "order", "limit", "offset")
"""Clauses that are worked out on the noisy table."""

_CALLS = (exp.AggFunc, exp.Filter, exp.WithinGroup)


_ROWS_SHOWN = "it shows single rows. Count what there is: x, COUNT(*) with GROUP BY x"
_TRUTHS = "one row would decide it. Ask how many there are: COUNT_IF(...)"
_INSTEAD: dict[type[Any], str] = {
    exp.Mode: "ask for x, COUNT(*) AS n with GROUP BY x ORDER BY n DESC LIMIT 1",
    **dict.fromkeys((exp.GroupConcat, exp.ArrayAgg, exp.AnyValue, exp.First), _ROWS_SHOWN),
    **dict.fromkeys((exp.LogicalOr, exp.LogicalAnd), _TRUTHS),
    **dict.fromkeys(
        (exp.Corr, exp.CovarPop, exp.CovarSamp),
        "ask for SUM(x * y), AVG(x), AVG(y), VAR_POP(x) and VAR_POP(y) in one statement, and "
        "compute it from the released table",
    ),
    **dict.fromkeys(
        (exp.ArgMax, exp.ArgMin),
        "it shows a single row; inside one person's rows, in a sub-select with GROUP BY the owner, "
        "it is supported",
    ),
}
"""For some aggregates that are not supported: why, or what would do."""


@dataclass(frozen=True)
class Call:
    """One aggregate as it was written; what FILTER leaves out is NULL in the arguments."""

    kind: Kind
    arguments: tuple[Any, ...] = ()
    distinct: bool = False
    sample: bool = False
    root: bool = False
    at: Fraction = Fraction(1, 2)
    """For a quantile: which; 0 is the least value and 1 the greatest."""


class Order(NamedTuple):
    """One column of ORDER BY."""

    expression: Any
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class SelectList:
    """What a statement selects, and what is done to the table afterwards."""

    rows: exp.Select
    """The statement with nothing selected but the keys."""
    keys: tuple[tuple[str, Any], ...]
    """Names of the columns of GROUP BY, in the order of ``groups``, and what they stand for."""
    columns: tuple[tuple[str, Any], ...]
    having: Any
    qualify: Any
    order: tuple[Order, ...]
    limit: int | None
    offset: int

    def calls(self) -> dict[Any, Call]:
        """Return every aggregate that is mentioned anywhere."""
        found: dict[Any, Call] = {}
        for expression in self.expressions():
            for node in aggregates_in(expression):
                found[node] = read_call(node)
        return found

    def expressions(self) -> Iterator[Any]:
        """Yield whatever is worked out on the noisy table."""
        yield from (expression for _, expression in self.columns)
        yield from (one.expression for one in self.order)
        yield from (one for one in (self.having, self.qualify) if one is not None)

    def after(self, dialect: str) -> tuple[str, ...]:
        """Return, as text, the clauses that are worked out after the noise."""
        listed = []
        for word, clause in (("HAVING", self.having), ("QUALIFY", self.qualify)):
            if clause is not None:
                listed.append(f"{word} {clause.sql(dialect=dialect)}")
        windows = (node for _, e in self.columns for node in e.find_all(exp.Window))
        listed += [node.sql(dialect=dialect) for node in dict.fromkeys(windows)]
        if self.order:
            ends = [
                one.expression.sql(dialect=dialect) + (" DESC" if one.descending else "")
                for one in self.order
            ]
            listed.append(f"ORDER BY {', '.join(ends)}")
        if self.limit is not None:
            listed.append(f"LIMIT {self.limit}")
        if self.offset:
            listed.append(f"OFFSET {self.offset}")
        return tuple(listed)

    def statement(self, aggregate: Any, dialect: str) -> str:
        """Return the text that asks for one aggregate of these rows.

        Raises:
            QueryError: when the text would not say the same.
        """
        return self.parsed(aggregate, dialect)[0]

    def parsed(self, aggregate: Any, dialect: str) -> tuple[str, Any]:
        """Return the text that asks for one aggregate of these rows, and the same parsed.

        Raises:
            QueryError: when the text would not say the same.
        """
        tree = self.rows.copy()
        tree.append("expressions", aggregate.copy())
        text = str(_writer(dialect)(dialect=dialect).generate(tree, copy=True))
        read = parse_statement(text, dialect)
        if read != tree:
            raise QueryError(
                f"{shown(aggregate)} cannot be asked together with others here: the statement "
                "would change when it is written for one aggregate. Ask for it by itself."
            )
        return text, read


class TableQuestion(SqlQuestion):
    """A question in SQL whose answer is a table."""

    shape: ClassVar[Shape] = "object"
    integral: ClassVar[bool] = False

    @property
    @abstractmethod
    def chosen(self) -> SelectList:
        """The statement taken apart."""

    @property
    @abstractmethod
    def _bound_as(self) -> Any:
        """What a public schema says, with that ``schema``; None before the question is bound."""

    @abstractmethod
    def counted(self) -> Query:
        """Return the question how many rows there are, for showing whose they are."""

    @property
    def listed(self) -> str:
        """The names of the columns, in words."""
        *most, last = [name for name, _ in self.chosen.columns]
        return f"{', '.join(most)} and {last}" if most else last

    def bind(self, public: Any, facts: Facts | None = None) -> Self:
        """Return the question with what has to be bought from a database.

        Raises:
            QueryError: when the schema, or the engine by its schema, does not accept it.
        """
        if public.kind != self.kind:
            return self
        known = self._bound_as
        return self if known is not None and known.schema is public.schema else self._bind(public)

    @abstractmethod
    def _bind(self, public: Any) -> Self:
        """Return the question bound to a database, by its public side."""


@lru_cache(maxsize=8)
def _writer(dialect: str) -> Any:
    """Return what writes SQL as it was read.

    Otherwise COUNT(DISTINCT a, b) is written as a CASE for engines that do not know it.
    """
    usual = Dialect.get_or_raise(dialect).generator_class
    return type("_Writer", (usual,), {"MULTI_ARG_DISTINCT": True})


def is_plain(tree: Any) -> bool:
    """Say whether a statement is one COUNT or SUM and nothing that is done to it afterwards."""
    if not isinstance(tree, exp.Select):
        return True
    if any(tree.args.get(name) for name in _AFTER):
        return False
    found = [e.unalias() for e in tree.expressions if is_computed(e)]
    return len(found) == 1 and type(found[0]) in {exp.Count, exp.Sum}


def aggregate_of(tree: exp.Select) -> Any:
    """Return the aggregate of a plain statement."""
    return next(e.unalias() for e in tree.expressions if has_aggregate(e))


def has_aggregate(expression: Any) -> bool:
    """Say whether an expression has an aggregate in it."""
    return next(aggregates_in(expression), None) is not None


def is_computed(expression: Any) -> bool:
    """Say whether an expression is worked out on the noisy table: it is no key."""
    return has_aggregate(expression) or expression.find(exp.Window) is not None


def aggregates_in(expression: Any) -> Iterator[Any]:
    """Yield the aggregates of an expression, from the outside; sub-selects are left alone.

    What a window does with the rows of the answer is none of them.
    """
    over = isinstance(expression.parent, exp.Window) and expression.arg_key == "this"
    if (isinstance(expression, _CALLS) and not over) or is_named_quantile(expression):
        yield expression
        return
    if isinstance(expression, exp.Query):
        return
    for child in expression.iter_expressions():
        yield from aggregates_in(child)


def key_names(tree: exp.Select) -> tuple[str, ...]:
    """Return what the columns of GROUP BY are called in the answer.

    Raises:
        QueryError: when two of them are called alike.
    """
    named = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    listed = [_by_place(tree, e, "GROUP BY") for e in tree.args["group"].expressions]
    names = tuple(_key_name(tree, e, _meant(e, named)) for e in listed)
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"Two columns of GROUP BY are called {name}: choose names with AS.")
    return names


def read_select_list(
    tree: exp.Select, groups: Groups, functions: Collection[str], dialect: str
) -> SelectList:
    """Take a statement apart.

    Raises:
        QueryError: naming the part that is not supported.
    """
    if tree.args.get("distinct"):
        if not any(map(is_computed, tree.expressions)):
            refuse(
                "SELECT DISTINCT of columns",
                "which values there are is private. Count them (COUNT(DISTINCT x)), or ask for "
                "x, COUNT(*) with GROUP BY x and a delta: values that few people have stay hidden",
            )
        refuse("SELECT DISTINCT of aggregates", "groups are distinct already; leave it out")
    rows = tree.copy()
    for name in _AFTER:
        rows.set(name, None)
    plain = [e for e in rows.expressions if not is_computed(e)]
    named = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    group = rows.args.get("group")
    keys: dict[str, Any] = {}
    if group is not None:
        check_group(group)
        listed = [_by_place(tree, e, "GROUP BY") for e in group.expressions]
        group.set("expressions", [e.copy() for e in listed])
        for expression in listed:
            meant = _meant(expression, named)
            keys[_key_name(tree, expression, meant)] = meant
    rows.set("expressions", [e.copy() for e in plain])
    names = [(name, keys.get(name.lower())) for name, _ in groups]
    columns: dict[str, Any] = {}
    for expression in tree.expressions:
        if not is_computed(expression):
            continue
        name = expression.alias if isinstance(expression, exp.Alias) else shown(expression, dialect)
        for taken in (name, f"{name}_low", f"{name}_high"):
            if taken.lower() in {n.lower() for n in (*columns, *keys)}:
                raise QueryError(
                    f"Two columns of the answer would be called {taken}. Each aggregate has "
                    "name, name_low and name_high: choose other names with AS."
                )
        columns[name] = _expanded(expression.unalias(), named | {name.lower(): None})
        columns[f"{name}_low"] = columns[f"{name}_high"] = None
    asked = tuple((name, found) for name, found in columns.items() if found is not None)
    if not any(has_aggregate(found) for _, found in asked):
        _refuse_rows(tree)
    order = tree.args.get("order")
    having, qualify = tree.args.get("having"), tree.args.get("qualify")
    found = SelectList(
        rows,
        tuple(names),
        asked,
        None if having is None else _expanded(having.this, named),
        None if qualify is None else _expanded(qualify.this, named),
        tuple(_ordered(tree, e, named) for e in (order.expressions if order else ())),
        _whole(tree, "limit"),
        _whole(tree, "offset") or 0,
    )
    for call in found.calls().values():
        for argument in call.arguments:
            check_scalar(argument, "the aggregate", functions)
    return found


def read_call(node: Any) -> Call:
    """Read one aggregate, with its FILTER or WITHIN GROUP.

    Raises:
        QueryError: when it is of another kind.
    """
    if isinstance(node, exp.Filter):
        where = node.expression.this
        inner = read_call(node.this)
        if not inner.arguments:
            return Call("count", (_where(where, exp.Literal.number(1)),))
        kept = tuple(_where(where, argument) for argument in inner.arguments)
        return Call(inner.kind, kept, inner.distinct, inner.sample, inner.root, inner.at)
    asked = quantile_of(node)
    if asked is not None:
        return Call("quantile", (asked[0],), at=asked[1])
    if isinstance(node, exp.CountIf):
        return Call("count", (_where(node.this, exp.Literal.number(1)),))
    inner = node.this
    if inner is None:
        refuse(f"{shown(node)} without an argument", "write COUNT(*), or SUM(column)")
    distinct = isinstance(inner, exp.Distinct)
    if distinct and inner.args.get("on"):
        refuse("DISTINCT ON", "another row is chosen when somebody leaves")
    arguments = tuple(inner.expressions if distinct else [inner, *node.expressions])
    if type(node) is exp.Count and not distinct and isinstance(inner, exp.Star):
        return Call("count")
    if len(arguments) != 1 and not (type(node) is exp.Count and distinct):
        refuse(shown(node), "it takes one argument")
    if type(node) in {exp.Min, exp.Max}:
        return Call("quantile", arguments, at=Fraction(int(type(node) is exp.Max)))
    if type(node) in SPREADS and not distinct:
        sample, root = SPREADS[type(node)]
        return Call("variance", arguments, sample=sample, root=root)
    kinds: dict[type[Any], Kind] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "average"}
    if type(node) not in kinds:
        instead = _INSTEAD.get(type(node))
        refuse(shown(node), instead or f"these aggregates are: {AGGREGATES}")
    return Call(kinds[type(node)], arguments, distinct)


def _where(condition: Any, value: Any) -> Any:
    """Return the value where the condition holds, and NULL elsewhere."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _by_place(tree: exp.Select, expression: Any, clause: str) -> Any:
    """Return what a number in GROUP BY or ORDER BY stands for."""
    if not (isinstance(expression, exp.Literal) and expression.is_int):
        return expression
    place = int(expression.name)
    if not 1 <= place <= len(tree.expressions):
        raise QueryError(f"{clause} {place}: there is no such column.")
    return tree.expressions[place - 1].unalias()


def _meant(expression: Any, named: dict[str, Any]) -> Any:
    if isinstance(expression, exp.Column) and not expression.table:
        return named.get(expression.name.lower(), expression)
    return expression


def _key_name(tree: exp.Select, expression: Any, meant: Any) -> str:
    for selected in tree.expressions:
        if isinstance(selected, exp.Alias) and selected.this == meant:
            return str(selected.alias).lower()
    return str(meant.name).lower() if isinstance(meant, exp.Column) else shown(expression).lower()


def _expanded(expression: Any, named: dict[str, Any]) -> Any:
    """Return an expression with names of selected aggregates replaced by what they stand for."""
    whole = exp.Paren(this=expression.copy())
    for node in list(whole.find_all(exp.Column)):
        meant = None if node.table else named.get(node.name.lower())
        if meant is not None and has_aggregate(meant) and not _is_argument(node):
            node.replace(exp.Paren(this=meant.copy()))
    return whole.this


def _is_argument(node: Any) -> bool:
    """Say whether something stands inside an aggregate, where names are those of the rows."""
    above = node.find_ancestor(*_CALLS)
    while above is not None and isinstance(above.parent, exp.Window) and above.arg_key == "this":
        above = above.find_ancestor(*_CALLS)
    return above is not None


def _refuse_rows(tree: exp.Select) -> NoReturn:
    """Refuse a statement that asks for rows and not for numbers.

    Raises:
        QueryError: always.
    """
    pivot = tree.find(exp.Pivot)
    if pivot is not None:
        check_statement(pivot, grouped=False, functions=())
    unknown = next((e.find(exp.Anonymous) for e in tree.expressions if e.find(exp.Anonymous)), None)
    if unknown is not None:
        refuse(shown(unknown), f"if it is an aggregate, these are: {AGGREGATES}")
    if tree.args.get("group") is not None:
        raise QueryError(
            "The statement selects no aggregate: which groups there are is private. Add COUNT(*), "
            "and give a delta, so that groups of few people stay hidden."
        )
    if any(e.find(exp.AggFunc) for s in tree.find_all(exp.Select) for e in s.expressions):
        raise QueryError(
            "The statement selects no aggregate itself, and does not only compute with an "
            "aggregated SELECT. Around one that stands alone in FROM, written there or in WITH, "
            "these are supported: expressions and windows of its columns, WHERE, QUALIFY, ORDER BY "
            "and LIMIT. For the rest ask for each answer by itself and combine what is released."
        )
    raise QueryError(
        "The statement selects no aggregate: rows of people are never shown. Supported: "
        f"{AGGREGATES}."
    )


def _ordered(tree: exp.Select, node: Any, named: dict[str, Any]) -> Order:
    expression = _expanded(_by_place(tree, node.this, "ORDER BY"), named)
    return Order(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _whole(tree: exp.Select, clause: str) -> int | None:
    found = tree.args.get(clause)
    if found is None:
        return None
    number = found.args.get("count") or found.expression
    options = found.args.get("limit_options")
    if options is not None and any(options.args.get(n) for n in ("percent", "with_ties")):
        refuse(f"{clause.upper()} with PERCENT or TIES", "write a whole number of rows")
    if not (isinstance(number, exp.Literal) and number.is_int):
        written = "without a number" if number is None else shown(number)
        refuse(f"{clause.upper()} {written}", "write a whole number")
    return int(number.name)


def shown(node: Any, dialect: str = "") -> str:
    """Return an expression as text, short."""
    text = as_written(node.unalias(), dialect or None)
    return text if len(text) <= 60 else text[:57] + "..."
