# All commands of the project. `make` lists them.

# Empty: the first of PYTHONS that is new enough. On many machines python3 is too old.
PYTHON ?=
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11
ARGS ?=
DEVICES ?=
DIR ?=
SEEDS ?=
URL ?=
VERSION ?=
# The longest tests wait for other processes, so run more of them than there are cores.
JOBS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

# Some environments disable Python's bytecode cache. Then each process that the tests start compiles
# all of Sully again, and a server needs twice the CPU time to start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# Only files with a hash in requirements/ are installed. Sully itself is built by the pinned hatchling.
INSTALL := install --no-deps --require-hashes --requirement requirements/build.txt --requirement
EDITABLE := install --no-deps --no-build-isolation --editable .
# An install runs again only when one of these changes.
RUN_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
# The programs that make and check a release have their own environment.
TOOLS := .cache/tools
TOOLS_STAMP := $(TOOLS)/.installed
RELEASE := PYTHONPATH=tools $(TOOLS)/bin/python -m release

# Programs for the tests with real clients, a real etcd and a real browser.
DEBIAN_KUBECTL := .cache/debian-kubectl/usr/bin/kubectl
ETCD := .cache/etcd/etcd
IPROUTE2 := .cache/iproute2
PROMTOOL := .cache/promtool/promtool
CHROMIUM := .cache/chromium
# The newest Python, for `make dist`. Few machines have it.
PYTHON314 := .cache/python3.14

.DEFAULT_GOAL := help
# A target that failed halfway is built again the next time.
.DELETE_ON_ERROR:
.PHONY: help setup up fmt lint quick test clients bench held robust simulate kube browser conformance suites \
  generate screenshots verify demo \
  dist image docs krew release audit lock clean

help: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## install the development tools into .venv, and the git hooks

up: $(RUN_STAMP) ## run a control plane; flags in ARGS="--listen 127.0.0.1:0"
	@$(BIN)/sully up $(ARGS)

fmt: $(DEV_STAMP) ## format the code and fix lint errors
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(DEV_STAMP) ## check formatting, imports and types; change nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy

quick: $(DEV_STAMP) ## run the fast tests
	$(BIN)/pytest -m "not slow and not e2e" $(ARGS)

test: $(DEV_STAMP) clients ## run all tests, including real clients; measure branch coverage
	SULLY_COVERAGE=1 $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

clients:
	@tools/fetch-debian-kubectl $(DEBIAN_KUBECTL)
	@tools/fetch-etcd $(ETCD)
	@tools/fetch-iproute2 $(IPROUTE2)
	@tools/fetch-promtool $(PROMTOOL)
	@tools/fetch-shells .cache/shells
	@tools/fetch-chromium $(CHROMIUM)

bench: $(DEV_STAMP) ## run the benchmarks, some minutes; ARGS="--seconds 1" DEVICES="--only 100x8"
	$(BIN)/python bench/api.py $(ARGS)
	$(BIN)/python bench/cel.py
	$(BIN)/python bench/policies.py
	$(BIN)/python bench/devices.py $(DEVICES)
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/placement.py
	$(BIN)/python bench/placing.py --large
	$(BIN)/python bench/stores.py
	$(BIN)/python bench/seeing.py --runs 1
	@tools/fetch-chromium $(CHROMIUM)
	$(BIN)/python bench/dashboard.py

held: $(DEV_STAMP) ## hold a load of 20 000 pods for half an hour; ARGS="--store etcd --minutes 3"
	$(BIN)/python bench/held.py $(ARGS)

robust: $(DEV_STAMP) ## run fault injection and attacks, an hour or two; ARGS="faults --seed 7"
	$(BIN)/python tools/fault_injection.py $(ARGS)

simulate: $(DEV_STAMP) ## simulate control planes with faults: SEEDS=10000; ARGS=mutations plants faults in Sully
	PYTHONHASHSEED=0 $(BIN)/python tools/simulate.py $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

kube: $(DEV_STAMP) ## run the tests on a real control plane: KUBEBUILDER_ASSETS=folder with its programs
	$(BIN)/pytest -m kube tests/kube $(ARGS)

browser: $(DEV_STAMP) ## run only the tests that use the dashboard in Chromium
	@tools/fetch-chromium $(CHROMIUM)
	$(BIN)/pytest -m browser tests/dashboard $(ARGS)

