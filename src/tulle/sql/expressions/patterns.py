"""Regular expressions that mean the same on all engines, and that none of them fails on.

DuckDB has RE2, PostgreSQL an engine of its own, Spark Java's. They differ in what a dot, a dollar
sign, a letter class and a case are, and Java's tries alternatives one after the other: some
patterns take it forever, or more stack than there is, on some texts only. So a pattern is a
constant, it is read here, and what is run is written anew from what was read:

- a dot is any character but a line feed, ``$`` the very end; ``\\d``, ``\\w``, ``\\s`` are ASCII;
- only single characters and classes are repeated without end, at most three times in a pattern;
  what is repeated up to a number holds neither alternatives nor repetitions;
- the number of ways to choose between alternatives is bounded.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import NoReturn

from tulle.sql.expressions.conversions import Impossible

LONGEST = 200
MOST_ENDLESS = 3
MOST_WAYS = 1000
MOST_TIMES = 100

_CLASSES = {
    "d": (("0", "9"),),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "s": (("\t", "\r"), (" ", " ")),
}
_SPECIAL = set(".^$*+?()[]{}|\\&-")

Spans = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A piece of a pattern, as it is written for an engine, and what running it may take."""

    written: str
    ways: int = 1
    endless: int = 0
    plain: bool = True
    """Whether it holds neither alternatives nor repetitions."""
    size: int = 1


def translated(pattern: str, end: str, *, any_case: bool = False, whole: bool = False) -> str:
    """Return a pattern as an engine is given it, in which ``end`` is the very end of a text.

    Raises:
        Impossible: saying what is not supported.
    """
    if len(pattern) > LONGEST:
        raise Impossible(f"a pattern has at most {LONGEST} characters")
    reader = _Reader(pattern, end, any_case)
    found = reader.alternatives()
    if reader.place < len(pattern):
        reader.fail("a bracket is closed that was not opened")
    if found.endless > MOST_ENDLESS or found.ways > MOST_WAYS or found.size > LONGEST * 10:
        reader.fail(
            f"at most {MOST_ENDLESS} of *, + and {{n,}}, and few alternatives; join several "
            "conditions by AND"
        )
    return f"^(?:{found.written}){reader.end}" if whole else found.written


