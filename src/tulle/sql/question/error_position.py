"""Where in a question an error points: the words that the error quotes, found again in the text."""

from __future__ import annotations

import re

_QUOTED = (
    re.compile(
        r"^(?:A |An |The expression |The table function )?(.+?) (?:in [\w ]+ )?"
        r"is not supported: "
    ),
    re.compile(r"^(.+?) is selected but"),
    re.compile(r"^Table (\S+) has no owners"),
    re.compile(r"^There is no table (\S+)\. Tables"),
    re.compile(r"Column '?\"?([\w.\"]+?)\"?'? could not be resolved"),
    re.compile(r"Unknown column: (\w+)"),
)
_PLACE = re.compile(r"Line (\d+), Col: (\d+)")


def find_place(text: str, message: str) -> tuple[int, int, int] | None:
    """Return line, start and end of what an error is about, counted from 0; None if not found.

    Example:
        >>> find_place("SELECT COUNT(*) FROM a\\nLEFT  JOIN b", "LEFT JOIN is not supported: why.")
        (1, 0, 10)
    """
    written = _PLACE.search(message)
    if written is not None:
        # The parser counts up to the last character of the word that it stumbled over.
        line, end = int(written[1]) - 1, int(written[2])
        lines = text.splitlines()
        if line < len(lines):
            word = re.search(r"\w+$", lines[line][:end])
            return line, word.start() if word else max(end - 1, 0), end
    for pattern in _QUOTED:
        found = pattern.search(message)
        if found is not None:
            return _locate(text, found[1])
    return None


def _locate(text: str, quoted: str) -> tuple[int, int, int] | None:
    # SQL is quoted as the parser writes it: other spaces, other case, and shortened at the end.
    words = re.findall(r"\w+|[^\w\s]", quoted.removesuffix("..."))
    pattern = r"\s*".join(map(re.escape, words))
    edged = rf"(?<!\w){pattern}(?!\w)" if words and words[0][0].isalnum() else pattern
    matches = [re.search(p, text, re.IGNORECASE) for p in (edged, pattern) if p]
    match = next((m for m in matches if m is not None), None)
    if match is None or not match[0]:
        return None
    before = text[: match.start()]
    line = before.count("\n")
    start = match.start() - (before.rfind("\n") + 1)
    width = len(match[0].split("\n")[0])
    return line, start, start + width
