"""What the attacker of the genome benchmark knows: two backgrounds, from print and from files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from tulle.genomes import Association, Catalogue, Genotypes, TraitNetwork, allele_counts
from tulle.genomes.generators import made_up_study

COPD = "Chronic obstructive pulmonary disease"
LIVER = "Drug-induced liver injury (flucloxacillin)"
JAW = "Jaw osteonecrosis"
OSTEOARTHRITIS = "Osteoarthritis"
TALL = "Height (taller than 90 %)"
GREEN = "Eye colour (green)"
CHAPTER = (
    (COPD, "rs9394152", "C", 0.41, 22.22),
    (COPD, "rs73717741", "G", 0.07, 11.9),
    (COPD, "rs10928927", "C", 0.16, 17.54),
    (LIVER, "rs2395029", "G", 0.05, 45.0),
    (JAW, "rs1934951", "T", 0.12, 12.75),
    (OSTEOARTHRITIS, "rs12982744", "C", 0.61, 11.11),
    (TALL, "rs12982744", "G", 0.40, 33.33),
    (TALL, "rs7853377", "G", 0.23, 50.0),
    (TALL, "rs7567288", "C", 0.20, 33.33),
    (GREEN, "rs12913832", "A", 0.23, 8.43),
)
CHAPTER_PREVALENCE = {
    COPD: 0.05,
    LIVER: 8e-5,
    JAW: 0.056,
    OSTEOARTHRITIS: 0.036,
    TALL: 0.10,
    GREEN: 0.16,
}
CHAPTER_POPULATION = {"rs12982744": 0.79}
CHAPTER_POSTERIORS = (
    (0.1076, 0.0054),
    (0.2621, 0.0290),
    (0.2020, 0.0142),
    (0.0011, 2.5e-5),
    (0.2389, 0.0240),
    (0.0546, 0.0203),
    (0.1744, 0.0078),
    (0.3117, 0.0100),
    (0.3316, 0.0175),
    (0.3721, 0.0657),
)
"""Columns P(T | s) and P(T | not s) of the chapter's table 20."""
CHAPTER_IDENTITY = {1: 0.0697, 2: 0.1493, 3: 0.2503, 4: 0.3725, 5: 0.5158, 6: 0.6792}
"""Column "original" of the chapter's table 22."""

PREVALENCE = {
    "Amyotrophic lateral sclerosis": 5e-5,
    "Coronary heart disease": 0.06,
    "Immunoglobulin A": 0.0017,
    "Primary biliary cirrhosis": 4e-4,
    "Progressive supranuclear palsy": 6e-5,
    "Rheumatoid arthritis": 0.008,
    "Type 1 diabetes": 0.004,
    "Type 2 diabetes": 0.085,
}
"""Round figures of how common the traits are among adults; the attacker's guess."""

STUDY_SIZE = 1000
"""Cases, and controls, of the chapter's studies: it does not say how many there were."""

SMALL_STUDY = 100
"""The same for studies in which the noise drowns the signal."""


@dataclass(frozen=True)
class Background:
    """What the attacker knows, and the anonymous table that they have."""

    name: str
    catalogue: Catalogue
    network: TraitNetwork
    people: Any
    sizes: dict[str, tuple[int, int]]
    population: dict[str, float]

    def private(self, epsilon: float, seed: int, *, size: int | None = None) -> TraitNetwork:
        """Return the network from one private release for each trait's made-up study."""
        releases = {}
        for trait in self.network.traits:
            published = self.catalogue.only(traits=[trait]).associations
            cases, controls = (size, size) if size else self.sizes[trait]
            study = made_up_study(published, cases=cases, controls=controls, seed=seed)
            releases[trait] = tulle.release(study, allele_counts(), unit="row", epsilon=epsilon)
        return TraitNetwork.from_releases(
            releases,
            prevalence=dict(zip(self.network.traits, self.network.prevalence, strict=True)),
            alleles={item.snp: item.allele for item in self.catalogue.associations},
            population=self.population,
            copies=self.network.copies,
        )


def chapter_background() -> Background:
    # Two traits share a SNP and name its two alleles; the network counts one of them, and whether
    # C and G are two alleles or two strands it could not know.
    turned = [
        Association(trait, snp, "C", 1 - frequency, 1 / odds)
        if (trait, snp) == (TALL, "rs12982744")
        else Association(trait, snp, allele, frequency, odds)
        for trait, snp, allele, frequency, odds in CHAPTER
    ]
    network = TraitNetwork(
        Catalogue.of(turned),
        prevalence=CHAPTER_PREVALENCE,
        population=CHAPTER_POPULATION,
        copies=1,
    )
    _, people = made_up_people(network, 85, seed=85)
    sizes = dict.fromkeys(network.traits, (STUDY_SIZE, STUDY_SIZE))
    return Background("chapter", Catalogue.of(turned), network, people, sizes, CHAPTER_POPULATION)


def catalogue_background() -> Background | None:
    folder = Path(os.environ.get("TULLE_DATA", ""))
    people = folder / "1000g-ceu-exon" / "1000g_ceu_exon_2010_09.genotypes.csv"
    published = folder / "gwas-catalog" / "gwascatalog_2014-09-08.tsv.gz"
    if not (people.is_file() and published.is_file()):
        return None
    table, every = Genotypes.read(people), Catalogue.read(published)
    known = every.only(snps=table.snps, traits=list(PREVALENCE))
    usable = TraitNetwork(known, prevalence=PREVALENCE)
    # A SNP whose allele is not named, or does not match the table, tells the attacker nothing.
    matched = [
        name
        for name, column in zip(usable.snps, usable.align(table).T, strict=True)
        if (column >= 0).any()
    ]
    best: dict[tuple[str, str], Association] = {}
    for item in known.only(snps=matched).associations:
        key = item.trait, item.snp
        if key not in best or (item.p_value or 1) < (best[key].p_value or 1):
            best[key] = item
    kept = Catalogue.of(best.values())
    network = TraitNetwork(kept, prevalence=PREVALENCE)
    sizes = {}
    for trait in network.traits:
        items = kept.only(traits=[trait]).associations
        sizes[trait] = (
            max(item.cases or STUDY_SIZE for item in items),
            max(item.controls or STUDY_SIZE for item in items),
        )
    return Background("catalogue", kept, network, network.align(table), sizes, {})


def made_up_people(
    network: TraitNetwork, count: int, *, seed: int, present: Iterable[str] = ()
) -> tuple[Any, Any]:
    """Return the traits and profiles of people drawn from the network itself.

    Everybody has the traits ``present``; the others occur as often as they are prevalent.
    """
    generator = np.random.default_rng(seed)
    traits = generator.random((count, len(network.traits))) < network.prevalence
    traits[:, [network.place(trait) for trait in present]] = True
    chances = network.allele_chances(traits)
    drawn: Any = generator.binomial(network.copies, chances)
    return traits, drawn.astype(np.int8)
