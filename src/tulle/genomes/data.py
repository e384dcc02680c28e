"""The sealed table of genotypes: people by positions of the genome."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Truths
from tulle.core.cells import grid
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.unit import Unit

Cells = npt.NDArray[np.int8]

MISSING = -1
"""How a genotype that was not called is stored."""

UNDECLARED = {
    "snps": (
        "which SNPs there are and what their alleles are called is public, since they were taken "
        "from the genotypes and not declared"
    ),
    "counted": (
        "what the alleles of the declared SNPs are called is public, since they were taken from "
        "the file and not declared"
    ),
    "missing": "which of the declared SNPs the file lists does not follow from who is in it",
    "none": (
        "where the file does not list a declared SNP, nobody in it is called with a copy of the "
        "counted allele; whoever is not called counts as without one"
    ),
}
"""What is assumed when the SNPs, or only the alleles that are counted, were not declared."""

LARGEST_NEIGHBOURHOOD = 4
"""All records are listed for at most so many SNPs."""


@public("Hold data")
class Genotypes(Dataset):
    """A sealed table of genotypes: one row per person, one column per SNP.

    A cell is 0, 1 or 2, how many copies of the counted allele the person carries, or missing: NaN,
    None, -1 or masked. ``cases`` says for each person whether they have the trait (a case) or not
    (a control); without it everybody is in one group.

    Under ``row`` all genotypes of any one person may change. How many cases and controls there are
    is public, as is customary for a study, and who is which stays as it is. Under ``participant``
    any one person may be added or left out, and how many there are is not public. The SNPs, their
    names and their counted alleles are public under both.

    With ``complete`` it is declared, and public, that every genotype is known, as of an imputed
    panel. How many are known is then the same for all SNPs, and ``allele_counts`` need less noise.
    Whatever is missing all the same counts as one copy, in whoever's record it is.

    Raises:
        InputError: when a cell is none of these, the shapes do not fit, or a name occurs twice.

    Example:
        >>> study = Genotypes([[0, 2], [1, None], [0, 0]], cases=[1, 1, 0], snps=["rs1", "rs2"])
        >>> study
        <Genotypes: sealed>
        >>> study.snps
        ('rs1', 'rs2')
    """

    kind: ClassVar[str] = "genotypes"
    units: ClassVar[tuple[str, ...]] = ("participant", "row")

    def __init__(
        self,
        genotypes: Any,
        *,
        cases: Any = None,
        snps: Sequence[str] | None = None,
        counted: Sequence[str] | None = None,
        other: Sequence[str] | None = None,
        complete: bool = False,
    ) -> None:
        cells = _read_cells(genotypes, None if snps is None else len(snps))
        self._complete = bool(complete)
        if self._complete:
            cells[cells == MISSING] = 1
        self._assumed: tuple[str, ...] = () if snps is not None else (UNDECLARED["snps"],)
        self._cells = cells
        self._cells.flags.writeable = False
        self._cases = None if cases is None else _read_labels(cases, len(cells))
        columns = cells.shape[1]
        self._snps = _read_names(snps, columns, [f"snp{place}" for place in range(columns)])
        if len(set(self._snps)) != len(self._snps):
            raise InputError("The names of the SNPs must all be different.")
        # One letter for each SNP, or nothing at all where it is not known.
        self._counted = _read_names(counted, columns, [""] * columns)
        self._other = _read_names(other, columns, [""] * columns)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        cases: Any = None,
        snps: Sequence[str] | None = None,
        counted: Sequence[str] | None = None,
        unlisted: Literal["none", "missing"] | None = None,
        complete: bool = False,
        format: str | None = None,
    ) -> Genotypes:
        """Read genotypes from a CSV, VCF or PLINK bed file, gzipped or not.

        ``cases`` is one entry for each person in the order of the file, or a mapping or set of
        the names of people; ``"phenotypes"`` takes those of a PLINK file's fam file. Whether there
        are labels at all is public, so it is said here and not found out from the phenotypes.

        ``snps`` declares the SNPs, by the names that the file gives them, and ``counted`` the
        allele of each whose copies are counted. Which SNPs a file lists, and with which alleles,
        often follows from who is in it: a site at which nobody varies is left out, and PLINK puts
        the rarer allele first. Declared ones come out alike whoever is in the file, whatever other
        alleles it lists. A SNP that it does not list is refused unless ``unlisted`` says what that
        means: "none", where nobody has a copy of the counted allele (count alternative alleles;
        whoever is not called counts as without one, at every SNP), or "missing", where what is
        listed does not follow from who is in the file. Guarantees say which of the two is assumed.
        Without ``snps`` those of the file are taken to be public, and every guarantee says that
        this is assumed. Without ``counted``, of a VCF and of
        a CSV file the alternative allele is counted, of a PLINK file the one that is later in the
        alphabet, and never the rarer one. ``complete`` declares that no genotype is missing.

        Raises:
            InputError: naming the line, when the file is not of that format.
            MissingExtraError: for PLINK files, when bed-reader is not installed.
        """
        read: Callable[..., Genotypes] = registry.find("data", "genotypes")["read"]
        found = read(
            path, cases=cases, snps=snps, counted=counted, unlisted=unlisted, format=format
        )
        missing = [name for name, given in (("snps", snps), ("counted", counted)) if given is None]
        assumed = [*missing[:1], *([] if unlisted is None else [unlisted])]
        found._assumed = tuple(UNDECLARED[name] for name in assumed)
        found._complete = bool(complete)
        return found._with(found._cells, found._cases)

    # --- public -----------------------------------------------------------------------------

    @property
    def snps(self) -> tuple[str, ...]:
        """The names of the SNPs. Public under every unit."""
        return self._snps

    @property
    def counted(self) -> tuple[str, ...]:
        """The allele of each SNP that is counted; empty text where it is not known. Public."""
        return self._counted

    @property
    def other(self) -> tuple[str, ...]:
        """The allele of each SNP that is not counted; empty text where it is not known. Public."""
        return self._other

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the columns of SNPs by name, for questions about some of them.

        Raises:
            InputError: when a name is not known; the names are public.
        """
        known = {name: place for place, name in enumerate(self._snps)}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError(f"There is no SNP {unknown[0]!r} in this table.")
        return [known[name] for name in names]

    # --- custodian side ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of people and SNPs. Custodian side."""
        return int(self._cells.shape[0]), int(self._cells.shape[1])

    @property
    def labels(self) -> Truths | None:
        """Who is a case, or None when nobody was labelled. Custodian side."""
        return None if self._cases is None else self._cases.copy()

    @property
    def missing(self) -> int:
        """How many genotypes are missing. Custodian side."""
        return int((self._cells == MISSING).sum())

    def to_numpy(self) -> Cells:
        """Return the genotypes, with -1 where they are missing. Custodian side."""
        return self._cells.copy()

    def cells(self) -> Cells:
        """Return the genotypes without a copy, read only. Custodian side."""
        return self._cells

    def group_sizes(self) -> tuple[int, ...]:
        """Return the numbers of cases and controls, or of people. Custodian side."""
        if self._cases is None:
            return (len(self._cells),)
        cases = int(self._cases.sum())
        return cases, len(self._cells) - cases

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Genotypes):
            return NotImplemented
        return self._snps == other._snps and self.records() == other.records()

    __hash__ = None  # type: ignore[assignment]

    def records(self) -> tuple[tuple[bool, ...], ...]:
        """Return the people as sorted tuples, label first: people have no order. Custodian side."""
        labels = np.zeros(len(self._cells), dtype=bool) if self._cases is None else self._cases
        return tuple(sorted(map(tuple, np.column_stack([labels, self._cells]).tolist())))

    # --- what privacy needs -----------------------------------------------------------------

    def facts(self, unit: str | Unit) -> Facts:
        """Return what is public: the SNPs, what was declared, per ``row`` the groups' sizes."""
        digest = hashlib.sha256("\n".join(self._snps).encode()).hexdigest()[:12]
        found: dict[str, Any] = {
            "snps": len(self._snps),
            "names": digest,
            "labelled": self._cases is not None,
        }
        if self._complete:
            found["complete"] = True
        if self.check_unit(unit).name == "row":
            found["groups"] = list(self.group_sizes())
        return found

    def assumptions(self, unit: str | Unit) -> tuple[str, ...]:
        """Return what guarantees rest on when the SNPs, or their alleles, were not declared."""
        return self._assumed

    def _possible(self) -> Iterator[tuple[int, ...]]:
        """Yield all records that somebody can have."""
        return product(range(3) if self._complete else range(MISSING, 3), repeat=len(self._snps))

    def neighbours(self, unit: str | Unit) -> Iterator[Genotypes]:
        """Yield all neighbours of a small table.

        ``row``: one person has any other genotypes. ``participant``: one person is left out, or
        one with any genotypes and any label joins.

        Raises:
            InputError: for more than four SNPs, where there are too many.
        """
        known = self.check_unit(unit)
        if len(self._snps) > LARGEST_NEIGHBOURHOOD:
            raise InputError(
                f"All neighbours are listed for at most {LARGEST_NEIGHBOURHOOD} SNPs. Use a "
                "smaller table."
            )
        return self._replaced() if known.name == "row" else self._joined()

    def _replaced(self) -> Iterator[Genotypes]:
        for person, row in enumerate(self._cells):
            for values in self._possible():
                if tuple(row) != values:
                    changed = self._cells.copy()
                    changed[person] = values
                    yield self._with(changed, self._cases)

    def _joined(self) -> Iterator[Genotypes]:
        for person in range(len(self._cells)):
            kept = np.arange(len(self._cells)) != person
            yield self._with(self._cells[kept], None if self._cases is None else self._cases[kept])
        for values in self._possible():
            more = np.vstack([self._cells, np.array([values], dtype=np.int8)])
            if self._cases is None:
                yield self._with(more, None)
                continue
            for label in (True, False):
                yield self._with(more, np.append(self._cases, label))

    def _with(self, cells: Cells, cases: Truths | None) -> Genotypes:
        made = Genotypes(
            cells,
            cases=cases,
            snps=self._snps,
            counted=self._counted,
            other=self._other,
            complete=self._complete,
        )
        made._assumed = self._assumed
        return made


