"""What a GWAS catalogue gives away, with exact and with private statistics; and top-K selection.

Run it with ``python -m benchmarks genomes``. Tables 19 to 22 and figures 11 to 14 of chapter 5 are
remade twice: for the chapter's own ten associations, with made-up people since their SNPs are not
in the public data at hand, and, with TULLE_DATA set, for the associations of the 2014 catalogue
whose SNPs are among the exons of 90 CEU people. With TULLE_FIGURES set to a folder, pictures are
drawn as well.

The chapter reads every number of the catalogue's column "OR or beta" as an odds ratio, and turns
those below one round. Nearly all of these are slopes of measured traits: the odds ratios of 11 to
50 of its table come from slopes of 0.02 to 0.09. The first background repeats its numbers; the
second has odds ratios only, and shows how much less is given away.
"""

from __future__ import annotations

import os
import time
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks._gwas import (
    CHAPTER,
    CHAPTER_IDENTITY,
    CHAPTER_POSTERIORS,
    SMALL_STUDY,
    Background,
    catalogue_background,
    chapter_background,
    made_up_people,
)
from benchmarks.common import print_table
from tulle.attacks import membership_inference
from tulle.attacks.traits import record_beliefs
from tulle.genomes import (
    Association,
    Catalogue,
    Genotypes,
    TraitNetwork,
    allele_counts,
    allele_frequencies,
    top_snps,
)
from tulle.ledger.answer import plan_for

Table = dict[str, Any]

EPSILONS = (2.0, 0.2)
TARGETS = 10_000
PRIVATE_RUNS = 40
CALIBRATIONS = 400
MEMBERSHIPS = 10
FREQUENCIES = 20
SELECTIONS = 40
PEOPLE = 1000
"""Cases, and as many controls, of the planted study."""
SELECTED = (
    ("difference", 10, (1.0, 1.5, 2.0, 3.0)),
    ("difference", 50, (2.0, 4.0, 8.0)),
    ("chi_square", 10, (10.0, 20.0, 30.0)),
)

# --- trait inference ------------------------------------------------------------------------------


def table_19(known: Background) -> list[Table]:
    return [
        {
            "index": place,
            "trait": item.trait,
            "SNP": f"{item.snp}-{item.allele}",
            "control frequency": item.frequency,
            "odds ratio": item.odds_ratio,
            "case frequency": item.case_frequency,
            "prevalence": float(known.network.prevalence[known.network.place(item.trait)]),
            "cases": known.sizes[item.trait][0],
            "controls": known.sizes[item.trait][1],
        }
        for place, item in enumerate(known.catalogue.associations, 1)
    ]


def one_snp(network: TraitNetwork, item: Association) -> TraitNetwork:
    """Return the network of one association, with that SNP's other traits."""
    place = network.snps.index(item.snp)
    traits = [t for t in network.traits if item.snp in network.children(t)]
    made = []
    base = network.allele_chance(item.snp)
    for trait in traits:
        chance = network.allele_chance(item.snp, [trait])
        ratio = chance / (1 - chance) * (1 - base) / base
        made.append(Association(trait, item.snp, network.alleles[place], base, ratio))
    prevalence = {t: float(network.prevalence[network.place(t)]) for t in traits}
    return TraitNetwork(Catalogue.of(made), prevalence=prevalence, copies=network.copies)


def beliefs_by_genotype(network: TraitNetwork, item: Association) -> Any:
    """Return P(trait | copies of the allele) for 0, 1 (and 2) copies, from this SNP alone."""
    single = one_snp(network, item)
    return single.posterior(np.arange(network.copies + 1)[:, None], item.trait)


def table_20(known: Background) -> list[Table]:
    rows = []
    for place, item in enumerate(known.catalogue.associations):
        column = known.people[:, known.network.snps.index(item.snp)]
        beliefs = beliefs_by_genotype(known.network, item)
        called = column[column >= 0]
        row: Table = {"index": place + 1, "prevalence": _prior(known, item)}
        for copies, belief in reversed(list(enumerate(beliefs))):
            row[f"people with {copies}"] = int((called == copies).sum())
            row[f"P(T | {copies})"] = float(belief)
        row["mean over people"] = float(beliefs[called].mean()) if len(called) else float("nan")
        if known.name == "chapter":
            turned = item.allele != CHAPTER[place][2]
            printed = CHAPTER_POSTERIORS[place]
            row["printed"] = f"{printed[0]:g}, {printed[1]:g}{' (turned)' if turned else ''}"
        rows.append(row)
    return rows


