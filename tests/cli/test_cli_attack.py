"""``tulle attack``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import Run

import tulle
from tulle.genomes import Association, allele_counts
from tulle.genomes.generators import made_up_study

CATALOGUE_HEADER = "\t".join(
    [
        "Disease/Trait",
        "Strongest SNP-Risk Allele",
        "SNPs",
        "Risk Allele Frequency",
        "p-Value",
        "OR or beta",
        "95% CI (text)",
        "Initial Sample Size",
    ]
)


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=9)
    release = tulle.release(graph, tulle.topology(), unit="edge", epsilon=1.0)
    release.save(tmp_path / "topology.json")
    return tmp_path / "topology.json"


def test_edges_from_a_topology(run: Run, topology: Path) -> None:
    ran = run("attack", "edge", topology, "--pair", "0,1", "--prior", "0.5")
    assert ran.code == 0
    assert "(0, 1) is an edge" in ran.out
    assert "exp(epsilon)" in ran.out
    found = run("attack", "edge", topology, "--json").json()
    assert found["measure"] == "success"
    assert found["within"]


def test_a_lie_is_found_out(run: Run, topology: Path, tmp_path: Path) -> None:
    loud = tulle.Release.load(topology)
    lying = replace(loud, guarantee=tulle.Guarantee.of("edge", epsilon="0.1"))
    lying.save(tmp_path / "lying.json")
    ran = run("attack", "edge", "lying.json", "--pair", "0,1", "--prior", "0.5")
    assert ran.code == 1
    assert "cannot hold" in ran.out


def test_an_edge_from_a_count(run: Run, tmp_path: Path) -> None:
    graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=4)
    release = tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0)
    release.save(tmp_path / "edges.json")
    (tmp_path / "known.csv").write_text("0,1\n1,2\n")
    ran = run(
        "attack", "count", "edges.json", "--known", "known.csv", "--nodes", 4,
        "--pair", "0,1", "--json",
    )  # fmt: skip
    assert ran.json()["limits"][1] == pytest.approx(0.731, abs=1e-3)


@pytest.fixture
def genotypes(tmp_path: Path) -> Path:
    lines = ["chrom,pos,id,ref,alt,ann,bob,cas", "1,1,rs1,G,A,2,0,1", "1,2,rs2,G,A,0,,1"]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    rows = [
        "Mumps\trs1-A\trs1\t0.2\t1E-9\t4.0\t[3.0-5.0]\tNR",
        "Gout\trs2-A\trs2\t0.3\t1E-9\t2.0\t[1.0-5.0]\tNR",
        "Gout\trs9-A\trs9\t0.3\t1E-9\t2.0\t[1.0-5.0]\tNR",
    ]
    (tmp_path / "catalogue.tsv").write_text("\n".join([CATALOGUE_HEADER, *rows]) + "\n")
    return tmp_path / "people.csv"


def test_traits_from_a_catalogue(run: Run, genotypes: Path) -> None:
    given = ["--genotypes", genotypes, "--prevalence", "0.1", "--catalogue", "catalogue.tsv"]
    found = run("attack", "trait", "Mumps", *given, "--json").json()
    assert found["before"] == 0.1
    assert not found["bounded"]
    identity = run("attack", "identity", *given, "--knows", "Mumps", "--json").json()
    assert identity["details"]["record"] == 0
    ran = run("attack", "new-trait", "Gout", *given, "--knows", "Mumps")
    assert "people in general" in ran.out


def test_traits_from_private_releases(run: Run, genotypes: Path, tmp_path: Path) -> None:
    published = [Association("Mumps", "rs1", "A", 0.2, 4.0)]
    study = made_up_study(published, cases=400, controls=400, seed=1)
    tulle.release(study, allele_counts(), unit="row", epsilon=5.0).save(tmp_path / "mumps.json")
    ran = run(
        "attack", "trait", "Mumps", "--genotypes", genotypes, "--prevalence", "Mumps=0.1",
        "--release", "Mumps=mumps.json", "--json",
    )  # fmt: skip
    assert ran.json()["guarantee"] is not None
    assert np.isfinite(ran.json()["after"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["edge", "topology.json", "--pair", "0-1"], "--pair is written U,V"),
        (["edge", "none.json"], "cannot be read"),
        (["edge", "topology.json", "--pair", "0,99"], "two different nodes below 9"),
        (
            ["trait", "Mumps", "--genotypes", "people.csv", "--prevalence", "0.1"],
            "either --catalogue or",
        ),
        (
            ["trait", "Mumps", "--genotypes", "people.csv", "--prevalence", "x",
             "--catalogue", "catalogue.tsv"],
            "--prevalence is written",
        ),
        (
            ["trait", "Mumps", "--genotypes", "people.csv", "--prevalence", "Measles=0.1",
             "--catalogue", "catalogue.tsv"],
            "no trait 'Measles'",
        ),
        (
            ["trait", "Mumps", "--genotypes", "people.csv", "--prevalence", "0.1",
             "--release", "mumps.json"],
            "TRAIT=FILE",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused(
    run: Run, topology: Path, genotypes: Path, arguments: list[str], text: str
) -> None:
    ran = run("attack", *arguments)
    assert ran.code == 2
    assert text in ran.err
