"""A compiled parser for edge lists of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled

Array = npt.NDArray[Any]

# What the parser says about the line at which it stopped.
DONE = 0
NOT_WHOLE = 1
TOO_FEW = 2
TOO_MANY = 3

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_HASH, _PERCENT, _SLASH = 35, 37, 47
_ZERO, _NINE = 48, 57
_MOST_DIGITS = 18


@compiled
def parse_pairs(
    text: Array, begin: int, stop: int, delimiter: int, more_columns: bool, pairs: Array, row: int
) -> tuple[int, int, int]:
    """Parse ``text[begin:stop]`` into ``pairs`` from ``row`` on; return (row, verdict, place).

    ``delimiter`` is a byte, or a space for any run of spaces and tabs. ``more_columns`` allows
    fields after the second and skips them. When the verdict is not DONE, ``place`` is the start
    of the line in question. A number that is negative, has more than 18 digits or starts with a
    superfluous zero is not whole: it is a label, and the caller has to treat it as one.
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
                if byte == delimiter and delimiter != _SPACE:
                    if seen == 1:
                        break
                    seen = 1
                elif byte != _SPACE and byte != _TAB and byte != _RETURN:
                    break
                place += 1
            ended = place >= stop or text[place] == _NEWLINE
            if field == 0:
                if ended and seen == 0:
                    return row, TOO_FEW, line
                if ended:
                    return row, NOT_WHOLE, line
                if place == gap or (seen == 0 and delimiter != _SPACE):
                    return row, NOT_WHOLE, line
            elif not ended:
                if place == gap or (seen == 0 and delimiter != _SPACE):
                    return row, NOT_WHOLE, line
                if not more_columns:
                    return row, TOO_MANY, line
                while place < stop and text[place] != _NEWLINE:
                    place += 1
            elif seen == 1 and not more_columns:
                return row, TOO_MANY, line
        row += 1
        place += 1
    return row, DONE, stop
