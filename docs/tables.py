"""Tables of benchmark results, made when the guide is built; pages include them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_GRAPHS = {
    "ca-GrQc": ("Table 10: ca-GrQc (GC)", "ca-GrQc"),
    "as20000102": ("Table 11: AS20", "as20000102"),
    "enron-core-igraph": ("Table 12: an Enron core, 182 addresses", "enron"),
    "enron-core-simplices": ("Table 12: another Enron core, 143 people", ""),
    "polbooks": ("Table 13: Polbooks", "polbooks"),
}
"""Each graph's title and under which name its printed table is found, if it has one."""

_HEADS = {"l_max": "l<sub>max</sub>", "lambda": "λ", "triangles": "△"}
_COUNTS = {"n", "m", "triangles"}
_KINDS = (
    ("ca-GrQc", ("ca-GrQc",)),
    ("polbooks", ("polbooks",)),
    ("polblogs", ("polblogs",)),
    ("ER1 to ER3", ("ER1", "ER2", "ER3")),
    ("WS1 to WS5", ("WS1", "WS2", "WS3", "WS4", "WS5")),
    ("BA1 to BA7", ("BA1", "BA2", "BA3", "BA4", "BA5", "BA6", "BA7")),
)
_STATISTICS = ("transitivity", "clustering", "assortativity")


def write_tables(docs: Path) -> None:
    """Write all tables below ``generated/``, under names that are not pages of their own."""
    results, folder = docs / "results", docs / "generated"
    for name, lines in (
        ("dissertation", _dissertation(_read(results, "dissertation"), results)),
        ("routes", _routes(_read(results, "statistics"))),
        ("nodes", _nodes(_read(results, "statistics"))),
        ("corners", _corners(_read(results, "statistics"))),
        ("splits", _splits(_read(results, "statistics"))),
        ("vectors", _vectors(_read(results, "statistics"))),
        ("per-node", _per_node(_read(results, "statistics"))),
    ):
        (folder / f"{name}.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def _dissertation(found: Any, results: Path) -> Iterator[str]:
    printed = _read(results, "dissertation-printed")["tables"]
    for name, table in found["tables"].items():
        title, key = _GRAPHS[name]
        heads = [_HEADS.get(figure, figure) for figure in found["figures"]]
        yield f"## {title}\n"
        yield "| | " + " | ".join(heads) + " |"
        yield "|---|" + "---:|" * len(heads)
        old = printed.get(key, {})
        label = "printed" if key == name else "printed, of 148 people"
        for cell in _in_order(table):
            model, _, epsilon = cell.partition(" ")
            words = f"`{model}`, {epsilon}" if epsilon else "**original**"
            yield _line(words, table[cell], found["figures"])
            if cell in old:
                yield _line(f"*{label}: {words.strip('*')}*", old[cell], found["figures"])
        yield ""


def _in_order(table: dict[str, Any]) -> list[str]:
    """Return the cells of a table: the original, then model by model, epsilon by epsilon."""
    models = ("original", "1k", "2k", "kronecker", "auto")

    def key(cell: str) -> tuple[int, float]:
        model, _, epsilon = cell.partition(" ")
        return models.index(model), float(epsilon or 0)

    return sorted(table, key=key)


def _line(words: str, figures: list[float | None], names: list[str]) -> str:
    cells = [_figure(x, name) for x, name in zip(figures, names, strict=True)]
    return f"| {words} | " + " | ".join(cells) + " |"


def _figure(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    if name in _COUNTS:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 and name != "l_max" else f"{value:.1f}"


def _short(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-3 else f"{value:.1e}"


def _routes(found: Any) -> Iterator[str]:
    names = tuple(dict.fromkeys(row["statistic"] for row in found["routes"]))
    yield "| graph | transitivity | average clustering | coefficient of the hub | assortativity |"
    yield "|---|---|---|---|---|"
    shown = [name for name in names if name != "modularity"]
    for graph in dict.fromkeys(row["graph"] for row in found["routes"]):
        rows = {row["statistic"]: row for row in found["routes"] if row["graph"] == graph}
        yield f"| {graph} | " + " | ".join(_pair(rows[name]) for name in shown) + " |"


def _nodes(found: Any) -> Iterator[str]:
    routes = ("direct", "decomposed", "smooth")
    yield "| graph | neighbours | truth | epsilon | `statistic_ladder` | `decomposed` | smooth |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in found["nodes"]:
        best = min(row[route] for route in routes)
        cells = [f"**{_short(row[r])}**" if row[r] == best else _short(row[r]) for r in routes]
        start = f"| {row['graph']} | {row['degree']} | {row['truth']:.3g} | {row['epsilon']:g} | "
        yield start + " | ".join(cells) + " |"


def _corners(found: Any) -> Iterator[str]:
    yield "| graph | epsilon | all zeros | noise, negative ones zero | released |"
    yield "|---|---:|---:|---:|---:|"
    for row in found["corners"]:
        numbers = [_short(row[name]) for name in ("all zeros", "noise", "released")]
        yield f"| {row['graph']} | {row['epsilon']:g} | " + " | ".join(numbers) + " |"


def _pair(row: dict[str, Any]) -> str:
    errors = [row["direct"], row["decomposed"]]
    best = min(error for error in errors if error is not None)
    cells = [f"**{_short(e)}**" if e == best else _short(e) for e in errors if e is not None]
    return f"{row['truth']:.3g} ± " + " / ".join(cells)


def _splits(found: Any) -> Iterator[str]:
    yield "| graph | transitivity | coefficient of the hub | assortativity |"
    yield "|---|---|---|---|"
    by_graph = {(row["graph"], row["statistic"]): row for row in found["splits"]}
    for words, graphs in _KINDS:
        cells = []
        for statistic in _STATISTICS:
            rows = [by_graph[graph, statistic] for graph in graphs]
            ratios = [row["equal / chosen"] for row in rows]
            if len(rows) == 1:
                ratios.append(rows[0]["equal / best known"])
            cells.append(", ".join(f"{r:.2f}" if r < 9.95 else f"{r:.0f}" for r in ratios))
        yield f"| {words} | " + " | ".join(cells) + " |"


def _vectors(found: Any) -> Iterator[str]:
    heads = (
        "graph",
        "epsilon",
        "guess the mean",
        "*one* budget: `decomposed`, `private_bound`",
        "*n* budgets: `decomposed`, `private_bound`",
        "printed for n budgets: parts, direct",
    )
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in found["vectors"]:
        cells = [row["graph"], f"{row['epsilon']:g}", _short(row["constant guess"])]
        for budget in ("one budget", "n budgets"):
            cells.append(
                f"{_short(row[f'{budget}: decomposed'])}, {_short(row[f'{budget}: bounded'])}"
            )
        old = row["printed parts"], row["printed direct"]
        cells.append(", ".join(_short(value) for value in old) if row["printed parts"] else "")
        yield "| " + " | ".join(cells) + " |"


def _per_node(found: Any) -> Iterator[str]:
    epsilons = sorted({row["epsilon"] for row in found["per_node"]})
    yield "| graph | " + " | ".join(f"epsilon = {epsilon:g}" for epsilon in epsilons) + " |"
    yield "|---|" + "---|" * len(epsilons)
    for graph in dict.fromkeys(row["graph"] for row in found["per_node"]):
        rows = [row for row in found["per_node"] if row["graph"] == graph]
        cells = [
            f"{row['Kolmogorov-Smirnov distance']:.2g} (bound {row['bound (median)']})"
            for row in sorted(rows, key=lambda row: row["epsilon"])
        ]
        yield f"| {graph} | " + " | ".join(cells) + " |"
