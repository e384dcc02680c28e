"""Attacks on people in general: calibrated beliefs, no false limits; and on who took part."""

import numpy as np
import pytest

import tulle
from tulle.attacks import (
    identity_inference,
    membership_inference,
    new_trait_inference,
    trait_inference,
)
from tulle.attacks.traits import record_beliefs
from tulle.core.errors import InputError
from tulle.genomes import Association, Catalogue, Genotypes, TraitNetwork, allele_counts

TRAITS = ["a", "b", "c"]
CATALOGUE = Catalogue.of(
    [
        Association("a", "rs1", "A", 0.3, 4.0),
        Association("a", "rs2", "A", 0.2, 3.0),
        Association("b", "rs2", "A", 0.25, 5.0),
        Association("b", "rs3", "A", 0.4, 2.0),
        Association("c", "rs4", "A", 0.1, 9.0),
    ]
)
NETWORK = TraitNetwork(CATALOGUE, prevalence={"a": 0.2, "b": 0.1, "c": 0.3})


def people(count, seed, present=None):
    """Return traits and genotypes of made-up people, drawn from the network."""
    generator = np.random.default_rng(seed)
    traits = generator.random((count, 3)) < NETWORK.prevalence
    if present is not None:
        traits[:, [NETWORK.place(t) for t in present]] = True
    profiles = np.empty((count, len(NETWORK.snps)), dtype=int)
    for person in range(count):
        has = [t for t, on in zip(TRAITS, traits[person], strict=True) if on]
        for place, snp in enumerate(NETWORK.snps):
            profiles[person, place] = generator.binomial(2, NETWORK.allele_chance(snp, has))
    return traits, profiles


def test_beliefs_about_traits_are_calibrated():
    traits, profiles = people(6000, seed=1)
    for place, trait in enumerate(TRAITS):
        beliefs = NETWORK.posterior(profiles, trait)
        for low, high in [(0, 0.15), (0.15, 0.4), (0.4, 1.0)]:
            chosen = (beliefs >= low) & (beliefs < high)
            if chosen.sum() > 100:
                spread = np.sqrt(beliefs[chosen].mean() / chosen.sum())
                assert abs(traits[chosen, place].mean() - beliefs[chosen].mean()) < 5 * spread


def test_trait_inference_gains_and_promises_no_limit():
    traits, profiles = people(3000, seed=2)
    scored = trait_inference(NETWORK, profiles, "c", truth=traits[:, 2])
    assert scored.measure == "success"
    assert scored.gain > 0.05
    assert not scored.bounded
    assert "taking part" in scored.reason
    mean = trait_inference(NETWORK, profiles, "c")
    assert mean.interval[0] <= 0.3 <= mean.interval[1]
    one = trait_inference(NETWORK, profiles[0], "c")
    assert one.interval == (one.after, one.after)


def test_beliefs_about_records_are_calibrated_and_the_printed_ones_are_not():
    size, runs = 12, 500
    claimed, right, printed_claim, printed_right = [], [], [], []
    for run in range(runs):
        _, profiles = people(size, seed=100 + run)
        _, target = people(1, seed=9_000 + run, present=["a", "b"])
        profiles[run % size] = target[0]
        for beliefs, said, hit in (
            (record_beliefs(NETWORK, profiles, ["a", "b"]), claimed, right),
            (
                record_beliefs(NETWORK, profiles, ["a", "b"], as_printed=True),
                printed_claim,
                printed_right,
            ),
        ):
            said.append(beliefs.max())
            best = np.flatnonzero(beliefs == beliefs.max())
            hit.append((run % size in best) / len(best))
    spread = np.sqrt(0.25 / runs)
    assert abs(np.mean(claimed) - np.mean(right)) < 4 * spread
    assert np.mean(right) > np.mean(printed_right) + spread
    assert np.mean(right) > 2 / size


