# The doors of the project. Each sets up what it needs; `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

export SAM_CLI_TELEMETRY := 0
# What was compiled is kept, whatever the caller's environment says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

PORT ?= 4566
STACK ?= embedded
SEEDS ?= 2000
EVENTS ?= 10000
KILLS ?= 100
PAUSE ?= 60
STORM ?= 240
SIDE_BY_SIDE ?= 3
ARGS ?=
FULL ?=
KEEP ?=
FUNCTION ?=

VENV := .venv
BIN := $(VENV)/bin
SAM_VENV := .sam-venv
RUN_READY := $(VENV)/.run-ready
READY := $(VENV)/.ready
SAM_READY := $(SAM_VENV)/.ready
SPARK_READY := $(VENV)/.spark-ready
SCANNED := $(SAM_VENV)/.scanned
PYTHON := $(shell command -v python3.11 || command -v python3 || echo missing-python3)

.PHONY: help
help: ## list the targets
	@echo "Millrace, a serverless event hub. Usage: make <target> [VARIABLE=value]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: $(RUN_READY) $(if $(filter localstack,$(STACK)),build) ## start the embedded stack (PORT=4566; KEEP=1 keeps its data), or deploy to a running LocalStack (STACK=localstack)
	@exec $(BIN)/python -m local.run --port $(PORT) --stack $(STACK) $(if $(KEEP),--keep $(KEEP))

.PHONY: stop
stop: $(RUN_READY) ## stop the embedded stack, and say what happens to its data
	@$(BIN)/python -m local.stop

.PHONY: status
status: $(RUN_READY) ## show what runs here: addresses, since when, its data, its functions (ARGS=--json)
	@$(BIN)/python -m local.status $(ARGS)

.PHONY: logs
logs: $(RUN_READY) ## show what the functions wrote (FUNCTION=fan_out for one of them; ARGS='--lines 500')
	@$(BIN)/python -m local.logs $(if $(FUNCTION),--function $(FUNCTION)) $(ARGS)

.PHONY: demo
demo: $(RUN_READY) ## show what the hub does, on the running stack or on one of its own
	@$(BIN)/python -m local.demo

.PHONY: token
token: $(RUN_READY) ## print a token for the running stack (ARGS="--client C1 --project demo --partition '*'")
	@$(BIN)/millrace token $(ARGS)

.PHONY: test
test: $(READY) $(SAM_READY) $(SPARK_READY) ## run all tests, stopping at the first failure (SIDE_BY_SIDE=3, ARGS=…)
	@$(BIN)/pytest -x -q -n $(SIDE_BY_SIDE) --dist loadfile $(ARGS)

AXE := build/browser/node_modules/axe-core/axe.min.js
.PHONY: browser
browser: $(AXE) ## get what the browser tests need: Chromium (apt-get, as root) and axe-core (npm)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	{ echo "Install Chromium, so that 'chromium' is on the PATH; as root, this command does." >&2; exit 1; }

.PHONY: screenshots
screenshots: $(READY) ## take pictures of every screen of the console, of a hub with something in it (build/screenshots)
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

.PHONY: check
check: lint ## lint, and the tests that need no AWS, in under a minute; `make test` runs all (ARGS=…)
	@$(BIN)/pytest -x -q -n auto --dist loadfile --quick $(ARGS) tests/unit tests/contract

.PHONY: coverage
coverage: $(READY) ## measure what the unit and contract tests reach; pages in build/coverage (ARGS=…)
	@$(BIN)/pytest -q -n $(SIDE_BY_SIDE) --dist loadfile --cov --cov-report=term:skip-covered \
		--cov-report=html:build/coverage $(ARGS) tests/unit tests/contract

.PHONY: lint
lint: $(READY) $(SCANNED) ## ruff, mypy (strict), the import rules and the scan of the templates
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## let ruff format the code and fix what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: bench
bench: $(READY) ## count calls and units against the figures we hold
	@$(BIN)/python -m tests.bench $(ARGS)