conformance: $(DEV_STAMP) ## replay recorded responses of a real server; DIR=folder with api.jsonl
	@test -n "$(DIR)" || { echo "usage: make conformance DIR=FOLDER [ARGS=…]" >&2; exit 2; }
	$(BIN)/python tools/conformance.py $(DIR) --floor tests/conformance-floor.txt $(ARGS)

suites: $(DEV_STAMP) ## run the test suites of kopf, kr8s, lightkube and the official client; DIR=their checkouts
	@test -n "$(DIR)" || { echo "usage: make suites DIR=FOLDER [ARGS=--only kopf]" >&2; exit 2; }
	$(BIN)/python tools/run_suites.py $(DIR) $(ARGS)

generate: $(DEV_STAMP) ## update all generated files
	$(BIN)/python tools/generate_types.py
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/generate_deploy.py
	$(BIN)/python tools/generate_picture.py

screenshots: $(DEV_STAMP) ## take the pictures of the dashboard for README and guides
	@tools/fetch-chromium $(CHROMIUM)
	$(BIN)/python tools/take_screenshots.py

verify: generate lint test ## run what a merge must pass: generate, lint, test, and a clean tree
	@dirt=$$(git status --porcelain); test -z "$$dirt" || { \
	  echo "the tree is not clean: commit the generated or changed files" >&2; \
	  echo "$$dirt" >&2; exit 1; }

dist: $(TOOLS_STAMP) ## build wheel and sdist, check them, install and use them on each Python; write the SBOM
	@tools/fetch-python 3.14 $(PYTHON314)
	$(RELEASE) dist $(ARGS)

image: $(TOOLS_STAMP) ## build a container image from dist/ and packages of Debian, scan and run it
	$(RELEASE) image

docs: $(TOOLS_STAMP) ## build the documentation site into build/site; warnings and dead links are errors
	$(RELEASE) docs

krew: $(TOOLS_STAMP) ## write archive and manifest of the kubectl plugin for krew; URL=where the archive will be
	$(RELEASE) krew $(URL)

release: $(DEV_STAMP) $(TOOLS_STAMP) ## write version and notes, build everything, tag: VERSION=0.2.0
	@tools/fetch-python 3.14 $(PYTHON314)
	$(RELEASE) release $(VERSION)

audit: $(TOOLS_STAMP) ## look for known vulnerabilities in the pinned packages
	$(RELEASE) audit

lock: $(TOOLS_STAMP) ## write versions and hashes to requirements/; ARGS="--upgrade" for newer ones
	$(RELEASE) lock $(ARGS)

demo: $(RUN_STAMP) ## run a control plane with simulated GPU nodes in use, in its own folder
	@$(BIN)/sully up --demo --data-dir data/demo $(ARGS)

clean: ## remove the virtual environment, caches and build outputs; keep data
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is installed last into a new environment. If it is missing, the environment is incomplete, so
# create it again.
$(BIN)/pip:
	@for each in $(or $(PYTHON),$(PYTHONS)); do \
	  if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "$$each -m venv --clear $(VENV)"; exec "$$each" -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "no Python 3.11 or newer among: $(or $(PYTHON),$(PYTHONS))" >&2; \
	echo "  install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1

$(RUN_STAMP): pyproject.toml requirements/build.txt requirements/run.txt | $(BIN)/pip
	$(PIP) $(INSTALL) requirements/run.txt
	$(PIP) $(EDITABLE)
	@touch $@

$(DEV_STAMP): pyproject.toml requirements/build.txt requirements/dev.txt | $(BIN)/pip
	$(PIP) $(INSTALL) requirements/dev.txt
	$(PIP) $(EDITABLE)
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
	  $(BIN)/pre-commit install --install-hooks || echo "git hooks not installed: see above" >&2; \
	fi
	@touch $(RUN_STAMP) $@

$(TOOLS_STAMP): requirements/build.txt requirements/release.txt | $(BIN)/pip
	$(BIN)/python -m venv --clear $(TOOLS)
	$(TOOLS)/bin/pip --disable-pip-version-check --quiet $(INSTALL) requirements/release.txt
	@touch $@
