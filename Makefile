# `make demo` and `make test` set up all they need: Python 3.11 or newer, pip and make.
# Both install into .venv once; pyproject.toml decides when that has to happen again.

PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$each" && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TYPED := qmanifest tests examples docs/generate.py docs/seeded_faults.py

DEMO ?= build/demo
WORKERS ?= 2

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint types test-fast coverage docs schemas fuzz bench format clean

help:  ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 12

$(VENV)/.runtime: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@

demo: $(VENV)/.runtime  ## Make a checkpoint, prove it, break it, and see what is said.
	rm -rf $(DEMO) $(DEMO)-broken
	$(BIN)/qmanifest demo $(DEMO)
	$(BIN)/qmanifest validate $(DEMO)
	$(BIN)/qmanifest size $(DEMO)
	$(BIN)/qmanifest demo $(DEMO)-broken --broken
	@echo '$(BIN)/qmanifest validate $(DEMO)-broken    # must end with exit code 1'
	@$(BIN)/qmanifest validate $(DEMO)-broken; code=$$?; echo "exit code $$code"; test $$code -eq 1

test: lint types coverage docs  ## Everything that has to pass: lint, types, tests, docs.

lint: $(VENV)/.dev  ## Check format and style.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev  ## Check types, tests and examples too.
	$(BIN)/mypy --strict $(TYPED)

coverage: $(VENV)/.dev  ## Run all tests, and measure what they reach.
	$(BIN)/pytest -q -n $(WORKERS) --cov --cov-report=term-missing:skip-covered

test-fast: $(VENV)/.dev  ## Run the tests without coverage, stopping at the first failure.
	$(BIN)/pytest -q -n $(WORKERS) --exitfirst

docs: $(VENV)/.dev  ## Write the generated pages, and build the documentation into site/.
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

schemas: $(VENV)/.runtime  ## Write schemas/v1 from the types.
	$(BIN)/qmanifest schema --write schemas/v1

fuzz: $(VENV)/.dev  ## Run the property tests with many more examples.
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q -n $(WORKERS) tests/property

bench: $(VENV)/.dev  ## Time it beside its peers; ROWS=matmul runs rows of that name.
	PYTHONPATH=tests $(BIN)/python -m benchmarks --rows "$(ROWS)"

format: $(VENV)/.dev  ## Let ruff format and fix what it can.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove what was built, .venv included.
	rm -rf $(VENV) build dist site .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
