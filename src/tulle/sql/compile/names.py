"""Names resolved against the schema, so that every column says which source it is from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from tulle.core.errors import QueryError, raise_alone
from tulle.core.validate import counted
from tulle.sql.compile.views import expand
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions.kinds import BOOLEAN, kind_of_column
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.ranges import Range
from tulle.sql.schema.schema import Schema

_NUMBERED = re.compile(r"_\d+")
_POSITIONS = {"line", "col", "start", "end"}


class Named:
    """A statement in which stars are written out and sources and columns have their own names."""

    def __init__(self, tree: exp.Expression, schema: Schema) -> None:
        self.schema = schema
        tree = expand(tree, schema)
        self._tables = {self.normal(table): table for table in schema.tables}
        if any(RESERVED in word.lower() for node in tree.walk() for word in _words(node)):
            raise QueryError(f"Names that start with {RESERVED} are reserved.")
        for given in tree.find_all(exp.TableAlias):
            if _NUMBERED.fullmatch(given.name):
                # Sources without a name get such names, and two of one name would be one.
                raise QueryError(
                    f"The alias {given.name} is reserved; choose a name with a letter."
                )
        self._check_tables(tree)
        self.resolved = resolve(tree, schema)
        """The statement with every name resolved and nothing else done to it; not to be changed."""
        self.tree: Any = self.resolved.copy()
        try:
            self._check_ambiguity()
            self._name_apart()
            # Types decide what a division of whole numbers means in another dialect.
            self.tree = annotate_types(self.tree, schema=schema.types, dialect=schema.dialect)
        except SqlglotError as error:
            raise_alone(QueryError(f"The query does not fit the schema: {error}"))
        self._check_correlation()
        self._used: dict[str, dict[str, None]] = {}
        for found in self.tree.find_all(exp.Column):
            self._used.setdefault(found.table, {})[found.name] = None

    def normal(self, name: str) -> str:
        """Return a catalogue's name as it is compared in this dialect."""
        identifier = exp.to_identifier(name, quoted=True)
        return str(normalize_identifiers(identifier, dialect=self.schema.dialect).name)

    def table(self, source: exp.Table) -> str:
        """Return the catalogue's name of a table in FROM.

        Raises:
            QueryError: when it is neither owned nor public.
        """
        found = self._tables.get(source.name)
        if found is None:
            self.schema.check_table(source.name)
            raise QueryError(f"There is no table {source.name}.")
        return found

    def ranges(self, table: str) -> dict[str, Range]:
        """Return the declared ranges of a table's columns, under the names used here."""
        declared = self.schema.ranges.get(table, {})
        return {self.normal(name): found for name, found in declared.items()}

    def truths(self, table: str) -> dict[str, Range]:
        """Return the columns of a table that are true or false: added up, they count 1 or 0."""
        dialect = self.schema.dialect
        return {
            self.normal(name): Range(0.0, 1.0)
            for name, written in self.schema.tables[table].items()
            if kind_of_column(written, dialect).name == BOOLEAN
        }

    def used(self, source: str) -> list[str]:
        """Return the columns of a source that the statement mentions anywhere."""
        return sorted(self._used.get(source, {}))

    def _check_tables(self, tree: exp.Expression) -> None:
        """Refuse unknown tables first: the parser would only miss their columns."""
        views = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        known = {name.lower() for name in self.schema.tables}
        for table in tree.find_all(exp.Table):
            if table.name.lower() not in known | views:
                self.schema.check_table(table.name)

    def _check_ambiguity(self) -> None:
        """Refuse the use of a name that two columns of a sub-select have.

        The parser leaves a star over such columns as it is.
        """
        for select in self.tree.find_all(exp.Select):
            if any(e.is_star for e in select.expressions) and not isinstance(
                select.parent, exp.Exists
            ):
                raise QueryError(
                    "SELECT * is ambiguous here: two columns have one name. List the columns, each "
                    "with a name of its own: SELECT x.a AS one, y.a AS other."
                )
        for scope in traverse_scope(self.tree):
            for name, source in scope.sources.items():
                if not isinstance(source, Scope):
                    continue
                listed: list[str] = getattr(source.expression, "named_selects", [])
                times = Counter(listed)
                for found in scope.columns:
                    if found.table == name and times[found.name] > 1:
                        raise QueryError(
                            f"Column {found.name} is ambiguous: the sub-select has "
                            f"{counted(times[found.name], 'column')} of that name. Give them names "
                            "of their own: SELECT x.a AS one, y.a AS other."
                        )

    def _name_apart(self) -> None:
        """Give columns of one name, which nobody can use, names of their own."""
        for select in self.tree.find_all(exp.Select):
            if select is self.tree:
                continue
            taken: set[str] = set()
            for place, expression in enumerate(list(select.expressions)):
                if expression.alias_or_name in taken:
                    name = f"{RESERVED}_again_{place}"
                    expression.replace(exp.alias_(expression.unalias().copy(), name, quoted=True))
                taken.add(expression.alias_or_name)

    def _check_correlation(self) -> None:
        """Refuse sub-selects in FROM, and sides of unions, that look at rows beside them."""
        for node in self.tree.find_all(exp.Subquery, exp.CTE, exp.SetOperation):
            in_condition = isinstance(node, exp.Subquery) and not isinstance(
                node.parent, exp.From | exp.Join
            )
            if in_condition:
                continue
            inside = {
                source.alias_or_name
                for source in node.find_all(exp.Table, exp.Subquery)
                if source is not node
            }
            for found in node.find_all(exp.Column):
                # ORDER BY may name what is selected.
                if found.table and found.table not in inside:
                    raise QueryError(
                        f"LATERAL is not supported: the sub-select uses {found.name} of a source "
                        "beside it. Join it with ON or WHERE, or use EXISTS."
                    )


