"""Questions that use every construct that is supported, over the tables of ``sql_worlds``."""

from __future__ import annotations

QUESTIONS = [
    # one table
    "SELECT COUNT(*) FROM person",
    "SELECT COUNT(*) FROM edge",
    "SELECT COUNT(*) FROM item",
    "SELECT COUNT(*) FROM city",
    "SELECT COUNT(age) FROM person",
    "SELECT COUNT(note) FROM orders WHERE price > 0",
    "SELECT COUNT(qty + sku) FROM item",
    "SELECT SUM(w) FROM edge",
    "SELECT SUM(price) FROM orders",
    "SELECT SUM(qty * 2 - 3) FROM item",
    "SELECT SUM(CASE WHEN age > 21 THEN 1 ELSE 0 END) FROM person",
    "SELECT SUM(minutes) FROM visit WHERE sid <> 2 OR pid = 1",
    "SELECT COUNT(*) FROM person WHERE NOT (age > 21) AND city IN ('ams', 'ber')",
    "SELECT COUNT(*) FROM orders WHERE note IS NULL",
    "SELECT COUNT(*) FROM orders WHERE COALESCE(note, 'x') NOT LIKE 'y%'",
    "SELECT SUM(price / qty) FROM orders JOIN item USING (okey)",
    # joins
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a",
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a JOIN edge z ON y.b = z.a AND z.b = x.a",
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a WHERE x.a < y.b",
    "SELECT COUNT(*) FROM edge x, edge y WHERE x.w < y.w",
    "SELECT COUNT(*) FROM edge x CROSS JOIN city",
    "SELECT COUNT(*) FROM person p JOIN person q ON p.age < q.age",
    "SELECT COUNT(*) FROM person p JOIN person q ON p.id < q.id AND p.city = q.city",
    "SELECT COUNT(*) FROM person JOIN orders ON id = cust",
    "SELECT SUM(qty) FROM person JOIN orders ON id = cust JOIN item USING (okey) WHERE age > 20",
    "SELECT COUNT(*) FROM person JOIN city ON city = name WHERE region = 'n'",
    "SELECT SUM(x.w * y.w) FROM edge x JOIN edge y ON x.b = y.a",
    "SELECT COUNT(*) FROM visit u JOIN visit v ON u.sid = v.sid AND u.pid < v.pid",
    "SELECT SUM(u.minutes - v.minutes) FROM visit u JOIN visit v USING (sid)",
    "SELECT COUNT(v.minutes) FROM visit v JOIN edge e ON v.pid = e.a OR v.pid = e.b",
    "SELECT COUNT(*) FROM item i JOIN item j ON i.sku = j.sku AND i.okey <> j.okey",
    # sub-selects without DISTINCT
    "SELECT COUNT(*) FROM (SELECT a, b FROM edge WHERE w > 0) e JOIN person ON e.a = id",
    "SELECT SUM(s) FROM (SELECT x.w + y.w AS s FROM edge x JOIN edge y ON x.b = y.a) t",
    "SELECT COUNT(*) FROM (SELECT * FROM edge) x, (SELECT b FROM edge) y WHERE x.b = y.b",
    "WITH e AS (SELECT a AS p, b AS q FROM edge) SELECT COUNT(*) FROM e x JOIN e y ON x.q = y.p",
    "WITH edge AS (SELECT * FROM edge WHERE w > 0) SELECT COUNT(*) FROM edge",
    "WITH e AS (SELECT a FROM edge), f AS (SELECT a FROM e WHERE a > 1) SELECT COUNT(*) FROM f, e",
    # distinct
    "SELECT COUNT(DISTINCT a) FROM edge",
    "SELECT COUNT(DISTINCT city) FROM person",
    "SELECT COUNT(DISTINCT note) FROM orders",
    "SELECT COUNT(DISTINCT sku) FROM item WHERE qty > 0",
    "SELECT COUNT(DISTINCT a, w) FROM edge",
    "SELECT COUNT(DISTINCT city, age) FROM person",
    "SELECT COUNT(DISTINCT x.a + y.b) FROM edge x JOIN edge y ON x.b = y.a",
    "SELECT COUNT(DISTINCT region) FROM city",
    "SELECT COUNT(DISTINCT city.region) FROM person JOIN city ON city = name",
    "SELECT SUM(DISTINCT w) FROM edge",
    "SELECT COUNT(*) FROM (SELECT DISTINCT city, age FROM person) t",
    "SELECT COUNT(city) FROM (SELECT DISTINCT city, age FROM person) t",
    "SELECT SUM(w) FROM (SELECT DISTINCT w, a FROM edge) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT sku FROM item) s JOIN item i ON s.sku = i.sku",
    "SELECT SUM(i.qty) FROM (SELECT DISTINCT sku FROM item) s, item i WHERE s.sku <= i.sku",
    "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM edge) x, (SELECT DISTINCT b FROM edge) y",
    "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM edge) x JOIN (SELECT DISTINCT b FROM edge) y"
    " ON a = b",
    "SELECT COUNT(DISTINCT a) FROM (SELECT DISTINCT a, w FROM edge) t JOIN person ON id = w + 2",
    "SELECT COUNT(*) FROM (SELECT DISTINCT t.age FROM (SELECT DISTINCT city, age FROM person) t) u",
    "SELECT COUNT(*) FROM (SELECT age FROM (SELECT DISTINCT city, age FROM person) t) u, city",
    # unions and intersections
    "SELECT COUNT(*) FROM (SELECT a FROM edge UNION SELECT b FROM edge) u",
    "SELECT COUNT(*) FROM (SELECT a FROM edge UNION ALL SELECT b FROM edge) u",
    "SELECT SUM(a) FROM (SELECT a FROM edge UNION SELECT cust FROM orders) u",
    "SELECT SUM(a) FROM (SELECT a FROM edge UNION ALL SELECT -qty FROM item) u",
    "SELECT COUNT(*) FROM (SELECT a FROM edge UNION ALL SELECT DISTINCT sku FROM item) u",
    "SELECT COUNT(*) FROM (SELECT a, w FROM edge UNION SELECT pid, sid FROM visit) u",
    "SELECT COUNT(*) FROM (SELECT age FROM person UNION SELECT 21 UNION ALL SELECT w FROM edge) u",
    "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM edge UNION ALL SELECT pid FROM visit) u"
    " JOIN person ON id = a",
    "SELECT COUNT(*) FROM (SELECT a FROM edge INTERSECT SELECT sku FROM item) u",
    "SELECT COUNT(*) FROM (SELECT note FROM orders INTERSECT SELECT note FROM orders WHERE price"
    " > 0) u",
    "SELECT COUNT(*) FROM (SELECT name FROM city UNION SELECT city FROM person) u",
    "WITH u AS (SELECT a AS p FROM edge UNION SELECT b FROM edge)"
    " SELECT COUNT(*) FROM u x, u y WHERE x.p < y.p",
    "WITH u(p) AS (SELECT a FROM edge UNION SELECT b FROM edge) SELECT SUM(p) FROM u",
    "WITH u(p, q) AS (SELECT a, w FROM edge) SELECT SUM(p - q) FROM u",
    "SELECT COUNT(*) FROM (WITH e AS (SELECT DISTINCT a FROM edge) SELECT a FROM e) t",
    "WITH e AS (SELECT a FROM edge) SELECT COUNT(*) FROM (WITH e AS (SELECT sku AS a FROM item)"
    " SELECT a FROM e) t JOIN e ON t.a = e.a",
    "WITH orders AS (SELECT sku AS okey FROM item) SELECT COUNT(*) FROM item JOIN orders USING"
    " (okey)",
    # semi-joins
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT a FROM edge)",
    "SELECT COUNT(*) FROM person WHERE city IN (SELECT name FROM city)",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM orders WHERE cust = p.id)",
    "SELECT SUM(price) FROM orders o WHERE EXISTS (SELECT * FROM item i WHERE i.okey = o.okey"
    " AND qty > 0)",
    "SELECT COUNT(*) FROM edge e WHERE EXISTS (SELECT 1 FROM edge f WHERE f.a = e.b AND f.b = e.a)",
    "SELECT COUNT(*) FROM edge WHERE a IN (SELECT pid FROM visit WHERE sid = 1) AND b IN"
    " (SELECT pid FROM visit)",
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT a FROM edge UNION SELECT cust FROM orders)",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id AND b IN"
    " (SELECT pid FROM visit))",
    "SELECT COUNT(DISTINCT p.city) FROM person p WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id)",
    "SELECT COUNT(*) FROM (SELECT city FROM person WHERE id IN (SELECT a FROM edge)) t, city",
    "SELECT COUNT(*) FROM city WHERE name IN (SELECT city FROM person)",
    "SELECT COUNT(*) FROM city WHERE EXISTS (SELECT 1 FROM visit)",
    "SELECT COUNT(*) FROM visit v WHERE v.pid IN (SELECT DISTINCT id FROM person WHERE age > 20)",
]

