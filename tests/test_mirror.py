"""Tests mirror the modules: each has its test file, or is tested through one that is named here."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS, BASELINES = ROOT / "src" / "tulle", ROOT / "tests", ROOT / "baselines"

THEMES = {
    "audit/engine/test_coverage": "intervals of every graph mechanism cover",
    "audit/engine/test_extremes": "the smallest and the largest epsilon, in all rooms",
    "audit/graphs/test_ladder_law": "one error law stands for all ladders",
    "audit/replay/*": "whole paths replayed on neighbours, in all rooms",
    "audit/test_not_private": "the page on published mistakes",
    "cli/test_errors": "whatever is wrong at the command line",
    "cli/test_fuzz": "lines that nobody would write",
    "cli/test_guide": "the commands of the guide",
    "cli/test_time": "versions and periods at the command line",
    "graphs/io/test_arrival": "readers: no edge hangs on another",
    "graphs/synthesis/models/test_models": "what the models keep and refuse",
    "ledger/test_ledger_*": "crashes, damage, fuzzing and races of whole ledgers",
    "lp/test_real_graphs": "programs of real graphs",
    "models/test_adult": "the bar on real people",
    "noise/test_statistics": "large samples of all samplers",
    "relations/mechanisms/test_sequences": "the sequences that bound all of them",
    "sql/compile/test_alike": "equal values that differ, wherever rows are merged",
    "sql/compile/test_grammar": "the whole grammar",
    "sql/compile/test_removal": "the database without somebody",
    "sql/engines/spark/test_removal": "columns of any types, and somebody's rows deleted",
    "sql/engines/postgresql/test_schemas": "random schemas of PostgreSQL",
    "sql/engines/test_engines": "one question on all engines",
    "sql/engines/test_folders": "nothing outside names an engine",
    "sql/engines/test_inside_engines": "one person's rows on all engines",
    "sql/engines/test_limits": "limits of memory",
    "sql/engines/test_replay": "whole paths on real servers",
    "sql/engines/test_workspaces": "what engines keep for one question",
    "sql/expressions/test_agreement": "one value on all engines",
    "sql/expressions/test_total_inside": "no row makes an engine stop",
    "sql/tables/test_truth": "tables without noise",
    "sql/test_column_types": "every column type in every place",
    "sql/test_guide": "what the guide says about SQL",
    "sql/test_periods": "units with a period",
    "sql/test_tpch": "TPC-H",
    "studio/test_journeys": "a browser walks through the studio",
    "baselines/test_registration": "the product does not know of baselines",
    "test_*": "the repository: documentation, examples, imports, this file",
}
"""Test files that are about no one module, and what they are about."""

THROUGH = {
    "_index": "test_index",
    "attacks/membership": "cli/commands/test_attack",
    "attacks/report": "cli/commands/test_attack",
    "audit/*faults": "audit/test_faults",
    "audit/contributions/*": "audit/test_table",
    "audit/engine/*": "audit/test_table",
    "audit/genomes/*": "genomes/test_scores",
    "audit/graphs/*": "audit/engine/test_exhaustive",
    "audit/relations/*": "audit/relations/test_kind",
    "cli/commands/studio": "studio/test_journeys",
    "cli/*": "cli/test_main",
    "core/arrays": "core/test_compiled",
    "core/cells": "audit/replay/test_readers",
    "core/logs": "cli/test_errors",
    "core/p*": "core/test_registry",
    "core/*": "core/test_table",
    "genomes/*": "genomes/test_queries",
    "graphs/io/*": "graphs/io/test_arrival",
    "graphs/mechanisms/*": "graphs/queries/test_statistics",
    "graphs/patterns/*": "graphs/patterns/test_enumeration",
    "graphs/queries/*": "graphs/sensitivity/test_statistics",
    "graphs/sensitivity/counts": "graphs/mechanisms/test_ladder",
    "graphs/spectra/eigenvalues_laplace": "graphs/spectra/test_certified",
    "graphs/synthesis/auto/*": "graphs/synthesis/auto/test_core",
    "graphs/synthesis/generators/*": "graphs/synthesis/joint_degrees/test_mechanisms",
    "graphs/synthesis/estimates/blocks": "graphs/synthesis/generators/test_affinity",
    "graphs/synthesis/joint_degrees/*": "graphs/synthesis/joint_degrees/test_mechanisms",
    "graphs/synthesis/models/*": "graphs/synthesis/models/test_models",
    "graphs/synthesis/*": "graphs/synthesis/test_model",
    "graphs/topology/estimates": "graphs/topology/test_response",
    "graphs/truncation/relation": "graphs/patterns/test_enumeration",
    "graphs/truncation/*": "graphs/truncation/test_bundles",
    "ledger/a*": "ledger/test_session",
    "ledger/divergence": "ledger/test_filters",
    "lp/alternatives_*": "lp/test_alternatives",
    "lp/*": "lp/test_solver",
    "matrices/binary/*": "matrices/binary/test_families",
    "matrices/contributions/*": "matrices/contributions/test_data",
    "metrics/*": "metrics/test_comparison",
    "models/*": "models/test_model",
    "noise/xor/*": "noise/xor/test_laws",
    "noise/post_processing": "graphs/synthesis/joint_degrees/test_mechanisms",
    "noise/[cw]*": "audit/engine/test_cost",
    "noise/*": "noise/test_partition_selection",
    "planning/preview": "sql/stand_in/test_build",
    "relations/*": "relations/test_annotations",
    "reports/*": "reports/test_report",
    "sql/compile/outline": "sql/mechanisms/test_truncation",
    "sql/compile/*": "sql/compile/test_rewrite",
    "sql/dialect": "sql/engines/test_folders",
    "sql/engines/*": "sql/engines/test_engines",
    "sql/expressions/*": "sql/expressions/test_agreement",
    "sql/keys/*": "sql/mechanisms/test_partition_selection",
    "sql/mechanisms/found_keys": "sql/mechanisms/test_partition_selection",
    "sql/mechanisms/quantile": "audit/sql/test_quantiles",
    "sql/question/error_position": "cli/commands/test_sql",
    "sql/question/scalars": "sql/question/test_check",
    "sql/schema/*": "sql/schema/test_owners",
    "sql/stand_in/*": "sql/stand_in/test_build",
    "sql/tables/*": "sql/tables/test_question",
    "sql/unranged": "sql/mechanisms/test_private_ranges",
    "streams/*": "streams/test_stream",
    "studio/*": "studio/test_state",
    "surveys/*": "surveys/test_frequencies",
}
"""Modules without a test file of their own, and the one through which they are tested. A module
that is in none of these folders has a test file."""

MOST_WITHOUT = 235
"""So many modules are tested through others today. It may fall; nothing new is added to them."""


def names(folder: Path, pattern: str = "*.py") -> set[str]:
    found = (path.relative_to(folder).with_suffix("") for path in folder.rglob(pattern))
    return {path.as_posix() for path in found if path.name != "__init__"}


def namesake(module: str) -> str:
    folder, _, name = module.rpartition("/")
    return f"{folder}/test_{name}".lstrip("/")


MODULES, FILES = names(SOURCE), names(TESTS, "test_*.py")
WITHOUT = {module for module in MODULES if namesake(module) not in FILES}


def test_each_module_has_a_test_file_or_is_tested_through_one() -> None:
    matched = {pattern for pattern in THROUGH for m in WITHOUT if fnmatch(m, pattern)}
    unknown = {m for m in WITHOUT if not any(fnmatch(m, pattern) for pattern in THROUGH)}
    assert not unknown, "give them tests/<room>/<folder>/test_<module>.py"
    assert set(THROUGH) == matched, "nothing is tested so any more: take it off the list"
    assert set(THROUGH.values()) <= FILES
    assert len(WITHOUT) <= MOST_WITHOUT, "a new module has a test file"


def test_each_test_file_names_a_module_or_a_theme() -> None:
    known = {namesake(module) for module in MODULES}
    known |= {f"baselines/test_{name}" for name in names(BASELINES)}
    loose = FILES - known
    unknown = {f for f in loose if not any(fnmatch(f, pattern) for pattern in THEMES)}
    assert not unknown, "name it after the module that it tests"
    matched = {pattern for pattern in THEMES for f in loose if fnmatch(f, pattern)}
    assert set(THEMES) == matched, "there is no such test file any more"
