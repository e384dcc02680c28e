# Everything sets itself up: `make demo` and `make test` work from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: demo test test-slow lint types audit bench clean help

help:
	@echo "make demo       set up, then show a private answer about a network, end to end"
	@echo "make test       set up, then lint, type-check and run the everyday tests"
	@echo "make test-slow  the statistical and exhaustive suites (minutes)"
	@echo "make audit      the table mechanism x check, all of it"
	@echo "make bench      the benchmarks, compared with peers in the same run"

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

demo: $(VENV)/.demo-ready
	$(BIN)/tulle demo

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test-ready
	$(BIN)/mypy

test: $(VENV)/.test-ready lint types
	$(BIN)/python -m pytest -n $(WORKERS)

test-slow: $(VENV)/.test-ready
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

audit: $(VENV)/.test-ready
	$(BIN)/tulle audit --all

bench: $(VENV)/.bench-ready
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