def test_identity_inference_reports_a_record():
    _, profiles = people(20, seed=5)
    found = identity_inference(NETWORK, profiles, traits=["a"], truth=3)
    assert found.before == 1 / 20
    assert found.after == record_beliefs(NETWORK, profiles, ["a"])[3]
    best = identity_inference(NETWORK, profiles, traits=["a"])
    assert best.details["rank"] == 1
    assert record_beliefs(NETWORK, profiles, []).tolist() == [1 / 20] * 20
    with pytest.raises(InputError, match="record 20"):
        identity_inference(NETWORK, profiles, traits=["a"], truth=20)


def test_new_trait_inference_weighs_records():
    _, profiles = people(20, seed=6)
    found = new_trait_inference(NETWORK, profiles, traits=["a"], new="c")
    weights = record_beliefs(NETWORK, profiles, ["a"])
    assert found.after == pytest.approx(weights @ NETWORK.posterior(profiles, "c"))
    assert found.before == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: trait_inference(Genotypes([[0]]), [0], "a"), "got sealed data"),
        (lambda: trait_inference(3, [0], "a"), "got a int"),
        (lambda: trait_inference(NETWORK, [0, 0, 0, 0], "z"), "no trait 'z'"),
        (lambda: trait_inference(NETWORK, [[0] * 4] * 2, "a", truth=[1, 2]), "1 or 0"),
    ],
)
def test_bad_input_is_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


def case_study(seed, cases=60, snps=300):
    """Return a study, everybody's genotypes (cases first), frequencies and who was a case."""
    generator = np.random.default_rng(seed)
    frequency = generator.uniform(0.1, 0.5, size=snps)
    everybody = generator.binomial(2, frequency, size=(2 * cases, snps))
    controls = generator.binomial(2, frequency, size=(cases, snps))
    study = Genotypes(np.vstack([everybody[:cases], controls]), cases=np.arange(2 * cases) < cases)
    return study, everybody, frequency, np.arange(2 * cases) < cases


def test_exact_frequencies_give_members_away_and_private_ones_do_not():
    study, everybody, frequency, members = case_study(seed=3, snps=1000)
    loud = tulle.release(study, allele_counts(), unit="row", epsilon=9999)
    found = membership_inference(loud, everybody, reference=frequency, truth=members)
    assert found.after > 0.95
    quiet = tulle.release(study, allele_counts(), unit="row", epsilon=1.0)
    calm = membership_inference(quiet, everybody, reference=frequency, truth=members)
    assert calm.within
    assert calm.after < 0.7
    assert calm.limits[1] == pytest.approx(0.731, abs=1e-3)


def test_a_study_that_claims_too_little_is_found_out():
    from dataclasses import replace

    study, everybody, frequency, members = case_study(seed=4, snps=1000)
    loud = tulle.release(study, allele_counts(), unit="row", epsilon=9999)
    lying = replace(loud, guarantee=tulle.Guarantee.of("row", epsilon=1))
    assert not membership_inference(lying, everybody, reference=frequency, truth=members).within


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reference": np.full(300, 1.5)}, "strictly between"),
        ({"reference": np.full(3, 0.5)}, "one column"),
        ({"truth": np.ones(120)}, "Half of the people"),
        ({"truth": np.ones(3)}, "for each person"),
        ({"profiles": np.full((120, 300), 7)}, "0, 1, 2 or -1"),
    ],
)
def test_bad_membership_input_is_refused(changes, text):
    study, everybody, frequency, members = case_study(seed=5)
    release = tulle.release(study, allele_counts(), unit="row", epsilon=1.0)
    given = {"profiles": everybody, "reference": frequency, "truth": members} | changes
    with pytest.raises(InputError, match=text):
        membership_inference(
            release, given["profiles"], reference=given["reference"], truth=given["truth"]
        )


def test_every_attack_is_where_it_is_said_to_be_and_refuses_sealed_data():
    attacks = [name for name in dir(tulle.attacks) if name.endswith("_inference")]
    assert len(attacks) == 7
    sealed = tulle.Graph.from_edges([(0, 1)], nodes=3)
    for name in ("edge_inference", "count_inference", "membership_inference"):
        assert name in attacks
    for name in attacks:
        assert callable(getattr(tulle.attacks, name))
    with pytest.raises(InputError, match="not on sealed data"):
        tulle.attacks.edge_inference(sealed)
