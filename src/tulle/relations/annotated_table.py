"""Small annotated tables and the positive algebra on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tulle.core.errors import InputError
from tulle.core.validate import counted
from tulle.relations.annotations import NEVER, Annotation, Participant, either, together

Row = tuple[Any, ...]


class AnnotatedTable:
    """Rows with named columns, each annotated with the participants that it needs.

    The operations are those of positive relational algebra; each returns a new table whose
    annotations are safe: when a participant leaves the inputs, what results is the output with
    that participant struck out, by rewritings that leave the relaxation unchanged. There is no
    difference: it is not monotone. Custodian side: ``repr`` shows the columns only.

    Example:
        >>> both = Participant("ann") & Participant("bob")
        >>> friends = AnnotatedTable.of(["a", "b"], {("ann", "bob"): both})
        >>> met = friends.join(friends.rename({"a": "b", "b": "c"}))
        >>> len(met)
        0
    """

    def __init__(self, columns: Sequence[str], rows: Mapping[Row, Annotation]) -> None:
        self.columns = tuple(columns)
        if len(set(self.columns)) != len(self.columns):
            raise InputError(f"Columns must be distinct; got {', '.join(self.columns)}.")
        self.rows = {row: note for row, note in rows.items() if note != NEVER}
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InputError(f"Every row must have {counted(len(self.columns), 'value')}.")

    @classmethod
    def of(
        cls, columns: Sequence[str], rows: Mapping[Row, Annotation] | Iterable[tuple[Row, Any]]
    ) -> AnnotatedTable:
        """Build a table; an owner that is not an annotation counts as one participant."""
        items = rows.items() if isinstance(rows, Mapping) else rows
        notes: dict[Row, Annotation] = {}
        for row, owner in items:
            note = owner if isinstance(owner, Annotation) else Participant(owner)
            # The same row from two owners is there when either is.
            notes[row] = either(notes[row], note) if row in notes else note
        return cls(columns, notes)

    def union(self, other: AnnotatedTable) -> AnnotatedTable:
        """Return the rows of both; a row in both is there when either is."""
        if set(self.columns) != set(other.columns):
            raise InputError(
                f"A union needs equal columns; got {self.columns} and {other.columns}."
            )
        return AnnotatedTable.of(
            self.columns, [*self.rows.items(), *other.project(self.columns).rows.items()]
        )

    def project(self, columns: Sequence[str]) -> AnnotatedTable:
        """Return some columns; rows that fall together are there when any of them is."""
        places = [self._place(column) for column in columns]
        return AnnotatedTable.of(
            columns, [(tuple(row[p] for p in places), note) for row, note in self.rows.items()]
        )

    def select(self, keep: Callable[[Mapping[str, Any]], bool]) -> AnnotatedTable:
        """Return the rows for which the condition is true."""
        return AnnotatedTable(
            self.columns,
            {r: n for r, n in self.rows.items() if keep(dict(zip(self.columns, r, strict=True)))},
        )

    def join(self, other: AnnotatedTable) -> AnnotatedTable:
        """Return the natural join; a joined row needs what both its rows need."""
        shared = [column for column in self.columns if column in other.columns]
        added = [column for column in other.columns if column not in self.columns]
        mine = [self._place(column) for column in shared]
        theirs = [other._place(column) for column in shared]
        extra = [other._place(column) for column in added]
        groups: dict[Row, list[tuple[Row, Annotation]]] = {}
        for row, note in other.rows.items():
            groups.setdefault(tuple(row[p] for p in theirs), []).append((row, note))
        joined: dict[Row, Annotation] = {}
        for row, note in self.rows.items():
            for match, also in groups.get(tuple(row[p] for p in mine), ()):
                joined[row + tuple(match[p] for p in extra)] = together(note, also)
        return AnnotatedTable((*self.columns, *added), joined)

    def rename(self, names: Mapping[str, str]) -> AnnotatedTable:
        """Return the table with columns renamed."""
        for name in names:
            self._place(name)
        return AnnotatedTable([names.get(column, column) for column in self.columns], self.rows)

    def without(self, participant: Any) -> AnnotatedTable:
        """Return the table after a participant has left."""
        return AnnotatedTable(
            self.columns, {r: n.without(participant) for r, n in self.rows.items()}
        )

    def normalise(self) -> AnnotatedTable:
        """Return the table with every annotation in disjunctive normal form."""
        return AnnotatedTable(
            self.columns, {row: note.normal_form() for row, note in self.rows.items()}
        )

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise InputError(
                f"There is no column {column!r}; the columns are {', '.join(self.columns)}."
            )
        return self.columns.index(column)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Table with columns {', '.join(self.columns)}: sealed>"
