"""What an adversary knows, as it is said on the command line: files of people, and shares."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, raise_alone
from tulle.core.release import Release
from tulle.core.validate import counted

if TYPE_CHECKING:
    from tulle.genomes.data import Genotypes
    from tulle.genomes.network import TraitNetwork
    from tulle.models.model import Model

_FREQUENCIES = ["snp", "frequency"]


def read_pair(written: str) -> tuple[int, int]:
    """Read two node numbers."""
    try:
        first, second = (int(part) for part in written.split(","))
    except ValueError:
        raise_alone(InputError(f"--pair is written U,V with two node numbers; got {written!r}."))
    return first, second


# --- traits ------------------------------------------------------------------------------------


def read_network(
    catalogue: Path | None, releases: list[str] | None, prevalence: list[str], genotypes: Path
) -> tuple[TraitNetwork, Any]:
    """Return the adversary's network and the genotypes that they have, as it counts them."""
    from tulle.genomes import Catalogue, Genotypes, TraitNetwork

    if (catalogue is None) == (not releases):
        raise InputError("Give either --catalogue or --release TRAIT=FILE, once per trait.")
    table = Genotypes.read(genotypes)
    if catalogue is not None:
        every = Catalogue.read(catalogue).only(snps=table.snps)
        network = TraitNetwork(every, prevalence=_prevalence(prevalence, every.traits))
    else:
        loaded = {}
        for item in releases or ():
            name, mark, path = item.rpartition("=")
            if not mark or not name:
                raise InputError(f"--release is written TRAIT=FILE; got {item!r}.")
            loaded[name] = Release.load(path)
        network = TraitNetwork.from_releases(
            loaded,
            prevalence=_prevalence(prevalence, tuple(loaded)),
            alleles=dict(zip(table.snps, table.counted, strict=True)),
        )
    if not network.snps:
        raise InputError("None of the published SNPs is in the table of genotypes.")
    return network, network.align(table)


