"""Genotypes from files: CSV, VCF text and PLINK bed, gzipped or not.

Errors name a line and never quote a genotype.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from tulle.core import registry
from tulle.core.cells import check_quotes
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.reading import reading
from tulle.core.validate import counted
from tulle.genomes.data import MISSING, Cells, Genotypes

_MARKERS = ("chrom", "pos", "id", "ref", "alt")
_NOT_CALLED = {"", ".", "-1", "-1.0", "NA", "NaN", "nan", "./.", ".|."}
_CALLED = {written: copies for copies in range(3) for written in (f"{copies}", f"{copies}.0")}
"""With a point too: pandas writes a column so where anybody's genotype is missing."""
_UNKNOWN = {"", "0", "."}
"""How files write an allele that nobody carries."""

UNLISTED = ("none", "missing")
"""What it means that a file does not list a SNP that was declared."""

_UNLISTED = (
    "The file does not list every SNP that was declared. Files often leave out where nobody varies,"
    " which depends on everybody in them. Say what it means: unlisted='none', nobody has a copy of "
    "the counted allele there; or unlisted='missing', if which SNPs the file lists does not follow "
    "from who is in it."
)

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
    persons: Sequence[str] = ()
    """What tells people apart, where their names alone do not: families may share them."""
    twice: frozenset[str] = frozenset()
    """Names that several lines have."""


@dataclass
class _Declared:
    """Declared SNPs with a declared allele each, as lines of a file that tell of them are read.

    How many copies somebody carries follows from their own genotype and from what is declared.
    Which other alleles a line lists, how the lines are divided, and whether there is one at all
    follow from everybody in the file.
    """

    counted: Mapping[str, str]
    alternative: bool
    """Whether only alternative alleles may be counted."""
    people: list[str] = field(default_factory=list)
    cells: dict[str, Cells] = field(default_factory=dict)
    sure: set[str] = field(default_factory=set)
    """Whose line lists the counted allele."""

    def __post_init__(self) -> None:
        self._placed: dict[str, list[tuple[str, str, str]]] = {}
        for name in self.counted:
            place, *pair = name.rsplit(":", 2)
            if len(pair) == 2:
                self._placed.setdefault(place, []).append((name, *_trimmed(*map(str.upper, pair))))

    def told(self, place: str, ids: Sequence[str], letters: Sequence[str]) -> dict[str, set[int]]:
        """Return the declared SNPs that a line tells of, each with its alleles that are counted.

        ``letters`` are the alleles of the line, the reference first, and are told by their number.
        """
        own = [name for name in ids if name not in ("", ".")] or [place]
        found = {name: self._by_name(name, letters) for name in own if name in self.counted}
        for name, ref, alt in self._placed.get(place, ()):
            if ref in (letters[0], *(_trimmed(letters[0], one)[0] for one in letters[1:])):
                found[name] = self._by_letters(name, ref, alt, letters)
        if self.alternative and any(0 in numbers for numbers in found.values()):
            raise InputError(
                "With unlisted='none' the counted allele must not be the reference of the file: "
                "where a SNP is not listed everybody has it. Count the other allele."
            )
        return found

    def _by_name(self, name: str, letters: Sequence[str]) -> set[int]:
        letter, ref = self.counted[name], letters[0]
        if letter == ref:
            return {0}
        if len(letter) > 1:
            return {at for at, one in enumerate(letters) if at and letter == _trimmed(ref, one)[1]}
        if len(ref) > 1 and letter == ref[0]:
            raise InputError(
                f"The file lists the SNP {name} with a reference of several letters that begins "
                "with the counted one: a deletion, or the reference itself? Declare it by its "
                "place and letters, CHROM:POS:REF:ALT."
            )
        return _with_letter(letters, letter)

    def _by_letters(self, name: str, ref: str, alt: str, letters: Sequence[str]) -> set[int]:
        letter = self.counted[name]
        if len(ref) == len(alt) == 1:
            return _with_letter(letters, letter)
        same = {
            at for at, one in enumerate(letters) if at and _trimmed(letters[0], one) == (ref, alt)
        }
        if letter == alt:
            return same
        return {*range(len(letters))} - same if letter == ref else set()

    def add(self, name: str, listed: bool, values: Cells, path: Path) -> None:
        """Keep the copies that a line tells of; ``listed`` says whether it has the allele."""
        if name in self.sure and listed:
            raise InputError(
                f"{path.name}: the SNP {name} stands on several lines with its allele."
            )
        if name not in self.cells or listed:
            self.cells[name] = values
        elif name not in self.sure:
            # None of the lines has the allele: nobody carries it who is called on one of them.
            self.cells[name] = np.maximum(self.cells[name], values)
        if listed:
            self.sure.add(name)

    def found(self) -> _Found:
        """Return the SNPs of which there is a line."""
        shape = len(self.people), len(self.cells)
        held = np.column_stack([*self.cells.values()]) if self.cells else np.empty(shape, np.int8)
        nothing = ["" for _ in self.cells]
        return _Found(self.people, held, list(self.cells), nothing, nothing)


