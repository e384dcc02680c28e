"""One grammar for owners, groups, ranges and types, wherever they are written."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tulle.cli.main import app
from tulle.core.errors import InputError, TulleError
from tulle.sql.data import Database
from tulle.sql.queries import sql
from tulle.sql.schema.declarations import (
    flat,
    read_ends,
    read_groups,
    read_pairs,
    read_values,
    split_owners,
)
from tulle.sql.schema.owners import parse_owners

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("north, south", ["north", "south"]),
        ("1, 2.5, -3", [1, 2.5, -3]),
        ('\'a, b\', "c""d", NULL', ["a, b", 'c"d', None]),
        ('["a, b", 3]', ["a, b", 3]),
        ("true, false", [True, False]),
        ("'true', 1", ["true", 1]),
        ("2020-01-01, x y", ["2020-01-01", "x y"]),
        ("alone", ["alone"]),
    ],
)
def test_values_are_read(text: str, values: list[Any]) -> None:
    assert read_values(text, "x") == values
    assert read_groups(f"k = {text}", "x") == {"k": values}
    assert [type(one) for one in read_values(text, "x")] == [type(one) for one in values]


def test_lists_that_cannot_be_read_are_refused() -> None:
    for text in ("'a' b, c", "['a'", "'a"):
        with pytest.raises(InputError, match="cannot be read"):
            read_values(text, "region")
    with pytest.raises(InputError, match="Write groups"):
        read_groups('{"a": ', "groups")
    with pytest.raises(InputError, match="list of values"):
        read_groups('{"a": 3}', "groups")
    with pytest.raises(InputError, match="Write ranges"):
        read_pairs("orders.price 0, 1", "ranges")
    assert read_groups("", "groups") is None


def test_owners_are_joined_by_and() -> None:
    listed = parse_owners({"edge": ["a", "b"]})
    for text in ("a and b", "a AND b", "a; b"):
        assert parse_owners({"edge": text}) == listed
    assert split_owners("band -> sand.hand") == ["band -> sand.hand"]
    with pytest.raises(InputError, match="cannot be read"):
        parse_owners({"edge": "a and"})


def test_ends_are_read_alike() -> None:
    for given in ((0, math.inf), [0, None], "0, inf", "0,", (0.0, "inf")):
        assert read_ends(given) == (0.0, math.inf)
    for wrong in ("1, 0", "0", (1, 2, 3), "a, b", 5, ("inf", 3), "nan, 1"):
        assert read_ends(wrong) is None
    assert flat({"t": {"a": 1}, "t.b": 2}) == {"t.a": 1, "t.b": 2}


TOML = """
url = "duckdb://"
[tables]
orders = "orders.csv"
[owners]
orders = "customer and seller"
[types.orders]
price = "DOUBLE"
customer = "BIGINT"
seller = "BIGINT"
[ranges.orders]
price = "0, 100"
"""


def test_every_surface_understands_the_same(tmp_path: Path) -> None:
    """Python, TOML and the command line declare one schema, and ask one question."""
    file = tmp_path / "orders.csv"
    file.write_text("customer,seller,price,city\n1,2,3.5,Rome\n2,3,4.5,Oslo\n")
    (tmp_path / "shop.toml").write_text(TOML)
    types = {"orders.price": "DOUBLE", "orders": {"customer": "BIGINT", "seller": "BIGINT"}}
    one = Database.connect(
        "duckdb://",
        tables={"orders": file},
        owners={"orders": ["customer", "seller"]},
        types=types,
        ranges={"orders.price": (0, 100)},
    )
    other = Database.from_toml(tmp_path / "shop.toml")
    assert one.schema == other.schema
    groups = [{"city": ["Rome", "Oslo"]}, {"city": "Rome, Oslo"}, {"city": '["Rome", "Oslo"]'}]
    text = "SELECT city, COUNT(*) FROM orders GROUP BY city"
    assert len({str(sql(text, groups=given).canonical()) for given in groups}) == 1
    connecting = ["--owners", "orders=customer and seller", "--tables", f"orders={file}"]
    for column, kind in (("price", "DOUBLE"), ("customer", "BIGINT"), ("seller", "BIGINT")):
        connecting += ["--types", f"orders.{column}={kind}"]
    connecting += ["--ranges", "orders.price=0,100"]
    shown = CliRunner().invoke(app, ["sql", "show", "duckdb://", *connecting, "--json"])
    assert shown.exit_code == 0, shown.output
    facts = one.schema.to_json()
    assert {name: json.loads(shown.output)[name] for name in facts} == facts
    wrong = CliRunner().invoke(
        app, ["sql", "show", "duckdb://", *connecting[:4], "--ranges", "orders.price"]
    )
    assert wrong.exit_code != 0


SOUND = {
    "url": '"duckdb://"',
    "owners": '{t = "who"}',
    "tables": '{t = "t.csv"}',
    "public": "[]",
    "ranges": '{"t.a" = [0, 1]}',
    "types": '{"t.a" = "DOUBLE", t = {b = "DATE"}}',
    "times": '{t = "b"}',
    "keys": "{}",
}
ODD = (
    *("3", '"x"', "[1]", "true", "nan", "2026-01-01", '[["a"]]', "[{}]", '"\\u0000"'),
    *("{t = 1}", "{t = []}", "{t = {}}", '{t = ["a", 3]}', '{t = "\\u0000"}', "{t = true}"),
    *('{"t.a" = [1, 2, 3]}', '{"t.a" = [nan, inf]}', '{"" = ""}'),
)


def test_whatever_is_in_a_toml_file_there_is_one_kind_of_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,a,b\nx,1,2026-01-01\n")
    file = tmp_path / "t.toml"

    def opened(**changed: str) -> None:
        lines = (f"{name} = {value}\n" for name, value in (SOUND | changed).items())
        file.write_text("".join(lines))
        Database.from_toml(file).close()

    opened()
    for name, odd in product(SOUND, ODD):
        with suppress(TulleError):
            opened(**{name: odd})
    for text in ("[" * 100_000, "a = [" * 5000, "url = 3\n[owners]\n", "\xff"):
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError):
            Database.from_toml(file)
