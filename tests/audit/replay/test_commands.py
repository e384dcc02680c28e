"""Every command that reads records, with every option that it has, replayed on neighbours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.audit.replay.engine import replay_commands
from tests.audit.replay.test_engine import run_line
from tests.cli.test_common import leaves

import tulle
from tulle.cli.main import app
from tulle.streams import factor

Line = Sequence[str]

EDGE = ("--unit", "edge", "--epsilon", "0.5")
PERSON = ("--unit", "participant", "--epsilon", "0.5")
BOOKED = ("--ledger", "{folder}/s.ledger", "--account", "a", "--budget", "9")
TIGHT = (*BOOKED, "--budget-delta", "1e-3", "--composition-delta", "1e-4")
RENEWED = (
    *("--ledger", "{folder}/r.ledger", "--account", "a", "--budget", "9", "--every", "week"),
    *("--carry", "--zone", "Europe/Stockholm", "--version", "w1", "--date", "2026-01-05"),
)
"""Only names, prices and days: nothing here can depend on a record."""


def files(texts: dict[str, str], folder: Path) -> Path:
    """Write the files of one variant."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


# --- networks -----------------------------------------------------------------------------------

PEOPLE = "name;age;dept\n" + "".join(f"p{n};{20 + n};{'ab'[n % 2]}\n" for n in range(8))
RING = [(f"p{n}", f"p{(n + 1) % 8}", "2026-01-0" + str(1 + n)) for n in range(8)]


def network(rows: Sequence[Sequence[str]]) -> Callable[[Path], Path]:
    lines = "".join(";".join((*row[:2], "7", *row[2:])) + "\n" for row in rows)
    return partial(
        files,
        {
            "net.dat": "from;to;strength;day\n" + lines,
            "like.dat": "from;to;strength;day\np1;p2;1;2026-01-01\n",
            "people.csv": PEOPLE.replace(";", ","),
        },
    )


NETWORKS = [
    network(rows)
    for rows in (
        RING,
        RING[1:],
        [*RING, ("p0", "p4", "2026-01-07")],
        [*RING, ("p0", "a stranger", "2026-01-07")],
        [*RING, ("alone",)],
        [*RING, ("p0", "p0", "2026-01-07")],
    )
]
READ = (
    *("{folder}/net.dat", "--format", "edges", "--delimiter", "semicolon", "--header"),
    *("--columns", "from,to", "--ignore", "weights", "--bad-records", "drop"),
    *("--nodes", "{folder}/people.csv"),
)
WHERE = ("--attributes", "{folder}/people.csv")
DATED = (
    *("{folder}/net.dat", "--format", "edges", "--delimiter", "semicolon", "--header"),
    *("--columns", "from,to", "--nodes", "{folder}/people.csv", "--time", "day"),
)
NETWORK_LINES: Sequence[Line] = (
    ("plan", *READ, "triangles", *EDGE, "--delta", "1e-6", "--like", "{folder}/like.dat"),
    ("plan", *READ, "triangles", *EDGE, "--delta", "1e-6", "--mechanism", "smooth", "--json"),
    ("plan", *READ, *WHERE, "mixing(by='dept', groups=['a', 'b'])", *EDGE),
    (
        *("plan", *READ, "triangles", *EDGE, "--mechanism", "smoothed_ladder"),
        *("--option", "spread_share=0.1"),
    ),
    ("ask", *READ, "edges", *EDGE, *TIGHT, "--delta", "1e-6", "--json", "--out", "{folder}/o.csv"),
    ("ask", *READ, "edges", *EDGE, *TIGHT, "--delta", "1e-6", "--again"),
    ("ask", *READ, *WHERE, "mixing(by='dept', groups=['a', 'b'])", *EDGE, "--no-ledger"),
    ("ask", *READ, "degrees", *EDGE, *RENEWED, "--like", "{folder}/like.dat"),
    (
        *("ask", *READ, "triangles", *EDGE, "--no-ledger", "--mechanism", "smoothed_ladder"),
        *("--option", "spread_share=0.1"),
    ),
    ("synth", *READ, *EDGE, *TIGHT, "--model", "response", "--names", "--out", "{folder}/made.csv"),
    ("synth", *READ, *EDGE, *TIGHT, "--model", "1k", "--again", "--out", "{folder}/m.tsv"),
    (
        *("synth", *READ, *WHERE, *EDGE, "--no-ledger", "--model", "communities"),
        *("--partition", "dept", "--delta", "1e-6", "--json", "--out", "{folder}/parts.csv"),
    ),
    (
        *("synth", *READ, "--unit", "edge", "--epsilon", "1", *RENEWED, "--model", "1k"),
        *("--option", "x=1", "--out", "{folder}/n.csv"),
    ),
    ("report", "{folder}/s.ledger", "--account", "a", "--out", "{folder}/page.html", "--json"),
    ("ledger", "calendar", "{folder}/r.ledger"),
)
DATED_LINES: Sequence[Line] = (
    ("plan", *DATED, "edges", "--unit", "edge-week", "--epsilon", "1"),
    ("ask", *DATED, "edges", "--unit", "edge-week", "--epsilon", "1", "--no-ledger"),
    (
        *("synth", *DATED, "--unit", "edge-week", "--epsilon", "1", "--no-ledger"),
        *("--model", "1k", "--out", "{folder}/d.csv"),
    ),
)
WHOLE = [variant for place, variant in enumerate(NETWORKS) if place != 4]
"""With ``--time`` a file with a line that is no edge is refused (docs/limits.md)."""

