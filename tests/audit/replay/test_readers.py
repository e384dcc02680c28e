"""Readers of matrices, contributions, tables and genotypes read each record by itself.

A file or a frame with one record more, one less or another one must be the same in all other
records, whatever odd thing that record says. Small files over an alphabet of odd cells are tried
against every such neighbour, through every reader; readers that guess from the records are caught.
"""

import gzip
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from uuid import UUID

import numpy as np
import pytest
from tests.audit.replay.engine import causes_of
from tests.audit.replay.worlds import write_rows

import tulle
from tulle.core import cells
from tulle.genomes import reading as genotype_reading
from tulle.graphs.io import node_sets
from tulle.models import Table
from tulle.surveys.bulk import encode

ODD = (
    *("1", "01", "1.0", "+1", " 1", "1e0", "2", "-0", "0.5", "x", "", "NA", "nan", "inf", "1e400"),
    *(
        "true",
        "TRUE",
        "2020-01-01",
        "2020-01-01 10:00",
        "9007199254740993",
        "é",
        'a"b',
        "a,b",
        "0x1",
    ),
)
SECRET = "hunter2"


# --- how a column comes in ----------------------------------------------------------------------


def as_csv(columns, folder, ending=".csv"):
    path = folder / f"table{ending}"
    write_rows(path, [list(columns), *zip(*columns.values(), strict=True)])
    return cells.read_table(path)


def as_parquet(columns, folder):
    import pyarrow
    import pyarrow.parquet

    kinds = {name: pyarrow.array(values, pyarrow.string()) for name, values in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(kinds), folder / "table.parquet")
    return cells.read_table(folder / "table.parquet")


def as_pandas(columns, folder):
    import pandas

    return pandas.DataFrame(columns)


def as_polars(columns, folder):
    import polars

    return polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))


def as_values(columns, folder):
    """Lists of whatever the texts say in Python: numbers, truth values, None, text, mixed."""
    return {name: [value(text) for text in texts] for name, texts in columns.items()}