def table_21(known: Background) -> list[Table]:
    rows, errors = [], dict.fromkeys(EPSILONS, 0.0)
    private = {
        epsilon: [known.private(epsilon, seed) for seed in range(PRIVATE_RUNS)]
        for epsilon in EPSILONS
    }
    for place, item in enumerate(known.catalogue.associations):
        column = known.people[:, known.network.snps.index(item.snp)]
        called = column[column >= 0].astype(int)
        exact = float(beliefs_by_genotype(known.network, item)[called].mean())
        row: Table = {"index": place + 1, "prevalence": _prior(known, item), "exact": exact}
        for epsilon, networks in private.items():
            means = [float(beliefs_by_genotype(n, item)[called].mean()) for n in networks]
            row[f"epsilon = {epsilon:g}"] = f"{np.mean(means):.4g} ± {np.std(means):.2g}"
            errors[epsilon] += float(np.mean(np.abs(np.array(means) - exact))) / exact
        rows.append(row)
    mean = {f"epsilon = {e:g}": f"{v / len(rows):.4f}" for e, v in errors.items()}
    return [*rows, {"index": "gamma", "prevalence": "", "exact": 0.0, **mean}]


def _prior(known: Background, item: Association) -> float:
    return float(known.network.prevalence[known.network.place(item.trait)])


# --- identity inference ---------------------------------------------------------------------------


def identity(
    known: Background, network: TraitNetwork, targets: int, seed: int, *, printed: bool = False
) -> dict[int, list[Any]]:
    """Return beliefs in the target's true record, by how many traits the attacker knows.

    The target has all traits and is drawn from the exact network; the attacker uses another.
    """
    traits = known.network.traits
    _, profiles = made_up_people(known.network, targets, seed=seed, present=traits)
    # What is missing in the table's records is missing in the target's as often.
    profiles[(known.people < 0)[np.arange(targets) % len(known.people)]] = -1
    order = [known.network.snps.index(name) for name in network.snps]
    found: dict[int, list[Any]] = {}
    for count in range(1, len(traits) + 1):
        for chosen in combinations(traits, count):
            own = _log_weights(network, profiles[:, order], chosen, printed)
            others = _log_weights(network, known.people[:, order], chosen, printed)
            top = max(float(own.max()), float(others.max()))
            mine, rest = np.exp(own - top), float(np.exp(others - top).sum())
            found.setdefault(count, []).append(mine / (mine + rest))
    return found


def _log_weights(network: TraitNetwork, profiles: Any, traits: Any, printed: bool) -> Any:
    logs = network.log_likelihood(profiles, traits)
    return logs if printed else logs - network.log_likelihood(profiles, [], snps_of=traits)


