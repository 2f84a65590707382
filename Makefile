# lakebloom: `make help` lists what there is. `make test` and `make demo` are all that a newcomer needs.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON3 ?= python3
# `make core DEPENDENCIES=lowest` runs on the oldest versions that pyproject.toml allows, in environments of their own.
DEPENDENCIES ?= locked
AGE := $(if $(filter lowest,$(DEPENDENCIES)),-lowest)
VENV := .venv$(AGE)
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE := .venv-core$(AGE)
CORE_STAMP := $(CORE)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
ARCHIVE := $(VENV)/spark.jsa
FAST := not spark and not slow
RANDOM_QUERIES := tests/spark/skipping/test_fuzz.py
RANDOM_HISTORIES := tests/spark/test_iceberg_random.py
# Each process has a Spark session of its own; a file stays in one of them. Tests with Spark often wait, so that three
# processes keep two cores busy.
SHARED := --dist loadfile --no-loadscope-reorder
# Spark starts its workers with the first python3 on PATH unless told otherwise.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Tests run in many processes. Where this is set, as in many containers, each would compile lakebloom and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

newcomer_options = $(if $(UPDATE),--update) $(if $(ONLY),--installed $(ONLY))

.PHONY: newcomer help test check core fast demo api release lock clean bench-kernels bench-build bench-needle bench-large bench bench-embed bench-join bench-lookup bench-board bench-scale bench-size bench-start bench-tables compat fuzz

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt tools/bootstrap
	@tools/bootstrap $(PYTHON3) $(VENV) dev,spark,lance $(DEPENDENCIES)
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@tools/bootstrap $(PYTHON3) $(VENV) bench $(DEPENDENCIES)
	@touch $@

# Java's classes, so that each of the many Spark processes starts with half the work; without it they only start slower.
$(ARCHIVE): $(STAMP) tests/class_archive.py
	@. tools/java && $(BIN)/python -m tests.class_archive || echo "no archive of Spark's classes: tests take longer"

$(CORE_STAMP): pyproject.toml constraints.txt tools/bootstrap
	@tools/bootstrap $(PYTHON3) $(CORE) core-tests $(DEPENDENCIES)
	@touch $@

test: $(STAMP) $(CORE_STAMP) $(ARCHIVE) ## environment, lint, types and all tests, in three processes; DURATIONS=1 prints the time of each file
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check core
	@. tools/java && . tools/chromium && LAKEBLOOM_DURATIONS=$(DURATIONS) $(BIN)/python -m pytest -n 3 $(SHARED)

core: $(CORE_STAMP) ## the tests of an installation without pyspark
	@$(CORE)/bin/python -m pytest tests/core tests/store tests/index/lookup/test_lookup.py tests/index/query/test_candidates.py

check: $(STAMP) ## lint and types only
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

fast: $(STAMP) ## the tests that need no Spark, in two processes, with few examples of each law, in about a minute
	@LAKEBLOOM_EXAMPLES=15 $(BIN)/python -m pytest -m "$(FAST)" -n 2 $(SHARED)

demo: $(STAMP) ## show what lakebloom does; VERSION=3.5.9 on another Spark
	@. tools/java && $(BIN)/python $(if $(VERSION),tools/compat --demo $(VERSION),-m lakebloom.cli.commands.demo)

bench: $(BENCH_STAMP) ## all benches in one run, forty minutes; writes docs/BENCHMARKS.md and docs/latency.svg. ONLY=lookup: its section; TINY=1: with little data, no page
	@. tools/java && LAKEBLOOM_BENCH=$(if $(TINY),tiny) $(BIN)/python -m bench $(ONLY)

bench-kernels: $(BENCH_STAMP) ## hashing and filtering against Arrow C++ and rbloom
	@$(BIN)/python -m bench.kernels

bench-start: $(BENCH_STAMP) ## importing the package, commands that need no Spark, and the first index of a session
	@. tools/java && $(BIN)/python -m bench.start

