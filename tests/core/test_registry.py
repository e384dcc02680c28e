"""Mechanisms of other distributions: found by entry point, lazily, and unaudited until audited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLUG_IN = '''
from dataclasses import replace
from fractions import Fraction

from tulle.audit.engine.kind import Description, OwnCase
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.faults import halve_noise, seed_source
from tulle.core import registry
from tulle.core.error_law import LaplaceLaw
from tulle.core.validate import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Prediction
from tulle.graphs.queries.counts import Edges, edges
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@registry.mechanism("graph", "plain_edges", answers=(Edges,), units=("edge",))
class PlainEdges(Mechanism):
    """Laplace noise on the number of edges."""

    title, reference = "plain noise", "none"

    def settings(self, terms, options):
        return {"scale": text(FACTOR / terms.epsilon)}

    def predict(self, terms, settings, like):
        return Prediction(None, None)

    def run(self, terms, settings, dataset, source):
        with charge(LaplaceCharge(1)):
            noise = discrete_laplace(scale=rational(settings["scale"]), source=source)
        return Outcome(dataset.edge_count + noise, LaplaceLaw(rational(settings["scale"])))


def law(terms, settings, graph):
    scale = rational(settings["scale"])
    answer = LaplaceVector((graph.edge_count,), (scale,), Fraction(1))
    return Description((("answer", answer),))


@registry.register("audit", "graph/plain_edges", "case")
def case():
    real = registry.make_mechanism("graph", "plain_edges")
    broken = lambda: [halve_noise(real, "scale", [edges()]), seed_source(real, [edges()])]
    finish = lambda terms, settings: lambda parts: (tuple(parts[0]), None)
    return OwnCase([edges()], law, finish, broken)
'''

ASK = """
import json, sys
import tulle
from tulle.audit import run_audit
from tulle.ledger.answer import plan_for

square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)


def ask():
    plan = plan_for(square, tulle.edges(), unit="edge", epsilon=1, mechanism="plain_edges")
    made = tulle.release(square, tulle.edges(), unit="edge", epsilon=1, mechanism="plain_edges")
    made.report("page.html")
    page = open("page.html", encoding="utf-8").read()
    texts = [str(plan), json.dumps(plan.to_json()), str(made), json.dumps(made.to_json()), page]
    return ["unaudited" in text for text in texts]


own = tulle.release(square, tulle.edges(), unit="edge", epsilon=1, mechanism="laplace")
before = ask()
passed = run_audit(mechanisms=["plain_edges"]).passed
print(json.dumps([before, passed, ask(), "unaudited" in json.dumps(own.to_json())]))
"""


def install(folder: Path, text: str, module: str = "acme_mechanisms") -> None:
    """Put a distribution with one entry point on the path."""
    (folder / f"{module}.py").write_text(text)
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[tulle.mechanisms]\nextra = {module}\n")


def run(folder: Path, code: str) -> str:
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{source}:{folder}", "PATH": "", "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_it_is_unaudited_until_the_audit_has_passed(tmp_path):
    install(tmp_path, PLUG_IN.replace("FACTOR", "1"))
    said = run(tmp_path, ASK).splitlines()[-1]
    assert (
        said == "[[true, true, true, true, true], true, [false, false, false, false, false], false]"
    )


def test_half_of_the_noise_stays_unaudited(tmp_path):
    """The audit fails on it, and so nothing lifts the mark."""
    install(tmp_path, PLUG_IN.replace("FACTOR", "Fraction(1, 2)"))
    said = run(tmp_path, ASK).splitlines()[-1]
    assert said == "[[true, true, true, true, true], false, [true, true, true, true, true], false]"


def test_importing_tulle_loads_nothing_of_it(tmp_path):
    install(tmp_path, "raise ValueError('a secret of theirs')")
    code = "import tulle, sys; print('acme_mechanisms' in sys.modules)"
    assert run(tmp_path, code).strip() == "False"
    found = run(
        tmp_path,
        "from tulle.core import registry; print(len(registry.mechanisms('matrix')))",
    )
    assert "'extra' are left out: loading them raised ValueError" in found
    assert "secret" not in found
    assert found.startswith("3\n")


@pytest.mark.parametrize("kind", ["graph", "relation"])
def test_the_name_of_a_mechanism_of_ours_cannot_be_taken(tmp_path, kind):
    """Else an unaudited mechanism would answer under an audited one's name."""
    name = {"graph": "laplace", "relation": "recursive"}[kind]
    install(
        tmp_path,
        "from tulle.core import registry\n"
        "from tulle.core.mechanism import Mechanism\n"
        f"@registry.mechanism({kind!r}, {name!r}, answers=())\n"
        "class Other(Mechanism):\n    pass\n",
    )
    code = (
        "from tulle.core import registry; "
        f"print(type(registry.mechanisms({kind!r})[{name!r}]).__module__)"
    )
    found = run(tmp_path, code)
    assert "left out: loading them raised InputError" in found
    assert "tulle." in found.splitlines()[0]
