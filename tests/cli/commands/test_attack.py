"""``tulle attack``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_helpers import Run
from tests.genomes.genome_helpers import HEADER

import tulle
from tulle.genomes import Association, allele_counts
from tulle.genomes.generators import made_up_study


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
    (tmp_path / "catalogue.tsv").write_text("\n".join(["\t".join(HEADER), *rows]) + "\n")
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


@pytest.fixture
def suspects(tmp_path: Path) -> list[object]:
    """Eighty people, the first forty of whom are the cases of a study nearly without noise."""
    generator = np.random.default_rng(2)
    usual = generator.uniform(0.1, 0.5, size=600)
    people = generator.binomial(2, usual, size=(80, 600))
    controls = generator.binomial(2, usual, size=(40, 600))
    names = [f"rs{place}" for place in range(600)]
    half = np.arange(80) < 40
    study = tulle.Genotypes(np.vstack([people[:40], controls]), cases=half, snps=names)
    loud = tulle.release(study, allele_counts(), unit="row", epsilon=9999)
    loud.save(tmp_path / "counts.json")
    replace(loud, guarantee=tulle.Guarantee.of("row", epsilon="0.1")).save(tmp_path / "lying.json")
    # The columns stand in another order: they are matched by name.
    order = generator.permutation(600)
    header = ",".join(["person", *(names[place] for place in order)])
    rows = [",".join(map(str, [f"p{i}", *people[i, order]])) for i in range(80)]
    (tmp_path / "people.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "members.txt").write_text("\n".join(f"p{i}" for i in range(40)) + "\n")
    shares = [f"{name},{share}" for name, share in zip(names, usual, strict=True)]
    (tmp_path / "usual.csv").write_text("\n".join(["snp,frequency", *shares]) + "\n")
    large = [",".join(map(str, [f"q{i}", *generator.binomial(2, usual)])) for i in range(150)]
    (tmp_path / "large.csv").write_text("\n".join([",".join(["person", *names]), *large]) + "\n")
    return ["--genotypes", "people.csv", "--members", "members.txt"]


@pytest.mark.parametrize("reference", ["usual.csv", "large.csv"])
def test_who_took_part(run: Run, suspects: list[object], reference: str) -> None:
    found = run(
        "attack", "membership", "counts.json", *suspects, "--reference", reference, "--json"
    ).json()
    assert found["attack"] == "membership"
    assert found["before"] == 0.5
    assert found["after"] > 0.85
    assert found["within"]
    lying = run("attack", "membership", "lying.json", *suspects, "--reference", reference)
    assert lying.code == 1
    assert "cannot hold" in lying.out


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("usual.csv", "snp,frequency\nrs0,0.2\n", "says nothing about 599 of the 600"),
        ("usual.csv", "snp,frequency\nrs0,often\n", "line 2: not a SNP's name and a frequency"),
        ("members.txt", "p1\n", "Half of the people"),
        ("people.csv", "person,other\np1,0\np2,1\n", "None of the released SNPs"),
    ],
)
def test_bad_suspects_are_refused(
    run: Run, suspects: list[object], tmp_path: Path, file: str, content: str, text: str
) -> None:
    (tmp_path / file).write_text(content)
    ran = run("attack", "membership", "counts.json", *suspects, "--reference", "usual.csv")
    assert ran.code == 2
    assert text in ran.err


@pytest.fixture
def model(tmp_path: Path) -> list[object]:
    """A model of who is rich, and a table of people whose marriage is to be guessed."""
    generator = np.random.default_rng(3)
    married = generator.random(2000) < 0.5
    age = generator.random(2000) * 60 + 20
    town = generator.choice(["hill", "lake", "wood"], size=2000)
    odds = 4 * married - 2 + (age - 50) / 20
    rich = generator.random(2000) < 1 / (1 + np.exp(-odds))
    columns = {"married": married.tolist(), "age": age, "town": town.tolist()}
    table = tulle.models.Table(
        {**columns, "rich": rich.tolist()},
        bounds={"age": (20, 80)},
        classes={
            "married": [False, True],
            "rich": [False, True],
            "town": ["hill", "lake", "wood"],
        },
    )
    logistic = tulle.models.logistic("rich")
    tulle.release(table, logistic, unit="row", epsilon=20.0).save(tmp_path / "model.json")
    linear = tulle.models.linear("age", ["married", "rich"])
    tulle.release(table, linear, unit="row", epsilon=20.0).save(tmp_path / "line.json")
    rows = [
        f"{age[i]:.3f},{town[i]},{str(rich[i]).lower()},{str(married[i]).lower()}"
        for i in range(400)
    ]
    header = "age,town,rich,married"
    (tmp_path / "people.csv").write_text("\n".join([header, *rows]) + "\n")
    return ["--people", "people.csv", "--sensitive", "married",
            "--marginal", "true=0.5", "--marginal", "false=0.5"]  # fmt: skip


def test_a_feature_from_a_model(run: Run, model: list[object], tmp_path: Path) -> None:
    scored = run("attack", "inversion", "model.json", *model, "--json").json()
    assert scored["after"] > scored["before"] + 0.1
    assert scored["trials"] == 400
    assert not scored["bounded"]
    by_class = run("attack", "inversion", "model.json", *model, "--confusion", "800,200,200,800")
    assert "how often the model is right" in by_class.out
    linear = run("attack", "inversion", "line.json", *model, "--deviation", "15", "--json")
    assert linear.json()["after"] > 0.4
    # Without the sensitive column the figure is the adversary's own expectation.
    lines = (tmp_path / "people.csv").read_text().splitlines()
    blind = "\n".join(line.rpartition(",")[0] for line in lines)
    (tmp_path / "people.csv").write_text(blind + "\n")
    assert run("attack", "inversion", "model.json", *model, "--json").json()["level"] == 1.0


def test_what_is_not_known_is_summed_out(run: Run, model: list[object], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,rich\n40,true\n")
    towns = ["--unknown", "town:hill=0.4", "--unknown", "town:lake=0.6"]
    found = run("attack", "inversion", "model.json", *model, *towns, "--json").json()
    assert "marginals of town" in found["knows"]
    ran = run("attack", "inversion", "model.json", *model)
    assert ran.code == 2
    assert "--unknown town:VALUE=SHARE" in ran.err


@pytest.mark.parametrize(
    ("content", "more", "text"),
    [
        ("age,town,married\n40,lake,true\n", [], "no column 'rich', which the model needs"),
        ("age,town,rich\nzebra-secret,lake,true\n", [], "row 1: 'age' is neither a number"),
        ("age,town,rich\n40,zebra-secret,true\n", [], "row 1: 'town' is neither"),
        ("age,town,rich\n40,lake\n", [], "line 2: 2 cells where the header has 3"),
        ("age,age,rich\n", [], "a different name for each column"),
        ("age,town,rich\n", [], "lists nobody"),
        (None, ["--sensitive", "height"], "no feature 'height'. It has: age, married, town"),
        (None, ["--marginal", "perhaps=0.5"], "VALUE=SHARE; got 'perhaps=0.5'"),
        (None, ["--unknown", "lake=0.5"], "FEATURE:VALUE=SHARE"),
        (None, ["--confusion", "1,2,3"], "four counts"),
    ],
)
def test_bad_targets_are_refused(
    run: Run, model: list[object], tmp_path: Path, content: str | None, more: list[str], text: str
) -> None:
    if content is not None:
        (tmp_path / "people.csv").write_text(content)
    ran = run("attack", "inversion", "model.json", *model, *more)
    assert ran.code == 2
    assert text in ran.err
