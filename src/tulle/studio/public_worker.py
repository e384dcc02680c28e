"""The clerk: plans questions from public facts, turns releases into files, runs audits."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tulle.core.errors import InputError, TulleError
from tulle.studio.data_worker import draw_coarsely
from tulle.studio.questions import Asked, build

_MOST_LISTED = 2_000
"""Vectors are drawn in full up to this length, then thinned."""


class Clerk:
    """Has public facts and releases, and no data. Its methods are what pages may ask of it."""

    report: Callable[[float | None, str], None] = staticmethod(lambda fraction, label: None)

    def __init__(self) -> None:
        self._plans: dict[str, dict[str, Any]] = {}

    def supported(self, kind: str, unit: str, questions: Sequence[Asked]) -> list[bool]:
        """Say which questions some mechanism answers under a unit."""
        from tulle.core import registry
        from tulle.core.unit import Unit

        known = registry.mechanisms(kind).values()
        protected = Unit.of(unit)

        def answerable(asked: Asked) -> bool:
            try:
                leaves = build(asked).parts()
            except (TulleError, AttributeError):
                return False
            return all(any(m.supports(leaf, protected) for m in known) for leaf in leaves)

        return [answerable(asked) for asked in questions]

    def plan(
        self,
        asked: Asked,
        kind: str,
        facts: Mapping[str, Any],
        unit: str,
        epsilon: str,
        delta: str,
        mechanism: str | None = None,
        assumptions: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Plan a question; nothing is spent."""
        from tulle.core.unit import Unit
        from tulle.planning.planner import make_plan

        key = repr((dict(asked), kind, facts, unit, epsilon, delta, mechanism, assumptions))
        if key not in self._plans:
            self._plans[key] = make_plan(
                build(asked),
                kind=kind,
                facts=facts,
                assumptions=tuple(assumptions),
                unit=Unit.of(unit),
                epsilon=epsilon,
                delta=delta,
                mechanism=mechanism,
            ).to_json()
        return self._plans[key]

    def curve(
        self,
        asked: Asked,
        kind: str,
        facts: Mapping[str, Any],
        unit: str,
        epsilons: Sequence[str],
        delta: str,
        assumptions: Sequence[str] = (),
    ) -> dict[str, list[dict[str, float | None]]]:
        """Return the predicted error of every mechanism over a range of prices."""
        lines: dict[str, list[dict[str, float | None]]] = {}
        for done, epsilon in enumerate(epsilons):
            self.report(done / len(epsilons), "predicting errors")
            made = self.plan(asked, kind, facts, unit, epsilon, delta, assumptions=assumptions)
            if made["parts"]:
                point = {"epsilon": float(epsilon), "error": made["half_width_95"]}
                lines.setdefault(made["query"], []).append(point)
            for offer in made["offers"]:
                error = offer["half_width_95"]
                if error is None:
                    error = offer["half_width_95_on_any_data"]
                point = {"epsilon": float(epsilon), "error": error}
                lines.setdefault(offer["mechanism"], []).append(point)
        return lines

    def show(self, release: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a page draws of a release: a number, a curve, a heat map, a graph."""
        import numpy as np

        from tulle.core.release import Release

        opened = Release.from_json(release)
        value = opened.value
        shown: dict[str, Any] = {"interval": _interval(opened)}
        if isinstance(value, int | float):
            return {**shown, "form": "number", "value": value}
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return {**shown, "form": "vector", "value": _thin(value), "length": len(value)}
        if isinstance(value, np.ndarray) and value.ndim == 2:
            return {**shown, "form": "matrix", **draw_coarsely(value)}
        if hasattr(value, "edges") and hasattr(value, "node_count"):
            degrees = np.bincount(np.asarray(value.edges()).ravel(), minlength=value.node_count)
            counts = np.bincount(degrees) if len(degrees) else np.zeros(1)
            return {
                **shown,
                "form": "graph",
                "nodes": value.node_count,
                "edges": value.edge_count,
                "degrees": _thin(counts),
            }
        if hasattr(value, "values") and hasattr(value, "vectors"):
            return {**shown, "form": "vector", "value": _thin(np.asarray(value.values))}
        return {**shown, "form": "other", "value": str(value)}

    def file(self, release: Mapping[str, Any], form: str) -> tuple[str, bytes]:
        """Return a release as a file: its media type and its bytes."""
        from tulle.core.release import Release

        opened = Release.from_json(release)
        if form == "csv":
            return "text/csv", _csv(opened.value)
        if form == "edges":
            return "text/csv", _edges(opened.value)
        raise InputError(f"A release is not written as {form!r}.")

    def audit(self, mechanism: str) -> dict[str, Any]:
        """Run the fast audit of one mechanism."""
        from tulle.audit import run_audit

        def tell(words: str) -> None:
            self.report(None, words)

        return run_audit(slow=False, mechanisms=[mechanism], progress=tell).to_json()


def _interval(release: Any) -> Any:
    import numpy as np

    try:
        low, high = release.interval(0.95)
    except (TulleError, TypeError, ValueError):
        return None
    if np.ndim(low) == 0:
        return [_plain(low), _plain(high)]
    if np.ndim(low) == 1:
        return [_thin(np.asarray(low)), _thin(np.asarray(high))]
    return None


def _plain(value: Any) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None


def _thin(values: Any) -> dict[str, list[Any]]:
    import numpy as np

    step = max(1, -(-len(values) // _MOST_LISTED))
    places = np.arange(0, len(values), step)
    return {
        "x": places.tolist(),
        "y": [_plain(v) for v in np.asarray(values, dtype=float)[places]],
    }


def _csv(value: Any) -> bytes:
    import numpy as np

    out = io.StringIO()
    if isinstance(value, int | float):
        out.write(f"value\n{value}\n")
    elif isinstance(value, np.ndarray):
        form = "%d" if np.issubdtype(value.dtype, np.integer) else "%.17g"
        np.savetxt(out, np.atleast_2d(value) if value.ndim == 2 else value, form, ",")
    else:
        raise InputError("This release is not a table; download it as JSON.")
    return out.getvalue().encode()


def _edges(value: Any) -> bytes:
    import numpy as np

    out = io.StringIO("source,target\n")
    out.seek(0, io.SEEK_END)
    np.savetxt(out, np.asarray(value.edges()), "%d", ",")
    return out.getvalue().encode()
