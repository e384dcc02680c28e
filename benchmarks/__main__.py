"""Run benchmarks by name, or all of them; with ``--minute`` small and on made-up records."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

import baselines
import benchmarks

NAMES = sorted(
    module.name
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if not module.name.startswith("_") and module.name != "common"
)


def main() -> None:
    """Run what the command line names."""
    words = sys.argv[1:]
    minute = "--minute" in words
    chosen = [word for word in words if word != "--minute"] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"There is no benchmark {', '.join(unknown)}. Known: {', '.join(NAMES)}.")
    baselines.register()
    if minute:
        from benchmarks._minute import run_all

        with tempfile.TemporaryDirectory() as folder:
            run_all(chosen, Path(folder))
        return
    # Benchmarks that read options of their own must not take names for them.
    sys.argv = sys.argv[:1]
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
