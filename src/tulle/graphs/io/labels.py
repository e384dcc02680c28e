"""Who a node is: its label, and the one order of all labels.

Which node is which, and which of two nodes comes first, follows from their labels alone. Nothing
here looks at other labels, so adding or removing a node or an edge cannot renumber the rest:
mechanisms that go through the nodes in order (``projection``, ``auto``) rely on this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, raise_alone

_WHOLE = re.compile(r"0|[1-9][0-9]{0,999}")


def from_text(token: str) -> int | str:
    """Return the label that a text in a file stands for.

    Digits without superfluous zeros are a whole number, whatever its size up to a thousand
    digits; anything else, such as ``007``, is text.

    Example:
        >>> [from_text(token) for token in ("7", "007", "ann", "12345678901234567890")]
        [7, '007', 'ann', 12345678901234567890]
    """
    return int(token) if _WHOLE.fullmatch(token) else token


_COLUMN_WORDS = {
    *("source", "target", "src", "dst", "dest", "destination", "from", "to", "ego", "alter"),
    *("node", "nodes", "vertex", "vertices", "id", "ids", "identifier", "name", "names"),
    *("label", "labels", "user", "users", "person", "persons", "people", "member", "members"),
    *("friend", "friends", "follower", "followee", "sender", "receiver", "recipient"),
    *("start", "end", "head", "tail"),
}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_A-Za-z]+")


def names_a_column(token: str) -> bool:
    """Say whether a text is a usual name of a column of nodes: made of words of a fixed list.

    It is decided by the text alone. Numbered names (``node1``) are not among them: nodes are
    called so.

    Example:
        >>> [names_a_column(token) for token in ("FromNodeId", "user_id", "node1", "ann")]
        [True, True, False, False]
    """
    words = _WORDS.findall(token)
    return bool(words) and all(word.lower() in _COLUMN_WORDS for word in words)


def canonical(label: Any) -> Any:
    """Return a label in the form that all equal labels share: 1, 1.0 and True are the number 1.

    Raises:
        InputError: when it is missing, no whole text, or of a type that has no order of its own.
    """
    if type(label) is int:
        return label
    if isinstance(label, np.generic) or (isinstance(label, np.ndarray) and not label.ndim):
        label = label.tolist()  # of one that is masked, None
    if isinstance(label, str):
        return _whole_text(str.__str__(label))
    if isinstance(label, int):
        return int(label)
    try:
        missing = bool(label != label)  # NaN, and the NaT of pandas, which has no place in an order
    except (TypeError, ValueError, ArithmeticError):
        missing = False
    if missing:
        raise InputError("A node is missing (NaN); drop such nodes.")
    if isinstance(label, float):
        return int(label) if label.is_integer() else label
    if isinstance(label, tuple):
        return tuple(canonical(part) for part in label)
    if isinstance(label, bytes | UUID) or type(label) is date:
        return label
    if isinstance(label, datetime) and label.tzinfo is None:
        # Of the class that all moments share, but for those of pandas that are finer.
        plain = datetime.combine(label.date(), label.time().replace(fold=0))
        return plain if plain == label else label
    raise InputError(
        "A node's label must be a number, text, bytes, a date, a UUID or a tuple of these: other "
        "things have no order of their own, or are not hashable. Rename the nodes first."
    )


def _whole_text(label: str) -> str:
    try:
        label.encode()
    except UnicodeEncodeError:
        raise_alone(
            InputError(
                "A node's label holds half of a letter (a surrogate), which no file and no page "
                "can hold. Rename the node first."
            )
        )
    return label


def order_key(label: Any) -> tuple[Any, ...]:
    """Return what a canonical label is sorted by: its kind, then its value.

    Example:
        >>> sorted(["b", 10, (1, "a"), 9, "10"], key=order_key)
        [9, 10, '10', 'b', (1, 'a')]
    """
    if isinstance(label, int | float):
        return 0, label
    if isinstance(label, str):
        return 1, label
    if isinstance(label, bytes):
        return 2, label
    if isinstance(label, tuple):
        return 3, tuple(order_key(part) for part in label)
    if isinstance(label, datetime):
        return 5, label
    if isinstance(label, date):
        return 4, label
    return 6, label.int


def ordered(labels: Iterable[Any]) -> list[Any]:
    """Return the distinct labels, canonical, in the one order.

    Raises:
        InputError: when one of them is missing or has no order of its own.
    """
    distinct = {canonical(label) for label in labels}
    if len({type(label) for label in distinct}) == 1 and type(next(iter(distinct))) in (int, str):
        return sorted(distinct)
    return sorted(distinct, key=order_key)


def as_array(labels: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Return labels as an array, or None when they are the numbers 0 to n - 1 in order."""
    if all(type(label) is int and -(2**63) <= label < 2**63 for label in labels):
        numbers = np.array(labels, dtype=np.int64)
        return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers
    names = np.empty(len(labels), dtype=object)
    names[:] = labels
    return names
