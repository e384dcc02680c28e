"""The language of owners, and how owners are checked against a catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from tulle.core.errors import InputError, QueryError
from tulle.sql.schema.catalogue import Keys
from tulle.sql.schema.owners import parse_owner, parse_owners
from tulle.sql.schema.schema import Schema

SHOP = {
    "customer": {"c_custkey": "BIGINT", "c_name": "VARCHAR"},
    "orders": {"o_orderkey": "BIGINT", "o_custkey": "BIGINT", "o_clerk": "VARCHAR"},
    "lineitem": {"l_orderkey": "BIGINT", "l_suppkey": "BIGINT", "l_tax": "DOUBLE"},
    "supplier": {"s_suppkey": "BIGINT"},
    "nation": {"n_name": "VARCHAR"},
}
KEYS = Keys({"orders": ("o_orderkey",)}, {})


def shop(owners: dict[str, Any], **given: Any) -> Schema:
    return Schema.build("duckdb", SHOP, owners=owners, **{"keys": KEYS} | given)


@pytest.mark.parametrize(
    "text",
    [
        "o_custkey",
        "(tenant, user)",
        "customer: o_custkey",
        "l_orderkey -> orders",
        "l_orderkey -> orders.o_custkey",
        "l_orderkey -> orders[o_orderkey].o_custkey",
        "person: x -> t[k].y -> u[k].(a, b)",
        "(a, b) -> t[(c, d)].e",
        '"odd name" -> "my table"."a ""b"""',
    ],
)
def test_owners_are_read_and_written_back(text: str) -> None:
    assert parse_owner(str(parse_owner(text))) == parse_owner(text)
    assert parse_owner(str(parse_owner(text.replace("->", " ->  ")))) == parse_owner(text)


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a ->", "a -> t[", "a -> t[k, l].b", "-> t.a", "a.b", "a; b", "(a", "a -> t -> u"],
)
def test_what_cannot_be_read_is_shown_with_the_forms_that_can(text: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read. Write a column"):
        parse_owner(text)


def test_without_kinds_all_owners_share_one() -> None:
    read = parse_owners({"edge": ["a", "b"], "node": "id"})
    assert {owner.entity for listed in read.values() for owner in listed} == {"participant"}


def test_one_person_cannot_be_two_by_forgetting_a_kind() -> None:
    with pytest.raises(InputError, match=r"does not say its kind .*'customer: o_custkey'"):
        parse_owners({"customer": "customer: c_custkey", "orders": "o_custkey"})


def test_a_path_takes_the_kind_of_the_column_it_ends_in() -> None:
    read = parse_owners({"orders": "customer: o_custkey", "lineitem": "k -> orders.o_custkey"})
    assert read["lineitem"][0].entity == "customer"


@pytest.mark.parametrize("given", [3, [], [3], {"a": 1}])
def test_owners_are_texts(given: Any) -> None:
    with pytest.raises(InputError, match=r"owners\['orders'\]"):
        parse_owners({"orders": given})


def test_missing_tables_and_columns_are_named_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"no table 'order'. Tables: customer, lineitem"):
        shop({"order": "o_custkey"})
    with pytest.raises(InputError, match=r"no column 'o_cust'. Columns: o_orderkey, o_custkey"):
        shop({"orders": "o_cust"})
    with pytest.raises(InputError, match="public: there is no table 'nations'"):
        shop({}, public=["nations"])
    with pytest.raises(InputError, match="no column 'x'"):
        shop({"orders": "o_custkey", "lineitem": "l_orderkey -> orders[x].o_custkey"})
    with pytest.raises(InputError, match="no table 'order'"):
        shop({"orders": "o_custkey", "lineitem": "l_orderkey -> order.o_custkey"})
    with pytest.raises(InputError, match="list of tables"):
        shop({}, public="nation")


def test_a_table_is_owned_or_public_not_both() -> None:
    with pytest.raises(InputError, match="declared public and owned"):
        shop({"orders": "o_custkey"}, public=["orders"])
    schema = shop({"orders": "o_custkey"}, public=["nation"])
    with pytest.raises(QueryError, match="customer has no owners and is not declared public"):
        schema.check_table("customer")


def test_a_path_goes_through_declared_tables_only() -> None:
    with pytest.raises(InputError, match="leads through orders, which is neither owned nor public"):
        shop({"lineitem": "l_orderkey -> orders.o_custkey"})


def test_keys_come_from_the_catalogue_or_from_brackets() -> None:
    owners = {"orders": "o_custkey", "lineitem": "l_orderkey -> orders.o_custkey"}
    written = "l_orderkey -> orders[o_orderkey].o_custkey"
    assert shop(owners).to_json()["owners"]["lineitem"] == [f"participant: {written}"]
    foreign = Keys({}, {("lineitem", ("l_orderkey",)): ("orders", ("o_orderkey",))})
    assert shop(owners, keys=foreign) == shop(owners)
    with pytest.raises(InputError, match=r"does not say which key .*in brackets"):
        shop(owners, keys=None)
    assert shop(owners | {"lineitem": written}, keys=None) == shop(owners)


def test_a_row_over_a_path_needs_the_owners_of_the_rows_on_the_way() -> None:
    schema = shop(
        {
            "orders": ["customer: o_custkey", "clerk: o_clerk"],
            "lineitem": ["l_orderkey -> orders.o_custkey", "supplier: l_suppkey"],
        }
    )
    found = schema.ownership("lineitem")
    assert [link.table for link in found.links] == ["orders"]
    assert {(tie.entity, *tie.columns) for tie in found.ties} == {
        ("customer", "o_custkey"),
        ("clerk", "o_clerk"),
        ("supplier", "l_suppkey"),
    }
    assert schema.entity_class("customer") == "BIGINT"
    assert schema.entity_class("clerk") == "TEXT"


def test_owners_can_be_taken_over() -> None:
    schema = shop({"orders": "o_custkey", "lineitem": "l_orderkey -> orders"})
    assert [tie.columns for tie in schema.ownership("lineitem").ties] == [("o_custkey",)]
    with pytest.raises(InputError, match="takes over the owners of orders, which has none"):
        shop({"lineitem": "l_orderkey -> orders"}, public=["orders"])


def test_paths_in_a_circle_are_found() -> None:
    tables = {"a": {"x": "INT"}, "b": {"y": "INT"}}
    with pytest.raises(InputError, match="circle: a -> b -> a"):
        Schema.build("duckdb", tables, owners={"a": "x -> b[y]", "b": "y -> a[x]"})


def test_a_float_is_no_owner() -> None:
    with pytest.raises(InputError, match="l_tax has type DOUBLE"):
        shop({"lineitem": "l_tax"})


def test_names_are_found_whatever_their_case_and_reserved_ones_refused() -> None:
    assert shop({"ORDERS": "O_CUSTKEY"}) == shop({"orders": "o_custkey"})
    with pytest.raises(InputError, match="reserved"):
        Schema.build("duckdb", {"t": {"__tulle_x": "INT"}}, owners={})


def test_the_schema_is_a_public_fact_that_can_be_read_back() -> None:
    import json

    schema = shop(
        {"orders": "o_custkey", "lineitem": "l_orderkey -> orders", "customer": "c_custkey"},
        public=["nation"],
    )
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again.to_json() == schema.to_json()
    assert again.ownership("lineitem") == schema.ownership("lineitem")