# --- people who are hidden with all that is known of them ---

WORKING = {f"p{n}": (20 + n, "ab"[n % 2]) for n in range(8)}


def people(held: dict[str, tuple[int, str]]) -> Callable[[Path], Path]:
    links = [f"{a};{b};7;{day}\n" for a, b, day in RING if a in held and b in held]
    rows = [f"{name},{age},{dept}\n" for name, (age, dept) in held.items()]
    return partial(
        files,
        {
            "net.dat": "from;to;strength;day\n" + "".join(links),
            "like.dat": "from;to;strength;day\np1;p2;1;2026-01-01\n",
            "people.csv": "name,age,dept\n" + "".join(rows),
        },
    )


HIDDEN_PEOPLE = [
    people(WORKING),
    people({name: row for name, row in WORKING.items() if name != "p3"}),
    people({**WORKING, "p3": (99, "war")}),
    people({**WORKING, "guest": (1, "a")}),
]
NODE = ("--unit", "node", "--epsilon", "0.5", "--delta", "1e-6")
ALONE = (*READ[:-2], *WHERE)
PEOPLE_LINES: Sequence[Line] = (
    ("plan", *READ[:-2], "edges", *NODE),
    ("plan", *ALONE, "subgraphs('a-b', where='a.dept = b.dept')", *NODE),
    ("plan", *ALONE, "subgraphs('a-b', where=\"a.dept = 'war'\")", *NODE),
    ("plan", *ALONE, "edges", *NODE, "--like", "{folder}/like.dat"),
    ("plan", *READ, "degree_of('p3')", *NODE),
    ("ask", *ALONE, "edges", *NODE, *TIGHT, "--json", "--out", "{folder}/o.json"),
    ("ask", *READ, *WHERE, "subgraphs('a-b', where='a.dept = b.dept')", *NODE, *TIGHT),
    ("synth", *READ, *WHERE, *NODE, *TIGHT, "--partition", "dept", "--out", "{folder}/x.csv"),
    (
        *("synth", *ALONE, *NODE, *TIGHT, "--option", "group=dept", "--option", "groups=2"),
        *("--out", "{folder}/made.csv"),
    ),
    ("synth", *READ[:-2], *NODE, *TIGHT, "--json", "--out", "{folder}/made.csv"),
)

# --- databases ----------------------------------------------------------------------------------

TRIPS = [
    *((f"p{n}", "2026-01-0" + str(5 + n % 3), "north", str(n)) for n in range(6)),
    *((f"p{n}", "2026-01-12", "south", "3") for n in range(4)),
]


def database(rows: Sequence[Sequence[str]]) -> Callable[[Path], Path]:
    lines = "".join(",".join(row) + "\n" for row in rows)
    return partial(
        files,
        {
            "trips.csv": "who,day,zone,cost\n" + lines,
            "zones.csv": "zone,size\nnorth,4\nsouth,5\n",
            "like.csv": "who,day,zone,cost\nx,2026-01-05,north,1\n",
            "like.toml": 'url = "duckdb://"\npublic = ["zones"]\n[owners]\ntrips = "who"\n'
            '[tables]\ntrips = "like.csv"\nzones = "zones.csv"\n',
        },
    )