GROUPED = [
    ("SELECT city, COUNT(*) FROM person GROUP BY city", {"city": ["ams", "xyz", None]}),
    ("SELECT sku, SUM(qty) AS s FROM item GROUP BY 1", {"sku": [3, 1, 2]}),
    ("SELECT a, COUNT(DISTINCT w) FROM edge GROUP BY a", {"a": [1, 2, 9]}),
    (
        "SELECT region AS r, age % 2 AS odd, COUNT(*) FROM person JOIN city ON city = name"
        " GROUP BY r, age % 2",
        {"r": ["n", "e"], "odd": [0, 1]},
    ),
    (
        "SELECT sid, COUNT(*) FROM visit WHERE pid IN (SELECT a FROM edge) GROUP BY sid",
        {"sid": [1, 2, 3]},
    ),
]

IN_DUCKDB = {
    "SELECT SUM(price / qty) FROM orders JOIN item USING (okey)": "SELECT SUM(price / NULLIF(qty,"
    " 0)) FROM orders JOIN item USING (okey)",
    "SELECT COUNT(DISTINCT a, w) FROM edge": "SELECT COUNT(*) FROM (SELECT DISTINCT a, w FROM edge"
    " WHERE a IS NOT NULL AND w IS NOT NULL) t",
    "SELECT COUNT(DISTINCT city, age) FROM person": "SELECT COUNT(*) FROM (SELECT DISTINCT city,"
    " age FROM person WHERE city IS NOT NULL AND age IS NOT NULL) t",
}
"""What plain DuckDB, where x / 0 is infinite and pairs are not counted, is asked instead."""
