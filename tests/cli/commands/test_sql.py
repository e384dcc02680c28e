"""``tulle sql``: a database asked from the command line, as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.cli_helpers import SECRET, Run

from tulle.core.release import Release
from tulle.sql.question.error_position import find_place

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
pytest.importorskip("sqlglot", reason="the extra tulle[sql] is not installed")

TERMS = ("--unit", "participant", "--epsilon", "1")
SPENT = "SELECT SUM(price * (1 - discount)) FROM orders JOIN customer ON customer = id"
CITIES = "SELECT city, COUNT(*) FROM customer GROUP BY city"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A shop's TOML file; labels in its rows must stay inside."""
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE customer AS SELECT range AS id,"
            f" CASE range % 3 WHEN 0 THEN '{SECRET}-a' ELSE 'Oslo' END AS city FROM range(90);"
            "CREATE TABLE orders AS SELECT range AS number, range % 90 AS customer,"
            " CAST(range % 7 AS DOUBLE) AS price, 0.1 AS discount FROM range(400);"
            "CREATE TABLE place AS SELECT 'Oslo' AS name;"
            "CREATE TABLE hidden AS SELECT 1 AS x"
        )
    file = tmp_path / "shop.toml"
    file.write_text(
        'url = "duckdb:///shop.duckdb"\npublic = ["place"]\n'
        '[owners]\ncustomer = "id"\norders = "customer"\n'
        '[ranges]\n"orders.price" = [0, inf]\n"orders.discount" = [0, 1]\n'
    )
    return file


def test_show_tells_the_public_schema(run: Run, shop: Path) -> None:
    ran = run("sql", "show", shop)
    assert ran.code == 0
    assert "participant: customer" in ran.out
    assert "price in [0, inf]" in ran.out
    assert "public" in ran.out
    assert "hidden" not in ran.out
    shown = run("sql", "show", shop, "SELECT COUNT(*) FROM customer", "--json").json()
    assert shown["owners"]["orders"] == ["participant: customer"]
    assert "GROUP BY" in shown["statement"]


def test_plan_shows_the_outline_of_the_relation_and_spends_nothing(run: Run, shop: Path) -> None:
    ran = run("sql", "plan", shop, SPENT, *TERMS)
    assert ran.code == 0, ran.err
    assert "orders.customer = customer.id" in ran.out
    assert "each needs  participant" in ran.out
    assert "recursive" in ran.out
    assert "Nothing is spent." in ran.out
    assert "both signs" not in ran.out
    signed = run("sql", "plan", shop, SPENT.replace("1 - discount", "discount - 1"), *TERMS)
    assert "both signs are paid for; declare --ranges" in signed.out


def test_plan_json_is_about_public_facts_only(run: Run, shop: Path) -> None:
    asked = ("sql", "plan", shop, SPENT, *TERMS, "--json")
    plan = run(*asked).json()
    assert plan["spent"] == "0"
    assert plan["relation"] == {
        "tables": [
            {
                "name": "orders",
                "table": "orders",
                "owners": ["participant: customer"],
                "public": False,
            },
            {
                "name": "customer",
                "table": "customer",
                "owners": ["participant: id"],
                "public": False,
            },
        ],
        "joins": ["orders.customer = customer.id"],
        "participants": {"participant": 1},
        "alternatives": False,
        "signed": False,
        "groups": 1,
    }
    # With every row gone the plan is the same, to the letter.
    with duckdb.connect(str(shop.with_name("shop.duckdb"))) as connection:
        connection.execute("DELETE FROM orders; DELETE FROM customer")
    assert run(*asked).json() == plan


def test_plan_like_a_public_database(run: Run, shop: Path) -> None:
    public = shop.with_name("public.toml")
    public.write_bytes(shop.read_bytes())
    plan = run("sql", "plan", shop, SPENT, *TERMS, "--like", public, "--json").json()
    assert plan["offers"][0]["median_error"] > 0
    same = run("sql", "plan", shop, SPENT, *TERMS, "--like", shop)
    assert same.code == 2
    assert "names the data itself" in same.err


def test_plan_predicts_on_what_is_assumed(run: Run, shop: Path) -> None:
    plain = run("sql", "plan", shop, SPENT, *TERMS)
    assert "of a made-up database of 1,000 people" in plain.out.replace("\n", " ")
    said_so = ["say", "--people", "and", "--rows-per-person,", "or", "pass", "--like"]
    assert "".join(said_so) in "".join(plain.out.split())
    said = ("--people", 50, "--rows-per-person", "orders=20,90", "--values", "orders.discount=3")
    plan = run("sql", "plan", shop, SPENT, *TERMS, *said, "--json").json()
    assert plan["stand_in"].startswith("a made-up database of 50 people")
    assert "20 in orders" in plan["stand_in"]
    few = run("sql", "plan", shop, SPENT, *TERMS, "--rows-per-person", "2", "--json").json()
    assert 0 < few["half_width_95"] < plan["half_width_95"]
    wrong = run("sql", "plan", shop, SPENT, *TERMS, "--people", "many")
    assert wrong.code != 0
    assert "people must be a whole number" in wrong.err.replace("\n", " ")