def table_22(known: Background) -> tuple[list[Table], dict[int, list[Any]]]:
    exact = identity(known, known.network, TARGETS, seed=1)
    as_printed = identity(known, known.network, TARGETS, seed=1, printed=True)
    private: dict[str, dict[int, list[Any]]] = {}
    for epsilon, size in [*((e, None) for e in EPSILONS), (min(EPSILONS), SMALL_STUDY)]:
        title = f"epsilon = {epsilon:g}" + (f", {size} + {size} people" if size else "")
        private[title] = {}
        for run in range(PRIVATE_RUNS):
            attacker = known.private(epsilon, run, size=size)
            drawn = identity(known, attacker, TARGETS // PRIVATE_RUNS, run)
            for count, beliefs in drawn.items():
                private[title].setdefault(count, []).extend(beliefs)
    rows = []
    for count, beliefs in exact.items():
        row: Table = {
            "traits known": count,
            "guessing": 1 / (1 + len(known.people)),
            "exact": _mean(beliefs),
            "lemma 10 as printed": _mean(as_printed[count]),
        }
        row |= {title: _mean(found[count]) for title, found in private.items()}
        if known.name == "chapter":
            row["printed: original"] = CHAPTER_IDENTITY[count]
        rows.append(row)
    return rows, exact


def _mean(beliefs: list[Any]) -> str:
    every = np.concatenate([np.atleast_1d(b) for b in beliefs])
    return f"{every.mean():.4f} ± {every.std():.4f}"


def calibration() -> list[Table]:
    """Compare the belief in the likeliest records with how often the target is among them.

    The tables are drawn from the network, as the attacker assumes; a real one need not be.
    """
    network = chapter_background().network
    rows = []
    for printed in (False, True):
        said, right = [], []
        for run in range(CALIBRATIONS):
            _, records = made_up_people(network, 85, seed=run)
            _, target = made_up_people(network, 1, seed=10_000 + run, present=network.traits)
            every = np.vstack([records, target])
            beliefs = record_beliefs(network, every, network.traits, as_printed=printed)
            best = np.flatnonzero(beliefs >= beliefs.max() * (1 - 1e-12))
            said.append(float(beliefs[best].sum()))
            right.append(float(len(records) in best))
        rows.append(
            {
                "weights": "likelihood, as printed" if printed else "likelihood ratio",
                "belief in the likeliest": float(np.mean(said)),
                "target among them": float(np.mean(right)),
            }
        )
    return rows


# --- who took part --------------------------------------------------------------------------------


def membership() -> list[Table]:
    """Measure how often members of a case group of 100 are told from others, by 1000 SNPs."""
    generator = np.random.default_rng(11)
    snps, cases = 1000, 100
    rows = []
    for epsilon in (9999.0, 100.0, 10.0, 2.0, 0.2):
        right, limit, runs = 0.0, 1.0, MEMBERSHIPS
        for _ in range(runs):
            frequency = generator.uniform(0.1, 0.5, size=snps)
            everybody = generator.binomial(2, frequency, size=(2 * cases, snps))
            controls = generator.binomial(2, frequency, size=(cases, snps))
            study = Genotypes(
                np.vstack([everybody[:cases], controls]), cases=np.arange(2 * cases) < cases
            )
            release = tulle.release(study, allele_counts(), unit="row", epsilon=epsilon)
            found = membership_inference(
                release, everybody, reference=frequency, truth=np.arange(2 * cases) < cases
            )
            right += found.after / runs
            limit = found.limits[1]
        rows.append({"epsilon": epsilon, "right": right, "guessing": 0.5, "at most": limit})
    return rows


# --- allele frequencies ---------------------------------------------------------------------------


def frequencies() -> list[Table]:
    """Measure the mean error of allele frequencies, as many controls as cases."""
    found = planted(0)
    cells = found.to_numpy()
    declared = Genotypes(cells, cases=found.labels, complete=True)
    cases = product((found, declared), ("participant", "row"), ((100, 1.0), (1000, 5.0)))
    rows = []
    for study, unit, (snps, epsilon) in cases:
        query, truth = allele_counts(range(snps)), cells[:PEOPLE, :snps].mean(axis=0) / 2
        complete = "yes" if study is declared else "no"
        row: Table = {"complete": complete, "unit": unit, "SNPs": snps, "epsilon": epsilon}
        for name in ("laplace", "knorm", "gaussian"):
            errors = []
            for _ in range(FREQUENCIES):
                drawn = tulle.release(
                    study, query, unit=unit, epsilon=epsilon, delta=1e-6, mechanism=name
                )
                value = allele_frequencies(drawn)["cases"].value
                errors.append(np.abs(value - truth).mean())
            row[f"{name}, delta 1e-6" if name == "gaussian" else name] = float(np.mean(errors))
        row["the plan takes"] = plan_for(study, query, unit=unit, epsilon=epsilon).mechanism
        rows.append(row)
    return rows


# --- the strongest SNPs ---------------------------------------------------------------------------


def selection() -> list[Table]:
    """Measure the share of planted SNPs that are found, of 5000."""
    rows = []
    for by, strong, epsilons in SELECTED:
        study = planted(strong)
        for epsilon in epsilons:
            row: Table = {"score": by, "planted": strong, "epsilon": epsilon}
            for name in ("one_shot", "peeling", "laplace_top", "exponential"):
                delta = 1e-6 if name == "exponential" else 0
                runs = 5 if name == "exponential" and by == "chi_square" else SELECTIONS
                query = top_snps(strong, by=by)
                hits, began = 0.0, time.perf_counter()
                for _ in range(runs):
                    drawn = tulle.release(
                        study, query, unit="row", epsilon=epsilon, delta=delta, mechanism=name
                    )
                    hits += sum(place < strong for place in drawn.value["places"]) / strong / runs
                title = f"{name}, delta 1e-6" if delta else name
                row[title] = hits
                row[f"{name}, s"] = (time.perf_counter() - began) / runs
            rows.append(row)
    return rows


def planted(strong: int) -> Genotypes:
    """Return cases and as many controls, the first SNPs of 5000 more frequent among cases."""
    generator = np.random.default_rng(5)
    snps, people = 5000, PEOPLE
    frequency = generator.uniform(0.15, 0.5, size=snps)
    shifted = frequency.copy()
    shifted[:strong] += 0.12
    cells = np.vstack(
        [generator.binomial(2, row, size=(people, snps)) for row in (shifted, frequency)]
    )
    return Genotypes(cells.astype(np.int8), cases=np.arange(2 * people) < people)


# --- pictures -------------------------------------------------------------------------------------


def draw(known: Background, exact: dict[int, list[Any]]) -> None:
    folder = os.environ.get("TULLE_FIGURES")
    if not folder:
        return
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    counts = list(exact)
    every = [np.concatenate(exact[count]) for count in counts]
    axes.errorbar(
        counts, [e.mean() for e in every], [e.std() for e in every], marker="o", capsize=3
    )
    axes.axhline(1 / (1 + len(known.people)), color="tab:red", label="guessing")
    top = min(1.0, 1.2 * max(float(e.mean() + e.std()) for e in every))
    axes.set(xlabel="traits known", ylabel="belief in the target's record", ylim=(0, top))
    axes.legend(loc="upper left")
    _save(figure, folder, f"figure_11_{known.name}")

    figure, axes = plt.subplots(figsize=(6, 4))
    for count, beliefs in zip(counts, every, strict=True):
        ordered = np.sort(beliefs)
        axes.plot(ordered, np.linspace(1, 0, len(ordered)), label=f"{count} known")
    axes.axvline(1 / (1 + len(known.people)), color="tab:red", linestyle=":", label="guessing")
    axes.set(xlabel="belief in the target's record", ylabel="share of targets above it")
    axes.legend()
    number = "13" if known.name == "chapter" else "12"
    _save(figure, folder, f"figure_{number}_{known.name}")

    figure, axes = plt.subplots(figsize=(7, 4))
    items = known.catalogue.associations
    places = np.arange(len(items))
    columns = [known.people[:, known.network.snps.index(item.snp)] for item in items]
    here = [c[c >= 0].mean() / known.network.copies if (c >= 0).any() else 0 for c in columns]
    axes.bar(places - 0.2, here, 0.4, label="the anonymous table")
    axes.bar(places + 0.2, [item.frequency for item in items], 0.4, label="published, controls")
    axes.set(xticks=places, xticklabels=[str(p + 1) for p in places], ylabel="allele frequency")
    axes.set_xlabel("association")
    axes.legend()
    _save(figure, folder, f"figure_14_{known.name}")


def _save(figure: Any, folder: str, name: str) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(Path(folder, f"{name}.png"), dpi=150)
    plt.close(figure)


MINUTE: dict[str, Any] = {
    "TARGETS": 100,
    "PRIVATE_RUNS": 2,
    "CALIBRATIONS": 3,
    "MEMBERSHIPS": 1,
    "FREQUENCIES": 1,
    "SELECTIONS": 1,
    "PEOPLE": 100,
    "SELECTED": (("difference", 10, (2.0,)),),
}
"""What is smaller in the minute's version."""


def main() -> None:
    for known in filter(None, (chapter_background(), catalogue_background())):
        print_table(f"table 19 ({known.name}): what the attacker knows", table_19(known))
        print_table(f"table 20 ({known.name}): beliefs from one SNP", table_20(known))
        print_table(f"table 21 ({known.name}): mean beliefs, private statistics", table_21(known))
        rows, exact = table_22(known)
        print_table(f"table 22 ({known.name}): belief in the target's record", rows)
        draw(known, exact)
    print_table("is a belief what it says? six traits known", calibration())
    print_table("who took part: members told from others by their frequencies", membership())
    print_table(f"allele frequencies: mean error, {PEOPLE:,} cases", frequencies())
    print_table("the strongest SNPs: share of planted ones found, of 5000", selection())
