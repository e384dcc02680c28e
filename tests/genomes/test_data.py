"""The sealed table: what it takes, what it refuses, what it shows, and reading files."""

import gzip
import os
import pickle

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, SealedError
from tulle.genomes import Genotypes, allele_counts

VCF = """##fileformat=VCFv4.2
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tann\tbob\tcas
1\t100\trs1\tA\tG\t.\tPASS\t.\tGT:DP\t0/1:3\t1|1:2\t./.:0
1\t200\t.\tC\tT\t.\tPASS\t.\tGT\t0/0\t0/1\t1
1\t300\trs3\tC\tT,G\t.\tPASS\t.\tGT\t0/1\t1/2\t0/0
1\t400\trs4\tC\tT\t.\tPASS\t.\tDP:GT\t3:0/0\t4:1/0\t5
"""


def test_cells_may_be_missing_in_many_ways():
    rows = [[0, None], [2, 1]]
    nan = np.array([[0, np.nan], [2, 1]])
    masked = np.ma.masked_array([[0, 9], [2, 1]], mask=[[False, True], [False, False]])
    for given in (rows, nan, masked, [[0, -1], [2, 1]]):
        table = Genotypes(given, cases=[1, 0])
        assert table.to_numpy().tolist() == [[0, -1], [2, 1]]
        assert table.missing == 1
        assert table == Genotypes([[0, -1], [2, 1]], cases=[True, False])


def test_nothing_private_is_shown():
    table = Genotypes([[0, 1], [2, 2]], cases=[1, 0], snps=["rs1", "rs2"])
    assert repr(table) == f"{table}" == "<Genotypes: sealed>"
    with pytest.raises(SealedError):
        pickle.dumps(table)


def test_people_have_no_order():
    one = Genotypes([[0], [2]], cases=[1, 0])
    assert one == Genotypes([[2], [0]], cases=[0, 1])
    assert one != Genotypes([[2], [0]], cases=[1, 0])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[0, 3]], {}), "row 0, column 1 is not 0, 1, 2 or missing"),
        (([[0, 0.5]], {}), "row 0, column 1"),
        (([[0, np.inf]], {}), "row 0, column 1"),
        (([[0], [-2]], {}), "row 1, column 0"),
        ((np.array([[255]], dtype=np.uint8), {}), "row 0, column 0"),
        (([[0], [1, 2]], {}), "same length"),
        (([0, 1], {}), "got shape"),
        (([["a"]], {}), "whole numbers"),
        (([[0]], {"cases": [2]}), "only 1"),
        (([[0]], {"cases": [1, 0]}), "for each person"),
        (([[0]], {"cases": [np.nan]}), "none missing"),
        (([[0, 1]], {"snps": ["rs1", "rs1"]}), "all be different"),
        (([[0, 1]], {"snps": ["rs1"]}), "2 SNPs but 1"),
    ],
)
def test_bad_tables_are_refused(arguments, text):
    with pytest.raises(InputError, match=text):
        Genotypes(arguments[0], **arguments[1])


def test_columns_are_found_by_name():
    table = Genotypes([[0, 1]], snps=["rs1", "rs2"])
    assert table.places(["rs2"]) == [1]
    with pytest.raises(InputError, match="no SNP 'rs9'"):
        table.places(["rs9"])


@pytest.mark.parametrize("unit", ["row", "participant"])
def test_facts_are_equal_on_neighbours(unit):
    table = Genotypes([[0, 1], [2, -1], [1, 1]], cases=[1, 0, 0])
    facts = table.facts(unit)
    neighbours = list(table.neighbours(unit))
    assert all(n.facts(unit) == facts for n in neighbours)
    assert ("groups" in facts) == (unit == "row")
    expected = 3 * 15 if unit == "row" else 3 + 2 * 16
    assert len(neighbours) == expected
    assert all(n != table for n in neighbours)


def test_too_many_neighbours_are_not_listed():
    with pytest.raises(InputError, match="at most 4 SNPs"):
        Genotypes([[0] * 5]).neighbours("row")


@pytest.mark.parametrize("packed", [False, True])
def test_a_vcf_is_read(tmp_path, packed):
    path = tmp_path / ("study.vcf.gz" if packed else "study.vcf")
    path.write_bytes(gzip.compress(VCF.encode()) if packed else VCF.encode())
    table = Genotypes.read(path, cases={"bob"})
    assert table.snps == ("rs1", "1:200", "rs4")  # three alleles are left out
    assert table.counted == ("G", "T", "T")
    assert table.to_numpy().tolist() == [[1, 0, 0], [2, 1, 1], [-1, 1, -1]]
    assert table.labels.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a line\n", "line 1: not a line"),
        ("##fileformat=VCFv4.2\n", "no line #CHROM"),
        (VCF.replace("0/1:3", "0/2:3"), "line 3: a genotype"),
        (VCF.replace("\t1\n", "\n"), "line 4: not a line"),
    ],
)
def test_bad_vcf_is_refused_without_quoting_it(tmp_path, text, complaint):
    path = tmp_path / "study.vcf"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        Genotypes.read(path)
    assert "0/2" not in str(caught.value)


