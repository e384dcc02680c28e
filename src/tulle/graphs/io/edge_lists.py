"""Parsing edge lists in text files.

Each line is read by itself: which delimiter it has, whether it is a comment, who its two nodes
are. Only the first line with data may be something else, a header; see :meth:`EdgeList.header`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tulle.core.errors import InputError, raise_alone
from tulle.core.validate import counted
from tulle.graphs.io.labels import from_text, names_a_column
from tulle.graphs.io.node_sets import Declared
from tulle.graphs.io.pairs import FactorisedPairs, Progress, number_ids, number_names

_PIECE = 1 << 24
_TOO_LARGE = 2**63 - 1
_COMMENTS = ("#", "%", "//")
_QUOTED = re.compile(r'"[^"]*"')
_WHOLE = re.compile(r"0|[1-9][0-9]{0,999}")
_DIGITS = re.compile(r"[0-9]+")
_NOT_WHOLE = re.compile(r"-[0-9]+|[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")
_UNDECODED = "surrogateescape"
_UNDECODABLE = re.compile("[\\x00\\ud800-\\udfff]")
"""How bytes that are no text are decoded, and by what they are found."""

_NUMERIC = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


class EdgeList:
    """One edge list: the settings and the two ways to parse it."""

    def __init__(
        self,
        file: Path,
        data: bytes,
        *,
        nodes: Declared,
        columns: tuple[int | str, int | str] | None,
        header: bool | None,
        delimiter: str | None,
        ignore: frozenset[str],
        drop: bool,
        report: Progress,
    ) -> None:
        self.drop, self.bad = drop, 0
        self.file, self.data, self.nodes, self.report = file, data, nodes, report
        self.columns, self.stated, self.delimiter = columns, header, delimiter
        if columns is not None and isinstance(columns[0], str):
            if header is False:
                raise InputError(
                    "columns= has names, which stand in a header, and header=False says that "
                    "there is none. Pass column numbers, from 0."
                )
            self.stated = True
        self.more = columns is not None or "weights" in ignore
        self.names: list[str] | None = None

    def pairs(self) -> FactorisedPairs:
        """Return the node numbers of all pairs, with labels if the ids are not 0 to n - 1."""
        # Of all lines alike: comments are not parsed, and numbers are parsed without decoding.
        if not self.drop:
            self._check_text()
        begin, skipped, places = self.header()
        found = None
        if places in ((0, 1), (1, 0)):
            found = self._parse_numbers(begin, skipped, places)
        if found is None:
            found = self._parse_labels(begin, skipped, places)
        names = self.names or []
        if len(names) > max(places):
            found = replace(found, header=tuple(names[place] for place in places))
        return replace(found, bad=self.bad)

    def header(self) -> tuple[int, int, tuple[int, int]]:
        """Return where the data begins, how many lines are before it, and the two columns.

        Whether the first line with data is a header is said by ``header``. Where it is not said, a
        first line of two usual names of columns, from a fixed list
        (:func:`~tulle.graphs.io.labels.names_a_column`), is a header: it is no edge, whatever
        follows. Without one all ids must be digits. A file with other ids is refused in the same
        words whatever it holds (:meth:`_ask_for_header`), and so is a declared set of nodes that
        has other names: a guess would hang on single edges.
        """
        line = self._first_line()
        if self.stated is None and _has_words(self.nodes) and not self._begins_with_names(line):
            raise self._ask_for_header()
        if line is None or self.stated is False:
            return 0, 0, self._places([])
        number, end, text = line
        if self.stated is None and self.drop:
            return self._usual_header(number, end, text)
        fields = self._fields(text, number)
        places = self._places(fields if self.stated else [])
        headed: bool | None = self.stated
        if headed is None:
            if len(fields) <= max(places):
                raise self._too_few(number, len(fields), max(places))
            headed = not any(_NUMERIC.fullmatch(fields[place]) for place in places)
            if headed and not all(names_a_column(fields[place]) for place in places):
                raise self._ask_for_header()
        if not headed:
            return 0, 0, places
        self.names = fields
        return end, number, places

    def _begins_with_names(self, line: tuple[int, int, str] | None) -> bool:
        """Say whether the first line with data is one of two usual names of columns."""
        return line is not None and self._usual_header(*line)[0] > 0

    def _usual_header(self, number: int, end: int, text: str) -> tuple[int, int, tuple[int, int]]:
        """Return where the data begins when lines of other words are left out.

        A line of two usual names is a header, or it is left out: it is no edge either way.
        """
        places = self._places([])
        try:
            fields = self._fields(text, number)
        except InputError:
            return 0, 0, places
        if len(fields) <= max(places) or not all(names_a_column(fields[p]) for p in places):
            return 0, 0, places
        self.names = fields
        return end, number, places

    def _first_line(self) -> tuple[int, int, str] | None:
        """Return the first line with data as (line number, where it ends, text)."""
        place, number = 0, 0
        while place < len(self.data):
            end = self.data.find(b"\n", place)
            end = len(self.data) if end < 0 else end + 1
            number += 1
            text = self.data[place:end].decode("utf-8", _UNDECODED).strip()
            if _has_data(text):
                return number, end, text
            place = end
        return None

    def _check_text(self) -> None:
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            number = self.data.count(b"\n", 0, error.start) + 1
            raise_alone(self._error(number, "not UTF-8; save the file as UTF-8"))

    def _places(self, names: list[str]) -> tuple[int, int]:
        if self.columns is None:
            return 0, 1
        first, second = self.columns
        if isinstance(first, int) and isinstance(second, int):
            return first, second
        for name in (first, second):
            if names.count(str(name)) != 1:
                raise InputError(
                    f"{self.file}: the header does not name one column {name!r}; pass column "
                    "numbers, from 0, instead."
                )
        return names.index(str(first)), names.index(str(second))

    def _parse_numbers(
        self, begin: int, skipped: int, places: tuple[int, int]
    ) -> FactorisedPairs | None:
        """Parse whole numbers with the compiled parser; None when there is something else.

        A line that it leaves is read as :meth:`_parse_labels` reads every line.
        """
        from tulle.graphs.io.number_parser import ANY, DONE, parse_pairs

        text = np.frombuffer(self.data, dtype=np.uint8)
        pairs = np.empty((self.data.count(b"\n", begin) + 1, 2), dtype=np.int64)
        code = ANY if self.delimiter is None else ord(self.delimiter)
        below = self.nodes if isinstance(self.nodes, int) else _TOO_LARGE
        filled, bad, place, reached, number = 0, 0, begin, begin, skipped + 1
        while place < len(text):
            stop = self.data.find(b"\n", min(place + _PIECE, len(text)))
            stop = len(text) if stop < 0 else stop + 1
            filled, odd = parse_pairs(text, place, stop, code, self.more, below, pairs, filled)
            place = stop
            if odd == DONE:
                self.report(0.4 + 0.4 * place / len(text), "parsing")
                continue
            end = self.data.find(b"\n", odd)
            place = len(text) if end < 0 else end + 1
            number += self.data.count(b"\n", reached, odd)
            reached = odd
            line = self.data[odd:place].decode("utf-8", _UNDECODED).strip()
            if not _has_data(line):
                continue
            try:
                ends = [from_text(token) for token in self._pair(number, line, places)]
            except InputError:
                if not self.drop:
                    raise
                bad += 1
                continue
            if not all(isinstance(label, int) and label < _TOO_LARGE for label in ends):
                return None
            pairs[filled] = ends
            filled += 1
        self.bad = bad
        return number_ids(pairs[:filled], self.nodes)

    def _parse_labels(self, begin: int, skipped: int, places: tuple[int, int]) -> FactorisedPairs:
        one: list[str] = []
        two: list[str] = []
        for number, line in self._records(begin, skipped):
            try:
                u, v = self._pair(number, line, places)
            except InputError:
                if not self.drop:
                    raise
                self.bad += 1
                continue
            one.append(u)
            two.append(v)
        if isinstance(self.nodes, int):
            ends = np.array([one, two], dtype=np.int64).T.reshape(-1, 2)
            return number_ids(ends, self.nodes)
        labels = {token: from_text(token) for token in {*one, *two}}
        return number_names(
            [labels[token] for token in one], [labels[token] for token in two], self.nodes
        )

    def _pair(self, number: int, line: str, places: tuple[int, int]) -> tuple[str, str]:
        """Return the two ends that a line names, by that line alone.

        Raises:
            InputError: when it does not.
        """
        if not line.isprintable() and _UNDECODABLE.search(line):
            raise self._error(number, "it is not text in UTF-8")
        fields, least = self._fields(line, number), max(places) + 1
        if len(fields) < least:
            raise self._too_few(number, len(fields), least - 1)
        if len(fields) > 2 and not self.more:
            raise self._too_many(number)
        u, v = fields[places[0]], fields[places[1]]
        if not u or not v:
            raise self._error(number, "a node is missing (empty field)")
        if not (_WHOLE.fullmatch(u) and _WHOLE.fullmatch(v)):
            if _NOT_WHOLE.fullmatch(u) or _NOT_WHOLE.fullmatch(v):
                raise self._error(
                    number,
                    "a number that is negative or has a fraction; nodes are whole numbers from 0, "
                    "or names",
                )
            if isinstance(self.nodes, int):
                raise InputError(
                    f"{self.file}, line {number}: with nodes={self.nodes} every id must be a "
                    "whole number from 0 to nodes - 1. Leave nodes= out to read labels."
                )
            if self.stated is None and self.names is None and not _are_digits(u, v):
                raise self._ask_for_header()
        elif isinstance(self.nodes, int) and max(int(u), int(v)) >= self.nodes:
            raise self._outside_line(number)
        return u, v

    def _records(self, begin: int, skipped: int) -> Iterator[tuple[int, str]]:
        """Yield (line number, text) of each line with data."""
        lines = self.data[begin:].decode("utf-8", _UNDECODED).split("\n")
        for index, line in enumerate(lines):
            stripped = line.strip()
            if index % 200_000 == 0:
                self.report(0.4 + 0.4 * index / len(lines), "parsing")
            if _has_data(stripped):
                yield skipped + index + 1, stripped

    def _fields(self, line: str, number: int) -> list[str]:
        if line.count('"') % 2:
            raise self._error(number, "a quote is opened and not closed on the same line")
        try:
            return split(line, self.delimiter or _delimiter_of(line))
        except csv.Error:
            raise_alone(self._error(number, "the quoted fields cannot be told apart"))

    def _ask_for_header(self) -> InputError:
        return InputError(
            f"{self.file}: not all ids are numbers, so the first row may be a header or a link. "
            "Say which it is: header=True or header=False."
        )

    def _error(self, line: int, reason: str) -> InputError:
        return InputError(f"{self.file}, line {line}: {reason}.")

    def _too_few(self, line: int, fields: int = 1, place: int = 1) -> InputError:
        what = f"only {counted(fields, 'field')}"
        if place > 1 and fields > 1:
            return self._error(
                line, f"{what}, so there is no column {place}; columns are numbered from 0 on"
            )
        return InputError(
            f"{self.file}, line {line}: {what}; each line needs two nodes, separated by a tab, a "
            "semicolon, a comma or white space. Another delimiter is said with delimiter=."
        )

    def _too_many(self, line: int) -> InputError:
        return InputError(
            f"{self.file}, line {line}: more than two fields; is the graph weighted? Pick two "
            'columns with columns=(0, 1), or pass ignore=("weights",) to keep the first two.'
        )

    def _outside_line(self, line: int) -> InputError:
        return InputError(
            f"{self.file}, line {line}: an id outside 0 to nodes - 1 (nodes={self.nodes}). Leave "
            "nodes= out to take the ids as they occur."
        )


def _has_data(line: str) -> bool:
    return bool(line) and not line.startswith(_COMMENTS)


def _are_digits(first: str, second: str) -> bool:
    return bool(_DIGITS.fullmatch(first) and _DIGITS.fullmatch(second))


def _has_words(nodes: Declared) -> bool:
    """Say whether the declared nodes have names that are no numbers."""
    return isinstance(nodes, list) and not all(_DIGITS.fullmatch(str(label)) for label in nodes)


def _delimiter_of(line: str) -> str:
    """Return the delimiter of one line, by that line alone."""
    bare = _QUOTED.sub("", line) if '"' in line else line
    for delimiter in ("\t", ";", ","):
        if delimiter in bare:
            return delimiter
    return " "


def split(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; a space stands for any run of white space."""
    if '"' not in line:
        fields = line.split() if delimiter == " " else line.split(delimiter)
        return [field.strip() for field in fields]
    if delimiter == " ":
        line = re.sub(r"[ \t]+(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", " ", line)
    (fields,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True)
    return [field.strip() for field in fields]
