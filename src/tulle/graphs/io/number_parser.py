"""A compiled parser for edge lists of whole numbers."""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled

DONE = -1

_NEWLINE, _SPACE, _TAB = 10, 32, 9
_HASH, _PERCENT, _SLASH, _QUOTE = 35, 37, 47, 34
_COMMA, _SEMICOLON = 44, 59
_ZERO, _NINE = 48, 57
_LAST_LETTER = 126
_MOST_DIGITS = 18
ANY = 0
"""The delimiter is whichever a line has, each line by itself."""


@compiled
def parse_pairs(
    text: Array,
    begin: int,
    stop: int,
    delimiter: int,
    more_columns: bool,
    below: int,
    pairs: Array,
    row: int,
) -> tuple[int, int]:
    """Parse ``text[begin:stop]`` into ``pairs`` from ``row`` on; return (row, place).

    ``delimiter`` is a byte, a space for any run of spaces and tabs, or ANY. ``more_columns``
    allows fields after the second and skips them. ``place`` is DONE, or the start of a line that
    needs a closer look: all are read here, or left, but plain pairs of numbers below ``below`` and
    comments. What is read here is what the closer look would read, so that it does not matter
    which other lines need one.
    """
    place = begin
    while place < stop:
        line = place
        while place < stop and (text[place] == _SPACE or text[place] == _TAB):
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
                return row, line
            if value >= below:
                return row, line
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
                elif byte != _SPACE and byte != _TAB:
                    break
                place += 1
            ended = place >= stop or text[place] == _NEWLINE
            if field == 0:
                mark = seen
                if ended or place == gap or (seen == 0 and delimiter not in (ANY, _SPACE)):
                    return row, line
                continue
            if ended and (seen == 0 or seen == _TAB):
                continue  # white space at the end of a line is no delimiter
            if not more_columns or place == gap or seen != mark:
                return row, line
            while place < stop and text[place] != _NEWLINE:
                byte = text[place]
                if byte == _QUOTE or byte > _LAST_LETTER or (byte < _SPACE and byte != _TAB):
                    return row, line
                if delimiter == ANY and byte in (_TAB, _SEMICOLON, _COMMA) and byte != mark:
                    return row, line
                place += 1
        row += 1
        place += 1
    return row, DONE