DATABASES = [
    database(rows)
    for rows in (
        TRIPS,
        TRIPS[1:],
        [row for row in TRIPS if row[0] != "p0"],
        [*TRIPS, ("guest", "2026-01-06", "north", "1")],
        [*TRIPS, ("guest", "someday", "nowhere", "much")],
        [*TRIPS, ("", "", "", "")],
    )
]
CONNECTED = (
    *("duckdb://", "--tables", "trips={folder}/trips.csv", "--tables", "zones={folder}/zones.csv"),
    *("--owners", "trips=who", "--public", "zones", "--types", "trips.day=DATE"),
    *("--types", "trips.cost=DOUBLE", "--ranges", "trips.cost=0,9", "--times", "trips=day"),
    *("--keys", "zones=zone"),
)
COUNT = "SELECT COUNT(*) FROM trips"
BY_ZONE = "SELECT zone, COUNT(*) AS n, SUM(cost) AS s FROM trips GROUP BY zone"
FOUND = (
    *("--keys-per-person", "2", "--minimum", "2", "--other", "rest", "--top", "5"),
    *("--delta", "1e-4"),
)
LISTED = ("--groups", "zone=north,south")
DATABASE_LINES: Sequence[Line] = (
    ("sql", "show", *CONNECTED, BY_ZONE, *LISTED, "--json"),
    ("sql", "show", *CONNECTED, COUNT, "--dialect", "postgres"),
    ("sql", "show", *CONNECTED, BY_ZONE, *FOUND[:-2], "--functions", "f"),
    ("sql", "plan", *CONNECTED, COUNT, *PERSON, "--dialect", "postgres", "--json"),
    ("sql", "plan", *CONNECTED, BY_ZONE, *PERSON, *FOUND),
    ("sql", "plan", *CONNECTED, BY_ZONE, *PERSON, *LISTED, "--functions", "f"),
    (
        *("sql", "plan", *CONNECTED, BY_ZONE, *PERSON, *LISTED, "--people", "50"),
        *("--rows-per-person", "trips=2,9", "--values", "trips.cost=1,2"),
    ),
    ("sql", "plan", *CONNECTED, COUNT, *PERSON, "--like", "{folder}/like.toml"),
    ("sql", "ask", *CONNECTED, BY_ZONE, *PERSON, *LISTED, *TIGHT, "--csv"),
    ("sql", "ask", *CONNECTED, BY_ZONE, *PERSON, *FOUND, *TIGHT, "--json"),
    ("sql", "ask", *CONNECTED, BY_ZONE, *PERSON, *FOUND, "--no-ledger", "--out", "{folder}/k.json"),
    (
        *("sql", "ask", *CONNECTED, COUNT, *PERSON, *TIGHT, "--again", "--dialect", "postgres"),
        *("--mechanism", "laplace"),
    ),
    ("sql", "ask", *CONNECTED, COUNT, *PERSON, "--no-ledger", "--functions", "f"),
    ("sql", "ask", *CONNECTED, COUNT, *PERSON, "--no-ledger", "--like", "{folder}/like.toml"),
    ("sql", "ask", *CONNECTED, COUNT, *PERSON, "--no-ledger", "--option", "x=1"),
    ("sql", "plan", *CONNECTED, COUNT, *PERSON, "--mechanism", "laplace", "--option", "x=1"),
    (
        *("sql", "ask", *CONNECTED, COUNT, "--unit", "participant-week", "--epsilon", "1"),
        *RENEWED,
    ),
    ("ledger", "show", "{folder}/s.ledger", "--account", "a"),
    ("ledger", "export", "{folder}/s.ledger", "--account", "a"),
)
OPENED = (
    *("--unit", "participant", "--epsilon", "1", "--delta", "1e-6", *TIGHT),
    *("--step", "week", "--first", "2026-01-05", "--steps", "3", "--bound", "1"),
    *("--time", "trips.day", "--periods", "2", "--version", "w1", "--date", "2026-01-05"),
)
KEPT = ("--ledger", "{folder}/s.ledger", "--account", "a", "--stream", "1")
STREAM_LINES: Sequence[Line] = (
    ("stream", "open", *CONNECTED, COUNT, *OPENED, "--dialect", "duckdb", "--json"),
    ("stream", "step", *CONNECTED, *KEPT, "--out", "{folder}/step.json"),
    ("stream", "step", *CONNECTED, *KEPT, "--version", "w2", "--date", "2026-01-12", "--json"),
    (
        *("stream", "open", *CONNECTED, "SELECT zone, COUNT(*) FROM trips GROUP BY zone"),
        *(*OPENED[:-4], *LISTED, "--version", "w2", "--date", "2026-01-12"),
    ),
    ("stream", "show", "{folder}/s.ledger", "--account", "a", "--stream", "1", "--json"),
    ("report", "{folder}/s.ledger", "--out", "{folder}/page.html"),
)

