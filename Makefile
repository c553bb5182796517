# `make run` and `make test` need Python 3.11 to 3.13 and make, nothing else. `make help` lists the rest.

.DEFAULT_GOAL := help
.PHONY: help setup run up down status test soak check check-types check-tests format env compose-check clean

# The version that the tests run on first.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p >/dev/null 2>&1 \
	&& $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null \
	&& echo $$p && break; done)
BIN := .venv/bin
LAUNCHER = PYTHONPATH=include $(BIN)/python -m tidemark_local.launcher
CODE := $(wildcard include dags plugins tests benchmarks docs)
WORKERS ?= 2
PYTEST_ARGUMENTS ?=

# So that tests draw, and sets are walked through, in the same order each time; try others by hand.
PYTHONHASHSEED ?= 0
export PYTHONHASHSEED

export PORT TIDEMARK_SAMPLE_PORT TIDEMARK_TORCH

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  PORT=8081                 another port for the UI           (make up)"
	@echo "  TIDEMARK_SAMPLE_PORT=8766 another port for the sample site  (make run, make up)"
	@echo "  TIDEMARK_HOME=/a/folder   another place for everything embedded"
	@echo "  TIDEMARK_TORCH=gpu        torch with CUDA, several GB       (make setup)"
	@echo "  PYTHON=python3.12         another Python                    (make setup)"

setup: ## the virtual environment with everything pinned (once, two to four minutes)
	@test -n "$(PYTHON)" || { echo "Error: Tidemark needs Python 3.11, 3.12 or 3.13, and none is on the PATH." \
		"Install one (apt install python3.11 python3.11-venv; brew install python@3.12) or name it:" \
		"make PYTHON=/path/to/python3.12 setup" >&2; exit 1; }
	@PYTHONPATH=include "$(PYTHON)" -m tidemark_local.bootstrap

run: setup ## index the samples through real DAG runs, show the result, stop everything
	@$(LAUNCHER) run

up: setup ## start Airflow with its UI and leave it running (PORT=8080)
	@$(LAUNCHER) up

down: setup ## stop what runs in this checkout's home
	@$(LAUNCHER) down

status: setup ## say what runs
	@$(LAUNCHER) status

test: setup ## the whole test suite, services and a real scheduler included
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" $(PYTEST_ARGUMENTS)

soak: setup ## kill real processes and stores at random moments, some 20 minutes long
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile -m soak tests/soak $(PYTEST_ARGUMENTS)

check: setup ## lint, types, architecture, and the tests that need no service
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(MAKE) --no-print-directory -j 2 check-types check-tests

check-types:
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy

check-tests:
	@$(BIN)/pytest -q -n $(WORKERS) --ignore tests/dags -m "not services and not model and not e2e and not browser and not slow and not soak" \
		$(PYTEST_ARGUMENTS)

format: setup ## lay the code out, mend what the linter can
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

env: ## a .env for docker compose, with generated secrets
	@PYTHONPATH=include "$(PYTHON)" -m tidemark_local.containers env

clean: ## stop what runs, then remove everything that was made here
	@if [ -x $(BIN)/python ]; then $(LAUNCHER) down || exit 1; fi
	@rm -rf .venv .tidemark .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		include/*.egg-info
	@find include dags plugins tests -name __pycache__ -type d -prune -exec rm -rf {} +