def test_ask_books_and_the_same_question_is_free(run: Run, shop: Path, tmp_path: Path) -> None:
    booked = ("--ledger", "study.ledger")
    first = run("sql", "ask", shop, SPENT, *TERMS, *booked, "--budget", 2, "--out", "r.json")
    assert first.code == 0, first.err
    assert "shop in study.ledger" in first.out
    again = run("sql", "ask", shop, SPENT.lower(), *TERMS, *booked)
    assert "at no cost" in again.out
    grouped = ("sql", "ask", shop, CITIES, "--groups", "city=Oslo,Bergen", *TERMS, *booked)
    answer = run(*grouped, "--json").json()
    assert answer["release"]["value"]["value"]["keys"] == ["city"]
    assert answer["remaining"]["epsilon"] == "0"
    refused = run("sql", "ask", shop, "SELECT COUNT(*) FROM orders", *TERMS, *booked)
    assert refused.code == 3
    assert Release.load(tmp_path / "r.json").guarantee.epsilon == 1


TABLE = (
    "SELECT city, COUNT(*) AS n, COUNT(DISTINCT id) AS people FROM customer GROUP BY city "
    "HAVING n > -1000 ORDER BY city LIMIT 2"
)


def test_a_table_is_printed_with_names_and_keys(run: Run, shop: Path) -> None:
    asked = ("sql", "ask", shop, TABLE, *TERMS, "--groups", "city=Oslo,Rome", "--no-ledger")
    ran = run(*asked)
    assert ran.code == 0, ran.err
    assert "n_low" in ran.out
    assert "Rome" in ran.out
    assert "after the noise" in ran.out
    assert "LIMIT 2" in ran.out
    csv = run(*asked, "--csv").out.splitlines()
    assert csv[0] == "city,n,n_low,n_high,people,people_low,people_high"
    assert [line.split(",")[0] for line in csv[1:]] == ["Oslo", "Rome"]
    document = run(*asked, "--json").json()
    assert document["table"]["city"] == ["Oslo", "Rome"]
    assert document["table"]["n_high"] == [None, None]
    assert document["release"]["parameters"]["after_noise"][2] == "LIMIT 2"
    assert run(*asked, "--json", "--csv").code == 2


def test_parts_of_a_table_have_prices_and_statements(run: Run, shop: Path) -> None:
    asked = "SELECT COUNT(*), AVG(price), SUM(price) FROM orders"
    plan = run("sql", "plan", shop, asked, *TERMS, "--json").json()
    assert len(plan["parts"]) == len(plan["shares"]) == 3
    assert [column["column"] for column in plan["columns"]] == [
        "COUNT(*)",
        "AVG(price)",
        "SUM(price)",
    ]
    shown = run("sql", "show", shop, asked, "--json").json()
    assert shown["statement"].count(";") == 2


def test_a_missing_range_says_how_to_declare_it(run: Run, shop: Path) -> None:
    ran = run("sql", "ask", shop, "SELECT MEDIAN(price) FROM orders", *TERMS, "--no-ledger")
    assert ran.code == 2
    assert "orders.price=LEAST,MOST" in ran.err


def test_ask_once_without_a_ledger_from_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "visit.csv").write_text("who,place,x\n1,a,4\n2,b,-1\n2,a,3\n")
    (tmp_path / "ask.sql").write_text("-- all\nSELECT SUM(x) FROM visit\n")
    files = ("duckdb://", "@ask.sql", "--tables", "visit=visit.csv", "--types", "visit.x=INT")
    asked = ("sql", "ask", *files, *TERMS, "--no-ledger", "--json")
    ran = run(*asked, "--owners", "visit=who", "--ranges", "visit.x=0,inf")
    assert ran.code == 0, ran.err
    assert ran.json()["account"] is None
    assert len(ran.json()["release"]["parameters"]["thresholds"]) == 1
    both = run(*asked, "--owners", "visit=person: who", "--owners", "visit=place: place")
    assert both.code == 0, both.err
    nobody = run(*asked)
    assert nobody.code == 2
    assert "--owners TABLE=OWNER" in nobody.json()["error"]["message"]


@pytest.mark.parametrize(
    ("question", "words", "marked"),
    [
        ("SELECT COUNT(*) FROM customer full  JOIN orders ON customer = id", "UNION", "full  JOIN"),
        ("SELECT COUNT(*) FROM hidden", "--owners or --public", "hidden"),
        ("SELECT COUNT(*)\nFROM customer\nWHERE nope = 3", "could not be resolved", "nope"),
        (
            "SELECT COUNT(*) FROM (SELECT id FROM customer LIMIT 3) t",
            "another row would move up",
            "LIMIT",
        ),
        ("SELECT COUNT(* FROM customer", "cannot be read", "FROM"),
    ],
)
def test_errors_point_at_the_clause(
    run: Run, shop: Path, question: str, words: str, marked: str
) -> None:
    ran = run("sql", "plan", shop, question, *TERMS)
    assert ran.code == 2
    assert words in ran.err
    *_, shown, below = ran.err.rstrip("\n").split("\n")
    start, end = below.index("^"), below.rindex("^") + 1
    assert shown[start:end] == marked
    plain = run("sql", "plan", shop, question, *TERMS, "--json").json()
    assert "^" not in plain["error"]["message"]