# --- matrices -----------------------------------------------------------------------------------

FLOWS = [("ann", "a", "b", "2"), ("ann", "b", "a", "1"), ("bob", "a", "a", "5")]


def flows(rows: Sequence[Sequence[str]]) -> Callable[[Path], Path]:
    lines = "".join(",".join(row) + "\n" for row in rows)
    return partial(
        files,
        {
            "flows.csv": "who,from,to,trips\n" + lines,
            "like.csv": "who,from,to,trips\nx,a,b,1\ny,b,b,2\n",
            "votes.csv": "".join(f"{len(row[1])},{int(row[3] == '2')}.5\n" for row in rows[:3]),
            "flows.toml": 'url = "duckdb://"\n[owners]\nflows = "who"\n[tables]\n'
            'flows = "flows.csv"\n[types]\n"flows.trips" = "DOUBLE"\n',
        },
    )


MATRICES = [
    flows(rows)
    for rows in (
        FLOWS,
        [*FLOWS, ("guest", "b", "b", "1")],
        [*FLOWS, ("guest", "elsewhere", "b", "1")],
        [*FLOWS, ("guest", "a", "b", "1e300")],
    )
]
GRID = ("--rows", "a,b", "--columns", "a,b", "--outside", "drop")
NAMED = ("--individual", "who", "--row", "from", "--column", "to", "--weight", "trips")
TOTALS = ("{folder}/flows.csv", "weights(bound=2, total=5)", *PERSON, *GRID, *NAMED)
SELECTED = (
    *("{folder}/flows.toml", "weights(bound=2, total=5)", *PERSON, *GRID),
    *("--select", 'SELECT "from", "to", trips FROM flows'),
)
REFERRED = (
    *("{folder}/flows.csv", "weights(total=5)", *PERSON, *GRID, *NAMED),
    *("--reference", "{folder}/like.csv"),
)
VOTES = ("{folder}/votes.csv", "xor", "--unit", "row", "--epsilon", "1")
MATRIX_LINES: Sequence[Line] = (
    ("matrix", "plan", *REFERRED, "--json"),
    ("matrix", "plan", *TOTALS, "--like", "{folder}/like.csv", "--delta", "1e-6"),
    ("matrix", "plan", *TOTALS, "--mechanism", "block_laplace", "--option", "x=1"),
    ("matrix", "plan", *SELECTED),
    ("matrix", "plan", *VOTES, "--threshold", "0.5", "--no-header"),
    (
        *("matrix", "ask", *TOTALS, *TIGHT, "--delta", "1e-6", "--low-rank", "1", "--positive"),
        *("--whole", "--save", "{folder}/m.csv", "--out", "{folder}/o.json", "--json"),
    ),
    ("matrix", "ask", *TOTALS, *TIGHT, "--delta", "1e-6", "--again"),
    ("matrix", "ask", *TOTALS, *RENEWED, "--like", "{folder}/like.csv"),
    ("matrix", "ask", *REFERRED, "--no-ledger"),
    ("matrix", "ask", *TOTALS, "--no-ledger", "--mechanism", "block_laplace", "--option", "x=1"),
    ("matrix", "ask", *SELECTED, "--no-ledger"),
    ("matrix", "ask", *VOTES, "--threshold", "0.5", "--no-header", "--no-ledger"),
)

