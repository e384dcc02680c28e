# Everything sets itself up: `make demo` and `make test` work from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: demo test wheel test-slow test-slow-table test-slow-audit test-slow-sql test-slow-rest lint types audit bench bench-minute docs index clean help

help:
	@echo "make demo       set up, then show a private answer about a network, end to end"
	@echo "make test       set up, then lint, type-check and run the everyday tests"
	@echo "make wheel      build the wheel, install it alone, run the demo and every extra's message"
	@echo "make test-slow  the statistical and exhaustive suites: test-slow-table, -audit, -sql and -rest, each"
	@echo "                at most an hour on two cores"
	@echo "make audit      the table mechanism x check, all of it"
	@echo "make docs       the guide as a site, in docs/_build (built offline, without warnings)"
	@echo "make index      what follows from registrations: names, type stubs; and the drawing of the rooms"
	@echo "make bench      the benchmarks, compared with peers in the same run"
	@echo "make bench-minute  all benchmarks, small and on made-up records: do they run?"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tulle needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo-ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	@touch $@

$(VENV)/.test-ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.demo-ready

$(VENV)/.bench-ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

$(VENV)/.docs-ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

# The studio's journeys need a browser; where none can be installed they are skipped, loudly.
$(VENV)/.browser-ready: | $(BIN)/python
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 \
	       && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } \
	  || echo "NO BROWSER: the studio's journeys will be skipped; install Chromium to walk them"
	@touch $@

demo: $(VENV)/.demo-ready
	$(BIN)/tulle demo

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test-ready
	$(BIN)/mypy

index: $(VENV)/.test-ready
	$(BIN)/python tools/index.py
	$(BIN)/python docs/architecture.py

docs: $(VENV)/.docs-ready
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build

test: $(VENV)/.test-ready $(VENV)/.browser-ready lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

wheel: $(BIN)/python
	$(BIN)/python tools/wheel.py

SLOW := TULLE_FRESH_NOISE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m slow

test-slow: test-slow-table test-slow-audit test-slow-sql test-slow-rest

test-slow-table: $(VENV)/.test-ready
	$(SLOW) tests/audit/test_table.py

test-slow-audit: $(VENV)/.test-ready
	$(SLOW) tests/audit --ignore=tests/audit/test_table.py

test-slow-sql: $(VENV)/.test-ready
	$(SLOW) tests/sql

test-slow-rest: $(VENV)/.test-ready
	$(SLOW) --ignore=tests/audit --ignore=tests/sql

audit: $(VENV)/.test-ready
	$(BIN)/tulle audit --all

bench: $(VENV)/.bench-ready
	$(BIN)/python -m benchmarks

# What is missing of peers is left out: those are the extra of `make bench`.
bench-minute: $(VENV)/.test-ready
	$(BIN)/python -m benchmarks --minute

clean:
	rm -rf $(VENV) build dist demo docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