bench-build: $(BENCH_STAMP) ## building an index against scanning, rewriting and Lance
	@. tools/java && $(BIN)/python -m bench.build

bench-needle: $(BENCH_STAMP) ## looking keys up in Spark, with and without lakebloom and Parquet's own filters
	@. tools/java && $(BIN)/python -m bench.needle

bench-large: $(BENCH_STAMP) ## one key in files of real size, 3 GB, in Spark and without; not part of make bench
	@. tools/java && $(BIN)/python -m bench.large

bench-embed: $(BENCH_STAMP) ## embedding filters into a lake against copying, reading and rewriting it
	@. tools/java && $(BIN)/python -m bench.embed

bench-lookup: $(BENCH_STAMP) ## rows by key without Spark against DuckDB, DataFusion, Polars, PyArrow and Lance
	@. tools/java && $(BIN)/python -m bench.lookup

bench-board: $(BENCH_STAMP) ## all peers side by side, on small files and on files of real size
	@. tools/java && $(BIN)/python -m bench.board

bench-scale: $(BENCH_STAMP) ## a million units, growth with files and columns, requests to an object store
	@. tools/java && $(BIN)/python -m bench.scale

bench-size: $(BENCH_STAMP) ## bytes for each distinct value against every other writer of such filters
	@. tools/java && $(BIN)/python -m bench.size

bench-tables: $(BENCH_STAMP) ## Delta and Iceberg tables against plain files, deltalake and Spark; plans to erase keys
	@. tools/java && $(BIN)/python -m bench.tables

compat: $(STAMP) ## the tests on every Spark that is supported, and docs/COMPATIBILITY.md from them; VERSION=3.5.9 for one
	@. tools/java && $(BIN)/python tools/compat $(VERSION)

fuzz: $(STAMP) ## random queries (N=3000), hostile files (HOSTILE=10000), kills and rivals, histories of tables (COMMITS=1000); MINUTES=10 bounds hostile files and kills; VERSION=3.5.9: random queries and histories on another Spark
	@. tools/java && LAKEBLOOM_FUZZ=$(or $(N),3000) LAKEBLOOM_HOSTILE=$(or $(HOSTILE),10000) LAKEBLOOM_ROUNDS=1000000 LAKEBLOOM_COMMITS=$(or $(COMMITS),1000) \
		LAKEBLOOM_MINUTES=$(or $(MINUTES),10) LAKEBLOOM_SEED=$(or $(SEED),$$$$) \
		$(BIN)/python $(if $(VERSION),tools/compat --silence 1440 --only $(RANDOM_QUERIES) --only $(RANDOM_HISTORIES) $(VERSION),-m pytest \
		tests/fuzz tests/index/laws/test_protocol.py tests/tables/parquet/test_pages.py tests/spark/test_iceberg_metadata.py \
		$(RANDOM_QUERIES))

bench-join: $(BENCH_STAMP) ## a join in which most rows have no match, with and without lakebloom
	@. tools/java && $(BIN)/python -m bench.join

newcomer: $(STAMP) ## play a first hour from a wheel in an empty environment, and compare all messages; UPDATE=1 rewrites them
	@. tools/java && . tools/chromium && $(BIN)/python -m tests.newcomer.play $(newcomer_options)

api: $(STAMP) ## write docs/API.md from the docstrings
	@$(BIN)/python tools/api > docs/API.md

release: $(STAMP) ## build wheel and sdist into dist/, check them, run the first examples of README, Delta and Iceberg from the wheel
	@. tools/java && $(BIN)/python tools/release

lock: $(STAMP) ## resolve the newest versions into constraints.txt
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.10 --all-extras --upgrade --no-emit-index-url \
		--no-annotate --no-header pyproject.toml -o constraints.txt

clean: ## remove the environment and all caches
	@rm -rf .venv .venv-lowest .venv-core .venv-core-lowest dist .bench .compat .mypy_cache .pytest_cache .ruff_cache .hypothesis