LINES = {
    "networks": (NETWORKS, NETWORK_LINES),
    "people": (HIDDEN_PEOPLE, PEOPLE_LINES),
    "dated": (WHOLE, DATED_LINES),
    "databases": (DATABASES, DATABASE_LINES),
    "streams": (DATABASES, STREAM_LINES),
    "matrices": (MATRICES, MATRIX_LINES),
}
WRITTEN = ("o.csv", "o.json", "m.csv", "made.csv", "made.csv.release.json", "page.html", "k.json")

NOT_REPLAYED = {
    "compare": "prints the truth, for the custodian",
    "studio": "serves pages: test_pages.py",
    "demo": "makes its own data",
    "audit": "makes its own data",
    "survey form": "reads nothing",
    "survey respond": "prints a report, which the client's own test replays",
    "survey estimate": "reads reports, which are private already",
    **{f"attack {name}": "reads releases" for name in ("edge", "count", "trait", "identity")},
    **{f"attack {name}": "reads releases" for name in ("new-trait", "membership", "inversion")},
    **{f"ledger {name}": "reads a ledger" for name in ("accounts", "version", "verify", "head")},
    "ledger deployment": "reads a ledger",
}
"""Commands that read no records, or show them on purpose."""

SHARED = {"--budget", "--budget-delta", "--composition-delta", "--every", "--carry", "--zone"} | {
    *("--version", "--date", "--again", "--account", "--ledger", "--no-ledger", "--out", "--json")
}
"""Options of every command that books, or prints: it is enough that one command has each."""

TRUTH = {"report": {"--truth", "--nodes", "--header"}}
"""Options with which a page shows the truth to the custodian."""


@pytest.fixture
def constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream enters does not depend on records: mechanisms have a tape, it has none."""
    monkeypatch.setattr(factor, "encode", lambda totals, step: [5] * totals.shape[1])
    monkeypatch.setattr(tulle.Stream, "_noise", lambda self, size, moved, source: [0] * size)


def check(variants: Sequence[Callable[[Path], Path]], lines: Sequence[Line]) -> None:
    seen = replay_commands(run_line, variants, lines, WRITTEN)
    assert seen.findings == ()
    ended = [one.text[:12] for one in seen.shown if one.place.startswith("tulle ")]
    # Most lines are answered; refusals are replayed as well.
    assert ended.count("gives exit 0") >= 0.7 * len(lines), [
        one for one in seen.shown if one.place.startswith("tulle ") and "exit 0" not in one.text
    ]


@pytest.mark.parametrize("name", ["networks", "people", "dated", "streams", "matrices"])
def test_commands_show_the_same_with_every_option(name: str, constant: None) -> None:
    variants, lines = LINES[name]
    check((variants[0], variants[-1]), lines)


def test_questions_of_a_database_show_the_same(constant: None) -> None:
    check((DATABASES[0], DATABASES[4]), (DATABASE_LINES[2], *DATABASE_LINES[8:10]))


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_commands_show_the_same_on_all_neighbours(name: str, constant: None) -> None:
    check(*LINES[name])


def options_of(command: Any) -> set[str]:
    return {item.opts[0] for item in command.params if item.opts[0].startswith("--")} - {"--help"}


def test_every_option_of_every_command_is_replayed() -> None:
    """A new command or option is replayed, or listed as one that reads no records."""
    known = dict(leaves(typer.main.get_command(app)))
    used: dict[str, set[str]] = {}
    for _, lines in LINES.values():
        for line in lines:
            name = next(name for name in known if tuple(name.split()) == line[: len(name.split())])
            used.setdefault(name, set()).update(word for word in line if word.startswith("--"))
    assert used.keys() | NOT_REPLAYED.keys() == known.keys()
    assert not used.keys() & NOT_REPLAYED.keys()
    everywhere = set().union(*used.values())
    for name, words in used.items():
        missing = options_of(known[name]) - words - TRUTH.get(name, set())
        assert missing <= SHARED & everywhere, (name, missing)


def test_a_count_on_standard_error_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken version tells in a log how many edges the declared nodes left out."""
    from tulle.cli import common, options

    monkeypatch.setattr(options, "show_custodian", common.warn)
    seen = replay_commands(run_line, NETWORKS, NETWORK_LINES[:1])
    assert any("Left out" in finding for finding in seen.findings), seen.findings
    assert inspect.signature(common.warn) == inspect.signature(common.show_custodian)
