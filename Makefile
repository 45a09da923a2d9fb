# Two commands do everything on a machine with Python 3.11+, pip and make:
#   make run    set up, ingest the sample documents, print a cited answer, serve page and API
#   make test   set up, lint, check types (Python and the scripts of the page), run the fast tests
# `make test-all` also runs the slow tests, and `make docs` builds the documentation site in .site.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
WORKERS ?= 2
# Files are compiled at the end, on all processors. Libraries this large are only used in part: they compile what they load.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/(torch|transformers|sympy|scipy|sklearn|faker|networkx|ray)/' $(VENV)/lib || true

.PHONY: run test test-all coverage setup lint types fast slow soak format reference docs clean

run: $(VENV)/.run
	$(BIN)/rag-service quickstart $(ARGS)

test: lint types fast

test-all: test slow

setup: $(VENV)/.dev

# The scripts of the page are checked by Deno, which carries a linter and TypeScript's checker (`tsc --checkJs`) in one wheel.
DENO = DENO_DIR=$(VENV)/deno DENO_NO_UPDATE_CHECK=1 $(BIN)/deno
SCRIPTS = --quiet --config tests/javascript/deno.json rag_service/web/static/*.js

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(DENO) lint $(SCRIPTS)

types: $(VENV)/.dev
	$(BIN)/mypy
	$(DENO) check $(SCRIPTS)

# Each worker takes its half of the files from start to end, so that services are opened once, and steals at the end.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

fast: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(ARGS)

slow: $(VENV)/.dev
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile slow $(ARGS)

coverage: $(VENV)/.dev
	$(PYTEST) --cov=rag_service --cov-branch --cov-report=term:skip-covered $(ARGS)

# Tests that take too long for every change: kill, load and growth tests, heavy hostile files. With FILES=folder, also
# what a second reader finds in the files of that folder.
soak: $(VENV)/.dev $(VENV)/.ray
	$(BIN)/python -m tests.soak.kill_workers $(ARGS)
	$(BIN)/python -m tests.soak.kill_syncs
	$(BIN)/python -m tests.soak.kill_syncs 300 10 reader
	$(BIN)/python -m tests.soak.kill_anything
	$(BIN)/python -m tests.soak.reorder
	$(BIN)/python -m tests.soak.hostile_files
	$(BIN)/python -m tests.soak.many_workers
	$(BIN)/python -m tests.soak.many_servers
	$(BIN)/python -m tests.soak.cold_start
	$(BIN)/python -m tests.soak.ray_cluster
	$(BIN)/python -m tests.soak.stream_load $(ARGS)
	$(BIN)/python -m tests.soak.large_tables
	$(BIN)/python -m tests.soak.full_page
	$(if $(FILES),$(BIN)/python -m tests.soak.second_opinion $(FILES))

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages of docs/reference that are generated from the code.
reference: $(VENV)/.dev
	$(BIN)/python -m docs.reference.generate

docs: reference
	$(BIN)/mkdocs build --strict --config-file .mkdocs.yml

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rag_service needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip # the one that comes with Python can be years old and takes three times as long

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	$(COMPILE)
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	$(COMPILE)
	$(BIN)/rag-service models pull
	$(BIN)/python -m tests.small_model
	touch $@ $(VENV)/.run

# Ray and its dependencies, 250 MB, only for the soak test.
$(VENV)/.ray: pyproject.toml | $(VENV)/.dev
	$(PIP) --editable '.[ray]'
	$(COMPILE)
	touch $@

clean:
	rm -rf $(VENV) .rag .site .mypy_cache .ruff_cache .pytest_cache .hypothesis
