# Talea: a newcomer needs two commands, `make demo` and `make test`. `make help` lists all.

CARGO ?= cargo
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The libraries that the benchmarks compare with need a newer Rust than Talea does.
BENCH_RUST := 1.90
RUST := $(shell rustc --version 2>/dev/null | cut -d' ' -f2)
OLDER := $(shell printf '%s\n' $(BENCH_RUST) $(RUST) | sort -V | head -n 1)
ALL := --workspace $(if $(filter $(BENCH_RUST),$(OLDER)),,--exclude talea-bench)

# The crates that `make lint` and `make test-rust` take: all, or the one of CRATE=talea-http. Cargo builds a
# dependency again for each set of its features, so the steps for all crates ask for the same ones, those of
# the tests, and options that cover the whole workspace.
CRATES := $(if $(CRATE),-p $(CRATE),$(ALL))
TRACING := $(if $(CRATE),,--features talea-http/tracing)
# All that `cargo doc` takes by itself (no program with the name of a library), and examples: with them it takes
# the features of the tests.
DOCUMENTED := $(if $(CRATE),,--lib --bin 'talea-*' --bin 'shop-*' --examples)

# cargo-deny, if it is not installed already, is where `scripts/setup --lint` puts it.
export PATH := $(PATH):$(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/python/bin

.DEFAULT_GOAL := demo
# Parts of `make test` share Cargo's target folder and the machine's two cores.
.NOTPARALLEL:
.PHONY: help demo study-postgres study-overhead study-agent build
.PHONY: lint docs deny-advisories test test-api test-quick test-rust test-models test-php test-python test-node test-web test-packages test-long
.PHONY: dist test-dist
.PHONY: bench bench-build bench-doors bench-http bench-live bench-load bench-node bench-push bench-php bench-python bench-python-http bench-scale php setup setup-docs setup-lint setup-test

help: ## List the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS=$$'\t' read -r name text; do printf '%-18s %s\n' "$$name" "$$text"; done

# The report is in target/study. Built for this alone, in half of the time: without PostgreSQL and
# zstd, and without the parts of SQLite that the service does not use.
DEMO_SQLITE := -USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS -USQLITE_ENABLE_FTS5 -USQLITE_ENABLE_RTREE
TARGET := $(or $(CARGO_TARGET_DIR),target)
demo: setup ## Build, run the study on an embedded database, print its table
	@echo 'demo: building the talea program and the service, two minutes on two cores the first time'
	@LIBSQLITE3_FLAGS='$(DEMO_SQLITE)' $(CARGO) build --profile demo --locked --no-default-features -p talea-tools -p items-api
	@echo 'demo: running the study, half a minute'
	@$(TARGET)/demo/talea study --live

study-postgres: build ## Run the study on a PostgreSQL that is started for it
	@scripts/postgres $(TARGET)/release/talea study --out target/study-postgres

# Three variants in turns: without metrics, with them, with quantiles.
study-overhead: build ## Compare the items API with and without its metrics (ROUNDS=10)
	@$(TARGET)/release/talea study --cases 50x200 --rounds $(or $(ROUNDS),10) \
		--out target/study-overhead --ab ITEMS_METRICS=off ITEMS_METRICS=on ITEMS_METRICS=quantiles

# Two variants in turns: alone, and beside an agent that is scraped once a second.
study-agent: build ## Compare the items API alone and beside the agent (ROUNDS=20 CASES=50x5s)
	@$(TARGET)/release/talea study --cases $(or $(CASES),50x5s) \
		--rounds $(or $(ROUNDS),20) --out target/study-agent --scenario crud --url http://127.0.0.1:4310/api/items \
		--ab 'scripts/items-outside alone 4310' 'scripts/items-outside scraped 4310'

build: setup ## Build the talea program and the items API
	@$(CARGO) build --release --locked -p talea-tools -p items-api

# A model checker (loom) tries the region's code in every order of events. The bound is on how
# often a thread is interrupted.
MODELS := RUSTFLAGS="--cfg loom"
MODEL_TEST := $(CARGO) test --profile models --locked --target-dir target/models -p talea-region --lib

# Two tracks, so that one computes while tests of the other wait. Cargo lets one build at a time into a folder, so
# the package for Node.js waits for the build of `test-rust`, whose programs the targets after it take. PHP comes
# after Rust: both build the library of the C ABI in one place, and a test that links it must not find it half written.
test: setup-test lint ## Run all checks and tests, but test-packages and test-long
	scripts/beside 'test-models test-node test-web test-python' 'test-rust test-php'

lint: setup-lint ## Check format, circles of imports, closures, clippy, rustdoc, the book, and dependencies (CRATE=name: one crate)
	$(CARGO) fmt --all --check
	scripts/circles
	scripts/closures
	$(CARGO) clippy --locked $(CRATES) $(TRACING) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked $(CRATES) $(TRACING) --no-deps $(DOCUMENTED)
	$(CARGO) deny --locked check bans licenses sources
	$(if $(CRATE),,$(BOOK))
	$(if $(CRATE),,$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --no-default-features --target-dir $(TARGET))

# A link in any document that leads nowhere is an error.
BOOK := $(TARGET)/python/bin/mdbook build docs --dest-dir $(abspath $(TARGET))/book
docs: setup-docs ## Make the book of the documentation, in target/book/index.html
	$(BOOK)

# Apart from `lint`: these install tools and download a database.
test-api: setup ## Check the libraries' features, lowest versions and public items, and the frameworks beside the workspace
	scripts/api
	scripts/frameworks

deny-advisories: setup-lint ## Check the dependencies against the RustSec advisories (needs a network)
	$(CARGO) deny --locked check advisories

# Many tests wait for other processes, so more of them run at once than there are cores.
TEST_THREADS := $(shell echo $$((2 * $$(nproc))))
# A current Prometheus takes part in tests if `scripts/prometheus` has built it.
PROMETHEUS := $(lastword $(sort $(wildcard $(TARGET)/prometheus/*/prometheus)))
test-rust: setup-test ## Test the Rust crates, with Prometheus and Python's client (CRATE=name: one crate)
	$(if $(PROMETHEUS),TALEA_PROMETHEUS=$(abspath $(PROMETHEUS))) RUST_TEST_THREADS=$(TEST_THREADS) \
		$(CARGO) test --locked --no-fail-fast $(CRATES)
	@$(if $(CRATE),,[ "$$(id -u)" != 0 ] || $(CARGO) test --locked $(CRATES) --test integration -- --ignored as_root)
	$(if $(CRATE),,$(CARGO) test --locked $(CRATES) $(TRACING) --test traces)

# Before a commit. The examples are built too, since tests run them.
LIBRARIES := -p talea-region -p talea-derive -p talea-page -p talea-parse -p talea -p talea-http -p talea-collectors -p shop-axum
test-quick: ## Check the format and test the libraries: less than 3 minutes once they were built
	$(CARGO) fmt --all --check
	$(CARGO) test --locked $(LIBRARIES) --lib --bins --tests --examples

test-models: setup ## Check the region's lock-free code with loom
	$(MODELS) LOOM_MAX_PREEMPTIONS=2 $(MODEL_TEST)

# Those beside the agent take the talea program that `test-rust` built, if that ran before.
DEBUG := $(TARGET)/debug
test-php: setup-test ## Build and test the extension for PHP
	@[ -x $(DEBUG)/talea ] || $(CARGO) build --locked --quiet -p talea-tools
	PROFILE=debug scripts/php --exclude-group slow

test-python: setup-test ## Build and test the package for Python
	@[ -x $(DEBUG)/talea ] || $(CARGO) build --locked --quiet -p talea-tools
	PROFILE=debug scripts/python

test-node: setup-test ## Build and test the package for Node.js
	PROFILE=debug scripts/node

# In Chromium too, beside the programs that `test-rust` built.
test-web: setup-test ## Test the live page: types, units, in Chromium, and that the committed page is current
	@[ -x $(DEBUG)/talea ] && [ -x $(DEBUG)/items-api ] || $(CARGO) build --locked --quiet -p talea-tools -p items-api
	PROFILE=debug scripts/web

test-packages: setup ## Pack the library crates, build them with the oldest Rust
	scripts/publishable

# jemalloc itself takes a minute to build.
JEMALLOC := --locked -p talea-collectors --features jemalloc
test-long: test test-packages ## Run longer: what is packed, more kills and series, ten minutes of everything at once, jemalloc, Miri, fuzzing, PHP with threads, other platforms
	$(CARGO) clippy $(JEMALLOC) --all-targets -- -D warnings
	$(CARGO) test $(JEMALLOC)
	TALEA_KILLS=1000 TALEA_ADDS=100000000 TALEA_TURNOVER=10000000 \
		$(CARGO) test --release --locked -p talea-region
	TALEA_KILLS=300 $(CARGO) test --release --locked -p talea --test integration killed_observers
	TALEA_KILLS=300 $(CARGO) test --release --locked -p talea-tests -- native::
	TALEA_MUTATIONS=10000 $(CARGO) test --release --locked -p talea-tools --test serve_damaged
	TALEA_MINUTES=10 $(CARGO) test --release --locked -p talea-tools --test everything_at_once
	$(CARGO) build --release --locked -p items-api
	TALEA_STUDY_CASES=A,B,C,D,E $(CARGO) test --release --locked -p talea-tools --test integration study_of_databases
	TALEA_KILLS=50 $(CARGO) test --release --locked -p talea-tests -- push_by_agent::
	TALEA_PROMETHEUS=$$(scripts/prometheus) TALEA_COLLECTOR=$$(scripts/collector) \
		$(CARGO) test --release --locked -p talea-tests \
		-- check:: current:: dashboard:: first_event:: push:: push_to_collector::
	$(MODELS) LOOM_MAX_PREEMPTIONS=3 $(MODEL_TEST) -- --include-ignored
	NODES=all scripts/node
	TALEA_WORKERS=20000 scripts/python -k replaced
	scripts/python sdist
	scripts/python wheels
	scripts/python free-threaded
	scripts/python official
	scripts/publishable install
	$(MAKE) php
	scripts/php zts
	scripts/miri
	scripts/fuzz 30
	scripts/other-platforms
	scripts/aarch64-machine
	$(MAKE) test-dist

# Static programs for x86_64 and aarch64 with musl, as archives and Debian packages.
dist: ## Make packages to install, in target/dist-packages
	scripts/dist

test-dist: dist ## Install, run and remove the packages where there is nothing else (as root)
	scripts/dist-test

# BASE compares with an earlier build of Talea instead of other libraries.
bench: setup ## Compare Talea with other libraries (ONLY=counter-kept: one group; BASE=revision)
	@$(if $(BASE),scripts/bench-base $(BASE))
	@scripts/setup --bench || echo 'bench: the counts of instructions are left out' >&2
	@$(CARGO) build --release --locked --quiet -p talea-bench -p talea-tools
	$(CARGO) run --release --locked -p talea-bench -- $(if $(ONLY),--only $(ONLY)) $(if $(BASE),--base target/bench-base/talea-bench)

bench-http: setup ## Measure services under load, metered or not (short: ROUNDS=2 SECONDS=1 REFERENCE_ROUNDS=0)
	@$(CARGO) build --release --locked --quiet -p talea-bench-http -p talea-tools
	scripts/bench-http $(or $(ROUNDS),20) $(or $(SECONDS),3) $(or $(REFERENCE_ROUNDS),7)

bench-doors: setup ## Measure calls of tonic, actix-web and reqwest, metered or not, beside other meters
	scripts/bench-doors

bench-build: setup ## Measure what metrics cost an axum service to compile, beside other libraries
	@scripts/bench-build

bench-load: setup ## Compare the load generator with wrk and oha (short: ROUNDS=2 SECONDS=1)
	@scripts/setup --wrk
	@$(CARGO) build --release --locked --quiet -p talea-bench-http -p talea-tools
	$(CARGO) run --release --locked --quiet -p talea-bench-http -- $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS))

bench-push: setup ## Measure a push of a million series beside Prometheus in agent mode (SERIES=100000; TALEA_PROMETHEUS=$(scripts/prometheus) for 2.0)
	scripts/bench-push $(if $(SERIES),--series $(SERIES))

# Without rustup it leaves out the subject with musl.
bench-scale: setup ## Measure one counter that more and more threads add to (THREADS=1,2,64 ROUNDS=5)
	@$(CARGO) build --release --locked --quiet -p talea-bench-scale
	@rustup --quiet target add x86_64-unknown-linux-musl && $(CARGO) build --release --locked --quiet \
		-p talea-bench-scale --no-default-features --target x86_64-unknown-linux-musl --target-dir target/musl || true
	target/release/talea-bench-scale $(if $(THREADS),--threads $(THREADS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$$(ls target/musl/x86_64-unknown-linux-musl/release/talea-bench-scale 2>/dev/null | sed 's/^/--musl /')

bench-live: setup ## Measure the agent's processor time while pages are open (SECONDS=60)
	@$(CARGO) build --release --locked --quiet -p talea-tools -p talea-bench-live
	$(TARGET)/release/talea-bench-live $(if $(SECONDS),--seconds $(SECONDS))

bench-node: setup ## Compare the package for Node.js with prom-client and @prometheus-io/client (ROUNDS=9)
	scripts/node build
	TALEA_ADDON=$(abspath $(TARGET))/node-binding/talea.node ROUNDS=$(or $(ROUNDS),9) bindings/node/node_modules/node22/bin/node bindings/node/bench/calls.js
	@echo
	TALEA_ADDON=$(abspath $(TARGET))/node-binding/talea.node bindings/node/node_modules/node22/bin/node bindings/node/bench/scrapes.js
	@echo
	TALEA_ADDON=$(abspath $(TARGET))/node-binding/talea.node ROUNDS=$(or $(ROUNDS),21) bindings/node/node_modules/node22/bin/node bindings/node/bench/http.js

bench-python: setup ## Compare the package for Python with prometheus_client (ROUNDS=7)
	scripts/python build
	$(TARGET)/python-binding/bin/python bindings/python/bench/calls.py --rounds $(or $(ROUNDS),7)
	@echo
	$(TARGET)/python-binding/bin/python bindings/python/bench/scrapes.py

bench-python-http: setup ## Compare middleware for Python under load (ROUNDS=5 SECONDS=3)
	@scripts/setup --wrk
	scripts/python build
	$(TARGET)/python-binding/bin/python -m pip install --quiet --disable-pip-version-check -r bindings/python/bench/requirements.txt
	$(TARGET)/python-binding/bin/python bindings/python/bench/bench_http.py --rounds $(or $(ROUNDS),5) --seconds $(or $(SECONDS),3)

# PROMPHP names the folder of promphp/prometheus_client_php.
bench-php: setup ## Compare the extension for PHP with promphp's storages (PROMPHP=folder; short: QUICK=1)
	@scripts/setup --php
	@scripts/bench-php

php: setup ## Build the extension for PHP, test it beside the agent and under Valgrind
	@scripts/setup --php
	@$(CARGO) build --release --locked --quiet -p talea-tools
	@scripts/php
	@scripts/php valgrind

setup: ## Check for what building needs, install it on Debian
	@scripts/setup

setup-lint: ## Install what `make lint` needs beyond that
	@scripts/setup --lint

setup-docs: ## Install what `make docs` needs beyond that
	@scripts/setup --docs

setup-test: ## Install what the tests need beyond that
	@scripts/setup --test
