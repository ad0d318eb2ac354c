# Everything a developer types. `make help` lists it.
# Knobs: PYTHON=/path/to/python3.11 (used once, to make .venv), JOBS=2, ARGS="-k commit -x".
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

BIN  := .venv/bin
JOBS ?= 2
SF ?= 1
MINUTES ?= 60
Q ?= 8 paths
ARGS ?=
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup
PREPARE := @sh scripts/setup.sh

export PYTHON
# Tests and the tour start thousands of processes: compiled modules are kept for the next one,
# whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv from the lock (every target below does this first)
	$(PREPARE)

.PHONY: demo
demo: ## see it work: a guided tour of what OmniGraph does
	$(PREPARE) --java
	@$(BIN)/python -m demo.tour $(ARGS)

.PHONY: test
test: ## run every test and every check
	$(PREPARE) --java
	@$(PYTEST) $(ARGS)
	@$(MAKE) --no-print-directory check

.PHONY: test-fast
test-fast: ## run the everyday tests (no slow ones)
	$(PREPARE) --java
	@$(PYTEST) -m "not slow" $(ARGS)

.PHONY: check
check: ## lint, format, types, import directions, docs against the code
	$(PREPARE)
	@failed=0; \
	$(BIN)/ruff check . || failed=1; \
	$(BIN)/ruff format --check . || failed=1; \
	$(BIN)/mypy || failed=1; \
	$(BIN)/lint-imports --no-logo || failed=1; \
	$(BIN)/python scripts/reference.py --check || failed=1; \
	exit $$failed

.PHONY: fmt
fmt: ## format the code and mend what the linter can mend
	$(PREPARE)
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

.PHONY: crash
crash: ## try to lose data: kills, faults, universes, planted bugs (UNIVERSES=5000)
	$(PREPARE) --java
	@PYTEST="$(PYTEST)" UNIVERSES="$(UNIVERSES)" sh scripts/crash.sh $(ARGS)

.PHONY: soak
soak: ## run everything at once for an hour, with its resources watched (MINUTES=60)
	$(PREPARE)
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(ARGS)

.PHONY: bench
bench: ## measure beside the peers: all suites, or SUITE="queries search", SF=0.1, ARGS=--full
	$(PREPARE) --java --bench
	@$(BIN)/python -m benchmarks.run $(SUITE) --scale $(SF) $(ARGS)

.PHONY: profile
profile: ## draw where the time of a question goes into flame.svg: Q="8 paths", SF=0.1
	$(PREPARE)
	@$(BIN)/python -m benchmarks.flames "$(Q)" --scale $(SF) $(ARGS)

.PHONY: docs
docs: ## write the generated pages of docs/reference
	$(PREPARE)
	@$(BIN)/python scripts/reference.py

.PHONY: lock
lock: ## resolve pyproject.toml anew into requirements/ (keeps what still fits)
	$(PREPARE)
	@sh scripts/lock.sh

.PHONY: clean
clean: ## remove .venv, caches and what the demo wrote
	@rm -rf .venv build dist demo/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests scripts demo -name __pycache__ -type d -prune -exec rm -rf {} +
