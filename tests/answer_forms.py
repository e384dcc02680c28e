"""One small release of every form that the library can give: for checks of every surface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

import tulle
from tulle.core.guarantee import Guarantee
from tulle.core.labels import Labels
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.graphs.generators import social_network
from tulle.relations.data import Relation
from tulle.relations.queries import total
from tulle.sql.queries import one_aggregate

EPSILON = 8.0
"""Large, so that answers are near the truth; forms do not depend on it."""

AGE, AGES, OLD = [20 + i % 50 for i in range(400)], (18, 70), 45
NODES = 40
NAMES = tuple(f"person {place:02d}" for place in range(NODES))
PARTS = tuple(place % 3 for place in range(NODES))

Case = tuple[str, Any, Query, dict[str, Any]]
"""Kind and name of the question, the data, the question, and how it is asked."""


@lru_cache(maxsize=1)
def network() -> tulle.Graph:
    """A network whose nodes have declared names."""
    pairs = social_network(NODES, seed=4).edges()
    return tulle.Graph.from_edges(
        [(NAMES[u], NAMES[v]) for u, v in pairs.tolist()], nodes=list(NAMES)
    )


@lru_cache(maxsize=1)
def shop() -> tulle.Database:
    """Orders of customers in two cities."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE orders AS SELECT range % 60 AS who, "
        "CASE WHEN range % 3 = 0 THEN 'Bern' ELSE 'Aarhus' END AS city, "
        "range % 2 = 0 AS paid, range % 5 AS price FROM range(240)"
    )
    return tulle.Database.connect(connection, owners={"orders": "who"})


