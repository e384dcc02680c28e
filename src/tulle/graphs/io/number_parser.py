"""A compiled parser for edge lists of whole numbers."""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled

# What the parser says about the line at which it stopped.
DONE = 0
NOT_WHOLE = 1
TOO_FEW = 2
TOO_MANY = 3

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_HASH, _PERCENT, _SLASH, _QUOTE = 35, 37, 47, 34
_COMMA, _SEMICOLON = 44, 59
_ZERO, _NINE = 48, 57
_MOST_DIGITS = 18
ANY = 0
"""The delimiter is whichever a line has, each line by itself."""


@compiled
def parse_pairs(
    text: Array, begin: int, stop: int, delimiter: int, more_columns: bool, pairs: Array, row: int
) -> tuple[int, int, int]:
    """Parse ``text[begin:stop]`` into ``pairs`` from ``row`` on; return (row, verdict, place).

    ``delimiter`` is a byte, a space for any run of spaces and tabs, or ANY. ``more_columns``
    allows fields after the second and skips them. When the verdict is not DONE, ``place`` is the
    start of the line in question. NOT_WHOLE is the verdict on everything that needs a closer
    look: a number that is negative, has more than 18 digits or starts with a superfluous zero,
    anything quoted, and under ANY a line with delimiters of two kinds.
    """
    place = begin
    while place < stop:
        line = place
        while place < stop and (
            text[place] == _SPACE or text[place] == _TAB or text[place] == _RETURN
        ):
            place += 1
        if place >= stop:
            break
        first = text[place]
        if first == _NEWLINE:
            place += 1
            continue
        if first in (_HASH, _PERCENT) or (
            first == _SLASH and place + 1 < stop and text[place + 1] == _SLASH
        ):
            while place < stop and text[place] != _NEWLINE:
                place += 1
            place += 1
            continue
        mark = 0
        for field in range(2):
            digits = 0
            value = np.int64(0)
            start = place
            while place < stop and _ZERO <= text[place] <= _NINE:
                if digits < _MOST_DIGITS:
                    value = value * 10 + (np.int64(text[place]) - _ZERO)
                digits += 1
                place += 1
            if digits == 0 or digits > _MOST_DIGITS or (digits > 1 and text[start] == _ZERO):
                return row, NOT_WHOLE, line
            pairs[row, field] = value
            gap = place
            seen = 0
            while place < stop:
                byte = text[place]
                if delimiter == ANY:
                    separates = byte in (_TAB, _SEMICOLON, _COMMA)
                else:
                    separates = byte == delimiter and delimiter != _SPACE
                if separates:
                    if seen != 0:
                        break
                    seen = byte
                elif byte != _SPACE and byte != _TAB and byte != _RETURN:
                    break
                place += 1
            ended = place >= stop or text[place] == _NEWLINE
            if field == 0:
                mark = seen
                if ended:
                    # Trailing white space may hide a tab, which is a delimiter under ANY.
                    return row, TOO_FEW if seen == 0 else NOT_WHOLE, line
                if place == gap or (seen == 0 and delimiter not in (ANY, _SPACE)):
                    return row, NOT_WHOLE, line
                continue
            if ended and seen == 0:
                continue
            if ended and seen == _TAB:
                continue  # white space at the end of a line is no delimiter
            if place == gap or seen != mark:
                return row, NOT_WHOLE, line
            while place < stop and text[place] != _NEWLINE:
                byte = text[place]
                if delimiter == ANY and byte in (_TAB, _SEMICOLON, _COMMA, _QUOTE) and byte != mark:
                    return row, NOT_WHOLE, line
                place += 1
            if not more_columns:
                return row, TOO_MANY, line
        row += 1
        place += 1
    return row, DONE, stop
