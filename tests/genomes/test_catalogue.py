"""Catalogues: messy rows are counted, never guessed at."""

import gzip
import os

import pytest
from tests.genomes.genome_helpers import HEADER

from tulle.core.errors import InputError
from tulle.genomes import Association, Catalogue

GOOD = ("Mumps", "rs1-A", "rs1", "0.25", "1E-9", "   1.5", "[1.2-1.9] ", "1,043 cases, 90 controls")


def row(**changes):
    names = ("trait", "allele", "snp", "frequency", "p", "odds", "interval", "sample")
    return tuple(changes.get(name, value) for name, value in zip(names, GOOD, strict=True))


def read(tmp_path, *rows):
    path = tmp_path / "catalogue.tsv.gz"
    text = "\n".join("\t".join(cells) for cells in (HEADER, *rows)) + "\n"
    path.write_bytes(gzip.compress(text.encode()))
    return Catalogue.read(path)


def test_a_good_row_is_read_whole(tmp_path):
    (found,) = read(tmp_path, GOOD).associations
    assert found == Association("Mumps", "rs1", "A", 0.25, 1.5, 1e-9, 1043, 90)
    assert found.case_frequency == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"snp": "NR"}, "no SNP with an rs number"),
        ({"snp": "chr11:107967350"}, "no SNP with an rs number"),
        ({"trait": ""}, "no SNP with an rs number"),
        ({"snp": "rs1, rs2"}, "several SNPs, or a haplotype"),
        ({"snp": "rs1 2"}, "several SNPs, or a haplotype"),
        ({"allele": "3-SNP haplotype-1"}, "no single risk allele"),
        ({"allele": "rs2-A"}, "no single risk allele"),
        ({"allele": "rs1-G x rs2-T"}, "no single risk allele"),
        ({"frequency": "NR"}, "no risk allele frequency"),
        ({"frequency": "(GC)"}, "no risk allele frequency"),
        ({"frequency": "1.0"}, "no risk allele frequency"),
        ({"odds": "Pending"}, "no odds ratio"),
        ({"odds": "#######"}, "no odds ratio"),
        ({"odds": "-.3"}, "no odds ratio"),
        ({"odds": "0"}, "no odds ratio"),
        ({"interval": "[0.25-0.40] ug/mL increase"}, "a slope, not an odds ratio"),
        ({"interval": "unit decrease"}, "a slope, not an odds ratio"),
    ],
)
def test_what_cannot_be_used_is_counted(tmp_path, changes, reason):
    made = read(tmp_path, row(**changes), GOOD)
    assert made.left_out == {reason: 1}
    assert (len(made), made.rows) == (1, 2)


def test_malformed_rows_are_counted(tmp_path):
    made = read(tmp_path, GOOD[:5], (), (*GOOD, "more"), GOOD)
    assert made.left_out == {"a malformed row": 3}
    assert made.rows == 4


def test_odd_but_usable_cells(tmp_path):
    made = read(
        tmp_path,
        row(allele="rs1 -t", frequency="0.41 (EA)", interval="[NR]", sample="NR"),
        row(allele="rs1-?", frequency=".2", odds=".8", p="NS"),
        row(sample="430 Icelandic and Swedish cases, 1,090 controls, 20 more controls", trait='"x'),
    )
    first, second, third = made.associations
    assert (first.allele, first.frequency, first.cases) == ("T", 0.41, None)
    assert (second.allele, second.odds_ratio, second.p_value) == ("", 0.8, None)
    assert (third.cases, third.controls, third.trait) == (430, 1110, '"x')
    assert made.left_out == {}


def test_a_file_without_its_columns_is_refused(tmp_path):
    path = tmp_path / "other.tsv"
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match="no column 'Disease/Trait'"):
        Catalogue.read(path)
    path.write_bytes(b"\x1f\x8b broken")
    with pytest.raises(InputError, match="not a whole gzip file"):
        Catalogue.read(path)


@pytest.mark.parametrize("numbers", [(0.0, 2.0), (1.0, 2.0), (0.5, 0.0), (0.5, float("inf"))])
def test_impossible_associations_are_refused(numbers):
    with pytest.raises(InputError, match="needs a frequency"):
        Association("Mumps", "rs1", "A", *numbers)


def test_a_catalogue_is_narrowed_down(tmp_path):
    made = read(tmp_path, GOOD, row(trait="Gout", snp="rs2", allele="rs2-C"))
    assert made.only(traits=["Gout"]).snps == ("rs2",)
    assert made.only(snps=["rs1"]).traits == ("Mumps",)
    assert repr(made) == "<Catalogue: 2 associations of 2 traits with 2 SNPs, from 2 rows>"


@pytest.mark.skipif("TULLE_DATA" not in os.environ, reason="TULLE_DATA is not set")
@pytest.mark.parametrize(
    ("year", "rows", "used", "malformed"),
    [("2012-03-20", 7557, 2135, 1), ("2014-09-08", 17832, 4417, 0)],
)
def test_the_real_catalogues_are_read(year, rows, used, malformed):
    path = os.path.join(os.environ["TULLE_DATA"], "gwas-catalog", f"gwascatalog_{year}.tsv.gz")
    made = Catalogue.read(path)
    assert (made.rows, len(made)) == (rows, used)
    assert made.left_out.get("a malformed row", 0) == malformed
    assert made.rows == len(made) + sum(made.left_out.values())
    # Numbers below one are nearly all slopes of measured traits, not odds ratios.
    assert sum(item.odds_ratio < 1 for item in made.associations) <= 5
