"""The drawing of the rooms, made from the imports, and the walk of a question through them.

``python docs/architecture.py`` draws ``pictures/architecture.svg`` anew; ``python
docs/architecture.py walk edge`` (or ``node``, ``sql``) releases an answer in a fresh process and
lists every module of ours that it passes. A test fails when the page or the drawing is out of date.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "tulle"
INK, SOFT, COOL = "#1d2326", "#5b666b", "#14666a"
WIDTH, BOX, ROW, COLUMNS = 1000, 140, 94, 6


def read_imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """Return which rooms each room imports, also inside functions; not for typing alone."""
    rooms = {path.parent.name for path in source.glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for path in (source / room).rglob("*.py"):
            found[room] |= set(_imported(path)) & rooms - {room}
    return found


def _imported(path: Path) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        waiting += ast.iter_child_nodes(node)
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("tulle."))


def levels(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return how far each room is below the top: lower than all that import it, by as little."""
    found: dict[str, int] = {}
    while len(found) < len(imports):
        ready = [
            room
            for room in imports
            if room not in found and all(o in found for o in imports if room in imports[o])
        ]
        if not ready:
            raise SystemExit(f"Rooms import each other: {sorted(set(imports) - set(found))}.")
        for room in ready:
            above = (found[other] + 1 for other in imports if room in imports[other])
            found[room] = max(above, default=0)
    return found


def direct(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out imports that another import leads to anyway: the drawing shows the rest."""
    below: dict[str, set[str]] = {}
    for room in sorted(imports, key=levels(imports).__getitem__, reverse=True):
        below[room] = set(imports[room]).union(*(below[other] for other in imports[room]))
    return {
        room: {o for o in others if not any(o in below[p] for p in others - {o})}
        for room, others in imports.items()
    }


def seats(level: dict[str, int], arrows: list[tuple[str, str]]) -> dict[str, int]:
    """Return the column of each room: arrows short, and none behind a room where that can be."""
    rows = [sorted(r for r in level if level[r] == h) for h in range(max(level.values()) + 1)]
    column = {room: seat for row in rows for seat, room in enumerate(row)}

    def cost() -> float:
        total = 0.0
        for start, end in arrows:
            total += abs(column[start] - column[end])
            for h in range(level[start] + 1, level[end]):
                share = (h - level[start]) / (level[end] - level[start])
                here = column[start] + share * (column[end] - column[start])
                total += sum(20 for room in rows[h] if abs(column[room] - here) < 0.6)
        return total

    for _ in range(4):
        for row in rows:
            best = column.copy()
            least = cost()
            for chosen in permutations(range(COLUMNS), len(row)):
                column |= dict(zip(row, chosen, strict=True))
                if (now := cost()) < least:
                    best, least = column.copy(), now
            column |= best
    return column


def draw_rooms(source: Path = SOURCE) -> str:
    """Draw every room above all that it imports."""
    imports = read_imports(source)
    level = levels(imports)
    arrows = [(room, o) for room, others in sorted(direct(imports).items()) for o in sorted(others)]
    place = {
        room: ((seat + 0.5) * WIDTH / COLUMNS - BOX / 2, 20 + ROW * level[room])
        for room, seat in seats(level, arrows).items()
    }
    drawn = [
        f'<line x1="{place[room][0] + BOX / 2:.0f}" y1="{place[room][1] + 40:.0f}" '
        f'x2="{place[other][0] + BOX / 2:.0f}" y2="{place[other][1]:.0f}" stroke="{SOFT}" '
        'stroke-width="1.2" marker-end="url(#arrow)"/>'
        for room, other in arrows
    ]
    for room, (x, y) in sorted(place.items()):
        drawn += [
            f'<rect x="{x:.0f}" y="{y}" width="{BOX}" height="40" rx="8" fill="#ffffff" '
            f'stroke="{COOL}"/>',
            _text(x + BOX / 2, y + 26, room, INK, 16),
        ]
    height = 40 + ROW * max(level.values()) + 40
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="{SOFT}"/></marker>'
        "</defs>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}">{arrow}<rect width="{WIDTH}" height="{height}" rx="10" '
        f'fill="#fbfaf6"/>{"".join(drawn)}</svg>\n'
    )


def _text(x: float, y: float, words: str, colour: str, size: int) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" font-family="system-ui, sans-serif" '
        f'font-size="{size}" fill="{colour}">{words}</text>'
    )


class Walk:
    """Modules of ours whose functions are called, in the order of the first call."""

    def __init__(self) -> None:
        self.passed: dict[str, str] = {}
        self.after_binding: set[str] = set()
        self.after_plan: set[str] = set()
        self._importing = 0
        self._bound = self._planned = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Listen to calls and returns.

        What runs while a module is imported is not counted, nor what tells of compiling.
        """
        code = frame.f_code
        if code.co_name == "<module>" or code.co_qualname.startswith("_Teller."):
            self._importing += {"call": 1, "return": -1}.get(event, 0)
        elif self._importing or not code.co_filename.startswith(str(SOURCE)):
            return
        elif event == "call":
            module = ".".join(Path(code.co_filename).relative_to(SOURCE).with_suffix("").parts)
            self.passed.setdefault(module, code.co_qualname)
            if self._bound:
                self.after_binding.add(module)
            if self._planned:
                self.after_plan.add(module)
        elif event == "return":
            self._bound |= code.co_name == "bind"
            self._planned |= code.co_name == "make_plan"


def walk(unit: str, *, seeded: bool = True) -> tuple[Walk, int]:
    """Release one answer and return its walk, and how many modules of ours are imported then.

    With ``seeded`` noise the walk is the same every time; the seeded source imports more.
    """
    import tulle

    if unit == "sql":
        import duckdb

        connection = duckdb.connect()
        connection.execute("CREATE TABLE visit AS SELECT i % 9 AS person FROM range(50) t(i)")
        data: Any = tulle.Database.connect(connection, owners={"visit": "person"})
        question: Any = tulle.sql("SELECT COUNT(*) FROM visit")
    else:
        pairs = [(node, (node + step) % 50) for node in range(50) for step in (1, 2)]
        data = tulle.Graph.from_edges(pairs, nodes=50)
        question = tulle.triangles()
    options: Any = {"unit": "participant" if unit == "sql" else unit, "epsilon": 1.0}
    if seeded:
        options["source"] = tulle.noise.SeededSource(1)
    found = Walk()
    sys.setprofile(found)
    try:
        tulle.release(data, question, **options)
    finally:
        sys.setprofile(None)
    return found, sum(name.partition(".")[0] == "tulle" for name in sys.modules)


def main() -> None:
    """Draw the rooms, or say how a question walks."""
    if sys.argv[1:2] == ["walk"]:
        found, imported = walk(sys.argv[2], seeded="--fresh" not in sys.argv)
        for module, function in found.passed.items():
            print(module, function)
        print(
            f"{imported} imported, {len(found.passed)} passed, {len(found.after_binding)} after "
            f"binding, {len(found.after_plan)} after the plan"
        )
    else:
        (HERE / "pictures" / "architecture.svg").write_text(draw_rooms(), encoding="utf-8")


if __name__ == "__main__":
    main()