def _read_cells(genotypes: Any, columns: int | None) -> Cells:
    if isinstance(genotypes, Dataset):
        raise InputError("Genotypes are built from an array, not from a sealed dataset.")
    refusal = "Genotypes are whole numbers; got something else."
    values = grid(genotypes, refusal)
    if columns and values.shape == (0,):
        # A list of nobody: how many SNPs there are is declared.
        values = np.empty((0, columns), dtype=np.int8)
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(
            f"Genotypes have one row per person and one column per SNP; got shape {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise InputError(refusal)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), float(MISSING), values)
    # Whole numbers from -1 to 2: looked at as a whole first, since tables are large.
    fine = not values.size or bool(values.min() >= MISSING and values.max() <= 2)
    if not fine or (values.dtype.kind == "f" and bool((values != np.floor(values)).any())):
        row, column = np.argwhere(~np.isin(values, (MISSING, 0, 1, 2)))[0]
        raise InputError(
            f"The genotype in row {row}, column {column} is not 0, 1, 2 or missing (-1, NaN)."
        )
    return np.array(values, dtype=np.int8, order="C")


def _read_labels(cases: Any, people: int) -> Truths:
    labels = np.asarray(cases)
    if np.ma.is_masked(cases):
        raise InputError("cases must hold only 1 (a case) and 0 (a control), none missing.")
    if labels.shape != (people,):
        raise InputError("cases must say for each person whether they are a case: 1 or 0.")
    if labels.dtype.kind not in "biuf" or not bool(np.isin(labels, (0, 1)).all()):
        raise InputError("cases must hold only 1 (a case) and 0 (a control), none missing.")
    return labels.astype(bool)


def _read_names(names: Sequence[str] | None, columns: int, otherwise: list[str]) -> tuple[str, ...]:
    if names is None:
        return tuple(otherwise)
    found = tuple(str(name) for name in names)
    if len(found) != columns:
        raise InputError(f"There are {columns} SNPs but {len(found)} names or alleles for them.")
    return found
