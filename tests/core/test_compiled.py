"""How much is compiled before a first answer: by count, since time depends on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_COUNT = """
import sys
from numba.core import event
found = []
class Counter(event.Listener):
    def on_start(self, event): pass
    def on_end(self, event): found.append(event)
event.register("numba:compile", Counter())
import tulle
from tulle.graphs.generators import social_network
question = {"triangles": tulle.triangles, "synthetic": tulle.synthetic}[sys.argv[1]]()
tulle.release(social_network(4000, seed=1), question, unit="edge", epsilon=1.0)
print(len(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("question", "most"), [("triangles", 22), ("synthetic", 118)])
def test_a_first_answer_compiles_little(question: str, most: int, tmp_path: Path) -> None:
    """A synthetic graph took 165 functions once, a count of triangles 23."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "TULLE_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, question], capture_output=True, text=True, env=settings
    )
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) <= most
