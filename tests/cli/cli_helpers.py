"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECRET = "zebra-secret"
"""Part of every label in the test networks: it must not be in any output."""


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


Run = Callable[..., Ran]
