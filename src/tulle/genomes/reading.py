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
from typing import Any, TextIO

import numpy as np

from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.genomes.data import MISSING, Genotypes

_MARKERS = ("chrom", "pos", "id", "ref", "alt")
_NOT_CALLED = {"", ".", "-1", "NA", "NaN", "nan", "./.", ".|."}
_CALLED = {"0": 0, "1": 1, "2": 2}


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

    def build(self, cases: Any) -> Genotypes:
        """Return the sealed table."""
        if not self.cells:
            raise InputError("The file holds no SNP.")
        return Genotypes(
            np.column_stack(self.cells),
            cases=_labels(cases, self.people),
            snps=self.names,
            counted=self.counted,
            other=self.other,
        )


def read_genotypes(
    path: str | PathLike[str], *, cases: Any = None, format: str | None = None
) -> Genotypes:
    """Read genotypes; the format is told by the file's name when it is not given.

    CSV: either a header ``chrom,pos,id,ref,alt`` and the people's names, with one SNP per line,
    or one person per line with their name first and the SNPs' names in the header. VCF: the GT
    field of sites with two alleles; sites with more are left out. PLINK: the bed, bim and fam
    files of that name.

    Raises:
        InputError: naming the line, when the file is not of that format.
        MissingExtraError: for PLINK files, when bed-reader is not installed.
    """
    known = format or _format_of(Path(path))
    if known not in _READERS:
        raise InputError(f"format must be one of {', '.join(_READERS)}; got {format!r}.")
    return _READERS[known](Path(path), cases)


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


def _read_csv(path: Path, cases: Any) -> Genotypes:
    with open_text(path) as text:
        rows = csv.reader(text)
        header = [cell.strip() for cell in next(rows, [])]
        if len(header) < 2:
            raise InputError(f"{path.name} has no header with names.")
        if tuple(cell.lower() for cell in header[:5]) == _MARKERS:
            return _by_snp(path, rows, header[5:], cases)
        return _by_person(path, rows, header[1:], cases)


def _by_snp(path: Path, rows: Any, people: list[str], cases: Any) -> Genotypes:
    found = _Columns(people)
    for row in rows:
        if not row:
            continue
        if len(row) != len(people) + 5:
            raise InputError(
                f"{path.name}, line {rows.line_num}: {len(row)} cells where the header has "
                f"{len(people) + 5}."
            )
        chrom, position, name, ref, alt = (cell.strip() for cell in row[:5])
        values = _genotypes(row[5:], path, rows.line_num)
        found.add(f"{chrom}:{position}", name, ref, alt, values)
    return found.build(cases)


def _by_person(path: Path, rows: Any, snps: list[str], cases: Any) -> Genotypes:
    people, cells = [], []
    for row in rows:
        if not row:
            continue
        if len(row) != len(snps) + 1:
            raise InputError(
                f"{path.name}, line {rows.line_num}: {len(row)} cells where the header has "
                f"{len(snps) + 1}."
            )
        people.append(row[0].strip())
        cells.append(_genotypes(row[1:], path, rows.line_num))
    table = np.array(cells, dtype=np.int8).reshape(len(cells), len(snps))
    return Genotypes(table, cases=_labels(cases, people), snps=snps)


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


def _read_vcf(path: Path, cases: Any) -> Genotypes:
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
            if found is None or len(cells) != len(found.people) + 9:
                raise InputError(f"{path.name}, line {number}: not a line of a VCF with genotypes.")
            chrom, position, name, ref, alt = cells[:5]
            fields = cells[8].split(":")
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
    return found.build(cases)


def _call(written: str, path: Path, line: int) -> int:
    """Return how many copies of the second allele a GT field says; one allele counts as it is."""
    alleles = written.replace("|", "/").split("/")
    if any(allele in ("", ".") for allele in alleles):
        return MISSING
    if len(alleles) > 2 or not all(allele in ("0", "1") for allele in alleles):
        raise InputError(f"{path.name}, line {line}: a genotype is not a pair of 0, 1 or dots.")
    return sum(allele == "1" for allele in alleles)


# --- PLINK ------------------------------------------------------------------------------------


def _read_bed(path: Path, cases: Any) -> Genotypes:
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
    if cases is None and set(phenotypes) <= {"1", "2"}:
        cases = np.array([value == "2" for value in phenotypes])
    table = np.where(cells < 0, MISSING, cells)
    return Genotypes(table, cases=_labels(cases, people), snps=names, counted=counted, other=other)


def _labels(cases: Any, people: Sequence[str]) -> Any:
    if isinstance(cases, Mapping):
        missing = [name for name in people if name not in cases]
        if missing:
            raise InputError(f"cases says nothing about {len(missing)} of {len(people)} people.")
        return np.array([bool(cases[name]) for name in people])
    if isinstance(cases, set | frozenset):
        return np.array([name in cases for name in people])
    return cases


_READERS: dict[str, Callable[[Path, Any], Genotypes]] = {
    "csv": _read_csv,
    "vcf": _read_vcf,
    "bed": _read_bed,
}