.PHONY: bench-lake
bench-lake: $(READY) $(SPARK_READY) ## time compaction beside DuckDB, its growth, incremental runs and retention (ARGS='--sizes …')
	@$(BIN)/python -m tests.bench.lake $(ARGS)

.PHONY: compact
compact: $(READY) $(SPARK_READY) ## fold the archive's new objects into the tables (ARGS='--store s3://bucket/prefix or a directory')
	@$(BIN)/python -m glue_jobs.compact.main $(ARGS)

.PHONY: query
query: $(READY) ## ask the tables of the running hub in SQL: a prompt, or one statement (ARGS="select …")
	@$(BIN)/python -m local.query $${STATEMENT:+"$$STATEMENT"}

query: export STATEMENT := $(value ARGS)

.PHONY: retain
retain: $(READY) $(SPARK_READY) ## say what retention would let go of the running hub (ARGS='--execute true' to let it go; or '--store …')
	@$(BIN)/python -m glue_jobs.retain.$(if $(findstring --store,$(ARGS)),main,job) $(ARGS)

# What `make test` tries with less of everything.
FULL_SIZE := MILLRACE_SESSIONS=1000 MILLRACE_CROWD=400 MILLRACE_STORM_SEEDS=1,2,3,4,5,6,7,8 MILLRACE_STORM_EVENTS=400 \
	MILLRACE_MARKER_UPDATES=1000 MILLRACE_PARALLEL_EVENTS=5000 MILLRACE_TAINT_EVENTS=5000 \
	MILLRACE_FUZZ=60 MILLRACE_FUZZ_PHASES=examples,coverage,fuzzing \
	MILLRACE_LAKE_SEEDS=1,2,3,4,5,6,7,8 MILLRACE_LAKE_KILLS=60 MILLRACE_HISTORIES=2000 MILLRACE_KILL_EVENTS=25 MILLRACE_LEDGERS=1000000 \
	MILLRACE_REPLAY_EVENTS=200000 MILLRACE_SNAPSHOT_EVENTS=50000
LARGE := publishers or followers or sixteen or race or p2 or generated_requests

.PHONY: soak
soak: $(READY) ## run the simulator on many seeds (SEEDS=2000; ARGS='--first N'), then storms, crowds, deliveries and chaos at full size (FULL=1)
	@$(BIN)/python -m tests.simulation.soak --seeds $(SEEDS) $(ARGS)
	@$(BIN)/python -m tests.simulation.archiving --seeds $(SEEDS)
	@if [ -n "$(FULL)" ]; then $(FULL_SIZE) $(BIN)/pytest -q -k "$(LARGE)" tests/e2e; \
		$(FULL_SIZE) $(BIN)/pytest -q tests/jobs tests/unit/delivery/test_histories.py tests/unit/client/test_kill.py \
			tests/unit/realtime/test_long_session.py tests/unit/live/test_long_snapshot.py \
			tests/contract/lake/test_open_tables_kills.py tests/simulation/test_sweeping.py; \
		$(CHAOS); fi

CHAOS = $(BIN)/python -m tests.chaos --events $(EVENTS) --kills $(KILLS) --pause-seconds $(PAUSE) --seconds $(STORM)
.PHONY: chaos
chaos: $(READY) ## kill functions and stop the emulator of a hub in use, then check every promise (EVENTS=10000, KILLS=100, PAUSE=60 and STORM=240 seconds; ARGS=…)
	@$(CHAOS) $(ARGS)

.PHONY: generated
generated: $(READY) ## write every generated file: the API's description, the realtime and error pages, alarms and dashboard
	@$(BIN)/python -m infra.generated

.PHONY: build
build: $(SAM_READY) ## build the functions and the layer for AWS
	@$(SAM_VENV)/bin/sam build $(ARGS)

.PHONY: deploy
deploy: build $(READY) ## deploy to AWS, with the jobs' code; asks its questions the first time (ARGS=…)
	@if [ -f samconfig.toml ]; then $(SAM_VENV)/bin/sam deploy --no-fail-on-empty-changeset $(ARGS); \
	else $(SAM_VENV)/bin/sam deploy --guided $(ARGS); fi
	@$(BIN)/python -m local.after_deploy

