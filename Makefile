# Everything people and CI run. A machine with git, make and Python 3.11 is enough.
#
# The virtual environment is made on first use and again whenever requirements.lock changes;
# another place for it: make test VENV=/tmp/venv; another interpreter: make test PYTHON=python3.12

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types format bench torture requirements lock clean

# The first interpreter that runs and is of a version that pyproject.toml allows.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make needs Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## an approval from start to end, with a real daemon, then everything stopped again
	@$(BIN)/python examples/demo.py

test: $(READY) ## the whole test suite
	$(BIN)/python -m pytest -n auto

check: lint types ## ruff, mypy and pyright, all strict

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/pyright --project .links --pythonpath $(BIN)/python

format: $(READY) ## bring the Python sources into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure, and print the figures
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

torture: $(READY) ## 200 rounds of kill -9 under load (ROUNDS, SEED and FOLDER may be given)
	PYTHONPATH=. $(BIN)/python tests/reliability/torture.py --rounds $(or $(ROUNDS),200) \
		$(if $(SEED),--seed $(SEED)) $(if $(FOLDER),--folder $(FOLDER))

requirements: $(READY) ## requirements that no test shows yet
	@$(BIN)/python tests/test_requirements.py

lock: $(READY) ## pin all dependencies again, after a change of pyproject.toml (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.lock \
		--custom-compile-command "make lock"

clean: ## remove what make and the tools made
	rm -rf $(VENV) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