def test_bad_usage_says_what_to_write(run: Run, shop: Path) -> None:
    asked = ("sql", "plan", shop, "SELECT COUNT(*) FROM customer")
    wrong = {
        ("--unit", "node", "--epsilon", "1"): "participant",
        (*TERMS, "--owners", "a=b"): "a TOML file says them itself",
        (*TERMS, "--groups", "city"): "--groups COLUMN=A,B,...",
        (*TERMS, "--groups", "city=[1"): "cannot be read",
        (*TERMS, "--dialect", "mysql"): "duckdb, postgres, spark",
    }
    for more, words in wrong.items():
        ran = run(*asked, *more)
        assert ran.code == 2
        assert words in ran.err.replace("\n", " "), more
    assert run("sql", "plan", "no.toml", asked[3], *TERMS).code == 2
    secret = run("sql", "plan", "oracle://me:hidden@host/db", asked[3], "--owners", "a=b", *TERMS)
    assert secret.code == 2
    assert "hidden" not in secret.err


def test_places_that_cannot_be_found_are_left_out() -> None:
    assert find_place("SELECT 1", "One statement is asked at a time; got 2.") is None
    assert find_place("SELECT 1", "LEFT JOIN is not supported: why.") is None
    assert find_place("a\nSELECT  x+1", "x + 1 in WHERE is not supported: why.") == (1, 8, 11)


def test_keys_that_nobody_listed(run: Run, shop: Path) -> None:
    """With a delta keys are found; without one the error says what to do in flags."""
    ran = run("sql", "plan", shop, CITIES, *TERMS)
    assert ran.code == 2
    assert "--delta" in ran.err
    assert "--groups city=A,B" in ran.err
    planned = run("sql", "plan", shop, CITIES, *TERMS, "--delta", "1e-6", "--minimum", "3")
    assert planned.code == 0
    assert "with fewer than 3 never" in " ".join(planned.out.split())
    # No city of the shop has so many people: none of their names may be shown.
    asked = (*TERMS, "--delta", "1e-6", "--no-ledger", "--minimum", "1000", "--other", "elsewhere")
    answered = run("sql", "ask", shop, CITIES, *asked, "--keys-per-person", 1, "--top", 5, "--csv")
    assert answered.code == 0, answered.err
    _, rest = answered.out.splitlines()
    assert rest.startswith("elsewhere,")
    assert "ROW_NUMBER" in run("sql", "show", shop, CITIES).out


def test_bounds_are_bought_on_demand(run: Run, shop: Path) -> None:
    text = "SELECT MEDIAN(price) AS middle, AVG(number) AS mean FROM orders"
    refused = run("sql", "plan", shop, text, *TERMS)
    assert refused.code != 0
    assert "orders.price" in refused.err
    assert '--ranges "private"' in refused.err
    planned = run("sql", "plan", shop, text, *TERMS, "--ranges", "private")
    assert planned.code == 0, planned.err
    # One end of a price is declared; none of a number.
    assert "Of price, one bound costs epsilon 0.167" in " ".join(planned.out.split())
    asked = ("sql", "ask", shop, text, *TERMS, "--ranges", "private", "--json")
    said = run(*asked, "--ledger", shop.parent / "a.ledger", "--budget", "2").json()
    assert set(said["release"]["parameters"]["ranges_found"]) == {"price", "number"}
    assert "is not known" in said["not_in_the_interval"]


def test_dates_have_ranges_and_are_written_as_texts(run: Run, tmp_path: Path) -> None:
    """Keys and answers that JSON has no form for: dates, and decimals."""
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visit AS SELECT range AS who, DATE '2024-01-01' + (range % 2)::INTEGER"
            " AS day, (range % 2)::DECIMAL(4, 1) AS cost FROM range(900)"
        )
    url = f"duckdb:///{tmp_path / 'visits.duckdb'}"
    ends = ("--owners", "visit=who", "--ranges", "visit.day=2020-01-01,2024-12-31")
    shown = run("sql", "show", url, *ends)
    assert "day in [2020-01-01, 2024-12-31]" in shown.out
    last = "SELECT MAX(day) AS last, COUNT(*) AS n FROM visit"
    found = run("sql", "ask", url, last, *ends, *TERMS, "--no-ledger", "--json").json()
    assert found["table"]["last"][0].startswith("202")
    for key in ("day", "cost"):
        text = f"SELECT {key}, COUNT(*) AS n FROM visit GROUP BY {key}"
        found = run(
            "sql", "ask", url, text, *ends, *TERMS, "--delta", "1e-6", "--no-ledger", "--json"
        )
        assert [str(one) for one in found.json()["table"][key]] in (
            ["2024-01-01", "2024-01-02"],
            ["0.0", "1.0"],
        )