@lru_cache(maxsize=1)
def trips() -> tulle.Contributions:
    """Trips of people between named places."""
    count = 120
    places = ["home", "school", "work"]
    return tulle.Contributions(
        individual=list(range(count)),
        row=[places[i % 3] for i in range(count)],
        column=[places[(i // 3) % 3] for i in range(count)],
        rows=places,
        columns=places,
    )


@lru_cache(maxsize=1)
def study() -> tulle.Genotypes:
    """Genotypes of cases and controls."""
    cells = np.array([[(i * j + i) % 3 for j in range(1, 6)] for i in range(60)])
    return tulle.Genotypes(
        cells, cases=[i % 2 for i in range(60)], snps=[f"rs{j}" for j in range(1, 6)]
    )


@lru_cache(maxsize=1)
def people() -> tulle.models.Table:
    """Ages, pay and whether somebody votes."""
    return tulle.models.Table(
        {"age": AGE, "pay": [a / 10 for a in AGE], "votes": [a > OLD for a in AGE]},
        bounds={"age": AGES, "pay": (0, 9)},
        classes={"votes": [False, True]},
    )


@lru_cache(maxsize=1)
def votes() -> tulle.BinaryMatrix:
    """Yes and no."""
    return tulle.BinaryMatrix([[i % 2, i % 3 == 0, 1] for i in range(12)])


GRAPH_QUESTIONS: dict[str, Callable[[], Query]] = {
    "edges": tulle.edges,
    "triangles": tulle.triangles,
    "stars": lambda: tulle.stars(2),
    "k_triangles": lambda: tulle.k_triangles(2),
    "cliques": lambda: tulle.cliques(4),
    "degrees": tulle.degrees,
    "degree_distribution": tulle.degree_distribution,
    "max_degree": tulle.max_degree,
    "triangles_per_node": tulle.triangles_per_node,
    "triples_per_node": tulle.triples_per_node,
    "triangles_at": lambda: tulle.triangles_at(NAMES[3]),
    "degree_of": lambda: tulle.degree_of(NAMES[3]),
    "chains": tulle.chains,
    "edges_within": lambda: tulle.edges_within(PARTS),
    "mixing": lambda: tulle.mixing(PARTS),
    "degree_squares": lambda: tulle.degree_squares(PARTS),
    "clustering": tulle.clustering,
    "average_clustering": tulle.average_clustering,
    "transitivity": tulle.transitivity,
    "assortativity": tulle.assortativity,
    "modularity": lambda: tulle.modularity(PARTS),
    "paths": lambda: tulle.paths(3),
    "cycles": lambda: tulle.cycles(4),
    "subgraphs": lambda: tulle.subgraphs("a-b, b-c, c-d, d-b"),
    "eigenvalues": lambda: tulle.eigenvalues(3),
    "spectrum": lambda: tulle.spectrum(2),
    "low_rank": lambda: tulle.low_rank(2),
    "joint_degrees": lambda: tulle.joint_degrees(4),
    "synthetic": lambda: tulle.synthetic("1k"),
    "topology": tulle.topology,
}

GROUPS = {"city": ["Aarhus", "Bern", "Como"]}
BY_CITY = "SELECT city, COUNT(*) FROM orders GROUP BY city"
BY_BOTH = "SELECT city, paid, COUNT(*) FROM orders GROUP BY city, paid"


def cases() -> Iterator[Case]:
    """Yield each registered question at least once, and each form of interval."""
    edge = {"unit": "edge"}
    for name, make in GRAPH_QUESTIONS.items():
        yield f"graph {name}", network(), make(), edge
    yield "graph clustering of one", network(), tulle.clustering(NAMES[3]), edge
    yield "graph joint_degrees coarse", network(), tulle.joint_degrees(ratio=3), edge
    yield "graph expression", network(), 3 * tulle.triangles() / tulle.stars(2), edge
    # Per node: a truncated count has a lower end only.
    yield "graph edges per node", network(), tulle.edges(), {"unit": "node"}
    yield "graph max_degree per node", network(), tulle.max_degree(), {"unit": "node"}
    yield "graph synthetic_per_node", network(), tulle.synthetic_per_node(), {"unit": "node"}
    yield (
        "graph degree_distribution per node",
        network(),
        tulle.degree_distribution(),
        {
            "unit": "node",
        },
    )
    person = {"unit": "participant"}
    yield "database sql", shop(), tulle.sql("SELECT COUNT(*) FROM orders"), person
    yield "database sql groups", shop(), tulle.sql(BY_CITY, groups=GROUPS), person
    both = tulle.sql(BY_BOTH, groups={**GROUPS, "paid": [True, False]})
    yield "database sql two groups", shop(), both, person
    gaussian = {**person, "delta": 1e-6, "mechanism": "gaussian"}
    yield "database sql gaussian", shop(), tulle.sql(BY_CITY, groups=GROUPS), gaussian
    # What tables are put together from.
    counted = one_aggregate(BY_CITY, groups=GROUPS)
    yield "database sql part groups", shop(), counted, person
    both = one_aggregate(BY_BOTH, groups={**GROUPS, "paid": [True, False]})
    yield "database sql part two groups", shop(), both, person
    yield "database sql part gaussian", shop(), counted, gaussian
    yield "contributions weights", trips(), tulle.weights(bound=1, total=1), person
    yield "contributions block_bounds", trips(), tulle.block_bounds(0.9, [1, 2, 4]), person
    yield "contributions block_partition", trips(), tulle.block_partition(), person
    yield "contributions participants", trips(), tulle.participants(), person
    cells = tulle.found_cells(cells_per_person=2, bound=1, other=True)
    yield "contributions found_cells", trips(), cells, {**person, "delta": 1e-6}
    row = {"unit": "row"}
    yield "genotypes allele_counts", study(), tulle.genomes.allele_counts(), row
    yield "genotypes chi_squares", study(), tulle.genomes.chi_squares(), row
    yield "genotypes p_values", study(), tulle.genomes.p_values([1, 3]), row
    yield "genotypes top_snps", study(), tulle.genomes.top_snps(2), row
    yield "matrix xor", votes(), tulle.xor(), row
    yield "table linear", people(), tulle.models.linear("pay", ["age"]), row
    yield "table logistic", people(), tulle.models.logistic("votes", ["age"]), row
    links = Relation.conjunctive([0, 1, 2], [0, 1], [2.0, 3.0])
    yield "relation total", links, total(), person


@lru_cache(maxsize=1)
def releases() -> dict[str, Release]:
    """Return one release of every form, by name; surveys' estimates included."""
    found = {
        name: tulle.release(data, query, epsilon=EPSILON, **terms)
        for name, data, query, terms in cases()
    }
    return {**found, **survey_releases(), "several columns": several_columns()}


def several_columns() -> Release:
    """Return an answer that is a table of several numbers for each key."""
    from tulle.core.table import LabelledTable

    value = LabelledTable(
        {"city": ["Aarhus", "Bern"], "orders": [12, 7], "paid": [3.5, None]}, keys="city"
    )
    words = Labels("In SQL: SELECT city, COUNT(*), SUM(price) FROM orders GROUP BY city")
    guarantee = Guarantee(Unit.of("participant"), Fraction(1))
    return Release(value, "sql('...')", "recursive", guarantee, None, labels=words)


def survey_releases() -> dict[str, Release]:
    """Return the estimates that a survey gives."""
    from tulle import surveys

    survey = surveys.Survey({"smokes": ["no", "yes"], "city": ["Aarhus", "Bern", "Como"]})
    form = survey.form(epsilon=4)
    collection = surveys.Collection(form)
    turn = np.arange(900)
    collection.add(surveys.perturb(form, {"smokes": turn % 2, "city": turn % 3}))
    links = surveys.LinkForm.of(NODES, epsilon=4)
    reports = surveys.perturb_links(links, social_network(NODES, seed=4).edges())
    return {
        "survey proportions": collection.proportions("city"),
        "survey table": collection.proportions("smokes", "city"),
        "survey mean": collection.mean("city", [0, 1, 2]),
        "survey entropy": collection.entropy("city"),
        "survey chi_square": collection.chi_square("smokes", "city"),
        "survey mutual_information": collection.mutual_information("smokes", "city"),
        "survey correlation": collection.correlation("smokes", "city"),
        "survey links edges": reports.edges(),
        "survey links degrees": reports.degrees(),
        "survey links two_stars": reports.two_stars(),
        "survey links triangles": reports.triangles(),
        "survey links triangles_by_node": reports.triangles_by_node(),
        "survey links graph": reports.graph(),
    }
