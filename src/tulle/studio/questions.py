"""Questions as pages write them, and as the library understands them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from tulle.core.errors import QueryError, raise_alone

if TYPE_CHECKING:
    from tulle.core.query import Query

Asked = Mapping[str, Any]
"""A question on its way between processes: its kind of data and its arguments, JSON-able."""


def build(asked: Asked) -> Query:
    """Return the question.

    Raises:
        QueryError: when it is not one.
    """
    arguments = dict(asked.get("arguments", {}))
    if asked["kind"] == "graph" and "model" in asked:
        import tulle

        if asked["model"] == "per_node":
            return _make(tulle.synthetic_per_node, arguments)
        return _make(partial(tulle.synthetic, model=asked["model"]), arguments)
    if asked["kind"] == "graph":
        return _parse(asked.get("text", ""))
    if asked["kind"] == "database":
        import tulle

        said = {name: value for name, value in arguments.items() if value not in (None, {})}
        return _make(partial(tulle.sql, asked.get("text", "")), said)
    if asked["kind"] == "matrix":
        import tulle

        return _make(tulle.xor, arguments)
    if asked["kind"] == "contributions":
        import tulle

        if asked.get("question") != "found_cells":
            return _make(tulle.weights, arguments)
        if "cells_per_person" not in arguments:
            raise QueryError("Say for how many of their cells one person counts at most.")
        return _make(tulle.found_cells, arguments)
    raise QueryError(f"Questions about a {asked['kind']} cannot be answered here.")


def _make(question: Callable[..., Query], arguments: Mapping[str, Any]) -> Query:
    try:
        signature(question).bind(**arguments)
    except TypeError:
        raise_alone(QueryError("The question lacks an argument, or has one that it does not know."))
    return question(**arguments)


def _parse(text: str) -> Query:
    from tulle.core import registry
    from tulle.core.query import parse

    return parse(text, registry.find("query", "graph"))
