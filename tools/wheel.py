"""Build the wheel, install it alone into an empty environment and use it: ``make wheel``.

What only works from a checkout (a file that the wheel leaves out, a library that only the tests
install) fails here. Every optional extra is missing in that environment, so each of their messages
is read too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

WITHOUT = {
    "interop": "tulle.release(graph, tulle.degrees(), unit='edge', epsilon=1).to_pandas()",
    "plot": "from tulle.metrics import compare\ncompare(graph, graph).figure('picture.png')",
    "opendp": "from tulle import noise\nwith noise.backend('opendp'): pass",
    "genomes": "open('a.bed', 'wb').close(); tulle.Genotypes.read('a.bed')",
    "models": "from tulle.models import LogisticRegression",
    "sql": "tulle.sql('SELECT COUNT(*) FROM t')",
    "postgres": "tulle.Database.connect('postgresql:///none', owners={'t': 'id'})",
    "spark": "tulle.Database.connect('spark://none', owners={'t': 'id'})",
    "studio": "from tulle.cli.main import app\napp(['studio', 'links.csv'], standalone_mode=False)",
}
"""A use of each extra, as Python; it must say which extra to install."""

ASK = """
import tulle
graph = tulle.Graph.from_edges([(0, 1), (1, 2), (0, 2)], nodes=4)
try:
    {use}
except ImportError as error:
    print(error)
"""


def main() -> None:
    """Build, install, run the demo, ask for every extra.

    Raises:
        SystemExit: at the first thing that does not work.
    """
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(declared["optional-dependencies"]) - {"docs", "bench", "dev"}
    if extras != set(WITHOUT):
        sys.exit(f"tools/wheel.py and pyproject.toml differ in {sorted(extras ^ set(WITHOUT))}.")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", place, str(ROOT))
        _run(sys.executable, "-m", "venv", str(folder / "env"))
        python = str(folder / "env/bin/python")
        wheel = next(folder.glob("*.whl"))
        _run(python, "-m", "pip", "install", "--quiet", str(wheel))
        print(
            f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, with all it needs "
            f"{_size(folder / 'env') / 1e6:,.0f} MB"
        )
        _run(str(folder / "env/bin/tulle"), "demo", cwd=folder)
        print("tulle demo: runs")
        for extra, use in WITHOUT.items():
            code = ASK.format(use=use.replace("\n", "\n    "))
            said = _run(python, "-c", code, cwd=folder, may_fail=True)
            if f"pip install 'tulle[{extra}]'" not in said:
                sys.exit(f"Without the extra {extra!r} a use of it says: {said!r}")
        print(f"without {', '.join(WITHOUT)}: each says what to install")


def _run(*command: str, cwd: Path | None = None, may_fail: bool = False) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
