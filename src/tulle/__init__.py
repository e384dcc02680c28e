"""Differentially private release of linked data: graphs, joins, matrices.

Everything is imported when it is first used, so that ``import tulle`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

from tulle import _index

__version__ = "0.2.0.dev0"
__doc__ = f"{__doc__}\n{_index.MAP}"


def __getattr__(name: str) -> Any:
    if name in _index.PUBLIC["tulle"]:
        return getattr(importlib.import_module(_index.PUBLIC["tulle"][name]), name)
    # tulle.sql is a package that can be called: the question of that name.
    if name in (*_index.ROOMS, "sql"):
        return importlib.import_module(f"tulle.{name}")
    raise AttributeError(f"module 'tulle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_index.PUBLIC["tulle"], *_index.ROOMS, "sql"})
