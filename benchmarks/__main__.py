"""Run benchmarks by name, or all of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import baselines
import benchmarks

NAMES = sorted(
    module.name
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if not module.name.startswith("_") and module.name != "common"
)


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"There is no benchmark {', '.join(unknown)}. Known: {', '.join(NAMES)}.")
    baselines.register()
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