def _words(node: Any) -> Iterator[str]:
    """Yield the names and texts that are written at a node itself."""
    yield from (value for value in node.args.values() if isinstance(value, str))


def resolve(tree: exp.Expression, schema: Schema) -> Any:
    """Return a copy in which every column says which source it is from, and stars are written out.

    Raises:
        QueryError: when the statement does not fit the schema.
    """
    plain = without_schemas(tree.copy(), schema)
    known: dict[str, Any] = {"dialect": schema.dialect, "schema": schema.types}
    try:
        if any(isinstance(one.this, exp.Star) for one in plain.find_all(exp.Column)):
            # Where sources get names of their own, t.* would still be of the former name.
            plain = qualify(plain, **known, quote_identifiers=False, validate_qualify_columns=False)
        resolved = qualify(plain, **known, canonicalize_table_aliases=True)
    except SqlglotError as error:
        raise_alone(QueryError(f"The query does not fit the schema: {error}"))
    if any(join.method == "NATURAL" for join in resolved.find_all(exp.Join)):
        raise QueryError(
            "NATURAL JOIN is not supported here: the tables have no column in common, or their "
            "columns are not known. Name the columns: JOIN ... USING (...)."
        )
    for node in resolved.walk():
        if node._meta is not None and not node._meta.keys() - _POSITIONS:
            # Where a word stood in the text is of no more use, and would be copied ever again.
            node._meta = None
    return resolved


def without_schemas(tree: Any, schema: Schema) -> Any:
    """Return a statement without schemas in front of tables, which must be those connected to.

    Raises:
        QueryError: naming a table of another schema.
    """
    views = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    places = {name.lower(): place for name, place in schema.places.items()}
    for node in tree.find_all(exp.Table, exp.Column):
        given = [node.args[key] for key in ("catalog", "db") if node.args.get(key)]
        if not given:
            continue
        table = node.table if isinstance(node, exp.Column) else node.name
        place = places.get(table.lower()) or (dialect_of(schema.dialect).usual_schema,)
        written = [part.name.lower() for part in given]
        known = [part.lower() for part in place][-len(written) :]
        if written != known or table.lower() in views:
            raise QueryError(
                f"{node.sql()} is not supported: tables are those of the schema {place[-1]}, which "
                "was the current one when the database was connected, and a view of WITH may not "
                "have their name."
            )
        for key in ("catalog", "db"):
            node.set(key, None)
    return tree
