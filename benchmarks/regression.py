"""Private regression on Adult: accuracy against diffprivlib, and model inversion.

Run it with ``python -m benchmarks regression`` and TULLE_DATA set. The chapter's figures 15 and 16
are remade as tables; with TULLE_FIGURES set to a folder, pictures are drawn as well. IBM's
diffprivlib needs an older scikit-learn and gets a virtual environment of its own, below
TULLE_PEERS or in a temporary folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute as compute
import pyarrow.csv as reader

import tulle
from benchmarks.common import print_table
from tulle.attacks import confusion_matrix, feature_inference
from tulle.core.validate import rational
from tulle.models import Model, Table, linear, logistic, noise_interval
from tulle.models.design import MOST_BITS, frame_of, whole_rows
from tulle.models.fitting import in_own_units, minimise_logistic
from tulle.models.sensitivity import functional_sensitivity

Columns = dict[str, Any]

BOUNDS: dict[str, tuple[float, float]] = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 20_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
CODED = {
    "workclass": ["?", "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc",
                  "Self-emp-not-inc", "State-gov", "Without-pay"],
    "occupation": ["?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial",
                   "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Other-service",
                   "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales", "Tech-support",
                   "Transport-moving"],
    "relationship": ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried",
                     "Wife"],
    "race": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"],
}  # fmt: skip
"""Columns whose classes are numbered in this order, so that there are 13 predictors."""
MARRIED = ("Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent")
CLASSES = {"married": [0, 1], "male": [0, 1], "us": [0, 1], "income": [0, 1]}
PREDICTORS = (*BOUNDS, *CODED, "married", "male", "us")
DELTA = 1e-6
RUNS = 20
FIGURE_15 = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100)
FIGURE_16 = ("0.05", "0.1", "0.25", "0.5", "1", "5")
MANY = 10**6
"""Made-up rows."""
PURE = ("functional", "objective_laplace", "objective_knorm")
INCOME = logistic("income")

# What is run by the other library's interpreter, on the same scaled rows and splits.
_PEER = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
data = np.load(sys.argv[1]); wanted = json.loads(sys.argv[2]); found = []
x, y = data["x"], data["y"]
for epsilon, count, penalty in wanted["cases"]:
    scores = []
    for run in range(wanted["runs"]):
        train, test = data[f"train{run}"][:count], data[f"test{run}"]
        model = LogisticRegression(epsilon=epsilon, data_norm=float(np.sqrt(x.shape[1])),
                                   C=penalty, max_iter=1000)
        scores.append(model.fit(x[train], y[train]).score(x[test], y[test]))
    found.append(scores)
print(json.dumps(found))
"""


def adult() -> Columns | None:
    """Return the 13 predictors and the income of Adult, classes as whole numbers."""
    folder = os.environ.get("TULLE_DATA")
    path = Path(folder, "adult", "adult.csv.gz") if folder else None
    if path is None or not path.exists():
        return None
    table = reader.read_csv(path)
    found: Columns = {name: table[name].to_numpy().astype(float) for name in BOUNDS}
    for name, listed in CODED.items():
        found[name] = compute.index_in(table[name], pyarrow.array(listed)).to_numpy().astype(float)
    found["married"] = np.isin(table["marital_status"].to_numpy(), MARRIED).astype(int)
    found["male"] = (table["sex"].to_numpy() == "Male").astype(int)
    found["us"] = (table["native_country"].to_numpy() == "United-States").astype(int)
    found["income"] = (table["income"].to_numpy() == ">50K").astype(int)
    return found


def bounds() -> dict[str, tuple[float, float]]:
    return {**BOUNDS, **{name: (0, len(listed) - 1) for name, listed in CODED.items()}}


def sealed(people: Columns, places: npt.NDArray[np.int64]) -> Table:
    picked = {name: people[name][places] for name in (*PREDICTORS, "income")}
    return Table(picked, bounds=bounds(), classes=CLASSES)


def pick(people: Columns, places: npt.NDArray[np.int64]) -> Columns:
    return {name: people[name][places] for name in PREDICTORS}


