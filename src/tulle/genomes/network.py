"""The two-layer network of traits and SNPs that a catalogue, or releases, spell out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.validate import counted
from tulle.genomes.catalogue import Association, Catalogue
from tulle.genomes.data import MISSING, Genotypes
from tulle.genomes.estimates import allele_frequencies
from tulle.genomes.inference import Factor, check_cells, log_total
from tulle.genomes.pairing import baseline, one_per_pair, orientation, prevalences, weakest

Link = Literal["odds", "noisy_or"]
Profiles = npt.NDArray[np.int8]


@public()
class TraitNetwork:
    """Traits above, SNPs below, and an arrow from a trait to each SNP that it is associated with.

    Traits are independent with known prevalences; given the traits, SNPs are independent. Where
    several traits point to one SNP, the odds of its allele multiply (``link="odds"``): that is
    lemma 7 of the chapter, normalised over the values of the SNP, which as printed can exceed 1.
    With ``link="noisy_or"`` each trait that is present adds its own chance of the allele; sums
    then stay fast for any number of traits per SNP. ``copies=2`` reads genotypes 0, 1, 2 as two
    independent draws of the allele; ``copies=1`` reads only whether a person has the allele, as
    the chapter does.

    A network is public: it is made of published or released numbers.

    Raises:
        InputError: when a prevalence is missing or not between 0 and 1, or a number does not fit.

    Example:
        >>> catalogue = Catalogue.of([Association("Mumps", "rs1", "A", 0.2, 4.0)])
        >>> network = TraitNetwork(catalogue, prevalence={"Mumps": 0.1}, copies=1)
        >>> [round(float(p), 3) for p in network.posterior([[1], [0], [-1]], "Mumps")]
        [0.217, 0.065, 0.1]
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        prevalence: Mapping[str, float] | float,
        population: Mapping[str, float] | None = None,
        link: Link = "odds",
        copies: int = 2,
        guarantee: Guarantee | None = None,
    ) -> None:
        if link not in get_args(Link):
            raise InputError(f"link must be one of {', '.join(get_args(Link))}; got {link!r}.")
        if copies not in (1, 2):
            raise InputError(f"copies must be 1 or 2; got {copies!r}.")
        self.link, self.copies, self.guarantee = link, copies, guarantee
        kept, self.left_out = one_per_pair(catalogue.associations)
        self.traits = tuple(dict.fromkeys(item.trait for item in kept))
        self.snps = tuple(dict.fromkeys(item.snp for item in kept))
        self._trait = {name: place for place, name in enumerate(self.traits)}
        self._snp = {name: place for place, name in enumerate(self.snps)}
        self.prevalence = prevalences(self.traits, prevalence)
        by_snp: list[list[Association]] = [[] for _ in self.snps]
        for item in kept:
            by_snp[self._snp[item.snp]].append(item)
        self.alleles = tuple(items[0].allele for items in by_snp)
        self._parents = [np.array([self._trait[i.trait] for i in items]) for items in by_snp]
        self._log_odds = [np.log([item.odds_ratio for item in items]) for items in by_snp]
        self._baseline = np.array(
            [baseline(items, (population or {}).get(items[0].snp)) for items in by_snp]
        )
        self._children: list[list[int]] = [[] for _ in self.traits]
        for snp, parents in enumerate(self._parents):
            for trait in parents:
                self._children[int(trait)].append(snp)
        if link == "noisy_or":
            self._check_noisy_or()

    @classmethod
    def from_releases(
        cls,
        releases: Mapping[str, Release],
        *,
        prevalence: Mapping[str, float] | float,
        alleles: Mapping[str, str] | None = None,
        population: Mapping[str, float] | None = None,
        link: Link = "odds",
        copies: int = 2,
    ) -> TraitNetwork:
        """Build the network from private allele counts: one study, and one release, per trait.

        Frequencies that noise made 0 or 1 are moved inside by half an allele. The guarantee is
        that of any one study; somebody who took part in several is covered by their sum.

        Raises:
            InputError: when a release is not one of ``allele_counts`` of cases and controls.
        """
        found: list[Association] = []
        letters = alleles or {}
        for trait, release in releases.items():
            groups = allele_frequencies(release)
            if "cases" not in groups:
                raise InputError(f"The release for {trait!r} does not compare cases with controls.")
            known = np.maximum(np.asarray(release.value)[:, :, 1].astype(np.float64), 1.0)
            case, control = (
                np.clip(groups[word].value, 0.25 / m, 1 - 0.25 / m)
                for word, m in zip(("cases", "controls"), known, strict=True)
            )
            ratios = case / (1 - case) * (1 - control) / control
            found.extend(
                Association(trait, name, letters.get(name, ""), float(f), float(ratio))
                for name, f, ratio in zip(groups["cases"].snps, control, ratios, strict=True)
            )
        return cls(
            Catalogue.of(found),
            prevalence=prevalence,
            population=population,
            link=link,
            copies=copies,
            guarantee=weakest(release.guarantee for release in releases.values()),
        )

    # --- looking things up ------------------------------------------------------------------

    def children(self, trait: str) -> tuple[str, ...]:
        """Return the SNPs that a trait is associated with."""
        return tuple(self.snps[place] for place in self._children[self.place(trait)])

    def place(self, trait: str) -> int:
        """Return a trait's place.

        Raises:
            InputError: when the network has no such trait.
        """
        if trait not in self._trait:
            raise InputError(f"There is no trait {trait!r} in this network.")
        return self._trait[trait]

    def align(self, table: Genotypes) -> Profiles:
        """Return people's genotypes as the network counts them, -1 where it cannot tell.

        An allele is matched by its letter, or by the letter of the other strand where that is
        unambiguous; SNPs that do not match, or are not in the table, are missing. This reads
        records: it is for people whose genotypes the adversary has.
        """
        cells, columns = table.cells(), {name: place for place, name in enumerate(table.snps)}
        found = np.full((len(cells), len(self.snps)), MISSING, dtype=np.int8)
        for place, (name, allele) in enumerate(zip(self.snps, self.alleles, strict=True)):
            column = columns.get(name)
            if column is None:
                continue
            turned = orientation(allele, table.counted[column], table.other[column])
            if turned is None:
                continue
            values = cells[:, column]
            copies = values if turned else np.where(values == MISSING, MISSING, 2 - values)
            found[:, place] = np.minimum(copies, self.copies)
        return found

    # --- sums -------------------------------------------------------------------------------

    def allele_chance(self, snp: str, present: Iterable[str] = ()) -> float:
        """Return the chance of the allele for someone with exactly these traits."""
        if snp not in self._snp:
            raise InputError(f"There is no SNP {snp!r} in this network.")
        place = self._snp[snp]
        states = dict.fromkeys(range(len(self.traits)), 0)
        states |= {self.place(trait): 1 for trait in present}
        return float(self._chances(place, states))

    def allele_chances(self, traits: Any) -> Floats:
        """Return the chance of every allele for people whose traits are all known.

        ``traits`` has a row per person and a column per trait, true where they have it.
        """
        states = np.asarray(traits, dtype=bool)
        found = np.empty((len(states), len(self.snps)))
        for snp, parents in enumerate(self._parents):
            # Few traits meet at a SNP: look up the chance of each state that occurs.
            seen, where = np.unique(states[:, parents], axis=0, return_inverse=True)
            names = [int(parent) for parent in parents]
            chances = [
                float(self._chances(snp, dict(zip(names, map(int, row), strict=True))))
                for row in seen
            ]
            found[:, snp] = np.array(chances)[where.reshape(-1)]
        return found

    def posterior(self, profiles: Any, trait: str) -> Floats:
        """Return each person's chance of the trait, given the SNPs that it is associated with.

        Exact: the other traits of those SNPs are summed over (lemma 9 of the chapter).
        """
        read, place = self.check(profiles), self.place(trait)
        snps = self._children[place]
        with_it, without = (self._log_evidence(read, {place: state}, snps) for state in (1, 0))
        chance = self.prevalence[place]
        odds = np.log(chance) - np.log1p(-chance) + with_it - without
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)

    def log_likelihood(
        self, profiles: Any, present: Sequence[str], snps_of: Sequence[str] | None = None
    ) -> Floats:
        """Return ln P(genotypes | these traits are present), over the SNPs of ``snps_of``.

        Those are the SNPs of the traits present, when left out. With nobody's trait present it is
        the likelihood of the genotypes in the population.
        """
        read = self.check(profiles)
        traits = [self.place(trait) for trait in (present if snps_of is None else snps_of)]
        snps = sorted({snp for trait in traits for snp in self._children[trait]})
        return self._log_evidence(read, {self.place(trait): 1 for trait in present}, snps)

    def check(self, profiles: Any) -> Profiles:
        """Return profiles as an array, one row per person and one column per SNP.

        Raises:
            InputError: when the shape does not fit or a value is not a number of copies.
        """
        read = np.asarray(profiles)
        if read.ndim == 1:
            read = read[None]
        if read.ndim != 2 or read.shape[1] != len(self.snps):
            raise InputError(
                f"profiles must have one column for each of the {len(self.snps)} SNPs of the "
                "network; TraitNetwork.align makes them from a table of genotypes."
            )
        if not bool(np.isin(read, range(MISSING, self.copies + 1)).all()):
            raise InputError(
                f"A profile holds -1 (missing) and 0 to {counted(self.copies, 'copy', 'copies')}."
            )
        return read.astype(np.int8)

    def _log_evidence(
        self, profiles: Profiles, known: Mapping[int, int], snps: Sequence[int]
    ) -> Floats:
        factors: list[Factor] = []
        total = np.zeros(len(profiles))
        for snp in snps:
            unknown = tuple(sorted(int(p) for p in self._parents[snp] if int(p) not in known))
            values = profiles[:, snp].astype(np.int64)
            if not unknown:
                total += np.log(self._genotype_chances(self._chances(snp, known)))[values]
            elif self.link == "noisy_or" and len(unknown) > 3:
                factors.extend(self._split(snp, known, unknown, values))
            else:
                check_cells(2 ** len(unknown))
                table = self._genotype_chances(self._chances(snp, known, unknown))
                factors.append(Factor(unknown, table[values]))
        hidden = {name for factor in factors for name in factor.names if name >= 0}
        for name in sorted(hidden):
            chance = self.prevalence[name]
            factors.append(Factor((name,), np.array([[1 - chance, chance]])))
        return total + log_total(factors, len(profiles)) if factors else total

    def _chances(self, snp: int, known: Mapping[int, int], unknown: tuple[int, ...] = ()) -> Floats:
        """Return the chance of the allele for every state of the unknown traits, one axis each."""
        if self.link == "noisy_or":
            return self._noisy_or(snp, known, unknown)
        logit: Any = self._baseline[snp]
        for parent, log_odds in zip(self._parents[snp], self._log_odds[snp], strict=True):
            if int(parent) in known:
                logit = logit + known[int(parent)] * log_odds
            else:
                axis = unknown.index(int(parent))
                shape = [2 if place == axis else 1 for place in range(len(unknown))]
                logit = logit + np.array([0.0, log_odds]).reshape(shape)
        return np.asarray(1 / (1 + np.exp(-np.asarray(logit))), dtype=np.float64)

    def _genotype_chances(self, allele: Floats) -> Floats:
        """Return the chance of each genotype (first axis); the last entry is for a missing one."""
        n = self.copies
        tables = [comb(n, g) * allele**g * (1 - allele) ** (n - g) for g in range(n + 1)]
        return np.stack([*tables, np.ones_like(allele)])

    # --- noisy or ---------------------------------------------------------------------------

    def _spared(self, snp: int) -> tuple[float, Floats]:
        """Return the chance of no allele without any trait, and each trait's factor on it."""
        start = 1 / (1 + np.exp(-self._baseline[snp]))
        case = 1 / (1 + np.exp(-(self._baseline[snp] + self._log_odds[snp])))
        return float(1 - start), np.asarray((1 - case) / (1 - start))

    def _check_noisy_or(self) -> None:
        for snp, name in enumerate(self.snps):
            none, factors = self._spared(snp)
            if none * np.prod(np.maximum(factors, 1.0)) > 1:
                raise InputError(
                    f"Too many traits make the allele of {name} rarer for link='noisy_or'. Use "
                    "link='odds'."
                )

    def _noisy_or(self, snp: int, known: Mapping[int, int], unknown: tuple[int, ...]) -> Floats:
        none, factors = self._spared(snp)
        spared: Any = none
        for parent, factor in zip(self._parents[snp], factors, strict=True):
            if int(parent) in known:
                spared = spared * factor ** known[int(parent)]
            else:
                axis = unknown.index(int(parent))
                shape = [2 if place == axis else 1 for place in range(len(unknown))]
                spared = spared * np.array([1.0, factor]).reshape(shape)
        return np.asarray(1 - np.asarray(spared), dtype=np.float64)

    def _split(
        self, snp: int, known: Mapping[int, int], unknown: tuple[int, ...], values: Any
    ) -> list[Factor]:
        """Return a noisy or as pairs of a trait and one helper, whose states are powers.

        With s the chance of no allele, P(g) = C(n, g)·(1 - s)^g·s^(n - g), which is the sum over b
        of C(n, g)·C(g, b)·(-1)^b·s^(n - g + b): each power of s is a product over the traits.
        """
        n = self.copies
        none, factors = self._spared(snp)
        for parent, factor in zip(self._parents[snp], factors, strict=True):
            if int(parent) in known:
                none *= factor ** known[int(parent)]
        weights = np.zeros((n + 2, n + 1))
        powers = np.zeros((n + 2, n + 1))
        for g in range(n + 1):
            for b in range(g + 1):
                powers[g, b] = n - g + b
                weights[g, b] = comb(n, g) * comb(g, b) * (-1) ** b * none ** (n - g + b)
        weights[-1, 0] = 1.0  # a missing genotype says nothing
        helper = -1 - snp
        split = [Factor((helper,), weights[values])]
        for parent, factor in zip(self._parents[snp], factors, strict=True):
            if int(parent) in unknown:
                raised = factor ** powers[values]
                pair = np.stack([np.ones_like(raised), raised], axis=2)
                split.append(Factor((helper, int(parent)), pair))
        return split

    def __repr__(self) -> str:
        return f"<TraitNetwork: {counted(len(self.traits), 'trait')}, {len(self.snps)} SNPs>"