class _Reader:
    def __init__(self, pattern: str, end: str, any_case: bool) -> None:
        self.pattern, self.any_case = pattern, any_case
        self.place = 0
        self.end = end

    @property
    def next(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def take(self) -> str:
        found = self.next
        if not found:
            self.fail("it ends in the middle")
        self.place += 1
        return found

    def fail(self, reason: str) -> NoReturn:
        raise Impossible(f"the pattern is not among those that all engines agree on: {reason}")

    def alternatives(self) -> Part:
        found = [self.sequence()]
        while self.next == "|":
            self.place += 1
            found.append(self.sequence())
        if len(found) == 1:
            return found[0]
        return Part(
            "|".join(one.written for one in found),
            sum(one.ways for one in found),
            max(one.endless for one in found),
            False,
            sum(one.size for one in found),
        )

    def sequence(self) -> Part:
        written, ways, endless, plain, size = "", 1, 0, True, 0
        while self.next and self.next not in "|)":
            part = self.repeated()
            written += part.written
            ways *= part.ways
            endless += part.endless
            plain &= part.plain
            size += part.size
        if not written:
            self.fail("an alternative or a bracket is empty")
        return Part(written, ways, endless, plain, size)

    def repeated(self) -> Part:
        start = self.next
        if start and start in "^$":
            self.place += 1
            if self.next and self.next in "*+?{":
                self.fail("an anchor is repeated")
            return Part(start if start == "^" else self.end, plain=False)
        single = start != "("
        part = self.group() if start == "(" else Part(self.character())
        if not self.next or self.next not in "*+?{":
            return part
        low, high, sign = self.times()
        if self.next and self.next in "*+?":
            self.fail("a repetition is repeated, or is not greedy")
        if high is None and not single:
            self.fail("a bracket is repeated without end; write {0,9}")
        if (low, high) != (0, 1) and not part.plain:
            self.fail("alternatives or repetitions inside a bracket are repeated")
        if high is None:
            return Part(part.written + sign, 1, part.endless + 1, False, part.size + low)
        ways = part.ways + 1 if (low, high) == (0, 1) else high - low + 1
        return Part(part.written + sign, ways, part.endless, False, part.size * max(high, 1))

    def times(self) -> tuple[int, int | None, str]:
        sign = self.take()
        if sign != "{":
            return {"*": (0, None, "*"), "+": (1, None, "+"), "?": (0, 1, "?")}[sign]
        text = ""
        while self.next != "}":
            text += self.take()
        self.place += 1
        first, comma, last = text.partition(",")
        if not _is_number(first) or (last and not _is_number(last)):
            self.fail("write {2}, {2,} or {2,5}")
        low, high = int(first), int(last) if last else (None if comma else int(first))
        if max(low, high or 0) > MOST_TIMES or (high is not None and high < low):
            self.fail(f"write {{2,5}}, with numbers up to {MOST_TIMES}")
        return low, high, "{" + text + "}"

    def group(self) -> Part:
        self.place += 1
        if self.next == "?":
            if self.pattern[self.place : self.place + 2] != "?:":
                self.fail("of brackets that start with (? there is (?: only")
            self.place += 2
        found = self.alternatives()
        if self.next != ")":
            self.fail("a bracket is not closed")
        self.place += 1
        return Part(f"(?:{found.written})", found.ways, found.endless, found.plain, found.size)

    def character(self) -> str:
        sign = self.take()
        if sign == ".":
            return "[^\n]"
        if sign == "[":
            return self.bracket()
        if sign == "\\":
            sign = self.take()
            if sign.lower() in _CLASSES:
                return self.written(_CLASSES[sign.lower()], negated=sign.isupper())
            if sign.isalnum():
                self.fail(f"\\{sign}")
            return self.written(((sign, sign),))
        if sign in "*+?{}]&":
            if sign in "]}&":
                return self.written(((sign, sign),))
            self.fail(f"{sign} stands at the beginning")
        return self.written(((sign, sign),))

    def bracket(self) -> str:
        negated = self.next == "^"
        self.place += negated
        spans: list[tuple[str, str]] = []
        while self.next != "]" or not spans:
            sign = self.take()
            if sign == "[" or (sign == "]" and not spans):
                self.fail("write \\[ and \\] for square brackets within square brackets")
            if sign == "\\":
                sign = self.take()
                if sign in _CLASSES:
                    spans += _CLASSES[sign]
                    continue
                if sign.isalnum():
                    self.fail(f"\\{sign}")
            last = sign
            if self.next == "-" and self.pattern[self.place + 1 : self.place + 2] not in ("]", ""):
                self.place += 1
                last = self.take()
                alike = any({sign, last} <= set(kind) for kind in _RANGES)
                if not alike or last < sign:
                    self.fail("ranges are of digits or of letters of one case, such as [a-z]")
            spans.append((sign, last))
        self.place += 1
        return self.written(tuple(spans), negated=negated)

    def written(self, spans: Spans, *, negated: bool = False) -> str:
        """Return a class of characters, or one character, in the same form for all engines."""
        found = list(spans)
        for low, high in spans:
            if self.any_case and (low.isalpha() or high.isalpha()):
                if not (low.isascii() and high.isascii()):
                    self.fail("letters beyond ASCII have no case here")
                found.append((low.swapcase(), high.swapcase()))
        if len(found) == 1 and not negated and found[0][0] == found[0][1]:
            return _escaped(found[0][0])
        listed = "".join(
            _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
            for low, high in found
        )
        return f"[{'^' if negated else ''}{listed}]"


_RANGES = (string.digits, string.ascii_lowercase, string.ascii_uppercase)


def _escaped(sign: str) -> str:
    return "\\" + sign if sign in _SPECIAL else sign


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3