deploy: export SAM_ARGS := $(ARGS)

.PHONY: jobs
jobs: $(READY) ## make what the Glue jobs run: their scripts and the zip of shared modules (build/jobs)
	@$(BIN)/python -m local.jobs

.PHONY: after-deploy
after-deploy: $(READY) ## what `make deploy` does last: protect tables, put the jobs' code into the bucket, remove old versions (ARGS='--stack NAME')
	@$(BIN)/python -m local.after_deploy $(ARGS)

COMPILE := CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options
.PHONY: requirements
requirements: $(READY) ## compile the requirement files (ARGS=--upgrade for newer versions)
	@$(COMPILE) $(ARGS) -o requirements/dev.txt requirements/dev.in
	@$(COMPILE) $(ARGS) -o requirements/run.txt -c requirements/dev.txt requirements/run.in
	@$(COMPILE) $(ARGS) -o requirements/runtime.txt -c requirements/dev.txt requirements/runtime.in
	@$(COMPILE) $(ARGS) -o requirements/jobs.txt -c requirements/dev.txt requirements/jobs.in
	@$(COMPILE) $(ARGS) -o layers/common/requirements.txt -c requirements/dev.txt layers/common/requirements.in
	@$(COMPILE) $(ARGS) -o requirements/sam.txt requirements/sam.in
	@! grep -nE '://|--(index-url|extra-index-url|find-links|trusted-host)' requirements/*.txt layers/common/requirements.txt

.PHONY: audit
audit: $(READY) ## ask the registry about every pinned version: vulnerabilities, yanked files, newer ones (ARGS='--registry …')
	@$(BIN)/python -m infra.audit $(ARGS)

.PHONY: clean
clean: ## remove environments, caches and builds
	@if [ -x $(BIN)/python ] && [ -f .local/run.pid ]; then $(BIN)/python -m local.stop; fi
	rm -rf $(VENV) $(SAM_VENV) .local .aws-sam build dist *.egg-info
	rm -rf .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define check-python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Millrace needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
endef

# In two steps: a run needs less than half of what tests, Spark and tools do, and that part is there first.
$(RUN_READY): requirements/run.txt pyproject.toml
	$(check-python)
	@echo "Setting up $(VENV) with what a run needs, under a minute on most machines; pip says what it fetches …" >&2
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check -r requirements/run.txt >&2
	@echo "Installing Millrace itself …" >&2
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

$(AXE):
	@command -v npm >/dev/null || { echo "axe-core comes with npm: install Node.js." >&2; exit 1; }
	@mkdir -p build/browser
	@npm install --silent --no-save --no-package-lock --no-audit --no-fund --prefix build/browser axe-core@4.10.3

$(READY): requirements/dev.txt pyproject.toml | $(RUN_READY)
	@echo "Adding tests, Spark and tools to $(VENV): a minute or two the first time; pip says what it fetches …" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check -r requirements/dev.txt >&2
	@touch $@

# The scan takes longer than the rest of lint; what it found of the same templates it would find again.
$(SCANNED): template.yaml infra/monitoring/stack.yaml .cfnlintrc $(SAM_READY)
	@$(SAM_VENV)/bin/cfn-lint
	@touch $@

$(SPARK_READY): $(READY)
	@$(BIN)/python -m local.spark_classes
	@touch $@

$(SAM_READY): requirements/sam.txt
	$(check-python)
	@echo "Setting up $(SAM_VENV) …"
	@[ -x $(SAM_VENV)/bin/python ] || $(PYTHON) -m venv $(SAM_VENV)
	@# The file is complete. Asked to follow dependencies, pip finds no hash for one that is asked for with an extra.
	@$(SAM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/sam.txt
	@$(SAM_VENV)/bin/python -m pip check --quiet --disable-pip-version-check
	@touch $@
