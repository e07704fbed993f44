# Every command anyone types here. `make` alone lists them.

# Empty: the first of PYTHONS that is new enough. On many machines python3 is not.
PYTHON ?=
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11
ARGS ?=
DEVICES ?=
DIR ?=
# The tests that take longest wait for other processes, so there are more of them than cores.
JOBS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

# Some environments forbid Python to keep what it compiled. Then each program that the tests start
# compiles all of Sully again: a server needs twice the processor time to start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# What an install depends on: it is done again only when one of these changes.
PINS := pyproject.toml constraints.txt
RUN_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

# Old and new kubectl, for the tests that drive the server with a real client.
DEBIAN_KUBECTL := .cache/debian-kubectl/usr/bin/kubectl
ETCD := .cache/etcd/etcd
IPROUTE2 := .cache/iproute2

.DEFAULT_GOAL := help
# What broke off halfway is begun anew the next time, not taken for done.
.DELETE_ON_ERROR:
.PHONY: help setup up fmt lint quick test clients bench robust conformance generate verify demo clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## install what developers need into .venv, and the git hooks

up: $(RUN_STAMP) ## run a control plane; ARGS="--listen 127.0.0.1:0" passes flags on
	@$(BIN)/sully up $(ARGS)

fmt: $(DEV_STAMP) ## rewrite what the tools can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(DEV_STAMP) ## check form, imports and types; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy

quick: $(DEV_STAMP) ## the fast tests
	$(BIN)/pytest -m "not slow and not e2e" $(ARGS)

test: $(DEV_STAMP) clients ## all tests, real clients included
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

clients:
	@tools/fetch-debian-kubectl $(DEBIAN_KUBECTL)
	@tools/fetch-etcd $(ETCD)
	@tools/fetch-iproute2 $(IPROUTE2)
	@tools/fetch-shells .cache/shells

bench: $(DEV_STAMP) ## measure on this machine, minutes; ARGS="--seconds 1" DEVICES="--only 100x8"
	$(BIN)/python bench/api.py $(ARGS)
	$(BIN)/python bench/cel.py
	$(BIN)/python bench/devices.py $(DEVICES)
	$(BIN)/python bench/placement.py
	$(BIN)/python bench/placing.py --large
	$(BIN)/python bench/stores.py
	$(BIN)/python bench/seeing.py --runs 1

robust: $(DEV_STAMP) ## kills, lost machines, hostile input, for half an hour; ARGS="crashes --seed 7"
	$(BIN)/python tools/robust.py $(ARGS)

conformance: $(DEV_STAMP) ## replay recorded answers of a real server: DIR=folder with api.jsonl
	@test -n "$(DIR)" || { echo "usage: make conformance DIR=FOLDER [ARGS=…]" >&2; exit 2; }
	$(BIN)/python tools/conformance.py $(DIR) --floor tests/conformance-floor.txt $(ARGS)

generate: $(DEV_STAMP) ## rewrite everything that is generated
	$(BIN)/python tools/generate_types.py
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/generate_deploy.py
	$(BIN)/python tools/generate_picture.py

verify: generate lint test ## what a merge must pass: generate, lint, test, and a clean tree
	@dirt=$$(git status --porcelain); test -z "$$dirt" || { \
	  echo "the tree is not clean: commit what was generated or changed" >&2; \
	  echo "$$dirt" >&2; exit 1; }

demo: $(RUN_STAMP) ## a control plane with a fleet of GPUs in use, in a folder of its own
	@$(BIN)/sully up --demo --data-dir data/demo $(ARGS)

clean: ## remove the virtual environment, caches and build outputs; data stays
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip comes last into a new environment: where it is missing, what there is broke off halfway, and
# would be taken for whole. So it is cleared.
$(BIN)/pip:
	@for each in $(or $(PYTHON),$(PYTHONS)); do \
	  if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "$$each -m venv --clear $(VENV)"; exec "$$each" -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "no Python 3.11 or newer among: $(or $(PYTHON),$(PYTHONS))" >&2; \
	echo "  install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1

$(RUN_STAMP): $(PINS) | $(BIN)/pip
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(DEV_STAMP): $(PINS) | $(BIN)/pip
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
	  $(BIN)/pre-commit install --install-hooks || echo "git hooks not installed: see above" >&2; \
	fi
	@touch $(RUN_STAMP) $@