def scaled(people: Columns) -> npt.NDArray[np.float64]:
    """Return all predictors clipped and scaled to [-1, 1], for peers."""
    limits = {**bounds(), "married": (0, 1), "male": (0, 1), "us": (0, 1)}
    return np.column_stack(
        [
            np.clip((people[n] - (a + b) / 2) / ((b - a) / 2), -1, 1)
            for n, (a, b) in ((n, limits[n]) for n in PREDICTORS)
        ]
    )


def splits(count: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return four fifths for fitting and one for scoring, shuffled anew for each run."""
    generator = np.random.default_rng(6)
    cut = count * 4 // 5
    shuffled = [generator.permutation(count) for _ in range(RUNS)]
    return [(places[:cut], places[cut:]) for places in shuffled]


# --- accuracy against a peer --------------------------------------------------------------------


def score(value: Any, people: Columns, test: npt.NDArray[np.int64]) -> float:
    return float(np.mean(value.predict(pick(people, test)) == people["income"][test]))


def fit_all(people: Columns, epsilon: float, rows: int) -> dict[str, list[float]]:
    """Return test accuracies of every mechanism on the same splits, per row."""
    cases: dict[str, dict[str, Any]] = {
        "functional": {"mechanism": "functional"},
        "objective_laplace": {"mechanism": "objective_laplace"},
        "objective_knorm": {"mechanism": "objective_knorm"},
        "adassp": {"mechanism": "adassp", "delta": DELTA},
        "objective_gaussian": {"mechanism": "objective_gaussian", "delta": DELTA},
        "planner's choice, pure": {},
        "planner's choice": {"delta": DELTA},
    }
    found: dict[str, list[float]] = {name: [] for name in cases}
    for train, test in splits(len(people["income"])):
        table = sealed(people, train[:rows])
        for name, terms in cases.items():
            r = tulle.release(table, INCOME, unit="row", epsilon=epsilon, **terms)
            found[name].append(score(Model.of(r), people, test))
    return found


def baselines(people: Columns, rows: int) -> dict[str, list[float]]:
    """Return accuracies of the majority class and of scikit-learn's fit without privacy."""
    from sklearn.linear_model import LogisticRegression

    rows_scaled, income = scaled(people), people["income"]
    found: dict[str, list[float]] = {"majority class": [], "not private (scikit-learn)": []}
    for train, test in splits(len(income))[:5]:
        used = train[:rows]
        model = LogisticRegression(C=100.0, max_iter=2000).fit(rows_scaled[used], income[used])
        found["majority class"].append(float(max(income[test].mean(), 1 - income[test].mean())))
        found["not private (scikit-learn)"].append(
            float(model.score(rows_scaled[test], income[test]))
        )
    return found


def find_peer() -> Path | None:
    """Return an interpreter with diffprivlib, made in an environment of its own if need be."""
    home = Path(os.environ.get("TULLE_PEERS", Path(tempfile.gettempdir(), "tulle-peers")))
    python = home / "diffprivlib" / "bin" / "python"
    if not python.exists():
        print("Making an environment for diffprivlib ...")
        try:
            subprocess.run(
                [sys.executable, "-m", "venv", str(python.parents[1])], check=True, timeout=300
            )
            subprocess.run(
                [str(python), "-m", "pip", "install", "-q", "diffprivlib==0.6.6",
                 "scikit-learn<1.6", "numpy<2.1"],
                check=True, timeout=900,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
    return python


def peer_scores(people: Columns, cases: list[tuple[float, int, float]]) -> list[list[float]] | None:
    """Return diffprivlib's accuracies for (epsilon, rows, C) on the same splits."""
    python = find_peer()
    if python is None:
        return None
    arrays: dict[str, Any] = {"x": scaled(people), "y": people["income"]}
    for run, (train, test) in enumerate(splits(len(people["income"]))):
        arrays |= {f"train{run}": train, f"test{run}": test}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "adult.npz")
        np.savez(path, **arrays)
        wanted = json.dumps({"cases": cases, "runs": RUNS})
        done = subprocess.run(
            [str(python), "-c", _PEER, str(path), wanted],
            capture_output=True, text=True, timeout=1800,
        )  # fmt: skip
    if done.returncode:
        return None
    found: list[list[float]] = json.loads(done.stdout)
    return found


def compare(people: Columns) -> list[dict[str, Any]]:
    rows = []
    whole = len(people["income"]) * 4 // 5
    cases = [(e, n, c) for n in (whole, 1000) for e in (0.1, 1.0) for c in (1.0, 0.1, 0.01)]
    peers = peer_scores(people, cases) or []
    for count in (whole, 1000):
        plain = baselines(people, count)
        for name, scores in plain.items():
            rows.append(summary(count, "", name, "", scores))
        for epsilon in (0.1, 1.0):
            for name, scores in fit_all(people, epsilon, count).items():
                spent = "" if "pure" in name or name in PURE else DELTA
                rows.append(summary(count, epsilon, name, spent, scores))
            for (e, n, c), scores in zip(cases, peers, strict=False):
                if (e, n) == (epsilon, count):
                    named = f"diffprivlib, C = {c:g}" + (" (its default)" if c == 1 else "")
                    rows.append(summary(count, epsilon, named, "", scores))
    if not peers:
        print("diffprivlib could not be installed: no comparison.")
    return rows


def summary(rows: int, epsilon: Any, name: str, delta: Any, scores: list[float]) -> dict[str, Any]:
    return {
        "rows": rows,
        "epsilon": epsilon,
        "delta": delta,
        "model": name,
        "mean accuracy": round(float(np.mean(scores)), 4),
        "± (of the mean)": round(float(np.std(scores) / np.sqrt(len(scores))), 4),
        "least": round(min(scores), 4),
    }


def cancer_table() -> tuple[Table, Any]:
    """Return thirty features, scikit-learn's own data set, and the question.

    Bounds are those that scikit-learn's description of the data set prints.
    """
    from sklearn.datasets import load_breast_cancer

    known = load_breast_cancer()
    columns = {f"x{place}": known.data[:, place] for place in range(known.data.shape[1])}
    limits = {name: (values.min(), values.max()) for name, values in columns.items()}
    told = {**columns, "y": known.target.tolist()}
    return Table(told, bounds=limits, classes={"y": [0, 1]}), logistic("y")


def breast_cancer() -> list[dict[str, Any]]:
    """Score pure mechanisms on thirty features, per row."""
    patients, query = cancer_table()
    features = np.column_stack([patients.column(f"x{place}") for place in range(30)])
    target = patients.column("y")
    rows = []
    for epsilon in (1.0, 5.0):
        found: dict[str, list[float]] = {name: [] for name in PURE}
        for train, test in splits(patients.rows()):
            table = patients.part(train)
            for name in PURE:
                r = tulle.release(table, query, unit="row", epsilon=epsilon, mechanism=name)
                right = Model.of(r).predict(features[test]) == target[test]
                found[name].append(float(np.mean(right)))
        rows += [summary(len(train), epsilon, name, "", scores) for name, scores in found.items()]
    return rows


# --- model inversion ----------------------------------------------------------------------------


def invert(
    people: Columns, r: Any, targets: npt.NDArray[np.int64], *, as_printed: bool = False
) -> Any:
    """Attack the marital status of targets by the model's own probabilities.

    As printed, the adversary sees predicted classes and the confusion matrix instead.
    """
    known = pick(people, targets)
    truth, income = known.pop("married"), people["income"][targets]
    married = float(people["married"].mean())
    table = confusion_matrix(Model.of(r), pick(people, targets), income) if as_printed else None
    return feature_inference(
        r,
        sensitive="married",
        marginal={0: 1 - married, 1: married},
        known=known,
        outcome=income,
        confusion=table,
        truth=truth,
    )


def figure_15(people: Columns, runs: int = 5) -> list[dict[str, Any]]:
    rows = []
    for epsilon in FIGURE_15:
        for mechanism in PURE:
            rows.append(
                {
                    "epsilon": epsilon,
                    "mechanism": mechanism,
                    **attacked(people, INCOME, epsilon, mechanism, runs),
                }
            )
    return rows


def figure_16(people: Columns, runs: int = 10) -> list[dict[str, Any]]:
    """Vary epsilon_s at epsilon_n = 5: noise D/5 elsewhere, D/epsilon_s on sensitive monomials."""
    rows = []
    facts = sealed(people, np.arange(10)).facts("row")
    plain = functional_sensitivity(frame_of(INCOME, facts, "row"))
    for sensitive in FIGURE_16:
        query = logistic("income", sensitive=["married"], gamma=float(sensitive) / 5)
        moved = functional_sensitivity(frame_of(query, facts, "row"))
        epsilon = float(5 * moved / plain)
        found = attacked(people, query, epsilon, "functional", runs)
        rows.append({"epsilon_s": sensitive, "epsilon in all": round(epsilon, 3), **found})
    return rows


def attacked(
    people: Columns, query: Any, epsilon: float, mechanism: str, runs: int
) -> dict[str, Any]:
    """Return mean accuracies of the model, and of the attack on people in and out of the data."""
    figures = []
    for train, test in splits(len(people["income"]))[:runs]:
        r = tulle.release(
            sealed(people, train), query, unit="row", epsilon=epsilon, mechanism=mechanism
        )
        members, others = invert(people, r, train[: len(test)]), invert(people, r, test)
        figures.append(
            (
                score(Model.of(r), people, test),
                invert(people, r, test, as_printed=True).after,
                others.after,
                members.after,
                others.before,
                float(rational(members.details.get("attribute_epsilon", "0"))),
            )
        )
    model, printed, outside, inside, before, attribute = np.mean(figures, axis=0).tolist()
    found = {
        "model": round(model, 4),
        "attack by classes": round(printed, 4),
        "by probabilities": round(outside, 4),
        "in the data": round(inside, 4),
        "by the marginal": round(before, 4),
    }
    return found | ({"attribute epsilon": round(attribute, 3)} if attribute else {})


def draw(folder: str, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    """Draw figures 15 and 16."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    plain = [row for row in first if row["mechanism"] == "functional"]
    for axis, rows, name in ((left, plain, "epsilon"), (right, second, "epsilon_s")):
        places = [float(row[name]) for row in rows]
        for figured, label in (
            ("model", "model: income"),
            ("by probabilities", "attack on marital status"),
            ("attack by classes", "attack as printed"),
            ("by the marginal", "best guess without the model"),
        ):
            style = "--" if figured == "by the marginal" else "o-"
            axis.plot(places, [row[figured] for row in rows], style, label=label)
        axis.set_xscale("log")
        axis.set_xlabel(name)
    left.set_ylabel("accuracy")
    left.set_title("one epsilon for all features")
    right.set_title("epsilon_n = 5, marital status at epsilon_s")
    figure.legend(*left.get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(Path(folder, "model-inversion.svg"), metadata={"Date": None})


# --- noise and time -----------------------------------------------------------------------------


def noise_table(people: Columns) -> list[dict[str, Any]]:
    """Compare what one row may move with the printed figure, 13 predictors, no intercept."""
    facts = sealed(people, np.arange(10)).facts("row")
    rows = []
    for query, printed in (
        (linear("income", PREDICTORS, intercept=False), 2 * (13**2 + 2 * 13)),
        (logistic("income", PREDICTORS, intercept=False), 13**2 / 4 + 3 * 13),
    ):
        for unit in ("row", "participant"):
            found = float(functional_sensitivity(frame_of(query, facts, unit)))
            rows.append(
                {
                    "model": query.name,
                    "unit": unit,
                    "sensitivity": found,
                    "printed": printed,
                    "noise": f"{found / printed:.0%}",
                }
            )
    return rows


def speed(people: Columns) -> list[dict[str, Any]]:
    """Time fits on Adult and on a million made-up rows, against scikit-learn without privacy."""
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(1)
    million = {name: people[name][generator.integers(0, len(people["income"]), MANY)]
               for name in (*PREDICTORS, "income")}  # fmt: skip
    rows = []
    for name, columns in (("Adult", people), (f"{MANY:,} rows", million)):
        table = sealed(columns, np.arange(len(columns["income"])))
        start = time.perf_counter()
        LogisticRegression(max_iter=1000).fit(scaled(columns), columns["income"])
        peer = time.perf_counter() - start
        for mechanism in (*PURE, "adassp", "objective_gaussian"):
            start = time.perf_counter()
            tulle.release(table, INCOME, unit="row", epsilon=1.0, delta=DELTA, mechanism=mechanism)
            spent = time.perf_counter() - start
            rows.append(
                {
                    "rows": name,
                    "mechanism": mechanism,
                    "seconds": spent,
                    "scikit-learn, not private": peer,
                    "ratio": spent / peer,
                }
            )
    return rows


CROWDS = ((2, 1_000), (2, 10_000), (2, 100_000), (10, 100_000), (10, 1_000_000))
"""How many made-up features and people intervals are measured on."""
SIZES = (1_000, 10_000)
"""How many people of Adult."""
COVERED = 200
"""Releases on which coverage is measured."""
NAMED = ("age", "education_num", "capital_gain", "hours_per_week", "married", "male")
ONE_NAMED = 20
"""Releases for each coefficient that is named."""


def interval_widths() -> list[dict[str, Any]]:
    """Return half-widths of made-up people's intervals, and how far coefficients are truly off."""
    generator = np.random.default_rng(2)
    found = []
    for features, count in CROWDS:
        drawn = generator.uniform(-1, 1, (count, features))
        odds = drawn @ np.linspace(1, -1, features)
        ill = generator.random(count) < 1 / (1 + np.exp(-odds))
        columns: dict[str, Any] = {f"x{place}": drawn[:, place] for place in range(features)}
        bounded = dict.fromkeys(columns, (-1, 1))
        table = Table({**columns, "ill": ill.astype(int)}, bounds=bounded, classes={"ill": [0, 1]})
        row: dict[str, Any] = {"features": features, "people": count}
        for way, share in (("penalty alone", 0), ("a fifth for the curvature", "0.2")):
            row |= _covered(table, tulle.models.logistic("ill"), {way: None}, 5, curvature=share)
        found.append({name: value for name, value in row.items() if "covers" not in name})
    return found


def interval_coverage(people: Columns) -> list[dict[str, Any]]:
    """Return half-widths and coverage on Adult and breast cancer, with other people as stand-in."""
    order = np.random.default_rng(3).permutation(len(people["income"]))
    cases = [
        (f"Adult, {count:,}", sealed(people, order[:count]), sealed(people, order[-count:]), INCOME)
        for count in SIZES
    ]
    patients, query = cancer_table()
    order = np.random.default_rng(3).permutation(patients.rows())
    half = patients.rows() // 2
    halves = patients.part(order[:half]), patients.part(order[half:])
    cases.append((f"breast cancer, {half}", *halves, query))
    ways = ("every data set", "first order", "with a stand-in")
    return [
        {"people": name, "epsilon": epsilon}
        | _covered(table, query, dict(zip(ways, (None, None, like), strict=True)), COVERED, epsilon)
        for name, table, like, query in cases
        for epsilon in (1.0, 5.0)
    ]


def named_coefficients(people: Columns) -> list[dict[str, Any]]:
    """Return half-widths for one coefficient that is named; half of epsilon pays for them."""
    order = np.random.default_rng(3).permutation(len(people["income"]))
    rows = []
    for count in (*SIZES, len(order)):
        table = sealed(people, order[:count])
        frame = frame_of(INCOME, table.facts("row"), "row")
        for epsilon in (1.0, 5.0):
            row: dict[str, Any] = {"people": count, "epsilon": epsilon}
            hits = []
            for name in NAMED:
                place = frame.features.index(name)
                half = float(frame.highs[place] - frame.lows[place]) / 2
                widths = []
                for _ in range(ONE_NAMED):
                    r = tulle.release(
                        table, INCOME, unit="row", epsilon=epsilon, mechanism="objective_knorm",
                        curvature="0.5", coefficients=[name],
                    )  # fmt: skip
                    truth = without_noise(frame, table, r)[place + 1]
                    low, high = (end[place + 1] for end in noise_interval(r, 0.95))
                    widths.append((high - low) / 2 * half)
                    hits.append(low <= truth <= high)
                row[name] = f"{truth * half:.2f} ± {np.median(widths):.2f}"
            rows.append(row | {"covers": float(np.mean(hits))})
    return rows


def without_noise(frame: Any, table: Table, r: Any) -> npt.NDArray[np.float64]:
    """Return the coefficients of the same fit and penalty without noise."""
    features, target = whole_rows(frame, table, MOST_BITS)
    penalty = float(rational(r.parameters["penalty"]))
    scaled = features / 2**MOST_BITS
    found = minimise_logistic(scaled, target > 0, np.zeros(frame.size), penalty, 1e-9)
    return in_own_units(frame, found)


def _covered(
    table: Table,
    query: Any,
    ways: dict[str, Table | None],
    runs: int,
    epsilon: float = 1.0,
    **options: Any,
) -> dict[str, Any]:
    """Return mean half-widths in half-ranges, how often all are covered, and errors."""
    frame = frame_of(query, table.facts("row"), "row")
    span = 1 / np.linalg.norm(frame.transform(), axis=1)
    widths: dict[str, list[float]] = {way: [] for way in ways}
    hits: dict[str, list[bool]] = {way: [] for way in ways}
    off: list[float] = []
    truth = None
    for _ in range(runs):
        r = tulle.release(
            table, query, unit="row", epsilon=epsilon, mechanism="objective_knorm", **options
        )
        if truth is None:
            truth = without_noise(frame, table, r)
        off.append(float((np.abs(r.value - truth) * span)[1:].mean()))
        for way, like in ways.items():
            rigorous = way not in ("first order", "with a stand-in")
            low, high = r.interval(0.95) if rigorous else noise_interval(r, 0.95, like=like)
            widths[way].append(float(((high - low) * span)[1:].mean() / 2))
            hits[way].append(bool(((low <= truth) & (truth <= high)).all()))
    row: dict[str, Any] = {}
    for way in ways:
        row |= {way: float(np.mean(widths[way])), f"{way} covers": float(np.mean(hits[way]))}
    plain = query.truth(table)
    pull = float((np.abs(truth - plain) * span)[1:].mean())
    return row | {"off by": float(np.mean(off)), "penalty moves it by": pull}


MINUTE: dict[str, Any] = {
    "RUNS": 1,
    "CROWDS": ((2, 1_000),),
    "SIZES": (1_000,),
    "COVERED": 2,
    "ONE_NAMED": 1,
    "FIGURE_15": (1,),
    "FIGURE_16": ("1",),
    "MANY": 1_000,
    "find_peer": lambda: None,
}
"""What is smaller in the minute's version."""


def main() -> None:
    people = adult()
    if people is None:
        print_table("Regression on Adult", [])
        return
    print_table("What one person may move", noise_table(people))
    print_table(f"Accuracy on Adult, {RUNS} runs, per row", compare(people))
    print_table(f"Accuracy on breast cancer, 30 features, {RUNS} runs", breast_cancer())
    first, second = figure_15(people), figure_16(people)
    print_table("Figure 15: model and model inversion by epsilon", first)
    print_table("Figure 16: by epsilon_s at epsilon_n = 5", second)
    print_table("Half-widths of 95 % intervals, epsilon = 1 per row", interval_widths())
    print_table("The same on real people", interval_coverage(people))
    print_table("One coefficient that is named, half of epsilon", named_coefficients(people))
    print_table("Time", speed(people))
    if os.environ.get("TULLE_FIGURES"):
        draw(os.environ["TULLE_FIGURES"], first, second)


if __name__ == "__main__":
    main()
