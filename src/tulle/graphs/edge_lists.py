"""Parsing edge lists in text files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tulle.core.errors import InputError, raise_alone
from tulle.graphs.data import Progress
from tulle.graphs.pairs import FactorisedPairs, number_ids, number_names

_PIECE = 1 << 24
_COMMENTS = ("#", "%", "//")
_HEADER_WORDS = re.compile(
    r"(from|to|source|src|target|dst|dest|destination|start|end|head|tail)(_?(node|user|id|node_?id))?"
    r"|(node|vertex|id|user|person|friend|member)_?[12ab]"
    r"|node|user|person|friend|neighbou?r|follower|followee"
)
_QUOTED = re.compile(r'"[^"]*"')
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")
_NOT_WHOLE = re.compile(r"-[0-9]+|[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")
_NUMERIC = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


class EdgeList:
    """One edge list: the settings and the two ways to parse it."""

    def __init__(
        self,
        file: Path,
        data: bytes,
        nodes: int | None,
        columns: tuple[int | str, int | str] | None,
        ignore: frozenset[str],
        report: Progress,
    ) -> None:
        self.file, self.data, self.nodes, self.report = file, data, nodes, report
        self.ignore, self.columns = ignore, columns

    def pairs(self) -> FactorisedPairs:
        """Return the node numbers of all pairs, with labels if the ids are not 0 to n - 1."""
        head = self._head()
        if not head:
            if self.nodes is None:
                raise InputError(
                    f"{self.file} holds no edges. If that is right, say how many nodes there are "
                    "with nodes=; otherwise check the file."
                )
            empty = np.empty(0, dtype=np.int64)
            return FactorisedPairs(self.nodes, empty, empty)
        delimiter = _sniff(head[0][2])
        header = self._is_header(head, delimiter)
        begin, skipped = (head[0][1], head[0][0]) if header else (0, 0)
        first, second = self._places(head[0][2], delimiter, header)
        more = self.columns is not None or "weights" in self.ignore
        if (first, second) in ((0, 1), (1, 0)):
            found = self._parse_numbers(begin, delimiter, more)
            if found is not None:
                return found
        return self._parse_labels(begin, skipped, delimiter, (first, second), more)

    def _head(self) -> list[tuple[int, int, str]]:
        """Return the first three lines with data as (line number, where it ends, text)."""
        head: list[tuple[int, int, str]] = []
        place, number = 0, 0
        while place < len(self.data) and len(head) < 3:
            end = self.data.find(b"\n", place)
            end = len(self.data) if end < 0 else end + 1
            number += 1
            text = self._decode(self.data[place:end], number).strip()
            if text and not text.startswith(_COMMENTS):
                head.append((number, end, text))
            place = end
        return head

    def _decode(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            raise_alone(self._error(number, "not UTF-8; save the file as UTF-8"))

    def _is_header(self, head: list[tuple[int, int, str]], delimiter: str) -> bool:
        if self.columns is not None and isinstance(self.columns[0], str):
            return True
        names = _split(head[0][2], delimiter)
        if any(_NUMERIC.fullmatch(name) for name in names):
            return False
        if all(_HEADER_WORDS.fullmatch(name.casefold()) for name in names[:2]):
            return True
        rest = [text for _, _, text in head[1:]]
        if not rest:
            return False
        if all(_NUMERIC.fullmatch(field) for text in rest for field in _split(text, delimiter)[:2]):
            return True
        return head[0][2].startswith('"') and not any('"' in text for text in rest)

    def _places(self, line: str, delimiter: str, header: bool) -> tuple[int, int]:
        if self.columns is None:
            return 0, 1
        first, second = self.columns
        if isinstance(first, int) and isinstance(second, int):
            return first, second
        names = _split(line, delimiter)
        for name in (first, second):
            if names.count(str(name)) != 1:
                raise InputError(
                    f"{self.file}: the header does not name one column {name!r}; pass column "
                    "numbers, from 0, instead."
                )
        return names.index(str(first)), names.index(str(second))

    def _parse_numbers(self, begin: int, delimiter: str, more: bool) -> FactorisedPairs | None:
        """Parse whole numbers with the compiled parser; None when there is something else."""
        from tulle.graphs.parsing import DONE, NOT_WHOLE, TOO_FEW, parse_pairs

        text = np.frombuffer(self.data, dtype=np.uint8)
        rows = self.data.count(b"\n", begin) + 1
        pairs = np.empty((rows, 2), dtype=np.int64)
        filled, place, code = 0, begin, ord(delimiter)
        while place < len(text):
            stop = self.data.find(b"\n", min(place + _PIECE, len(text)))
            stop = len(text) if stop < 0 else stop + 1
            filled, verdict, where = parse_pairs(text, place, stop, code, more, pairs, filled)
            if verdict == NOT_WHOLE:
                return None
            if verdict != DONE:
                line = self.data.count(b"\n", 0, where) + 1
                raise self._too_few(line) if verdict == TOO_FEW else self._too_many(line)
            place = stop
            self.report(0.4 + 0.4 * place / len(text), "parsing")
        pairs = pairs[:filled]
        if self.nodes is not None and filled and int(pairs.max()) >= self.nodes:
            raise self._outside(int(np.argmax((pairs >= self.nodes).any(axis=1))), begin)
        return number_ids(pairs[:, 0], pairs[:, 1], self.nodes)

    def _parse_labels(
        self, begin: int, skipped: int, delimiter: str, places: tuple[int, int], more: bool
    ) -> FactorisedPairs:
        first, second = places
        least = max(places) + 1
        one: list[str] = []
        two: list[str] = []
        all_whole = True
        for number, fields in self._records(begin, skipped, delimiter):
            if len(fields) < least:
                raise self._too_few(number, len(fields))
            if len(fields) > 2 and not more:
                raise self._too_many(number)
            u, v = fields[first].strip(), fields[second].strip()
            if not u or not v:
                raise self._error(number, "a node is missing (empty field)")
            if not (_WHOLE.fullmatch(u) and _WHOLE.fullmatch(v)):
                if _NOT_WHOLE.fullmatch(u) or _NOT_WHOLE.fullmatch(v):
                    raise self._error(
                        number,
                        "a number that is negative or has a fraction; nodes are whole numbers "
                        "from 0, or names",
                    )
                all_whole = False
                if self.nodes is not None:
                    raise InputError(
                        f"{self.file}, line {number}: with nodes={self.nodes} every id must be a "
                        "whole number from 0 to nodes - 1. Leave nodes out to read labels."
                    )
            elif self.nodes is not None and max(int(u), int(v)) >= self.nodes:
                raise self._outside_line(number)
            one.append(u)
            two.append(v)
        if all_whole:
            return number_ids(
                np.array(one, dtype=np.int64), np.array(two, dtype=np.int64), self.nodes
            )
        return number_names(one, two)

    def _records(self, begin: int, skipped: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, fields) of each line with data."""
        try:
            text = self.data[begin:].decode("utf-8")
        except UnicodeDecodeError as error:
            number = skipped + self.data.count(b"\n", begin, begin + error.start) + 1
            raise_alone(self._error(number, "not UTF-8; save the file as UTF-8"))
        lines = text.split("\n")
        for index, line in enumerate(lines):
            stripped = line.strip()
            if index % 200_000 == 0:
                self.report(0.4 + 0.4 * index / len(lines), "parsing")
            if stripped and not stripped.startswith(_COMMENTS):
                number = skipped + index + 1
                if stripped.count('"') % 2:
                    raise self._error(number, "a quote is opened and not closed on the same line")
                try:
                    fields = _split(stripped, delimiter)
                except csv.Error:
                    raise_alone(self._error(number, "the quoted fields cannot be told apart"))
                yield number, fields

    def _error(self, line: int, reason: str) -> InputError:
        return InputError(f"{self.file}, line {line}: {reason}.")

    def _too_few(self, line: int, fields: int = 1) -> InputError:
        what = "one field only" if fields == 1 else f"only {fields} fields"
        return InputError(
            f"{self.file}, line {line}: {what}; each line needs two nodes, separated as on the "
            "first line."
        )

    def _too_many(self, line: int) -> InputError:
        return InputError(
            f"{self.file}, line {line}: more than two fields; is the graph weighted? Pick two "
            'columns with columns=(0, 1), or pass ignore=("weights",) to keep the first two.'
        )

    def _outside(self, row: int, begin: int) -> InputError:
        for count, (number, _) in enumerate(self._records(0, 0, " ")):
            if count == row + (begin > 0):
                return self._outside_line(number)
        raise AssertionError("a row has a line")

    def _outside_line(self, line: int) -> InputError:
        return InputError(
            f"{self.file}, line {line}: an id outside 0 to nodes - 1 (nodes={self.nodes}). Leave "
            "nodes out to take the ids as they occur."
        )


def _sniff(line: str) -> str:
    bare = _QUOTED.sub("", line)
    for delimiter in ("\t", ";", ","):
        if delimiter in bare:
            return delimiter
    return " "


def _split(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        fields = line.split() if delimiter == " " else line.split(delimiter)
        return [field.strip() for field in fields]
    if delimiter == " ":
        line = re.sub(r"[ \t]+(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", " ", line)
    (fields,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True)
    return [field.strip() for field in fields]
