"""The data worker: the only process that reads records. It pays before it draws."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.progress import watching
from tulle.core.reading import are_row_numbers, reading
from tulle.reports.charts import coarsen
from tulle.sql.dialect import DEFAULT
from tulle.sql.engines.connector import connectors
from tulle.studio.questions import Asked, build

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.ledger.session import Session

Report = Callable[[float | None, str], None]

_PEEKED = 200
"""So many lines of a file are looked at to guess what it holds."""

_PIXELS = 96
"""Heat maps are drawn with at most so many rows and columns."""


_NAMED = 30
"""Rows and columns of a heat map carry their names up to so many."""


class DataWorker:
    """One dataset and, once opened, its account. Its methods are what pages may ask of it."""

    report: Report = staticmethod(lambda fraction, label: None)

    def __init__(self) -> None:
        self._dataset: Dataset | None = None
        self._session: Session | None = None
        self._spec: Mapping[str, Any] = {}

    # --- before a study is opened -----------------------------------------------------------

    def peek(self, path: str) -> dict[str, Any]:
        """Look at a file's beginning: its columns, and what it probably is."""
        if _is_database(path):
            return {"kind": "database", "columns": []}
        if path.endswith((".mtx", ".graphml", ".mtx.gz", ".graphml.gz")):
            return {"kind": "graph", "columns": []}
        if path.endswith(".parquet"):
            import pyarrow.parquet

            with reading(Path(path).name):
                names = map(str, pyarrow.parquet.read_schema(path).names)
            columns = [name for name in names if not are_row_numbers(name)]
            return {"kind": "graph" if len(columns) == 2 else "contributions", "columns": columns}
        rows = _first_rows(path)
        header = rows[0] if rows and not _all_numbers(rows[0]) else []
        body = rows[1:] if header else rows
        width = max(map(len, rows), default=0)
        binary = width > 2 and all(cell in {"0", "1"} for row in body for cell in row)
        kind = "matrix" if binary else "contributions" if header and width > 3 else "graph"
        # The first row is shown to the custodian, who says whether it is a header.
        return {
            "kind": kind,
            "columns": header or [str(i) for i in range(width)],
            "header": bool(header),
            "first": rows[0] if kind == "graph" and rows else [],
        }

    def catalogue(self, url: str) -> dict[str, Any]:
        """Return the tables of a database, their columns and the keys it declares."""
        from tulle.sql.data import open_engine

        engine = open_engine(url, {})
        try:
            tables = {name: dict(columns) for name, columns in engine.catalogue().items()}
            keys = engine.keys()
            links = [
                {"table": table, "columns": list(columns), "to": to, "key": list(key)}
                for (table, columns), (to, key) in keys.foreign.items()
            ]
            primary = {table: list(columns) for table, columns in keys.primary.items()}
        finally:
            engine.close()
        return {"tables": tables, "links": links, "primary": primary}

    def read(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Read the data as the custodian described it."""
        self.report(None, "reading the data")
        self._dataset = _READERS[spec["kind"]](spec)
        self._spec = spec
        return {"kind": self._dataset.kind, "units": list(self._dataset.units)}

    def open(
        self, ledger: str, account: str, unit: str, epsilon: str, delta: str
    ) -> dict[str, Any]:
        """Open the account, or open it again with the same terms; return what is public."""
        from tulle.ledger.ledger import Ledger

        # Without a budget: an account that exists, with the terms and the renewal that it has.
        self._session = Ledger(ledger).open(
            account, self._data, unit=unit, epsilon=epsilon or None, delta=delta
        )
        return {
            "facts": dict(self._data.facts(self._session.unit)),
            "assumptions": list(self._data.assumptions(self._session.unit)),
            "names": self._names(),
            "columns": list(self._columns()),
        }

    def partition(self, column: str) -> str:
        """Return the part of each node by a column of attributes, which is declared public so."""
        from tulle.graphs.synthesis.query import synthetic

        columns = self._columns()
        if column not in columns:
            raise InputError(f"There is no column {column!r} of nodes that can be made public.")
        return str(synthetic(partition=columns[column].tolist()).chosen()["partition"])

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of nodes that may be declared public: under node privacy, none."""
        if self._session is None or self._session.unit.base != "edge":
            return {}
        return getattr(self._data, "node_attributes", {})

    # --- the one way out --------------------------------------------------------------------

    def ask(
        self,
        asked: Asked,
        epsilon: str,
        delta: str,
        mechanism: str | None = None,
        options: Mapping[str, Any] | None = None,
        again: bool = False,
    ) -> str:
        """Pay for an answer, draw it and keep it in the ledger; return its debit."""
        if self._session is None:
            raise InputError("The account is not open.")
        self.report(None, "drawing the answer")
        # Progress tells of the data: it is shown to the custodian, inside, and kept nowhere.
        with watching(lambda progress: self.report(None, str(progress))):
            release = self._session.ask(
                build(asked),
                epsilon=epsilon,
                delta=delta,
                mechanism=mechanism,
                again=again,
                **(options or {}),
            )
        assert release.debit is not None
        return release.debit

    def step(self, stream: str) -> int:
        """Release the next step of a stream, which is paid for; return how many there are now."""
        from tulle.streams.stream import Stream

        if self._session is None:
            raise InputError("The account is not open.")
        self.report(None, "releasing the next step")
        found = Stream.again(self._session, stream)
        found.advance()
        return found.released

    # --- what the custodian may look at, and nobody else ------------------------------------

    def truth(self, asked: Asked) -> Any:
        """Return the true answer: a number, or a list of them."""
        import numpy as np

        self.report(None, "computing the truth")
        found = build(asked).truth(self._data)
        if isinstance(found, int | float):
            return found
        if isinstance(found, np.ndarray):
            return found.tolist()
        raise InputError("This truth is not a number: compare it with the release instead.")

    def summary(self) -> str:
        """Say what was read and what was dropped of it, where the kind of data tells."""
        held = getattr(self._data, "what_was_read", None)
        return "" if held is None else str(held())

    def heat(self) -> dict[str, Any]:
        """Return the true matrix, made coarse enough to draw."""
        return {**draw_coarsely(_matrix_of(self._data)), "names": self._names()}

    def _names(self) -> list[list[str]] | None:
        """Return the declared, public names of a grid, if there are any and they can be drawn."""
        data: Any = self._data
        if data.kind != "contributions" or not data.declared or max(data.shape) > _NAMED:
            return None
        return [list(map(str, data.row_names)), list(map(str, data.column_names))]

    def compare(self, release: Mapping[str, Any]) -> dict[str, Any]:
        """Measure how near a released synthetic graph is to the original."""
        import tulle
        from tulle.core.release import Release

        self.report(None, "comparing with the original")
        graph: Any = self._data
        found: dict[str, Any] = tulle.compare(graph, Release.from_json(release).value).to_json()
        return found

    def attack(self, release: Mapping[str, Any], pair: list[str], prior: str) -> dict[str, Any]:
        """Attack a release as the strongest adversary would, who knows all data but one unit."""
        from tulle.attacks.limits import belief_limits
        from tulle.core.release import Release

        opened = Release.from_json(release)
        graph: Any = self._data
        bound = {
            "secret": f"Is {opened.guarantee.unit.meaning.partition(';')[0]} in the data?",
            "before": float(validate.probability(prior=prior)),
            "after": None,
            "limits": belief_limits(prior, opened.guarantee),
            "words": "No attack on this kind of release is built in; the limits hold for all.",
        }
        if graph.kind != "graph" or not pair:
            return bound
        places = [_place(graph, label) for label in pair]
        found = _attack_pair(opened, graph, places, prior)
        if found is None:
            return {**bound, "secret": f"Are {pair[0]} and {pair[1]} linked?"}
        return {
            "secret": f"Are {pair[0]} and {pair[1]} linked?",
            "before": found.before,
            "after": found.after,
            "limits": found.limits,
            "words": f"They know {', '.join(found.knows)}; {found.reason}.",
        }

    @property
    def _data(self) -> Dataset:
        if self._dataset is None:
            raise InputError("No data is open.")
        return self._dataset


def draw_coarsely(matrix: Any) -> dict[str, Any]:
    """Return a matrix for a heat map, no finer than can be told apart on a screen."""
    import numpy as np

    values = np.round(coarsen(matrix, _PIXELS), 6)
    return {"shape": list(np.shape(matrix)), "values": values.tolist()}


def _matrix_of(dataset: Any) -> Any:
    if dataset.kind == "matrix":
        return dataset.to_numpy()
    if dataset.kind == "contributions":
        return dataset.totals()
    raise InputError(f"A {dataset.kind} is not drawn as a heat map.")


def _place(graph: Any, label: str) -> int:
    import numpy as np

    found = np.flatnonzero(np.asarray(graph.labels).astype(str) == label.strip())
    if not len(found):
        raise InputError("One of the two is not in the network.")
    return int(found[0])


def _attack_pair(release: Any, graph: Any, pair: list[int], prior: str) -> Any:
    from tulle.attacks.edges import count_inference, edge_inference
    from tulle.graphs.topology.response import Topology

    if isinstance(release.value, Topology):
        return edge_inference(release, pair=pair, prior=prior)
    try:
        return count_inference(release, pair=pair, known=graph, prior=prior)
    except InputError:
        return None


# --- reading ----------------------------------------------------------------------------------


def _read_graph(spec: Mapping[str, Any]) -> Dataset:
    from tulle.graphs.data import Graph

    ignore = tuple(spec.get("ignore", ()))
    graph = Graph.read(
        spec["path"],
        nodes=spec.get("nodes"),
        columns=spec.get("columns"),
        header=spec.get("header"),
        delimiter=spec.get("delimiter"),
        ignore=ignore,
    )
    if not spec.get("attributes"):
        return graph
    return graph.with_attributes(nodes=spec["attributes"])


def _read_matrix(spec: Mapping[str, Any]) -> Dataset:
    from tulle.matrices.binary.data import BinaryMatrix

    # Said by the custodian: a first row with something odd in it would pass for names.
    return BinaryMatrix.read(spec["path"], header=bool(spec.get("header", True)))


def _read_contributions(spec: Mapping[str, Any]) -> Dataset:
    from tulle.core.cells import read_table
    from tulle.matrices.contributions.data import Contributions

    table = read_table(spec["path"], drop=True)
    columns = {name: spec[name] for name in ("individual", "row", "column")}
    if spec.get("weight"):
        columns["weight"] = spec["weight"]
    return Contributions.from_table(
        table, **columns, rows=spec["rows"], columns=spec["columns"], outside="drop"
    )


def _read_database(spec: Mapping[str, Any]) -> Dataset:
    from tulle.sql.data import Database

    if str(spec["path"]).endswith(".toml"):
        return Database.from_toml(spec["path"])
    return Database.connect(
        database_url(spec["path"]),
        owners=spec["owners"],
        public=spec.get("public", ()),
        ranges=spec.get("ranges"),
        keys=spec.get("keys"),
    )


_READERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "graph": _read_graph,
    "matrix": _read_matrix,
    "contributions": _read_contributions,
    "database": _read_database,
}


def database_url(place: str) -> str:
    """Return the URL of a database that was named by a file or by its URL."""
    return place if "://" in place else f"{DEFAULT}:///{place}"


def _is_database(place: str) -> bool:
    return "://" in place or place.endswith(database_suffixes())


def database_suffixes() -> tuple[str, ...]:
    """Return how the names of files end that are, or describe, a database."""
    return (*(suffix for one in connectors() for suffix in one.suffixes), ".toml")


def _first_rows(path: str, limit: int = _PEEKED) -> list[list[str]]:
    opened = gzip.open if path.endswith(".gz") else open
    with (
        reading(Path(path).name),
        opened(path, "rt", encoding="utf-8", errors="replace", newline="") as file,
    ):
        lines: list[str] = []
        for line in file:
            if line.strip() and not line.startswith(("#", "%")):
                lines.append(line.rstrip("\r\n"))
            if len(lines) >= limit:
                break
        mark = max(",;\t ", key=lines[0].count) if lines else " "
        if mark == " ":
            return [line.split() for line in lines]
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]


def _all_numbers(row: list[str]) -> bool:
    def number(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return False
        return True

    return all(number(cell) for cell in row)
