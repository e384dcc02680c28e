"""Lines that nobody would write: whatever options hold, a command answers or explains itself."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
import typer
from tests.cli.cli_helpers import Run
from tests.cli.test_common import leaves
from tests.drawn import Drawn

import tulle
from tulle.cli.main import app
from tulle.surveys import ClientAccount, Survey, respond

SKIPPED = ("studio", "demo", "audit")
"""They serve pages, or work for long on data of their own."""

FILES = (
    *("net.csv", "votes.csv", "trips.csv", "deep.json", "big.json", "form.json", "reports.jsonl"),
    *("r.json", "staff.toml", "bad.toml", "staff.duckdb", "s.ledger", "empty", "bytes", "folder"),
    *("missing", "no/such/file.csv", "/dev/null", "x" * 300, "a\x07b", "\udcff.csv", "-", "", "."),
    *("out.csv", "out.json", "out.mtx", "net.csv/x", "@bytes", "duckdb://", "nosuch://x"),
)
TEXTS = (
    *("edges", "triangles", "stars(2)", "degrees", "xor", "weights(bound=2, total=5)", "SELECT 1"),
    *("SELECT COUNT(*) FROM person", "edge", "node", "row", "participant", "participant-week"),
    *("laplace", "topm", "1k", "comma", "0,1", "a,b", "=", "smokes=yes", "smokes=no,yes", "n=²"),
    *("n=--5", "2026-W46", "2026-11-09", "9999-12-31", "week", "UTC", "Mars/Base", "study"),
    *("a" * 500, "\x00", "\n", "\udcff", "[bold]x[/bold]", "{}", "'", "x=1", "person=id"),
    *("person.salary=0,9", "1:" + "ab" * 32, "spread_share=0.5", "@deep.json"),
)
NUMBERS = (
    *("1", "0.5", "0", "-1", "nan", "inf", "1e-9", "1e400", "1/3", "1/0", "abc", "", "²", "٣"),
    *("1_000", "True", "1e-6", "10" * 30, "3", "9" * 5000),
)
FITTING = {"path": "net.csv", "question": "edges", "unit": "edge", "ledger": "s.ledger"}
PRICED = {"epsilon", "delta", "budget", "budget_delta", "bound", "composition_delta"}


def fill(folder: Path) -> dict[str, str]:
    """Write files of every kind that commands read, sound and odd ones; return the texts."""
    form = Survey({"smokes": ["no", "yes"], "n": 5}).form(epsilon=1)
    mine = ClientAccount(epsilon=5, unit="client")
    texts = {
        "net.csv": "source,target\n" + "".join(f"{n},{(n + 1) % 8}\n" for n in range(8)),
        "votes.csv": "a,b,c\n1,0,1\n0,1,0\n",
        "trips.csv": "who,from,to,trips\nann,home,work,2\n",
        "deep.json": "[" * 100_000,
        "big.json": '{"format": ' + "9" * 5000 + "}",
        "form.json": json.dumps(form.to_json()),
        "reports.jsonl": json.dumps(respond(form, {"smokes": "yes", "n": 2}, account=mine)),
        "staff.toml": 'url = "duckdb:///staff.duckdb"\n[owners]\nperson = "id"\n',
        "bad.toml": 'url = 3\n[owners]\nperson = [[["id"]]]\n',
        "empty": "",
    }
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "folder").mkdir()
    with duckdb.connect(str(folder / "staff.duckdb")) as connection:
        connection.execute("CREATE TABLE person AS SELECT 1 AS id, 10 AS salary")
    graph = tulle.Graph.from_edges([(n, (n + 1) % 8) for n in range(8)], nodes=8)
    study = tulle.Ledger(folder / "s.ledger").open("net", graph, unit="edge", epsilon=5)
    study.ask(tulle.edges(), epsilon=1).save(folder / "r.json")
    return texts


def value(random: Random, name: str, annotation: str) -> str:
    """Return what an option holds: often of its kind, sometimes of another."""
    if name in FITTING and random.random() < 0.6:
        return FITTING[name]
    kinds = [FILES, TEXTS, NUMBERS]
    if "Path" in annotation:
        kinds += [FILES] * 6
    elif name in PRICED or "int" in annotation or "float" in annotation:
        kinds += [NUMBERS] * 6
    return random.choice(random.choice(kinds))


def line(random: Random, name: str, command: Any) -> list[str]:
    """Return a command with all that it needs, and some of what it may have."""
    given = inspect.signature(command.callback).parameters
    words = name.split()
    for item in command.params:
        if item.name not in given:
            continue
        if not item.opts[0].startswith("-"):
            words.append(value(random, item.name, str(given[item.name].annotation)))
        elif item.required or random.random() < 0.2:
            flag = random.choice([*item.opts, *item.secondary_opts])
            held = value(random, item.name, str(given[item.name].annotation))
            words.append(flag if item.is_flag else f"{item.opts[0]}={held}")
    return words


@pytest.mark.slow
@pytest.mark.timed(1)
def test_whatever_options_hold_a_command_answers_or_explains_itself(
    run: Run, tmp_path: Path, drawn: Drawn
) -> None:
    texts = fill(tmp_path)
    known = [pair for pair in leaves(typer.main.get_command(app)) if pair[0] not in SKIPPED]
    for seed in drawn.seeds():
        random = Random(seed)
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        words = line(random, *random.choice(known))
        ran = run(*words)
        assert ran.code in range(5), (words, ran)
        assert tulle.Ledger("s.ledger", create=False).verify() == [], words
