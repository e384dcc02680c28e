"""The links of the ledger's chain: entries, their digests, and the head."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tulle.core.errors import InputError, raise_alone
from tulle.core.validate import whole_number

VERSION = 3
"""The version of the file format. Version 1, of tulle 0.1, has no running totals; version 2 knows
no versions of the data."""

DIGEST_VERSION = 1
"""The version of the rule for digests, which enters every digest."""

GENESIS = "genesis"
"""The kind of entry number 0, which begins the chain and belongs to no account."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Entry:
    """One line of the log."""

    number: int
    kind: str
    account: str
    time: str
    body: Mapping[str, Any]
    previous: str
    digest: str


@dataclass(frozen=True)
class Head:
    """How many entries a ledger has and the digest of the last: note it outside the file.

    Example:
        >>> Head.parse("2:" + "ab" * 32).count
        2
    """

    count: int
    digest: str

    def __str__(self) -> str:
        return f"{self.count}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read back what ``str`` wrote.

        Raises:
            InputError: when the text is not a head.
        """
        count, _, digest = text.strip().partition(":")
        number = whole_number(count)
        hexadecimal = len(digest) == 64 and not set(digest) - set("0123456789abcdef")
        if number is None or not hexadecimal:
            raise InputError(
                f"A head is written count:digest, as the ledger shows it; got {text!r}."
            )
        return cls(number, digest)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a ledger; ``number`` is the entry's, if it is about one."""

    number: int | None
    what: str

    def __str__(self) -> str:
        what = printable(self.what)
        return what if self.number is None else f"entry {self.number}: {what}"


def printable(text: str) -> str:
    """Return one line that every terminal and file can take: damaged bytes become escapes."""
    escaped = text.replace("\n", " ").encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)


def canonical(body: Mapping[str, Any]) -> str:
    """Return the one JSON text for ``body``: sorted keys, no spaces, ASCII, finite numbers.

    Raises:
        InputError: when it holds anything that JSON cannot write and read back unchanged.
    """
    try:
        _check_keys(body)
        return _JSON.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise_alone(
            InputError(
                f"A ledger entry must be plain JSON with text keys and finite numbers ({error})."
            )
        )


def _check_keys(value: Any) -> None:
    # json writes the keys 1 and "1" alike; two bodies must never have one text.
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            _check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_keys(item)


def compute_digest(
    number: int, kind: str, account: str, time: str, body: str, previous: str
) -> str:
    """Return the SHA-256 over an entry, as hexadecimal; ``body`` is the canonical text.

    JSON quotes every part, so no two different entries have one encoding.
    """
    parts = ["tulle ledger", DIGEST_VERSION, number, kind, account, time, body, previous]
    return hashlib.sha256(_JSON.encode(parts).encode("ascii")).hexdigest()


def altered(row: tuple[Any, ...]) -> str | None:
    """Say what is wrong with a row that does not match its own digest, or None."""
    try:
        sound = compute_digest(*row[:6]) == row[6]
    except (TypeError, ValueError):  # a column of another type than text
        sound = False
    return None if sound else "does not match its digest: it was changed after it was written"


def entry_of(row: tuple[Any, ...]) -> Entry:
    """Return a row of the file as an entry.

    Raises:
        ValueError: when its body is not the JSON of an object.
    """
    number, kind, account, time, body, previous, digest = row
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("the body of an entry is not an object")
    return Entry(number, kind, account, time, content, previous, digest)


def version_name(account: str, version: str) -> str:
    """Return the name under which the entry that declared a version of the data is looked up."""
    parts = [account, "version", version]
    return hashlib.sha256(_JSON.encode(parts).encode("ascii")).hexdigest()


def stream_name(account: str, stream: str, step: int | None = None) -> str:
    """Return the name under which the debit of a stream is looked up by its key, or a step of it.

    A step is looked up by the digest of the stream's debit.
    """
    parts = [account, "stream", stream, step]
    return hashlib.sha256(_JSON.encode(parts).encode("ascii")).hexdigest()


def answer_name(account: str, key: str) -> str:
    """Return the name under which the answer to a question, by its key, is looked up."""
    return hashlib.sha256(_JSON.encode([account, key]).encode("ascii")).hexdigest()
