# Every habit of the project has a short target; `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
WORKERS ?= 2
# Compiled when the package is installed.
NATIVE := $(wildcard native/*.c native/*.h)
# What goes by it is tested with it, too; all else in Python alone.
COMPILED_TESTS := tests/wire/records tests/log_store tests/server/handlers tests/server/test_bad_input.py \
	compat_tests/test_raw_produce.py compat_tests/test_raw_list_offsets.py compat_tests/test_raw_record_validation.py \
	compat_tests/test_raw_random_records.py compat_tests/test_raw_fetch.py tests/server/transactions compat_tests/test_raw_transactions.py \
	compat_tests/test_raw_transaction_versions.py compat_tests/test_transactional_copy.py

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: run
run: $(VENV)/.broker ## serve on 127.0.0.1:9092, data in ./data (more: make run ARGS="--set num.partitions=4")
	@exec $(BIN)/ottla serve --listen 127.0.0.1:9092 --data data $(ARGS)

.PHONY: test
test: $(VENV)/.tests ## set up everything and run every test (some: make test ARGS=tests/wire)
	@$(BIN)/python -m compat_tests.kafka.jars
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(ARGS)
	@test -n "$(ARGS)" || { echo "and with what is compiled:"; \
	OTTLA_NATIVE=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(COMPILED_TESTS); }

.PHONY: compat
compat: $(VENV)/.tests ## every client on Ottla and on Apache Kafka (one: make compat CLIENT=aiokafka)
	@$(BIN)/python -m compat_tests.kafka.jars
	@$(BIN)/python -m compat_tests.matrix $(addprefix --client ,$(CLIENT)) $(ARGS)

.PHONY: check
check: $(VENV)/.tests ## style, types, and which room may import which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: docs
docs: $(VENV)/.tests ## write docs/apis.md, docs/configs.md and docs/errors.md from the tables
	$(BIN)/python -m docs.generate

.PHONY: bench
bench: $(VENV)/.tests ## Ottla and Apache Kafka side by side in one run (short: QUICK=1; a part: ONLY=produce; fewer: ROUNDS=1)
	@$(BIN)/python -m compat_tests.kafka.jars
	QUICK=$(QUICK) ONLY=$(ONLY) ROUNDS=$(ROUNDS) $(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-log
bench-log: $(VENV)/.tests ## the same for compaction, recovery and start (short: make bench-log QUICK=1)
	@$(BIN)/python -m compat_tests.kafka.jars
	QUICK=$(QUICK) $(BIN)/python -m benchmarks.compaction
	QUICK=$(QUICK) $(BIN)/python -m benchmarks.recovery

.PHONY: bench-spark
bench-spark: $(VENV)/.tests ## how fast Spark reads both brokers (short: make bench-spark QUICK=1)
	@$(BIN)/python -m compat_tests.kafka.jars
	QUICK=$(QUICK) $(BIN)/python -m benchmarks.spark

.PHONY: demo
demo: $(VENV)/.spark ## the data pipeline on Spark: a minute of website activity, checked, with a report
	$(BIN)/python -m spark_demo $(ARGS)

.PHONY: test-spark
test-spark: $(VENV)/.tests ## Spark's Kafka source and sink on both brokers
	@$(BIN)/python -m compat_tests.kafka.jars
	OTTLA_SLOW=1 $(BIN)/python -m pytest compat_tests/spark $(ARGS)

.PHONY: clean
clean: ## remove the environment, caches and ./data
	rm -rf $(VENV) .cache build dist data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Ottla needs Python 3.11 or newer; say which one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.broker: pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing the broker ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.spark: pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing the broker and Spark ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]'
	@touch $@ $(VENV)/.broker

$(VENV)/.tests: pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing the broker, its tests and checks, and Spark ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,check,spark]'
	@touch $@ $(VENV)/.broker $(VENV)/.spark
