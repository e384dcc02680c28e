"""The network's sums against plain enumeration, and its tables against the chapter's."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.genomes.genome_helpers import study

import tulle
from tulle.core.errors import InputError
from tulle.genomes import Association, Catalogue, Genotypes, TraitNetwork, allele_counts


def random_network(seed, traits, snps, link, copies, protective=False):
    generator = np.random.default_rng(seed)
    made, prevalence = [], {}
    for trait in range(traits):
        prevalence[f"t{trait}"] = float(generator.uniform(0.05, 0.6))
        for snp in generator.choice(snps, size=min(snps, 3), replace=False):
            odds = float(np.exp(generator.normal(0, 1) if protective else generator.exponential(1)))
            frequency = float(generator.uniform(0.1, 0.6))
            made.append(Association(f"t{trait}", f"rs{snp}", "A", frequency, odds))
    return TraitNetwork(Catalogue.of(made), prevalence=prevalence, link=link, copies=copies)


def enumerate_joint(network, profile, known, snps):
    """Return P(genotypes of these SNPs, unknown traits summed over | known), by plain loops."""
    total = 0.0
    free = [trait for trait in network.traits if trait not in known]
    for states in product((0, 1), repeat=len(free)):
        state = dict(zip(free, states, strict=True)) | known
        chance = 1.0
        for trait in free:
            p = network.prevalence[network.place(trait)]
            chance *= p if state[trait] else 1 - p
        present = [trait for trait, on in state.items() if on]
        for snp in snps:
            g = profile[network.snps.index(snp)]
            if g >= 0:
                f = network.allele_chance(snp, present)
                n = network.copies
                chance *= math.comb(n, g) * f**g * (1 - f) ** (n - g)
        total += chance
    return total


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(["odds", "noisy_or"]),
    st.sampled_from([1, 2]),
)
def test_sums_are_those_of_plain_enumeration(seed, traits, snps, link, copies):
    network = random_network(seed, traits, snps, link, copies, protective=link == "odds")
    generator = np.random.default_rng(seed)
    profiles = generator.integers(-1, copies + 1, size=(4, len(network.snps)))
    trait = network.traits[seed % len(network.traits)]
    own = network.children(trait)
    found = network.posterior(profiles, trait)
    prior = network.prevalence[network.place(trait)]
    present = list(network.traits[: 1 + seed % 2])
    relevant = sorted({snp for t in present for snp in network.children(t)})
    likelihoods = network.log_likelihood(profiles, present)
    for person, profile in enumerate(profiles):
        yes = prior * enumerate_joint(network, profile, {trait: 1}, own)
        no = (1 - prior) * enumerate_joint(network, profile, {trait: 0}, own)
        assert found[person] == pytest.approx(yes / (yes + no), rel=1e-9)
        expected = enumerate_joint(network, profile, dict.fromkeys(present, 1), relevant)
        assert likelihoods[person] == pytest.approx(math.log(expected), rel=1e-9, abs=1e-9)


def test_lemma_seven_is_normalised():
    """As printed the table exceeds one; here values of a SNP add up to one, whatever the traits."""
    first = Association("a", "rs1", "A", 0.6, 11.0)
    second = Association("b", "rs1", "A", 0.6, 11.0)
    population = 0.7
    printed = first.case_frequency * second.case_frequency / population
    assert printed > 1
    network = TraitNetwork(
        Catalogue.of([first, second]), prevalence=0.1, population={"rs1": population}
    )
    both = network.allele_chance("rs1", ["a", "b"])
    other = (1 - first.case_frequency) * (1 - second.case_frequency) / (1 - population)
    assert both == pytest.approx(printed / (printed + other))
    for present in ([], ["a"], ["b"], ["a", "b"]):
        assert 0 < network.allele_chance("rs1", present) < 1


def test_one_trait_alone_has_the_published_frequencies():
    item = Association("a", "rs1", "A", 0.41, 22.22)
    for link in ("odds", "noisy_or"):
        network = TraitNetwork(Catalogue.of([item]), prevalence=0.05, link=link, copies=1)
        assert network.allele_chance("rs1") == pytest.approx(0.41)
        assert network.allele_chance("rs1", ["a"]) == pytest.approx(0.9392, abs=5e-5)
        found = network.posterior([[1], [0]], "a")
        # Table 20, row 1 of the chapter: 0.1076 and 0.0054.
        assert found == pytest.approx([0.1076, 0.0054], abs=5e-5)


@pytest.mark.parametrize("copies", [1, 2])
def test_many_traits_on_one_snp_stay_fast(copies):
    count = 60
    generator = np.random.default_rng(2)
    made = [
        Association(f"t{k}", "rs1", "A", 0.2, float(generator.uniform(1.01, 1.2)))
        for k in range(count)
    ]
    network = TraitNetwork(Catalogue.of(made), prevalence=0.1, link="noisy_or", copies=copies)
    spared = 0.8
    factors = np.array([(1 - item.case_frequency) / 0.8 for item in made[1:]])
    first = (1 - made[0].case_frequency) / 0.8
    expected = []
    for g in range(copies + 1):
        chances = []
        for on in (1, 0):
            base = spared * (first if on else 1.0)
            powers = [
                math.comb(g, b)
                * (-1) ** b
                * base ** (copies - g + b)
                * np.prod(0.9 + 0.1 * factors ** (copies - g + b))
                for b in range(g + 1)
            ]
            chances.append(sum(powers))
        expected.append(0.1 * chances[0] / (0.1 * chances[0] + 0.9 * chances[1]))
    found = network.posterior(np.arange(copies + 1)[:, None], "t0")
    assert found == pytest.approx(expected, rel=1e-9)
    tangled = TraitNetwork(Catalogue.of(made), prevalence=0.1, copies=copies)
    with pytest.raises(InputError, match="noisy_or"):
        tangled.posterior([[1]], "t0")


def test_other_alleles_are_turned_round_and_doubtful_ones_counted():
    made = [
        Association("a", "rs1", "A", 0.3, 2.0, 1e-9),
        Association("b", "rs1", "G", 0.6, 3.0, 1e-8),
        Association("c", "rs1", "T", 0.3, 2.0),
        Association("d", "rs1", "", 0.3, 2.0),
        Association("a", "rs1", "A", 0.4, 9.0, 1e-5),
    ]
    network = TraitNetwork(Catalogue.of(made), prevalence=0.1)
    assert network.traits == ("a", "b")
    assert network.left_out == {
        "reported more than once": 1,
        "another allele, or another strand": 2,
    }
    assert network.allele_chance("rs1", ["b"]) < network.allele_chance("rs1")


def test_tables_are_aligned_by_allele_and_strand():
    made = [
        Association("a", name, allele, 0.3, 2.0)
        for name, allele in [("same", "A"), ("other", "G"), ("strand", "T"), ("none", "C")]
    ]
    network = TraitNetwork(
        Catalogue.of([*made, Association("a", "gone", "A", 0.3, 2.0)]), prevalence=0.1
    )
    table = Genotypes(
        [[0, 0, 2, 1], [2, -1, 1, 0]],
        snps=["same", "other", "strand", "none"],
        counted=["A", "A", "A", "A"],
        other=["G", "G", "C", "T"],
    )
    assert network.align(table).tolist() == [[0, 2, 2, -1, -1], [2, -1, 1, -1, -1]]
    binary = TraitNetwork(Catalogue.of(made), prevalence=0.1, copies=1)
    assert binary.align(table).tolist() == [[0, 1, 1, -1], [1, -1, 1, -1]]


def test_a_network_from_private_releases():
    made = study(cases=3000, controls=3000, snps=4, strong=(1,), missing=0.02)
    release = tulle.release(made, allele_counts(), unit="row", epsilon=2.0)
    network = TraitNetwork.from_releases({"Mumps": release}, prevalence=0.1)
    assert network.guarantee == release.guarantee
    cells = made.to_numpy().astype(float)
    cells[cells < 0] = np.nan
    controls = np.nanmean(cells[3000:], axis=0) / 2
    assert network.allele_chance("snp1") == pytest.approx(controls[1], abs=0.02)
    assert network.allele_chance("snp1", ["Mumps"]) > controls[1] + 0.2


def test_noise_that_drowns_everything_still_gives_a_network():
    made = study(cases=3, controls=3, snps=5)
    for _ in range(20):
        release = tulle.release(made, allele_counts(), unit="participant", epsilon=0.01)
        network = TraitNetwork.from_releases({"Mumps": release}, prevalence=0.1)
        assert np.isfinite(network.posterior(np.ones((1, 5), int), "Mumps")).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda made: TraitNetwork(made, prevalence={}), "says nothing about 'a'"),
        (lambda made: TraitNetwork(made, prevalence=1.5), "strictly between 0 and 1"),
        (lambda made: TraitNetwork(made, prevalence=0.1, link="and"), "link must be"),
        (lambda made: TraitNetwork(made, prevalence=0.1, copies=3), "copies must be"),
        (lambda made: TraitNetwork(made, prevalence=0.1, population={"rs1": 1}), "population"),
        (lambda made: TraitNetwork(made, prevalence=0.1).posterior([[3]], "a"), "0 to 2 copies"),
        (lambda made: TraitNetwork(made, prevalence=0.1).posterior([[1, 1]], "a"), "one column"),
        (lambda made: TraitNetwork(made, prevalence=0.1).posterior([[1]], "z"), "no trait 'z'"),
        (lambda made: TraitNetwork(made, prevalence=0.1).allele_chance("rs9"), "no SNP 'rs9'"),
    ],
)
def test_bad_input_is_refused(call, text):
    made = Catalogue.of([Association("a", "rs1", "A", 0.3, 2.0)])
    with pytest.raises(InputError, match=text):
        call(made)


def test_protective_alleles_do_not_fit_a_noisy_or():
    made = [Association(f"t{k}", "rs1", "A", 0.3, 0.2) for k in range(9)]
    with pytest.raises(InputError, match="link='odds'"):
        TraitNetwork(Catalogue.of(made), prevalence=0.1, link="noisy_or")
