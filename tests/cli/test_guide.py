"""Every command of the guide's page about the command line runs as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.cli_helpers import Run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines]


def test_the_commands_of_the_guide_run(run: Run, tmp_path: Path) -> None:
    ring = [(i, (i + step) % 40) for i in range(40) for step in (1, 2)]
    (tmp_path / "friends.csv").write_text("".join(f"{a},{b}\n" for a, b in ring))
    people = "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "people.csv").write_text("name,dept\n" + people)
    orders = "".join(f"{i % 30},{i % 7}\n" for i in range(90))
    (tmp_path / "orders.csv").write_text("customer,price\n" + orders)
    moves = "".join(f"{i % 20},{'north' if i % 3 else 'south'},north,1\n" for i in range(60))
    (tmp_path / "moves.csv").write_text("person,from,to,trips\n" + moves)
    (tmp_path / "votes.csv").write_text("a,b,c\n" + "1,0,1\n0,1,1\n" * 5)
    written = commands()
    assert {words[1] for words in written} >= {"ask", "sql", "matrix", "survey", "attack"}
    for words in written:
        name, *arguments = words
        assert name == "tulle"
        target = None
        if ">>" in arguments:
            *arguments, _, target = arguments
        ran = run(*arguments)
        assert ran.code == 0, f"{shlex.join(words)}: {ran.err}"
        if target is not None:
            with (tmp_path / target).open("a") as file:
                file.write(ran.out)
