"""The public worker: plans questions from public facts, turns releases into files, runs audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tulle.core.errors import InputError, TulleError
from tulle.studio.data_worker import draw_coarsely
from tulle.studio.questions import Asked, build

_MOST_LISTED = 2_000
"""Vectors are drawn in full up to this length, then thinned."""

_MOST_BARS = 30
"""Up to so many numbers are drawn as bars with names."""

_MOST_ROWS = 20
"""So many rows of a table stand on a page; the file has all."""


class PublicWorker:
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
        from tulle.planning.preview import preview

        key = repr((dict(asked), kind, facts, unit, epsilon, delta, mechanism, assumptions))
        if key not in self._plans:
            made = make_plan(
                build(asked),
                kind=kind,
                facts=facts,
                assumptions=tuple(assumptions),
                unit=Unit.of(unit),
                epsilon=epsilon,
                delta=delta,
                mechanism=mechanism,
                # Accounts of the studio add prices up tightly wherever there is a delta.
                composed=True,
            )
            self._plans[key] = preview(made, facts=facts, unit=Unit.of(unit)).to_json()
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
        """Return what a page says and draws of a release, whatever its form."""
        import numpy as np

        from tulle.core import wording
        from tulle.core.release import Release
        from tulle.reports.page import cited
        from tulle.reports.terms import TERMS, guarantee_terms

        opened = Release.from_json(release)
        value, labels = opened.value, opened.labels
        said = wording.state(opened)
        shown: dict[str, Any] = {
            "question": labels.question,
            "measure": "" if labels.measure == "value" else labels.measure,
            "answer": said.answer,
            "interval_words": said.interval,
            "not_in_it": said.not_in_it,
            "interval": None,
            "wider": said.wider,
            "price": str(replace(opened.guarantee, assumptions=())),
            "terms": {name: TERMS[name] for name in guarantee_terms(opened.guarantee)},
            "explained": {name: TERMS[name] for name in ("mechanism", "debit", "interval")},
            "cited": cited([opened], opened.guarantee),
        }
        if isinstance(value, int | float):
            ends = wording.ends(opened)
            if ends is not None:
                shown["interval"] = [_plain(end) for end in ends]
                shown["interval_words"] = wording.between(*map(float, ends))
            return {**shown, "form": "number", "value": value, **_size(value, ends)}
        if hasattr(value, "edges") and hasattr(value, "edge_count"):
            return {**shown, "form": "graph", **_network(value)}
        shown["table"] = opened.table().to_html(_MOST_ROWS)
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return {**shown, "form": "vector", **_vector(opened), "length": len(value)}
        if isinstance(value, np.ndarray) and value.ndim == 2:
            names = [axis.name for axis, _ in labels.sides(value.shape)]
            return {**shown, "form": "matrix", **draw_coarsely(value), "sides": names}
        if hasattr(value, "values") and hasattr(value, "vectors"):
            drawn = {"value": _thin(np.asarray(value.values), 1), "across": "eigenvalue"}
            return {**shown, "form": "vector", **drawn}
        return {**shown, "form": "other"}

    def file(self, release: Mapping[str, Any], form: str) -> tuple[str, bytes]:
        """Return a release as a file: its media type and its bytes."""
        from tulle.core.release import Release

        opened = Release.from_json(release)
        if form in ("csv", "edges"):
            return "text/csv", opened.table().to_csv().encode()
        raise InputError(f"A release is not written as {form!r}.")

    def audit(self, mechanism: str) -> dict[str, Any]:
        """Run the fast audit of one mechanism."""
        from tulle.audit import run_audit

        def tell(words: str) -> None:
            self.report(None, words)

        return run_audit(slow=False, mechanisms=[mechanism], progress=tell).to_json()


def _size(value: float, ends: tuple[Any, Any] | None) -> dict[str, str]:
    """Return a number rounded to what it means, and how large its error is beside it."""
    from tulle.core import wording

    sides = [abs(value - float(end)) for end in ends or () if _plain(end) is not None]
    both = len(sides) == 2
    return {
        "about": wording.rounded(float(value), max(sides)) if sides else "",
        "error": wording.size_of_error(float(value), max(sides)) if both else "",
    }


def _plain(value: Any) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None


def _vector(release: Any) -> dict[str, Any]:
    """Return a list of numbers as a curve, or as bars with names where they are few."""
    import numpy as np

    from tulle.core import wording
    from tulle.core.release_table import possible
    from tulle.reports.charts import worth_drawing

    value = possible(release).astype(float)
    sides = release.labels.sides(value.shape)
    axis = sides[0][0]
    drawn: dict[str, Any] = {"across": " · ".join(side.name for side, _ in sides)}
    if len(value) <= _MOST_BARS:
        table = release.table()
        columns = table.to_dict()
        keys = zip(*(columns[key] for key in table.keys), strict=True)
        drawn["names"] = [" · ".join(map(str, row)) for row in keys]
    count = worth_drawing(value.tolist())
    first = axis.first if len(sides) == 1 and axis.labels is None and not axis.paired else 0
    drawn["value"] = _thin(value[:count], first)
    ends = wording.ends(release)
    if ends is not None:
        drawn["band"] = [_thin(np.asarray(end)[:count], first)["y"] for end in ends]
    return drawn


def _network(value: Any) -> dict[str, Any]:
    """Return a released network: how many nodes have how many links, and a drawing of it."""
    import numpy as np

    from tulle.reports.layout import lay_out, part_to_draw

    edges = np.asarray(value.edges())
    nodes = int(getattr(value, "node_count", None) or value.nodes)
    degrees = np.bincount(edges.ravel(), minlength=nodes)
    kept, links = part_to_draw(nodes, edges)
    places = lay_out(len(kept), links)
    return {
        "nodes": nodes,
        "edges": value.edge_count,
        "made_up": hasattr(value, "node_count"),
        "degrees": _thin(np.bincount(degrees) if len(degrees) else np.zeros(1)),
        "drawn": len(kept),
        "places": np.round(places, 4).tolist(),
        "links": links.tolist(),
    }


def _thin(values: Any, first: int = 0) -> dict[str, list[Any]]:
    import numpy as np

    step = max(1, -(-len(values) // _MOST_LISTED))
    places = np.arange(0, len(values), step)
    return {
        "x": (places + first).tolist(),
        "y": [_plain(v) for v in np.asarray(values, dtype=float)[places]],
    }