def test_csv_is_read_in_both_layouts(tmp_path):
    by_snp = tmp_path / "snps.csv"
    by_snp.write_text("chrom,pos,id,ref,alt,ann,bob\n1,5,rs1,A,g,0,\n1,6,rs1,A,C,2,1\n")
    table = Genotypes.read(by_snp, cases={"ann": 1, "bob": 0})
    assert table.snps == ("rs1", "1:6:A:C")
    assert table.counted == ("G", "C")
    assert table.to_numpy().tolist() == [[0, 2], [-1, 1]]
    by_person = tmp_path / "people.csv"
    by_person.write_text("person,rs1,rs2\nann,0,2\nbob,NA,1\n")
    assert Genotypes.read(by_person).to_numpy().tolist() == [[0, 2], [-1, 1]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("person,rs1\nann,5\n", "line 2: a genotype"),
        ("person,rs1\nann,1,2\n", "line 2: 3 cells"),
        ("chrom,pos,id,ref,alt,ann\n1,5,rs1,A,G\n", "line 2: 5 cells"),
        ("chrom,pos,id,ref,alt,ann\n", "no SNP"),
        ("", "no header"),
    ],
)
def test_bad_csv_is_refused(tmp_path, text, complaint):
    path = tmp_path / "study.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        Genotypes.read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twice.csv", "person,rs1\nann,0\nbob,1\nann,2\n"),
        ("twice.csv", "chrom,pos,id,ref,alt,ann,bob,ann\n1,5,rs1,A,G,0,1,2\n"),
        ("twice.vcf", VCF.replace("bob", "ann", 1)),
    ],
)
def test_a_person_with_two_rows_is_refused_alike_however_they_differ(tmp_path, name, text):
    """Noise covers one row of each person."""
    path = tmp_path / name
    path.write_text(text)
    declared = {"snps": ["rs1"], "counted": ["G"], "unlisted": "missing"}
    for given in ({}, declared):
        with pytest.raises(InputError, match="names a person twice") as caught:
            Genotypes.read(path, **given)
        assert "ann" not in str(caught.value)


def test_people_of_two_families_may_share_a_name(tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    cells = np.array([[0], [1]], dtype=np.int8)
    for families, fine in ((["f", "g"], True), (["f", "f"], False)):
        path = tmp_path / f"{fine}.bed"
        bed_reader.to_bed(path, cells, properties={"iid": ["1", "1"], "fid": families})
        if fine:
            assert Genotypes.read(path).shape == (2, 1)
            continue
        with pytest.raises(InputError, match="names a person twice"):
            Genotypes.read(path)


def test_odd_files_are_refused(tmp_path):
    path = tmp_path / "study.xyz"
    path.write_text("")
    with pytest.raises(InputError, match="format= one of csv, vcf, bed"):
        Genotypes.read(path)
    named = tmp_path / "named.csv"
    named.write_text("person,rs1\nann,0\nbob,1\n")
    with pytest.raises(InputError, match="says nothing about at least one person"):
        Genotypes.read(named, cases={"ann": 1})


def test_plink_files_are_read(tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    path = tmp_path / "study.bed"
    cells = np.array([[0, 2], [-127, 1], [1, 1]], dtype=np.int8)
    properties = {
        "iid": ["ann", "bob", "cas"],
        "sid": ["rs1", "rs2"],
        "allele_1": ["A", "C"],
        "allele_2": ["G", "T"],
        "pheno": ["2", "1", "1"],
    }
    bed_reader.to_bed(path, cells, properties=properties)
    table = Genotypes.read(path, cases="phenotypes")
    assert table.to_numpy().tolist() == [[2, 0], [-1, 1], [1, 1]]
    assert (table.counted, table.other) == (("G", "T"), ("A", "C"))
    assert table.labels.tolist() == [True, False, False]
    assert Genotypes.read(path).labels is None  # said, and not found out
    declared = {"snps": ["rs9", "rs1"], "counted": ["T", "A"]}
    with pytest.raises(InputError, match="does not list every SNP"):
        Genotypes.read(path, **declared)
    for unlisted, cell in (("missing", -1), ("none", 0)):
        chosen = Genotypes.read(path, **declared, unlisted=unlisted)
        assert chosen.to_numpy().tolist() == [[cell, 0], [cell, cell], [cell, 1]]
        assert chosen.counted == ("T", "A")
        (assumed,) = chosen.assumptions("row")
        assert "does not" in assumed
    path.write_bytes(b"not a bed file")
    with pytest.raises(InputError, match="cannot be read as PLINK"):
        Genotypes.read(path)


@pytest.mark.skipif("TULLE_DATA" not in os.environ, reason="TULLE_DATA is not set")
def test_the_exons_of_ninety_people_are_read():
    folder = os.path.join(os.environ["TULLE_DATA"], "1000g-ceu-exon")
    table = tulle.Genotypes.read(os.path.join(folder, "1000g_ceu_exon_2010_09.genotypes.csv"))
    assert table.shape == (90, 3489)
    assert table.missing == 25_719


def test_guarantees_say_that_undeclared_snps_are_assumed_public(tmp_path):
    path = tmp_path / "study.csv"
    path.write_text("chrom,pos,id,ref,alt,ann,bob\n1,5,rs1,A,G,0,1\n", encoding="utf-8")
    for study, words in [
        (Genotypes([[0], [1]]), "which SNPs there are"),
        (Genotypes.read(path), "which SNPs there are"),
        (Genotypes.read(path, snps=["rs1"]), "alleles of the declared SNPs"),
        (Genotypes([[0], [1]], snps=["rs1"]), ""),
        (Genotypes.read(path, snps=["rs1"], counted=["G"]), ""),
    ]:
        for unit in study.units:
            release = tulle.release(study, allele_counts(), unit=unit, epsilon=1.0)
            stated = release.guarantee.assumptions
            assert [words in one for one in stated] == [True] * bool(words)
            # Neighbours must not differ in what is assumed: it is printed.
            assert {near.assumptions(unit) for near in study.neighbours(unit)} == {
                study.assumptions(unit)
            }
