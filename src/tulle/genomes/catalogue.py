"""Published associations between SNPs and traits: the GWAS catalogue as a file of tabs.

The catalogue is public. What is left out of it, and why, is counted: nothing is dropped silently.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.validate import counted
from tulle.genomes.reading import open_text

_COLUMNS = {
    "trait": "Disease/Trait",
    "allele": "Strongest SNP-Risk Allele",
    "snp": "SNPs",
    "frequency": "Risk Allele Frequency",
    "p_value": "p-Value",
    "odds": "OR or beta",
    "interval": "95% CI (text)",
    "sample": "Initial Sample Size",
}
_SNP = re.compile(r"rs\d+")
_ALLELE = re.compile(r"(rs\d+)\s*-\s*([ACGTacgt]+|\?)")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
_PEOPLE = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)[^,;\d]*?\b(cases|controls)\b", re.IGNORECASE)


@public()
@dataclass(frozen=True)
class Association:
    """One published association: this allele is this much more frequent among cases.

    An odds ratio below one means that the allele is rarer among cases.
    """

    trait: str
    snp: str
    allele: str
    """The letter that is counted; empty text when it was not reported."""
    frequency: float
    """How frequent the allele is among controls."""
    odds_ratio: float
    p_value: float | None = None
    cases: int | None = None
    controls: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.frequency < 1 or not (0 < self.odds_ratio < math.inf):
            raise InputError(
                f"The association of {self.snp} with {self.trait!r} needs a frequency between 0 "
                "and 1 and an odds ratio above 0."
            )

    @property
    def case_frequency(self) -> float:
        """How frequent the allele is among cases, from the odds ratio."""
        odds = self.odds_ratio * self.frequency / (1 - self.frequency)
        return odds / (1 + odds)


@public()
@dataclass(frozen=True)
class Catalogue:
    """The usable associations of a catalogue, and how many rows were left out for which reason.

    Example:
        >>> made = Catalogue.of([Association("Mumps", "rs1", "A", 0.2, 1.5)])
        >>> made.traits, len(made)
        (('Mumps',), 1)
    """

    associations: tuple[Association, ...]
    rows: int
    """How many rows the file has, its header apart."""
    left_out: Mapping[str, int]
    """How many rows are not used, by reason."""

    @classmethod
    def of(cls, associations: Iterable[Association]) -> Catalogue:
        """Return a catalogue of associations that are at hand."""
        found = tuple(associations)
        return cls(found, len(found), {})

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Catalogue:
        """Read a catalogue in the format of the NHGRI download, gzipped or not.

        A row is used when it names one SNP and has a risk allele frequency between 0 and 1 and an
        odds ratio. Numbers that are the slope of a measured trait (their interval has a unit,
        such as "mg/dL increase") are not odds ratios, and are left out. An allele given as "?" is
        kept without a letter.

        Raises:
            InputError: when the file lacks a column that is needed.
        """
        with open_text(Path(path)) as text:
            # The file quotes nothing; a stray quotation mark must not swallow lines.
            rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
            header = [cell.strip() for cell in next(rows, [])]
            missing = [title for title in _COLUMNS.values() if title not in header]
            if missing:
                raise InputError(f"{Path(path).name} has no column {missing[0]!r}.")
            place = {name: header.index(title) for name, title in _COLUMNS.items()}
            found, left_out, count = [], Counter[str](), 0
            for row in rows:
                count += 1
                if len(row) != len(header):
                    left_out["a malformed row"] += 1
                    continue
                made = _parse({name: row[at].strip() for name, at in place.items()})
                if isinstance(made, str):
                    left_out[made] += 1
                else:
                    found.append(made)
        return cls(tuple(found), count, dict(left_out.most_common()))

    @property
    def traits(self) -> tuple[str, ...]:
        """The names of the traits, in order of appearance."""
        return tuple(dict.fromkeys(item.trait for item in self.associations))

    @property
    def snps(self) -> tuple[str, ...]:
        """The names of the SNPs, in order of appearance."""
        return tuple(dict.fromkeys(item.snp for item in self.associations))

    def only(
        self, *, traits: Sequence[str] | None = None, snps: Iterable[str] | None = None
    ) -> Catalogue:
        """Return the associations with these traits and these SNPs."""
        wanted_traits = None if traits is None else set(traits)
        wanted_snps = None if snps is None else set(snps)
        kept = [
            item
            for item in self.associations
            if (wanted_traits is None or item.trait in wanted_traits)
            and (wanted_snps is None or item.snp in wanted_snps)
        ]
        return Catalogue.of(kept)

    def __len__(self) -> int:
        return len(self.associations)

    def __repr__(self) -> str:
        return (
            f"<Catalogue: {counted(len(self), 'association')} of "
            f"{counted(len(self.traits), 'trait')} with "
            f"{len(self.snps)} SNPs, from {counted(self.rows, 'row')}>"
        )


def _parse(row: Mapping[str, str]) -> Association | str:
    """Return the association of a row, or why there is none."""
    snps = _SNP.findall(row["snp"])
    if not row["trait"] or not snps:
        return "no SNP with an rs number"
    if len(set(snps)) > 1 or not _SNP.fullmatch(row["snp"]):
        return "several SNPs, or a haplotype"
    allele = _ALLELE.fullmatch(row["allele"])
    if allele is None or allele[1] != snps[0]:
        return "no single risk allele"
    frequency = _number(row["frequency"])
    if frequency is None or not 0 < frequency < 1:
        return "no risk allele frequency"
    if re.sub(r"\[[^]]*\]|NR|\s", "", row["interval"]):
        return "a slope, not an odds ratio"
    odds = _number(row["odds"])
    if odds is None or odds <= 0:
        return "no odds ratio"
    cases, controls = _people(row["sample"])
    letter = "" if allele[2] == "?" else allele[2].upper()
    p_value = _number(row["p_value"])
    return Association(row["trait"], snps[0], letter, frequency, odds, p_value, cases, controls)


def _number(text: str) -> float | None:
    """Return the number that a cell begins with, such as 0.41 of "0.41 (EA)"."""
    found = _NUMBER.match(text)
    return float(found[0]) if found else None


def _people(text: str) -> tuple[int | None, int | None]:
    """Return the numbers of cases and controls, added up over the samples named."""
    found = Counter[str]()
    for number, word in _PEOPLE.findall(text):
        found[word.lower()] += int(number.replace(",", ""))
    return found["cases"] or None, found["controls"] or None
