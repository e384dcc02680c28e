"""A released answer: the only thing that may be published."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.error_law import ErrorLaw, check_level, law_from_json
from tulle.core.errors import InputError, NoIntervalError, raise_alone
from tulle.core.guarantee import Guarantee
from tulle.core.labels import Labels
from tulle.core.public import public
from tulle.core.validate import visible

if TYPE_CHECKING:
    from tulle.core.expression_error import Quotient
    from tulle.core.table import LabelledTable

FORMAT = 1


class Drawing(str):
    """A drawing as SVG, which notebooks show as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return "<a drawing, as SVG>"


@public("Plan, pay, release")
@dataclass(frozen=True, eq=False)
class Release:
    """A private value with its guarantee, its error and where it was booked.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
        >>> low, high = r.interval(0.95)
        >>> low <= r.value <= high
        True
    """

    value: Any
    query: str
    """The question, as text."""
    mechanism: str
    guarantee: Guarantee
    error: ErrorLaw | None
    """The public law of the error, or None when the release has no interval."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Public settings of the mechanism and public facts that it used."""
    debit: str | None = None
    """Digest of the ledger row that paid for it, or None for a release outside a ledger."""
    versions: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Release] = field(default_factory=dict)
    """For an expression: the releases of its leaves, by question."""
    labels: Labels = field(default_factory=Labels)
    """What the numbers are about: the question in words, names of nodes, groups, cells."""
    dataset: str | None = None
    """What the data is called: the name of the account in the ledger."""
    date: str | None = None
    """The day of the answer, in UTC."""
    version: str | None = None
    """Which version of the data it is about, where the ledger's account has versions."""
    kept: bool = False
    """Whether this answer had been given before and was found in the ledger, at no price."""

    def interval(self, level: float) -> Any:
        """Return (low, high) that contains the truth with at least this probability.

        For a vector the two are arrays, and all entries are covered at once. A side without an
        end is infinite: of a truncated total, only the lower end is known. For a table the two
        map names of columns to ends. For an expression
        the intervals of its k leaves, each at the k-th root of the level, hold together because
        their noise is independent; the ends of the expression over them are returned, so it
        covers at least as often as stated.

        Raises:
            NoIntervalError: when this release, or a part of it, has no error law.
        """
        import numpy as np

        level = check_level(level)
        if "expression" in self.parameters and self.parts:
            from tulle.core.expression_error import image

            each = level ** (1 / len(self.parts))
            ranges = {name: part.interval(each) for name, part in self.parts.items()}
            low, high = image(self.parameters["expression"], ranges)
            lowest, highest = self._limits()
            return max(low, lowest), min(high, highest)
        if self.error is None and self.parts:
            raise NoIntervalError(
                f"This release of {self.query} is a table: release.value has the ends of each "
                "column beside it: of n, in n_low and n_high."
            )
        if self.error is None:
            bought = "epsilon_spread" in self.parameters
            raise NoIntervalError(
                f"This release of {self.query} has no interval: "
                + (
                    "none was bought. Ask again with the mechanism's own share for the interval "
                    "above zero."
                    if bought
                    else f"mechanism {self.mechanism!r} cannot tell how far off an entry may be."
                )
            )
        low, high = self.error.interval(self.value, level)
        if isinstance(low, Mapping):
            return low, high
        lowest, highest = self._limits()
        # A value that was not clipped may have both ends beyond what is possible.
        if np.ndim(self.value) == 0:
            ends = (min(max(float(end), lowest), highest) for end in (low, high))
            return next(ends), next(ends)
        shape = np.shape(self.value)
        lows, highs = (np.broadcast_to(end, shape) for end in (low, high))
        return np.clip(lows, lowest, highest), np.clip(highs, lowest, highest)

    def _limits(self) -> tuple[float, float]:
        """Return public ends of every number; one that is not known is infinite."""
        low, high = self.parameters.get("range", (None, None))
        return -math.inf if low is None else low, math.inf if high is None else high

    def table(self, level: float = 0.95) -> LabelledTable:
        """Return the answer as named columns, whatever its form.

        A number is one row; a vector has a row for each place with its label, a matrix a row for
        each cell with the names of its row and column. The columns ``value``, ``low`` and
        ``high`` hold the answer and the ends of its interval; an end that is not known is None.
        A number outside of what is known to be possible is shown at the nearer end of that.
        Graphs are tables of their edges, spectra of their vectors.

        Example:
            >>> import tulle
            >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
            >>> r = tulle.release(square, tulle.degrees(), unit="edge", epsilon=40.0)
            >>> r.table().to_dict()["value"]
            [2, 2, 2, 2]
        """
        from tulle.core.release_table import table_of

        return table_of(self, check_level(level))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of :meth:`table` as lists, by name."""
        return self.table().to_dict()

    def to_pandas(self) -> Any:
        """Return :meth:`table` as a pandas DataFrame."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """Return :meth:`table` as a polars DataFrame."""
        return self.table().to_polars()

    def to_arrow(self) -> Any:
        """Return :meth:`table` as a pyarrow Table."""
        return self.table().to_arrow()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table().__arrow_c_stream__(requested_schema)

    def quotients(self) -> list[Quotient]:
        """Return, for each quotient in an expression, its floor and its bias.

        A quotient of noisy numbers is released as l·r / (r² + v), v the variance of the noise in
        the denominator r: it has a mean, which l / r does not, and second-order bias is taken out.
        """
        if "expression" not in self.parameters or not self.parts:
            return []
        from tulle.core.expression_error import quotients

        return quotients(self.parameters["expression"], *noisy_values(self.parts))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form that :meth:`from_json` reads back exactly."""
        from tulle.core import codec

        known = {} if self.version is None else {"version": self.version}
        return {
            "format": FORMAT,
            "query": self.query,
            "value": codec.encode(self.value),
            "mechanism": self.mechanism,
            "guarantee": self.guarantee.to_json(),
            "error": None if self.error is None else self.error.to_json(),
            "parameters": codec.finite(dict(self.parameters)),
            "debit": self.debit,
            "versions": dict(self.versions),
            "parts": {name: part.to_json() for name, part in self.parts.items()},
            "labels": self.labels.to_json(),
            "dataset": self.dataset,
            "date": self.date,
            **known,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Release:
        """Read a release from JSON text or from parsed JSON.

        Raises:
            InputError: when it is not a release, or one of another format.
        """
        from tulle.core import codec

        try:
            parsed = json.loads(data) if isinstance(data, str) else data
            if parsed["format"] != FORMAT:
                raise InputError(
                    f"This release has format {parsed['format']}; this version of tulle reads "
                    f"format {FORMAT}."
                )
            return cls(
                value=codec.decode(parsed["value"]),
                query=parsed["query"],
                mechanism=parsed["mechanism"],
                guarantee=Guarantee.from_json(parsed["guarantee"]),
                error=law_from_json(parsed["error"]),
                parameters=parsed["parameters"],
                debit=parsed["debit"],
                versions=parsed["versions"],
                parts={name: cls.from_json(part) for name, part in parsed["parts"].items()},
                labels=Labels.from_json(parsed.get("labels")),
                dataset=parsed.get("dataset"),
                date=parsed.get("date"),
                version=parsed.get("version"),
            )
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no release
            why = "no JSON" if isinstance(error, json.JSONDecodeError) else repr(error)
            raise_alone(
                InputError(
                    f"This is not a release written by tulle ({why}). Releases are written by "
                    "--out or release.save()."
                )
            )

    def save(self, path: str | Path) -> None:
        """Write the release as a JSON file."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def report(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page about this release, for people outside.

        It holds nothing but what the release holds. With ``path`` it is written there as well.

        Example:
            >>> import tulle
            >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
            >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
            >>> r.report().startswith("<!doctype html>")
            True
        """
        page: str = registry.find("page", "release")["outside"]([self])
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plot(self, path: str | Path | None = None) -> Drawing:
        """Draw the answer with its interval, names on the axes, as far as there is something.

        The drawing is SVG: a notebook shows it, and with ``path`` it is written there as well.

        Raises:
            InputError: when the answer is nothing that can be drawn.

        Example:
            >>> import tulle
            >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
            >>> r = tulle.release(square, tulle.degrees(), unit="edge", epsilon=1.0)
            >>> str(r.plot()).startswith("<svg")
            True
        """
        drawn = Drawing(registry.find("page", "release")["drawing"](self))
        if path is not None:
            Path(path).write_text(drawn + "\n", encoding="utf-8")
        return drawn

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release from a JSON file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise_alone(InputError(f"{path} cannot be read as a release: {why}."))
        try:
            return cls.from_json(text)
        except InputError as error:
            raise_alone(InputError(f"{path}: {error}"))

    def _lines(self) -> list[tuple[str, str]]:
        from tulle.core import wording

        said = wording.state(self)
        has_ends = wording.has_ends_beside(self) or wording.ends(self) is not None
        lines = [
            ("question", self.labels.question),
            ("value", said.answer),
            ("95 % interval", said.interval if has_ends else ""),
            ("width", said.wider),
            ("not in it", said.not_in_it),
            ("guarantee", str(self.guarantee)),
            ("mechanism", self.mechanism),
            ("debit", self.debit[:12] if self.debit else "none (outside a ledger)"),
            ("kept", said.kept),
        ]
        return [(name, content) for name, content in lines if content]

    def _details(self) -> LabelledTable | None:
        """Return the table, where the answer is more than one number."""
        import numpy as np

        one = isinstance(self.value, int | float | np.number)
        return None if one else self.table()

    def __repr__(self) -> str:
        rows = "\n".join(f"  {name:<14}{content}" for name, content in self._lines())
        details = self._details()
        below = "" if details is None else f"\n{details.shown(8)}"
        return visible(f"Release of {self.query}\n{rows}{below}")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(content)}</td></tr>"
            for name, content in self._lines()
        )
        title = html.escape(self.query)
        details = self._details()
        below = "" if details is None else details.to_html(8)
        return f"<table><caption>Release of <b>{title}</b></caption>{rows}</table>{below}"


def noisy_values(parts: Mapping[str, Release]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the leaves' released values and the variances of their noise, by question.

    A leaf whose release has no error law, or one of which only one end is known, counts as if it
    had no noise.
    """
    values = {name: float(part.value) for name, part in parts.items()}
    known = {name: part.error.variance() for name, part in parts.items() if part.error is not None}
    return values, {name: size for name, size in known.items() if math.isfinite(size)}