def _trimmed(ref: str, alt: str) -> tuple[str, str]:
    """Return two alleles without the letters that both end with.

    A caller that puts a deletion on the line of a SNP writes A and G as AT and GT: how long the
    reference is follows from everybody in the file.
    """
    while len(ref) > 1 and len(alt) > 1 and ref[-1] == alt[-1]:
        ref, alt = ref[:-1], alt[:-1]
    return ref, alt


def _with_letter(letters: Sequence[str], letter: str) -> set[int]:
    """Return the alleles of a line that have a letter where it begins, and differ in no other."""
    trimmed = (_trimmed(letters[0], one) for one in letters)
    return {at for at, (ref, one) in enumerate(trimmed) if len(ref) == 1 and one == letter}


@dataclass
class _Columns:
    """SNPs as they are read: one list of genotypes each."""

    people: list[str]
    cells: list[np.ndarray[Any, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)

    def add(self, place: str, name: str, ref: str, alt: str, values: Any) -> None:
        """Keep one SNP, under a name of its own."""
        for candidate in (name if name not in ("", ".") else place, f"{place}:{ref}:{alt}"):
            if candidate not in self.seen:
                break
            self.twice.add(candidate)
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
        twice = frozenset(self.twice)
        return _Found(self.people, held, self.names, self.counted, self.other, twice=twice)


@registry.register("data", "genotypes", "read")
def read_genotypes(
    path: str | PathLike[str],
    *,
    cases: Any = None,
    snps: Sequence[str] | None = None,
    counted: Sequence[str] | None = None,
    unlisted: str | None = None,
    format: str | None = None,
) -> Genotypes:
    """Read genotypes; the format is told by the file's name when it is not given.

    CSV: either a header ``chrom,pos,id,ref,alt`` and the people's names, with one SNP per line,
    or one person per line with their name first and the SNPs' names in the header. VCF: the GT
    field of sites with two alleles; sites with more are left out. PLINK: the bed, bim and fam
    files of that name. For ``snps``, ``counted`` and ``unlisted`` see
    :meth:`tulle.Genotypes.read`.

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
    if unlisted not in (None, *UNLISTED) or (unlisted is not None and snps is None):
        raise InputError(
            f"unlisted must be one of {', '.join(UNLISTED)}, and goes with snps=; got {unlisted!r}."
        )
    names = None if snps is None else [str(name) for name in snps]
    letters = None if counted is None else [str(allele).upper() for allele in counted]
    wanted = None
    if names and letters:
        wanted = _Declared(dict(zip(names, letters, strict=True)), unlisted == "none")
    with reading(Path(path).name):
        found = _READERS[known](Path(path), wanted)
    listed = [name for name in (found.persons or found.people) if name]
    if len(set(listed)) < len(listed):
        raise InputError(
            f"{Path(path).name} names a person twice, and noise covers one row of each. Leave all "
            "but one of them out."
        )
    if names is not None:
        found = _declared(found, names, letters, unlisted)
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


def _declared(
    found: _Found, names: list[str], counted: Sequence[str] | None, unlisted: str | None
) -> _Found:
    """Return the declared SNPs, in their order, with copies of the declared alleles counted.

    Raises:
        InputError: when one stands on several lines, or on none and nobody said what that means.
    """
    known = {name: place for place, name in enumerate(found.names)}
    gone = 0 if unlisted == "none" else MISSING
    cells = np.full((len(found.people), len(names)), gone, dtype=np.int8)
    alleles = list(counted or ("" for _ in names))
    others = ["" for _ in names]
    if found.twice & {*names}:
        raise InputError(
            "A declared SNP stands on several lines of the file. Say with counted= which allele is "
            "meant."
        )
    for column, name in enumerate(names):
        place = known.get(name)
        if place is None:
            if unlisted is None:
                raise InputError(_UNLISTED)
            continue
        first, second = found.counted[place], found.other[place]
        own = found.cells[:, place]
        if counted is None:
            alleles[column], others[column] = first, second
            cells[:, column] = own
        elif alleles[column] == first or {first, second} <= _UNKNOWN:
            cells[:, column] = own
        elif alleles[column] == second:
            cells[:, column] = _turned(own)
        else:
            # Somebody who is called has other alleles, whatever they are.
            cells[:, column] = np.where(own == MISSING, MISSING, 0)
    if unlisted == "none":
        # Others decide whether there is a line on which somebody is not called: without one they
        # have no copy, so they have none with it either.
        cells[cells == MISSING] = 0
    # What the other allele is would tell who varies; it is not declared.
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
            except (gzip.BadGzipFile, EOFError, zlib.error):
                raise_alone(InputError(f"{path.name} is not a whole gzip file."))


# --- CSV --------------------------------------------------------------------------------------


def _read_csv(path: Path, wanted: _Declared | None) -> _Found:
    check_quotes(path)
    with open_text(path) as text:
        rows = csv.reader(text)
        header = [cell.strip() for cell in next(rows, [])]
        if len(header) < 2:
            raise InputError(f"{path.name} has no header with names.")
        if tuple(cell.lower() for cell in header[:5]) == _MARKERS:
            return _by_snp(path, rows, header[5:], wanted)
        return _by_person(path, rows, header[1:])


def _by_snp(path: Path, rows: Any, people: list[str], wanted: _Declared | None) -> _Found:
    found = _Columns(people)
    if wanted is not None:
        wanted.people = people
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
        place, letters = f"{chrom}:{position}", [ref.upper(), alt.upper()]
        if wanted is None:
            found.add(place, name, ref, alt, values)
            continue
        for known, which in wanted.told(place, [name], letters).items():
            # By the number of copies of the second allele, how many there are of those counted.
            copies = np.array([(2 - n) * (0 in which) + n * (1 in which) for n in range(3)])
            called = np.where(values == MISSING, MISSING, copies[values]).astype(np.int8)
            wanted.add(known, bool(which), called, path)
    return found.found() if wanted is None else wanted.found()


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


def _read_vcf(path: Path, wanted: _Declared | None) -> _Found:
    found: _Columns | None = None
    calls = _Calls(path)
    with open_text(path) as text:
        for number, line in enumerate(text, 1):
            if line.startswith("##") or not line.strip():
                continue
            cells = line.rstrip("\r\n").split("\t")
            if line.startswith("#CHROM"):
                if found is not None:
                    raise InputError(f"{path.name}, line {number}: a second line #CHROM.")
                found = _Columns(cells[9:])
                continue
            # A file without people has no column FORMAT either.
            width = 0 if found is None else len(found.people) + 9
            if found is None or len(cells) not in (width, 8 if width == 9 else width):
                raise InputError(f"{path.name}, line {number}: not a line of a VCF with genotypes.")
            chrom, position, name, ref, alt = cells[:5]
            fields = cells[8].split(":") if len(cells) > 8 else ["GT"]
            place, ids = f"{chrom}:{position}", name.split(";")
            at = fields.index("GT") if "GT" in fields else None
            said = [_field(cell, at) for cell in cells[9:]]
            letters = [ref.upper(), *(one.upper() for one in alt.split(",") if one != ".")]
            if wanted is None:
                if len(letters) == 2 and at is not None:
                    copies = calls.copies(said, frozenset({1}), 2, number)
                    found.add(place, ids[0], ref, alt, copies)
                continue
            for known, which in wanted.told(place, ids, letters).items():
                copies = calls.copies(said, frozenset(which), len(letters), number)
                wanted.add(known, bool(which), copies, path)
    if found is None:
        raise InputError(f"{path.name} has no line #CHROM: it is not a VCF.")
    if wanted is None:
        return found.found()
    wanted.people = found.people
    return wanted.found()


def _field(cell: str, place: int | None) -> str:
    """Return one field of somebody's cell; nothing where it is left out."""
    return cell.split(":")[place] if place is not None and cell.count(":") >= place else ""


@dataclass
class _Calls:
    """Genotypes of a VCF; each way to write one is read once."""

    path: Path
    known: dict[tuple[str, frozenset[int], int], int] = field(default_factory=dict)

    def copies(self, said: Sequence[str], which: frozenset[int], alleles: int, line: int) -> Cells:
        """Return how many copies of some of a line's alleles, by their numbers, GT fields say."""
        values = np.empty(len(said), dtype=np.int8)
        for person, written in enumerate(said):
            key = written, which, alleles
            if key not in self.known:
                self.known[key] = self._call(written, which, alleles, line)
            values[person] = self.known[key]
        return values

    def _call(self, written: str, which: frozenset[int], alleles: int, line: int) -> int:
        """Return the copies that one field says; one allele alone counts as it is."""
        said = written.replace("|", "/").split("/")
        if any(allele in ("", ".") for allele in said):
            return MISSING
        if len(said) > 2 or not all(one in map(str, range(alleles)) for one in said):
            raise InputError(
                f"{self.path.name}, line {line}: a genotype is not a pair of 0, 1 or dots."
            )
        return sum(int(one) in which for one in said)


# --- PLINK ------------------------------------------------------------------------------------


def _read_bed(path: Path, wanted: _Declared | None) -> _Found:
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
            persons = [f"{family}\t{name}" for family, name in zip(bed.fid, people, strict=True)]
    except (OSError, ValueError) as error:
        raise_alone(InputError(f"{path.name} cannot be read as PLINK ({type(error).__name__})."))
    table = np.where(cells < 0, MISSING, cells).astype(np.int8)
    # PLINK's first allele is the rarer one among these people: which is counted must not follow
    # from them, so it follows from the letters.
    turned = np.array([first < second for first, second in zip(counted, other, strict=True)], bool)
    table[:, turned] = _turned(table[:, turned])
    pairs = [sorted(pair) for pair in zip(counted, other, strict=True)]
    twice = frozenset(name for name, times in Counter(names).items() if times > 1)
    firsts, lasts = ([pair[end] for pair in pairs] for end in (0, 1))
    return _Found(people, table, names, lasts, firsts, phenotypes, persons, twice)


def _labels(cases: Any, people: Sequence[str]) -> Any:
    if isinstance(cases, Mapping):
        missing = [name for name in people if name not in cases]
        if missing:
            raise InputError("cases says nothing about at least one person in the file.")
        return np.array([bool(cases[name]) for name in people], dtype=bool)
    if isinstance(cases, set | frozenset):
        return np.array([name in cases for name in people], dtype=bool)
    return cases


_READERS: dict[str, Callable[[Path, _Declared | None], _Found]] = {
    "csv": _read_csv,
    "vcf": _read_vcf,
    "bed": _read_bed,
}