def _prevalence(written: list[str], traits: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    others = None
    for item in written:
        name, mark, share = item.rpartition("=")
        value = _share(share, "--prevalence is written TRAIT=SHARE", item)
        if mark:
            found[name] = value
        else:
            others = value
    unknown = [name for name in found if name not in traits]
    if unknown:
        raise InputError(f"There is no trait {unknown[0]!r} with SNPs in this table.")
    if others is not None:
        found = dict.fromkeys(traits, others) | found
    return found


def _share(written: str, form: str, item: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise_alone(InputError(f"{form}; got {item!r}."))


# --- who took part -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Suspects:
    """People of whom half took part, as the SNPs of a release need them."""

    profiles: npt.NDArray[np.int8]
    reference: npt.NDArray[np.float64]
    members: npt.NDArray[np.bool_]

    @classmethod
    def read(cls, release: Release, genotypes: Path, members: Path, reference: Path) -> Suspects:
        """Read the three files; SNPs are matched by name.

        A SNP that the people's file lacks tells nothing about them; one that the reference lacks
        is refused.

        Raises:
            InputError: when the release is not one of allele counts, or files do not fit it.
        """
        from tulle.genomes import Genotypes
        from tulle.genomes.data import MISSING
        from tulle.genomes.estimates import allele_frequencies

        snps = next(iter(allele_frequencies(release).values())).snps
        named = {line.strip() for line in members.read_text(encoding="utf-8").splitlines()}
        table = Genotypes.read(genotypes, cases=named - {""})
        columns = {name: place for place, name in enumerate(table.snps)}
        if not columns.keys() & set(snps):
            raise InputError(f"None of the released SNPs is in {genotypes.name}.")
        known = _frequencies(reference)
        lacking = [name for name in snps if name not in known]
        if lacking:
            raise InputError(
                f"{reference.name} says nothing about {len(lacking)} of the {len(snps)} released "
                f"SNPs, {lacking[0]!r} among them."
            )
        profiles = np.full((table.shape[0], len(snps)), MISSING, dtype=np.int8)
        for place, name in enumerate(snps):
            if name in columns:
                profiles[:, place] = table.cells()[:, columns[name]]
        labels = table.labels
        assert labels is not None
        return cls(profiles, np.array([known[name] for name in snps]), labels)


def _frequencies(path: Path) -> dict[str, float]:
    """Read allele frequencies: a table snp,frequency, or genotypes of people at large."""
    from tulle.genomes import Genotypes
    from tulle.genomes.data import MISSING
    from tulle.genomes.reading import open_text

    with open_text(path) as text:
        rows = csv.reader(text)
        if [cell.strip().lower() for cell in next(rows, [])] == _FREQUENCIES:
            return {row[0].strip(): _frequency(row, path, rows.line_num) for row in rows if row}
    table: Genotypes = Genotypes.read(path)
    cells = table.cells()
    called = cells != MISSING
    # One allele more of either kind, so that no frequency is 0 or 1.
    copies = np.where(called, cells, 0).sum(axis=0) + 1
    shares = copies / (2 * called.sum(axis=0) + 2)
    return dict(zip(table.snps, shares.tolist(), strict=True))


def _frequency(row: list[str], path: Path, line: int) -> float:
    try:
        _, written = row
        return float(written)
    except ValueError:
        raise_alone(InputError(f"{path.name}, line {line}: not a SNP's name and a frequency."))


# --- model inversion ---------------------------------------------------------------------------


@dataclass(frozen=True)
class AttackTargets:
    """What an adversary knows about the people whose feature is guessed from a model."""

    marginal: Mapping[Any, float]
    known: Mapping[str, list[Any]]
    unknown: Mapping[str, Mapping[Any, float]]
    outcome: list[Any]
    truth: list[Any] | None

    @classmethod
    def read(
        cls,
        model: Model,
        people: Path,
        sensitive: str,
        marginal: Sequence[str],
        unknown: Sequence[str],
    ) -> AttackTargets:
        """Read a table with a column for each feature that is known, and one for the outcome.

        Raises:
            InputError: when a column is missing, or a value is not one that the model knows.
        """
        features = _features(model)
        if sensitive not in features:
            raise InputError(
                f"The model has no feature {sensitive!r}. It has: {', '.join(features)}."
            )
        columns = _read_columns(people)
        hidden: dict[str, dict[Any, float]] = {}
        for item in unknown:
            name, mark, rest = item.partition(":")
            if not mark or name not in features or name == sensitive:
                raise InputError(
                    f"--unknown is written FEATURE:VALUE=SHARE, with another feature of the "
                    f"model; got {item!r}."
                )
            hidden.setdefault(name, {}).update([_chance(model, name, rest, "--unknown")])
        needed = [model.target, *(n for n in features if n != sensitive and n not in hidden)]
        for name in needed:
            if name not in columns:
                raise InputError(
                    f"{people.name} has no column {name!r}, which the model needs. Add it"
                    + (
                        "."
                        if name == model.target
                        else f", or say how common its values are: --unknown {name}:VALUE=SHARE."
                    )
                )

        def read(name: str) -> list[Any]:
            return _converted(model, name, columns[name], people)

        return cls(
            marginal=dict(_chance(model, sensitive, item, "--marginal") for item in marginal),
            known={name: read(name) for name in needed[1:]},
            unknown=hidden,
            outcome=read(model.target),
            truth=read(sensitive) if sensitive in columns else None,
        )


def read_confusion(written: str | None) -> list[list[float]] | None:
    """Read four counts: actual by predicted class, row by row."""
    if written is None:
        return None
    try:
        a, b, c, d = (float(part) for part in written.split(","))
    except ValueError:
        raise_alone(
            InputError(
                f"--confusion is four counts A,B,C,D: of the first actual class those predicted "
                f"first and second, then of the second; got {written!r}."
            )
        )
    return [[a, b], [c, d]]


def _features(model: Model) -> list[str]:
    """Return the columns that the model was fitted on, before classes were spread out."""
    spread = {f"{n}={v}": n for n, listed in model.feature_classes.items() for v in listed[1:]}
    return list(dict.fromkeys(spread.get(name, name) for name in model.features))


def _reader(model: Model, name: str) -> Callable[[str], Any]:
    """Return what turns a cell of a column into the value that the model knows."""
    listed = model.classes if name == model.target else model.feature_classes.get(name)
    if listed is None:
        return float
    values = {str(value): value for value in listed}
    values |= {str(value).lower(): value for value in listed if isinstance(value, bool)}
    return lambda cell: values[cell]


def _converted(model: Model, name: str, cells: Sequence[str], path: Path) -> list[Any]:
    read, found = _reader(model, name), []
    for place, cell in enumerate(cells, 1):
        try:
            found.append(read(cell))
        except (KeyError, ValueError):
            # The cell itself is somebody's record.
            raise_alone(
                InputError(
                    f"{path.name}, row {place}: {name!r} is neither a number nor one of the "
                    "model's classes."
                )
            )
    return found


def _chance(model: Model, name: str, written: str, option: str) -> tuple[Any, float]:
    value, mark, share = written.rpartition("=")
    try:
        if not mark:
            raise ValueError
        return _reader(model, name)(value), float(share)
    except (KeyError, ValueError):
        raise_alone(
            InputError(
                f"{option} gives a value of {name!r} and how common it is, VALUE=SHARE; got "
                f"{written!r}."
            )
        )


def _read_columns(path: Path) -> dict[str, list[str]]:
    from tulle.genomes.reading import open_text

    with open_text(path) as text:
        rows = csv.reader(text)
        header = [cell.strip() for cell in next(rows, [])]
        found: dict[str, list[str]] = {name: [] for name in header}
        if not header or len(found) != len(header):
            raise InputError(f"{path.name} needs a header with a different name for each column.")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{path.name}, line {rows.line_num}: {counted(len(row), 'cell')} where the "
                    f"header has {len(header)}."
                )
            for name, cell in zip(header, row, strict=True):
                found[name].append(cell.strip())
    if not found[header[0]]:
        raise InputError(f"{path.name} lists nobody.")
    return found
