"""Genotypes from files: CSV, VCF text and PLINK bed, gzipped or not.

Errors name a line and never quote a genotype.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from tulle.core import registry
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.validate import counted
from tulle.genomes.data import MISSING, Cells, Genotypes

_MARKERS = ("chrom", "pos", "id", "ref", "alt")
_NOT_CALLED = {"", ".", "-1", "NA", "NaN", "nan", "./.", ".|."}
_CALLED = {"0": 0, "1": 1, "2": 2}
_UNKNOWN = {"", "0", "."}
"""How files write an allele that nobody carries."""

PHENOTYPES = "phenotypes"
"""Says that the labels are the phenotypes of a PLINK file."""


class _Found(NamedTuple):
    """What a file holds: one row per person, one column per SNP."""

    people: Sequence[str]
    cells: Cells
    names: Sequence[str]
    counted: Sequence[str]
    other: Sequence[str]
    phenotypes: Sequence[str] | None = None


@dataclass
class _Columns:
    """SNPs as they are read: one list of genotypes each."""

    people: list[str]
    cells: list[np.ndarray[Any, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def add(self, place: str, name: str, ref: str, alt: str, values: Any) -> None:
        """Keep one SNP, under a name of its own."""
        for candidate in (name if name not in ("", ".") else place, f"{place}:{ref}:{alt}"):
            if candidate not in self.seen:
                break
        else:
            raise InputError(f"The SNP {place} {ref} {alt} occurs twice in the file.")
        self.seen.add(candidate)
        self.cells.append(values)
        self.names.append(candidate)
        self.counted.append(alt.upper())
        self.other.append(ref.upper())

    def found(self) -> _Found:
        """Return all SNPs together."""
        shape = len(self.people), len(self.cells)
        held = np.column_stack(self.cells) if self.cells else np.empty(shape, dtype=np.int8)
        return _Found(self.people, held, self.names, self.counted, self.other)


@registry.register("data", "genotypes", "read")
def read_genotypes(
    path: str | PathLike[str],
    *,
    cases: Any = None,
    snps: Sequence[str] | None = None,
    counted: Sequence[str] | None = None,
    format: str | None = None,
) -> Genotypes:
    """Read genotypes; the format is told by the file's name when it is not given.

    CSV: either a header ``chrom,pos,id,ref,alt`` and the people's names, with one SNP per line,
    or one person per line with their name first and the SNPs' names in the header. VCF: the GT
    field of sites with two alleles; sites with more are left out. PLINK: the bed, bim and fam
    files of that name. For ``snps`` and ``counted`` see :meth:`tulle.Genotypes.read`.

    Raises:
        InputError: naming the line, when the file is not of that format.
        MissingExtraError: for PLINK files, when bed-reader is not installed.
    """
    known = format or _format_of(Path(path))
    if known not in _READERS:
        raise InputError(f"format must be one of {', '.join(_READERS)}; got {format!r}.")
    if counted is not None and (snps is None or len(counted) != len(snps)):
        raise InputError("counted= names one allele for each SNP in snps=.")
    if isinstance(cases, str) and (cases != PHENOTYPES or known != "bed"):
        raise InputError(f"cases={PHENOTYPES!r} is the only text for it, and is for PLINK files.")
    found = _READERS[known](Path(path))
    if snps is not None:
        found = _declared(found, [str(name) for name in snps], counted)
    if not found.names:
        raise InputError("The file holds no SNP.")
    if isinstance(cases, str):
        cases = _from_phenotypes(found.phenotypes or ())
    return Genotypes(
        found.cells,
        cases=_labels(cases, found.people),
        snps=found.names,
        counted=found.counted,
        other=found.other,
    )


def _declared(found: _Found, names: list[str], counted: Sequence[str] | None) -> _Found:
    """Return the declared SNPs, in their order, with copies of the declared alleles counted."""
    known = {name: place for place, name in enumerate(found.names)}
    cells = np.full((len(found.people), len(names)), MISSING, dtype=np.int8)
    alleles = ["" for _ in names] if counted is None else [str(one).upper() for one in counted]
    others = ["" for _ in names]
    for column, name in enumerate(names):
        place = known.get(name)
        if place is None:
            continue
        first, second = found.counted[place], found.other[place]
        if counted is None:
            alleles[column], others[column] = first, second
            cells[:, column] = found.cells[:, place]
        elif alleles[column] == first or (first in _UNKNOWN and alleles[column] != second):
            cells[:, column], others[column] = found.cells[:, place], second
        elif alleles[column] == second or second in _UNKNOWN:
            cells[:, column], others[column] = _turned(found.cells[:, place]), first
    if counted is not None:
        # What the other allele is would tell who varies; it is not declared.
        others = ["" for _ in names]
    return found._replace(cells=cells, names=names, counted=alleles, other=others)


def _turned(cells: Cells) -> Cells:
    """Return copies of the other allele."""
    return np.where(cells == MISSING, MISSING, 2 - cells).astype(np.int8)


def _from_phenotypes(phenotypes: Sequence[str]) -> Any:
    if not set(phenotypes) <= {"1", "2"}:
        raise InputError(
            "At least one person's phenotype is neither 1 (a control) nor 2 (a case). Leave such "
            "people out of the files, or give cases= yourself."
        )
    return np.array([value == "2" for value in phenotypes], dtype=bool)


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bgz")]
    last = suffixes[-1].lstrip(".") if suffixes else ""
    if last not in _READERS:
        raise InputError(
            f"{path.name} does not say its format by its name. Give format= one of "
            f"{', '.join(_READERS)}."
        )
    return last


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file, gzipped or not, as UTF-8; other bytes are replaced, not refused."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        with io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="") as text:
            try:
                yield text
            except (gzip.BadGzipFile, EOFError):
                raise_alone(InputError(f"{path.name} is not a whole gzip file."))


# --- CSV --------------------------------------------------------------------------------------


def _read_csv(path: Path) -> _Found:
    with open_text(path) as text:
        rows = csv.reader(text)
        header = [cell.strip() for cell in next(rows, [])]
        if len(header) < 2:
            raise InputError(f"{path.name} has no header with names.")
        if tuple(cell.lower() for cell in header[:5]) == _MARKERS:
            return _by_snp(path, rows, header[5:])
        return _by_person(path, rows, header[1:])


def _by_snp(path: Path, rows: Any, people: list[str]) -> _Found:
    found = _Columns(people)
    for row in rows:
        if not row:
            continue
        if len(row) != len(people) + 5:
            raise InputError(
                f"{path.name}, line {rows.line_num}: {counted(len(row), 'cell')} where the header "
                f"has {len(people) + 5}."
            )
        chrom, position, name, ref, alt = (cell.strip() for cell in row[:5])
        values = _genotypes(row[5:], path, rows.line_num)
        found.add(f"{chrom}:{position}", name, ref, alt, values)
    return found.found()


def _by_person(path: Path, rows: Any, snps: list[str]) -> _Found:
    people, cells = [], []
    for row in rows:
        if not row:
            continue
        if len(row) != len(snps) + 1:
            raise InputError(
                f"{path.name}, line {rows.line_num}: {counted(len(row), 'cell')} where the header "
                f"has {len(snps) + 1}."
            )
        people.append(row[0].strip())
        cells.append(_genotypes(row[1:], path, rows.line_num))
    table = np.array(cells, dtype=np.int8).reshape(len(cells), len(snps))
    nothing = ["" for _ in snps]
    return _Found(people, table, snps, nothing, nothing)


def _genotypes(cells: Sequence[str], path: Path, line: int) -> np.ndarray[Any, Any]:
    values = np.full(len(cells), MISSING, dtype=np.int8)
    for place, cell in enumerate(cells):
        written = cell.strip()
        if written in _CALLED:
            values[place] = _CALLED[written]
        elif written not in _NOT_CALLED:
            raise InputError(f"{path.name}, line {line}: a genotype is not 0, 1, 2 or missing.")
    return values


# --- VCF --------------------------------------------------------------------------------------


def _read_vcf(path: Path) -> _Found:
    found: _Columns | None = None
    known: dict[str, int] = {}
    with open_text(path) as text:
        for number, line in enumerate(text, 1):
            if line.startswith("##") or not line.strip():
                continue
            cells = line.rstrip("\r\n").split("\t")
            if line.startswith("#CHROM"):
                found = _Columns(cells[9:])
                continue
            # A file without people has no column FORMAT either.
            width = 0 if found is None else len(found.people) + 9
            if found is None or len(cells) not in (width, 8 if width == 9 else width):
                raise InputError(f"{path.name}, line {number}: not a line of a VCF with genotypes.")
            chrom, position, name, ref, alt = cells[:5]
            fields = cells[8].split(":") if len(cells) > 8 else ["GT"]
            if "," in alt or alt == "." or "GT" not in fields:
                continue
            place = fields.index("GT")
            values = np.empty(len(found.people), dtype=np.int8)
            for person, cell in enumerate(cells[9:]):
                written = cell.split(":")[place] if cell.count(":") >= place else ""
                if written not in known:
                    known[written] = _call(written, path, number)
                values[person] = known[written]
            found.add(f"{chrom}:{position}", name.split(";")[0], ref, alt, values)
    if found is None:
        raise InputError(f"{path.name} has no line #CHROM: it is not a VCF.")
    return found.found()


def _call(written: str, path: Path, line: int) -> int:
    """Return how many copies of the second allele a GT field says; one allele counts as it is."""
    alleles = written.replace("|", "/").split("/")
    if any(allele in ("", ".") for allele in alleles):
        return MISSING
    if len(alleles) > 2 or not all(allele in ("0", "1") for allele in alleles):
        raise InputError(f"{path.name}, line {line}: a genotype is not a pair of 0, 1 or dots.")
    return sum(allele == "1" for allele in alleles)


# --- PLINK ------------------------------------------------------------------------------------


def _read_bed(path: Path) -> _Found:
    try:
        from bed_reader import open_bed
    except ImportError:
        raise_alone(MissingExtraError("bed-reader", "genomes", "Reading PLINK bed files"))
    try:
        with open_bed(path) as bed:
            cells = bed.read(dtype="int8")
            people, names = [str(name) for name in bed.iid], [str(name) for name in bed.sid]
            counted = [str(allele).upper() for allele in bed.allele_1]
            other = [str(allele).upper() for allele in bed.allele_2]
            phenotypes = [str(value) for value in bed.pheno]
    except (OSError, ValueError) as error:
        raise_alone(InputError(f"{path.name} cannot be read as PLINK ({type(error).__name__})."))
    table = np.where(cells < 0, MISSING, cells).astype(np.int8)
    # PLINK's first allele is the rarer one among these people: which is counted must not follow
    # from them, so it follows from the letters.
    turned = np.array([first < second for first, second in zip(counted, other, strict=True)], bool)
    table[:, turned] = _turned(table[:, turned])
    pairs = [sorted(pair) for pair in zip(counted, other, strict=True)]
    return _Found(
        people, table, names, [last for _, last in pairs], [first for first, _ in pairs], phenotypes
    )


def _labels(cases: Any, people: Sequence[str]) -> Any:
    if isinstance(cases, Mapping):
        missing = [name for name in people if name not in cases]
        if missing:
            raise InputError("cases says nothing about at least one person in the file.")
        return np.array([bool(cases[name]) for name in people], dtype=bool)
    if isinstance(cases, set | frozenset):
        return np.array([name in cases for name in people], dtype=bool)
    return cases


_READERS: dict[str, Callable[[Path], _Found]] = {
    "csv": _read_csv,
    "vcf": _read_vcf,
    "bed": _read_bed,
}