def value(text):
    found = {"": None, "true": True, "nan": float("nan"), "inf": float("inf")}
    if text in found:
        return found[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def guessed(columns, folder):
    """The twin: a reader that infers what a column holds."""
    import pyarrow.csv

    write_rows(folder / "table.csv", [list(columns), *zip(*columns.values(), strict=True)])
    return pyarrow.csv.read_csv(folder / "table.csv")


READERS = {
    "csv": as_csv,
    "csv.gz": lambda columns, folder: as_csv(columns, folder, ".csv.gz"),
    "parquet": as_parquet,
    "pandas": as_pandas,
    "polars": as_polars,
    "values": as_values,
}


WAYS = {
    "texts": lambda column: cells.texts(column, "c").to_pylist(),
    "numbers": lambda column: cells.numbers(column, "c").tolist(),
    "places of words": lambda column: cells.places(column, ["x", "1", "2020-01-01"], "c").tolist(),
    "places of numbers": lambda column: cells.places(column, [1, 2, 0.5], "c").tolist(),
    "places of a range": lambda column: cells.places(column, range(3), "c").tolist(),
    "places of truth": lambda column: cells.places(column, [False, True], "c").tolist(),
}


def read_differs(reader, odd, folder):
    """Return, by way, the pairs of cells of which the second changes how the first is read."""
    found = {way: [] for way in WAYS}
    for first in odd:
        alone = reader({"c": [first], "d": ["y"]}, folder)["c"]
        said = {way: repr(read(alone)[0]) for way, read in WAYS.items()}
        for second in odd:
            both = reader({"c": [first, second], "d": ["y", "y"]}, folder)["c"]
            for way, read in WAYS.items():
                if repr(read(both)[0]) != said[way]:
                    found[way].append((first, second))
    return found


@pytest.mark.parametrize("reader", READERS)
def test_a_cell_is_read_by_itself(tmp_path, reader):
    # Where a column is text by its own type, few cells will do.
    odd = ODD if reader in ("csv", "values") else ODD[::4]
    assert not any(read_differs(READERS[reader], odd, tmp_path).values())


def test_a_reader_that_guesses_is_caught(tmp_path):
    assert all(read_differs(guessed, ODD, tmp_path).values())


def test_all_readers_agree_on_what_a_cell_says(tmp_path):
    for way, read in WAYS.items():
        for text in ODD:
            found = {
                repr(read(READERS[name]({"c": [text], "d": ["y"]}, tmp_path)["c"]))
                for name in ("csv", "csv.gz", "parquet", "pandas", "polars")
            }
            assert len(found) == 1, (way, text, found)


# --- contributions ------------------------------------------------------------------------------

TITLES = ("who", "from", "to", "trips")
PLACES = {"individual": "who", "row": "from", "column": "to", "weight": "trips"}


def trips(records, reader, folder, rows):
    columns = {title: [r[i] for r in records] for i, title in enumerate(TITLES)}
    return tulle.Contributions.from_table(
        reader(columns, folder), **PLACES, rows=rows, columns=3, outside="drop"
    )


@pytest.mark.parametrize("rows", [["x", "1"], 3], ids=["words", "numbers"])
@pytest.mark.parametrize("reader", ["csv", "values"])
def test_one_more_contributor_leaves_all_others_as_they_are(tmp_path, reader, rows):
    """Whoever comes, with whatever in any column, moves nobody else: the unit is one individual."""
    base = [("ann", "1", "1", "2"), ("01", "x", "2", "0.5"), ("1", "01", "0", "1e0")]
    held = trips(base, READERS[reader], tmp_path, rows)
    for place, odd in product(range(4), ODD[::2]):
        if place == 0 and odd in ("01", "1", "1.0", "+1", " 1", "1e0", "true", "TRUE"):
            continue  # one of those who are there already, as some reader has it
        record = ["guest", "1", "1", "1"]
        record[place] = odd
        more = trips([*base, tuple(record)], READERS[reader], tmp_path, rows)
        parts = [part[: len(held.entries()[0])] for part in more.entries()]
        for one, two in zip(held.entries(), parts, strict=True):
            np.testing.assert_array_equal(one, two)
        assert more.facts("participant") == held.facts("participant")
        assert more.individuals() - held.individuals() in (0, 1)


@pytest.mark.parametrize("reader", ["csv", "values"])
def test_dropping_makes_reading_total(tmp_path, reader):
    """With outside='drop' no record makes reading fail, whatever is in it."""
    odd = list(product(ODD[::2], repeat=4))
    everything = trips([*odd, ("ann", "1", "1", "1")], READERS[reader], tmp_path, ["1"])
    assert everything.totals()[0, 1] >= 1
    for row in odd[::400]:
        trips([row], READERS[reader], tmp_path, ["1"])


NO_RECORDS = (
    *(b"cas,1,1", b"cas,1,1,1,5", b"", b" ", b"cas", b'"cas,1,1,1', b'cas,1,1,"1', b'ca"s,1,1,1'),
    *(b'"c"as,1,1,1', b"\xff,1,1,1", b"cas,1,1,\xff", b"cas,1,1,1\x00", b"cas;1;1;1", b",,,"),
    *(b"cas\r1,1,1", b"\xef\xbb\xbfcas,1,1,1", b"\xff\xfe", b"\x1f\x8b,1,1,1"),
    b'\xef\xbb\xbf"ca,s",1,1,1',
    b"cas,1,1," + b"9" * 2**21,
)  # fmt: skip
"""Lines as they may come about in a file; of some a record can be made."""


def moved_by_a_line(read, folder):
    """Return the lines that make reading fail, or move what two others contribute."""
    base, found = [b"ann,1,1,2", b"bob,1,1,3"], []
    path = folder / "trips.csv"
    for odd in NO_RECORDS:
        for place in range(3):
            lines = [",".join(TITLES).encode(), *base[:place], odd, *base[place:]]
            path.write_bytes(b"\n".join(lines) + b"\n")
            try:
                held = read(path)
            except tulle.InputError:
                found.append(odd)
                break
            # The guest's weight is 1, where it has one.
            if (held.totals()[0, 1], held.individuals()) not in ((5, 2), (6, 3)):
                found.append(odd)
                break
    return found


def test_no_line_of_a_file_makes_dropping_fail(tmp_path):
    declared = {**PLACES, "rows": ["1"], "columns": 3, "outside": "drop"}
    assert moved_by_a_line(partial(tulle.Contributions.read, **declared), tmp_path) == []

    def all_or_nothing(path):
        return tulle.Contributions.from_table(cells.read_table(path), **declared)

    assert len(moved_by_a_line(all_or_nothing, tmp_path)) > 8
    (tmp_path / "trips.csv").write_bytes(b'who,"from,to,trips\nann,1,1,1\n')
    with pytest.raises(tulle.InputError, match="cannot be read as a table"):
        tulle.Contributions.read(tmp_path / "trips.csv", **declared)
    head = ",".join(TITLES)
    for first in (f"\ufeff{head}", f'\ufeff"who"{head[3:]}', f'{head},"no, te"'):
        line = "ann,1,1,1,x\n" if "te" in first else "ann,1,1,1\n"
        (tmp_path / "trips.csv").write_text(f"{first}\n{line}")
        assert tulle.Contributions.read(tmp_path / "trips.csv", **declared).totals()[0, 1] == 1
    (tmp_path / "trips.csv").write_text(f'\ufeff"{head}\nann,1,1,1\n')
    with pytest.raises(tulle.InputError, match="line 1: a quote"):
        cells.check_quotes(tmp_path / "trips.csv")


def refused_by_place(folder):
    """Return after how many lines one of a million and a half bytes makes reading fail."""
    found = []
    for before in (0, 10, 60_000, 90_000):
        plain = b"1,2,2026-01-01\n"
        path = folder / "long.csv"
        path.write_bytes(b"from,to,day\n" + plain * before + b"a" * 1_500_000 + b",3,\n" + plain)
        try:
            assert cells.read_table(path).num_rows == before + 2
            tulle.Graph.read(path, columns=["from", "to"], time="day")
        except tulle.InputError:
            found.append(before)
    return found


def test_a_long_line_is_read_wherever_it_stands(tmp_path, monkeypatch):
    assert refused_by_place(tmp_path) == []
    monkeypatch.setattr(cells, "block_for", lambda longest: 1 << 20)
    assert refused_by_place(tmp_path) == [60_000]


def test_an_empty_line_of_one_column_is_a_row(tmp_path):
    """How many rows there are is public where rows are replaced: none goes with its cell."""
    for body in ("1\n\n0\n", "\n1\n0\n", "1\n0\n\n"):
        (tmp_path / "one.csv").write_text(f"n\n{body}")
        assert cells.read_table(tmp_path / "one.csv").num_rows == 3
        with pytest.raises(tulle.InputError, match="missing"):
            Table.read(tmp_path / "one.csv", bounds={"n": (0, 1)})
        with pytest.raises(tulle.InputError, match="missing"):
            tulle.BinaryMatrix.read(tmp_path / "one.csv")


def test_missing_individuals_are_nobody():
    nobody = [np.nan, None, ""]
    for one in nobody:
        with pytest.raises(tulle.InputError, match="individual of record 1 is missing"):
            tulle.Contributions(["a", one], [0, 0], [0, 0], rows=1, columns=1)
        kept = tulle.Contributions(["a", one], [0, 0], [0, 0], rows=1, columns=1, outside="drop")
        assert kept.individuals() == 1
    floats = np.array([1.0, np.nan, np.nan])
    kept = tulle.Contributions(floats, [0] * 3, [0] * 3, rows=1, columns=1, outside="drop")
    assert kept.individuals() == 1


def test_names_that_read_the_same_are_one_name():
    with pytest.raises(tulle.InputError, match="twice"):
        tulle.Contributions([], [], [], rows=[1, "1"], columns=1)
    with pytest.raises(tulle.InputError, match="missing or empty"):
        tulle.Contributions([], [], [], rows=["a", ""], columns=1)


# --- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_one_more_person_leaves_all_others_as_they_are_in_a_table(tmp_path, reader):
    numbers, words = ("1", "01", "1e0", "0.5", "9007199254740993"), ("no", "1")
    declared = {"bounds": {"n": (0, 1)}, "classes": {"w": ["no", "yes", 1]}}
    for first, second in product(product(numbers, words), repeat=2):
        columns = {"n": [first[0], second[0]], "w": [first[1], second[1]]}
        both = Table(READERS[reader](columns, tmp_path), **declared)
        alone = Table(READERS[reader]({"n": [first[0]], "w": [first[1]]}, tmp_path), **declared)
        for name in both.names:
            assert both.column(name)[0] == alone.column(name)[0]
        assert both.facts("participant") == alone.facts("participant")


def test_bounds_and_classes_have_no_default():
    with pytest.raises(TypeError):
        Table({"age": [1, 2]})  # type: ignore[call-arg]
    nothing = Table({"age": [1, 2], "w": ["a", "b"]}, bounds={"age": (0, 9)})
    assert nothing.names == ("age",)


# --- matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 1, 2**53 + 1])
def test_a_cell_of_a_matrix_is_read_by_itself(threshold):
    numbers = [0, 1, 0.5, True, 2**53, 2**53 + 1, 2**63, float("inf"), -1]
    valid = [n for n in numbers if threshold is not None or n in (0, 1)]
    for first, second in product(valid, repeat=2):
        bits = tulle.BinaryMatrix([[first], [second]], threshold=threshold).to_numpy()
        alone = tulle.BinaryMatrix([[first]], threshold=threshold).to_numpy()
        assert bits[0] == alone[0], (first, second)


def test_a_header_is_declared_and_never_guessed(tmp_path):
    for first in ("0,1", "1,1", "q0,q1"):
        (tmp_path / "votes.csv").write_text(f"{first}\n1,0\n0,0\n")
        assert tulle.BinaryMatrix.read(tmp_path / "votes.csv").shape == (2, 2)
    (tmp_path / "votes.csv").write_text("0,1\n1,0\n")
    assert tulle.BinaryMatrix.read(tmp_path / "votes.csv", header=False).shape == (2, 2)
    (tmp_path / "votes.csv").write_text("x,1\n1,0\n")  # no names: an odd row is refused
    with pytest.raises(tulle.InputError, match="row 0, column 0"):
        tulle.BinaryMatrix.read(tmp_path / "votes.csv", header=False)


@pytest.mark.parametrize("odd", ["", "x", "NaN"])
def test_the_studio_takes_no_odd_row_for_names(tmp_path, odd):
    from tulle.studio.data_worker import DataWorker

    (tmp_path / "votes.csv").write_text(f"{odd},1\n1,0\n")
    spec = {"kind": "matrix", "path": str(tmp_path / "votes.csv"), "header": False}
    with pytest.raises(tulle.InputError):
        DataWorker().read(spec)
    assert DataWorker().read({**spec, "header": True})["kind"] == "matrix"


# --- genotypes ----------------------------------------------------------------------------------

CALLS = {0: ("A", "A"), 1: ("A", "G"), 2: ("G", "G")}


def plink(folder, people, coding):
    """Write copies of G as PLINK does: its first allele is what ``coding`` says of the copies."""
    bed_reader = pytest.importorskip("bed_reader")
    copies = np.array(people, dtype=np.int8).reshape(len(people), -1)
    first = [coding(copies[:, j]) for j in range(copies.shape[1])]
    stored = np.column_stack(
        [c if f == "G" else 2 - c for c, f in zip(copies.T, first, strict=True)]
    )
    properties = {
        "iid": [f"p{i}" for i in range(len(people))],
        "sid": [f"rs{j}" for j in range(copies.shape[1])],
        "allele_1": first,
        "allele_2": ["A" if f == "G" else "G" for f in first],
        "pheno": ["1"] * len(people),
    }
    bed_reader.to_bed(folder / "study.bed", stored.astype(np.int8), properties=properties)
    return folder / "study.bed"


def rarer(copies):
    return "G" if copies.sum() <= len(copies) else "A"


def test_which_allele_is_counted_does_not_follow_from_the_people(tmp_path):
    """PLINK puts the rarer allele first; one person more can turn it round for everybody."""
    turned = 0
    for people in product(product((0, 1, 2), repeat=1), repeat=3):
        before = plink(tmp_path, people, rarer)
        found = tulle.Genotypes.read(before)
        declared = tulle.Genotypes.read(before, snps=["rs0"], counted=["G"])
        for guest in ((0,), (2,)):
            turned += rarer(np.array(people)) != rarer(np.array([*people, guest]))
            path = plink(tmp_path, [*people, guest], rarer)
            more = tulle.Genotypes.read(path)
            assert more.counted == found.counted == ("G",)
            np.testing.assert_array_equal(more.to_numpy()[:3], found.to_numpy())
            again = tulle.Genotypes.read(path, snps=["rs0"], counted=["G"])
            np.testing.assert_array_equal(again.to_numpy()[:3], declared.to_numpy())
    assert turned  # the coding of the file itself does follow: this is what must not show


def test_an_allele_that_nobody_carries_is_counted_alike(tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    for known, other, copies in (("G", "0", 2), ("0", "G", 0), ("A", "0", 2), ("0", "A", 0)):
        properties = {"iid": ["p"], "sid": ["rs0"], "allele_1": [known], "allele_2": [other]}
        bed_reader.to_bed(tmp_path / "s.bed", np.array([[copies]], np.int8), properties=properties)
        for declared in ("A", "G"):
            table = tulle.Genotypes.read(tmp_path / "s.bed", snps=["rs0"], counted=[declared])
            carried = {known, other} - {"0"}
            assert table.to_numpy().tolist() == [[2 if declared in carried else 0]]
            assert (table.counted, table.other) == ((declared,), ("",))


@pytest.mark.parametrize("phenotype", ["-9", "0", "2"])
def test_whether_people_are_labelled_is_said_and_not_found_out(tmp_path, phenotype):
    bed_reader = pytest.importorskip("bed_reader")
    properties = {"iid": ["a", "b"], "sid": ["rs0"], "pheno": ["1", phenotype]}
    bed_reader.to_bed(tmp_path / "s.bed", np.zeros((2, 1), np.int8), properties=properties)
    assert tulle.Genotypes.read(tmp_path / "s.bed").facts("participant")["labelled"] is False
    if phenotype == "2":
        labelled = tulle.Genotypes.read(tmp_path / "s.bed", cases="phenotypes")
        assert labelled.facts("participant")["labelled"] is True
    else:
        with pytest.raises(tulle.InputError, match="phenotype"):
            tulle.Genotypes.read(tmp_path / "s.bed", cases="phenotypes")


def vcf(folder, people, sites):
    lines = ["\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "Q", "F", "I", "FORMAT", *people])]
    for name, alt, calls in sites:
        lines.append("\t".join(["1", name[2:], name, "A", alt, ".", ".", ".", "GT", *calls]))
    (folder / "study.vcf").write_text("\n".join(lines) + "\n")
    return folder / "study.vcf"


DELETED = 3
"""The number of the allele that lacks the letter after the site."""


def as_a_tool_writes(folder, people, letters, ending, split, named=True):
    """Write sites as callers do: those at which somebody varies, with the alleles that are there.

    ``people`` has two alleles of each site for everybody, by number, None where not called. Whoever
    has a deletion makes the reference of the whole line longer, unless lines are split; and it
    brings a name of its own.
    """
    names = [f"p{i}" for i in range(len(people))]
    rows = []
    for site, known in enumerate(letters):
        pairs = [person[site] for person in people]
        seen = sorted({a for pair in pairs if pair for a in pair if a})
        groups = [[a] for a in seen] if split or ending == "csv" else [seen] if seen else []
        for group in groups:
            calls = []
            for pair in pairs:
                if pair is None:
                    calls.append("" if ending == "csv" else "./.")
                    continue
                own = [group.index(a) + 1 if a in group else 0 for a in pair]
                calls.append(str(sum(own)) if ending == "csv" else "/".join(map(str, own)))
            after = "T" if DELETED in group else ""
            alt = ",".join(known[0] if a == DELETED else known[a] + after for a in group)
            ids = [f"del{site}"] * (DELETED in group) + [f"rs{site}"] * (group != [DELETED])
            name = ";".join(ids) if named else "."
            rows.append((str(site + 5), name, known[0] + after, alt, calls))
    if ending == "csv":
        lines = [",".join(["chrom", "pos", "id", "ref", "alt", *names])]
        lines += [",".join(["1", *row[:4], *row[4]]) for row in rows]
    else:
        lines = ["\t".join(["#CHROM", "POS", "ID", "REF", "ALT", *"QFI", "FORMAT", *names])]
        lines += ["\t".join(["1", *row[:4], *"...", "GT", *row[4]]) for row in rows]
    path = folder / f"study.{ending}"
    path.write_text("\n".join(lines) + "\n")
    return path


def misread(folder, unlisted, rounds=60):
    """Return in how many random files somebody's declared genotypes are not what they carry."""
    random, wrong = np.random.default_rng(3), 0
    letters, declared = ["AGT", "CAG", "TAC"], ["G", "A", "C"]
    lettered = ["1:5:A:G", "1:6:C:A", "1:7:T:C"]
    ways = (
        (True, ["rs0", "rs1", "rs2"]),
        (False, ["1:5", "1:6", "1:7"]),
        (True, lettered),
        (False, lettered),
    )
    for _ in range(rounds):
        people = [
            [None if random.random() < 0.1 else tuple((random.random(2) ** 3 * 4).astype(int))
             for _ in letters]
            for _ in range(random.integers(1, 4))
        ]  # fmt: skip
        expected = [
            [
                0 if pair is None else sum(a != DELETED and known[a] == letter for a in pair)
                for pair, known, letter in zip(person, letters, declared, strict=True)
            ]
            for person in people
        ]
        for ending, split in (("vcf", False), ("vcf", True), ("csv", True)):
            for named, names in ways:
                path = as_a_tool_writes(folder, people, letters, ending, split, named)
                table = tulle.Genotypes.read(
                    path, snps=names, counted=declared, unlisted=unlisted
                ).to_numpy()
                # Whoever is not called has no copy: whether there is a line follows from others.
                wrong += bool((table != expected).any())
    return wrong


def test_declared_snps_come_out_alike_whoever_varies(tmp_path):
    """Everybody has the copies that they carry, whoever makes the file list a site or an allele."""
    assert misread(tmp_path, "none") == 0


def test_sites_that_are_missing_where_nobody_varies_would_be_caught(tmp_path):
    assert misread(tmp_path, "missing") > 20


def test_alleles_compared_as_the_line_writes_them_would_be_caught(tmp_path, monkeypatch):
    """One person's deletion makes A and G of a line AT and GT: nobody would have a G then."""
    monkeypatch.setattr(genotype_reading, "_trimmed", lambda ref, alt: (ref, alt))
    assert misread(tmp_path, "none") > 20


def test_a_deletion_is_declared_by_its_letters(tmp_path):
    people = [[(0, DELETED)], [(1, DELETED)], [(0, 0)]]
    for split in (False, True):
        path = as_a_tool_writes(tmp_path, people, ["AG"], "vcf", split)
        copies = [
            tulle.Genotypes.read(path, snps=["1:5:AT:A"], counted=[allele]).to_numpy().ravel()
            for allele in ("A", "AT")
        ]
        assert [list(own) for own in copies] == [[1, 1, 0], [1, 1, 2]]
    path = as_a_tool_writes(tmp_path, people, ["AG"], "vcf", False)
    with pytest.raises(tulle.InputError, match="CHROM:POS:REF:ALT"):
        tulle.Genotypes.read(path, snps=["rs0"], counted=["A"])


def test_which_snps_are_listed_is_declared_or_assumed(tmp_path):
    path = as_a_tool_writes(tmp_path, [[(0, 1), (0, 0)]], ["AG", "CT"], "vcf", False)
    declared = {"snps": ["rs0", "rs1"], "counted": ["G", "T"]}
    with pytest.raises(tulle.InputError, match="does not list every SNP"):
        tulle.Genotypes.read(path, **declared)
    with pytest.raises(tulle.InputError, match="must not be the reference"):
        tulle.Genotypes.read(path, snps=["rs0"], counted=["A"], unlisted="none")
    for unlisted in ("none", "missing"):
        table = tulle.Genotypes.read(path, **declared, unlisted=unlisted)
        assert len(table.assumptions("row")) == 1
    assert tulle.Genotypes.read(path, snps=["rs0"], counted=["G"]).assumptions("row") == ()
    text = path.read_text()
    path.write_text(text + text.splitlines()[-1] + "\n")
    for given in ({"counted": ["G"]}, {}):
        with pytest.raises(tulle.InputError, match="several lines"):
            tulle.Genotypes.read(path, snps=["rs0"], **given)


def test_a_study_of_nobody_is_read(tmp_path):
    assert tulle.Genotypes([], snps=["a", "b"]).shape == (0, 2)
    lines = [
        "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "Q", "F", "I"]),
        "1\t5\trs5\tA\tG\t.\t.\t.",
    ]
    (tmp_path / "nobody.vcf").write_text("\n".join(lines) + "\n")
    assert tulle.Genotypes.read(tmp_path / "nobody.vcf").shape == (0, 1)


# --- what errors of reading say -----------------------------------------------------------------


def broken_files(folder):
    """Yield acts that fail because of a record with a secret in it."""
    good = "who,from,to,trips\nann,0,0,1\n"
    named = {**PLACES, "rows": 1, "columns": 1}
    contents = {
        "more cells": f"{good}bob,0,0,1,{SECRET}\n",
        "a strange row": f"{good}bob,{SECRET},0,1\n",
        "a strange weight": f"{good}bob,0,0,{SECRET}\n",
        "a long quote": f'{good}bob,"{SECRET}\n',
    }
    for name, text in contents.items():
        path = folder / f"{name}.csv"
        path.write_text(text)
        yield name, lambda path=path: tulle.Contributions.read(path, **named)
        yield (
            f"{name}, table",
            lambda path=path: Table.read(path, bounds={"trips": (0, 1)}, classes={"from": [0, 1]}),
        )
        yield f"{name}, matrix", lambda path=path: tulle.BinaryMatrix.read(path)
        yield f"{name}, genotypes", lambda path=path: tulle.Genotypes.read(path)
    (folder / "bytes.csv").write_bytes(good.encode() + SECRET.encode() + b"\xff,0,0,1\n")
    yield "bytes", lambda: tulle.Contributions.read(folder / "bytes.csv", **named)
    (folder / "cut.csv.gz").write_bytes(gzip.compress((good + SECRET * 99).encode())[:-20])
    yield "cut", lambda: tulle.Contributions.read(folder / "cut.csv.gz", **named)
    (folder / "odd.mtx").write_text(f"%%MatrixMarket matrix array real general\n1 1\n{SECRET}\n")
    yield "mtx", lambda: tulle.BinaryMatrix.read(folder / "odd.mtx")
    yield "list", lambda: tulle.BinaryMatrix([[SECRET]])
    yield "objects", lambda: tulle.BinaryMatrix(np.array([[SECRET, 1]], dtype=object))
    yield "genotypes", lambda: tulle.Genotypes([[SECRET]])
    yield "genotype objects", lambda: tulle.Genotypes(np.array([[SECRET, None]], dtype=object))
    yield "matrix", lambda: tulle.Contributions.from_matrix([[SECRET]], protect="row")
    yield "numbers", lambda: Table({"a": [1, SECRET]}, bounds={"a": (0, 1)})
    yield "classes", lambda: Table({"a": [1, SECRET]}, bounds={}, classes={"a": [1, 2]})
    (folder / "odd.vcf").write_text(
        f"#CHROM\tP\tI\tR\tA\tQ\tF\tI\tFORMAT\tx\n1\t1\ta\tA\tG\t.\t.\t.\tGT\t{SECRET}\n"
    )
    yield "vcf", lambda: tulle.Genotypes.read(folder / "odd.vcf")
    survey = tulle.Survey({"smokes": ["no", "yes"]})
    yield "survey", lambda: encode(survey, {"smokes": [SECRET]})


def test_errors_of_reading_quote_nothing_and_keep_nothing(tmp_path):
    failed = {}
    for name, act in broken_files(tmp_path):
        try:
            act()
        except tulle.TulleError as error:
            failed[name] = " ".join(causes_of(error))
    assert len(failed) >= 25
    assert [name for name, words in failed.items() if SECRET in words] == []


# --- what public facts can refuse is refused before the debit ------------------------------------


def refused():
    from tulle.genomes import allele_counts, chi_squares, top_snps
    from tulle.models import linear, logistic

    people = Table(
        {"age": [1.0, 2.0], "smokes": ["no", "yes"]},
        bounds={"age": (0, 9)},
        classes={"smokes": ["no", "yes"]},
    )
    study = tulle.Genotypes([[0, 1], [2, 1]], cases=[1, 0])
    unlabelled = tulle.Genotypes([[0, 1], [2, 1]])
    grid = tulle.Contributions(["a"], [0], [0], rows=2, columns=2)
    votes = tulle.BinaryMatrix([[0, 1], [1, 1]])
    per = "participant"
    yield people, per, linear("height")
    yield people, per, linear("age", ["height"])
    yield people, per, logistic("age")
    yield people, per, linear("age", sensitive=["height"])
    yield people, per, tulle.xor()
    yield people, "edge", linear("age")
    yield study, per, allele_counts([7])
    yield study, "row", chi_squares([2])
    yield study, per, top_snps(1)  # no ratio where the sizes of the groups are not public
    yield study, per, top_snps(3, ratio=1)
    yield unlabelled, "row", chi_squares()
    yield unlabelled, per, top_snps(1, ratio=1)
    yield grid, per, tulle.weights(bound=[[1, 1, 1]])
    yield grid, per, tulle.weights(labels=[[0, 0, 0]], block_total=[1])
    yield grid, per, tulle.block_bounds("0.9", [1, 2], labels=[[0, 0, 0]])
    yield grid, per, linear("age")
    yield votes, "row", tulle.xor("general", pi=np.eye(3))
    yield votes, per, tulle.xor()
    yield votes, "row", tulle.triangles()


def test_what_public_facts_refuse_costs_nothing(tmp_path):
    for place, (dataset, unit, query) in enumerate(refused()):
        ledger = tulle.Ledger(tmp_path / f"{place}.ledger")
        with pytest.raises(tulle.InputError):
            ledger.open("study", dataset, unit=unit, epsilon=10, delta=0.1).ask(
                query, epsilon=1, delta=1e-6
            )
        assert [entry.kind for entry in ledger.entries()] in ([], ["open"]), (place, str(query))


# --- values of Python ---------------------------------------------------------------------------

VALUES = (
    *("a", "1", "", "\ud800", 1, 2**53 + 1, -(2**63), 2**70, 1.0, 0.5, float("nan"), float("inf")),
    *(True, None, b"a", b"\xff", bytearray(b"b"), Decimal(1), Decimal("1.00"), Decimal("1e5000")),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("-0"), date(2020, 1, 1), datetime(2020, 1, 1)),
    *(datetime(2020, 1, 1, 0, 0, 0, 5), datetime(2020, 1, 1, tzinfo=UTC), time(1, 2)),
    *(timedelta(1), UUID(int=5), (1, 2), [1], {"a": 1}, 1j, range(3), object, frozenset([1])),
    *(np.int64(3), np.uint64(2**64 - 1), np.float32(0.1), np.str_("x"), np.bool_(True)),
    *(np.datetime64("2020-01-01"), np.datetime64("NaT"), np.array([1, 2])),
)


def as_objects(values):
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return held


def inferred(values):
    """The twin: a type for all of them, as a library finds it."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return [str(one) for one in values]


def changed_by_another(make, values):
    """Return the pairs of values of which the second changes how the first is read."""
    found = []
    for first in values:
        alone = make([first])
        said = {way: repr(read(alone)[0]) for way, read in WAYS.items()}
        for second in values:
            both = make([first, second])
            found += [
                (first, second, way)
                for way, read in WAYS.items()
                if repr(read(both)[0]) != said[way]
            ]
    return found


@pytest.mark.parametrize("make", [list, as_objects])
def test_a_value_is_read_by_itself(make):
    assert changed_by_another(make, VALUES) == []


def test_a_type_that_is_found_for_all_values_would_be_caught():
    assert changed_by_another(inferred, ("a", b"a", b"\xff", Decimal(1), Decimal("1.00"), 1)) != []


def test_labels_of_bytes_are_told_apart_and_texts_are_found_among_them():
    import pyarrow

    given = [b"\xff", b"\xfe", b"ann", b"\xff"]
    for column in (given, pyarrow.array(given)):
        assert cells.codes(column, "c").tolist() == [0, 1, 2, 0]
        assert cells.places(column, ["ann"], "c").tolist() == [-1, -1, 0, -1]


def folders_read(tmp_path):
    """Return what reading a folder of Parquet files says, with somebody's files and without."""
    import pyarrow
    import pyarrow.parquet

    from tulle.core.errors import TulleError
    from tulle.graphs.io import node_sets

    found = []
    for names in (("k=1", "k=ann"), ("k=1",)):
        folder = tmp_path / str(len(names)) / "rows.parquet"
        for name in names:
            (folder / name).mkdir(parents=True)
            rows = pyarrow.table({"who": [1], "x": [2]})
            pyarrow.parquet.write_table(rows, folder / name / "a.parquet")
        for read in (cells.read_table, node_sets.read_table):
            try:
                table = read(folder)
                found.append(str(table.schema if hasattr(table, "schema") else table))
            except TulleError as error:
                found.append(str(error).replace(str(folder), ""))
    return found[:2], found[2:]


def test_a_folder_is_not_read_as_one_table(tmp_path, monkeypatch):
    """The names of folders would be columns, whose types hang on whose files are there."""
    import pyarrow.parquet

    one, other = folders_read(tmp_path / "kept")
    assert one == other

    class Whole:
        """A broken version that reads a folder as the library does."""

        def __init__(self, path):
            self.path = path

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def read(self):
            return pyarrow.parquet.read_table(self.path)

    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", Whole)
    one, other = folders_read(tmp_path / "broken")
    assert one[0] != other[0]
    assert one[1] != other[1]


# --- quotes -------------------------------------------------------------------------------------

QUOTED = ("x", "", '"', '"a', 'a"', 'a"b', '"a"b', '""', '"""', '"a,b"', '"a""b"', ' "a', "\\\"",
          '"\\"', '"a\nb"', '"a\r', '\ufeff"a', '\ufeff"a"')  # fmt: skip
"""Cells as somebody may have typed them, some of them with a quote that is not closed."""


def counted_edges(path):
    return tulle.Graph.read(path, columns=["from", "to"], time="day").edge_count


def counted_rows(path):
    base = tulle.Database.connect("duckdb://", tables={"t": path}, owners={"t": "from"})
    with closing(base):
        return tulle.sql("SELECT COUNT(*) FROM t").truth(base)


COUNTERS = {
    "table": lambda path: cells.read_table(path).num_rows,
    "dated edges": counted_edges,
    "people": lambda path: len(node_sets.read_table(path)["from"]),
    "database": counted_rows,
}


def swallowed(count, folder, every=1):
    """Return the files of five records of which fewer are read, and nothing is said."""
    found = []
    for one, two in [*product(QUOTED, QUOTED)][::every]:
        for columns in ("from,to,day,note", "note,from,to,day"):
            lines = [columns]
            for place in range(5):
                record = [str(place), str(place + 1), "2026-11-09"]
                note = {1: one, 3: two}.get(place, "plain")
                record.insert(3 if columns.endswith("note") else 0, note)
                lines.append(",".join(record))
            path = folder / "notes.csv"
            path.write_bytes(("\n".join(lines) + "\n").encode())
            try:
                read = count(path)
            except tulle.InputError:
                continue
            if read != 5:
                found.append((columns, one, two, read))
    return found


@pytest.mark.parametrize("name", COUNTERS)
def test_a_quote_that_is_not_closed_swallows_no_other_record(tmp_path, name):
    # A database takes its time to open.
    assert swallowed(COUNTERS[name], tmp_path, every=5 if name == "database" else 1) == []


def test_a_reader_that_lets_a_quote_run_on_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "check_quotes", lambda path, delimiter=",": 0)
    assert len(swallowed(COUNTERS["table"], tmp_path)) > 20


def test_quotes_that_are_closed_are_read(tmp_path):
    for mark in (",", "\t"):
        path = tmp_path / "quoted.csv"
        path.write_text(f'\ufeff"a"{mark}b{mark}c\n1{mark}{mark}"x{mark}""y"""\n2{mark}5"{mark}\n')
        cells.check_quotes(path, mark)
    path.write_bytes(gzip.compress(b'a,b\n1,"x\n2,y\n'))
    with pytest.raises(tulle.InputError, match=r"quoted\.csv, line 2: a quote"):
        cells.check_quotes(path)


def test_a_name_of_a_genotype_file_swallows_nobody(tmp_path):
    (tmp_path / "study.csv").write_text('id,rs1\n"a,0\nb,1\nc",2\n')
    with pytest.raises(tulle.InputError, match="line 2: a quote"):
        tulle.Genotypes.read(tmp_path / "study.csv")
