# Talea: the two commands that a newcomer needs are `make demo` and `make test`.

CARGO ?= cargo
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The benchmarks' peers need a newer Rust than Talea does.
BENCH_RUST := 1.90
RUST := $(shell rustc --version 2>/dev/null | cut -d' ' -f2)
OLDER := $(shell printf '%s\n' $(BENCH_RUST) $(RUST) | sort -V | head -n 1)
ALL := --workspace $(if $(filter $(BENCH_RUST),$(OLDER)),,--exclude talea-bench)

.PHONY: help demo study-postgres study-overhead study-agent test test-lint test-rust test-models test-php \
	test-python test-package test-quick test-long lint bench bench-http bench-load bench-php php setup \
	setup-test build

# Parts run one after the other, also with -j.
.NOTPARALLEL:

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

# Builds, runs the study on the embedded default, prints the table, says where
# the report is.
demo: build ## builds, runs a study, says where its report is
	@$(CARGO) run --release --locked --quiet -p talea-cli -- study

# The same on a PostgreSQL of its own.
study-postgres: build ## the same study on PostgreSQL
	@scripts/postgres $(CARGO) run --release --locked --quiet -p talea-cli -- study --out target/study-postgres

# What its metrics cost the items API: without, with, with quantiles, in turns.
study-overhead: build ## what metrics cost a service
	@$(CARGO) run --release --locked --quiet -p talea-cli -- study --cases 50x200 --rounds $(or $(ROUNDS),10) \
		--out target/study-overhead --ab ITEMS_METRICS=off ITEMS_METRICS=on ITEMS_METRICS=quantiles

# What it costs the items API that an agent outside, which is scraped once a second, reads its
# metrics: alone, and beside one, in turns.
study-agent: build ## what an agent beside it costs a service
	@$(CARGO) run --release --locked --quiet -p talea-cli -- study --cases $(or $(CASES),50x5s) \
		--rounds $(or $(ROUNDS),20) --out target/study-agent --url http://127.0.0.1:4310/api/items \
		--ab 'scripts/items-outside alone 4310' 'scripts/items-outside scraped 4310'

build: setup ## the binary and the example service
	@$(CARGO) build --release --locked -p talea-cli -p items-api

# A model checker tries the region's code in every order of events; the bound is on
# how often a thread is interrupted.
MODELS := RUSTFLAGS="--cfg loom"
MODEL_TEST := $(CARGO) test --release --locked --target-dir target/models -p talea-region --lib

# Everything that CI runs.
test: setup-test test-lint test-rust test-models test-php test-package ## everything that CI runs

test-lint: ## formatting, Clippy, rustdoc
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(ALL) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked $(ALL) --no-deps

test-rust: setup-test ## the tests of all crates
	$(CARGO) build --locked $(ALL)
	$(CARGO) test --locked $(ALL)
	$(CARGO) test --locked -p talea-collectors --all-features

test-models: ## the region under a model checker
	$(MODELS) LOOM_MAX_PREEMPTIONS=2 $(MODEL_TEST)

test-php: setup-test ## the extension for PHP
	PROFILE=debug scripts/php --exclude-group slow

test-python: setup-test ## what Python's own client reads of our pages
	$(CARGO) test --locked -p talea-tests --test python

test-package: ## whether the crates can be published
	scripts/publishable

test-quick: ## formatting, lints and unit tests: before a commit
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(ALL) -- -D warnings
	$(CARGO) test --locked --workspace --exclude talea-bench --lib

# Dependencies are looked at by cargo-deny, which is installed if it is missing.
lint: test-lint ## formatting, Clippy, rustdoc, dependencies
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check licenses bans sources

# What takes longer: more kills, adds, series and damage, ten minutes of all of it at once, a current
# Prometheus, models, PHP in threads, Miri, fuzzing, other platforms.
test-long: test ## more of it: kills, damage, floods, fuzzing, other platforms
	TALEA_KILLS=1000 TALEA_ADDS=100000000 TALEA_TURNOVER=10000000 \
		$(CARGO) test --release --locked -p talea-region
	TALEA_KILLS=300 $(CARGO) test --release --locked -p talea -p talea-tests \
		--test killed_observers --test native
	TALEA_MUTATIONS=10000 $(CARGO) test --release --locked -p talea-cli --test serve_damaged
	TALEA_MINUTES=10 $(CARGO) test --release --locked -p talea-cli --test everything_at_once
	$(CARGO) build --release --locked -p items-api
	TALEA_STUDY_CASES=A,B,C,D,E $(CARGO) test --release --locked -p talea-cli --test study_of_databases
	TALEA_PROMETHEUS=$$(scripts/prometheus) $(CARGO) test --release --locked -p talea-tests \
		--test current --test dashboard
	$(MODELS) LOOM_MAX_PREEMPTIONS=3 $(MODEL_TEST)
	$(MAKE) php
	scripts/php zts
	scripts/miri
	scripts/fuzz 30
	scripts/other-platforms

# Talea beside its peers, in one run. ONLY=counter-kept runs one group;
# BASE=<revision> compares with an earlier build of ourselves instead.
bench: setup ## Talea beside its peers; ONLY=GROUP, BASE=REVISION
	@$(if $(BASE),scripts/bench-base $(BASE))
	@scripts/setup --bench || echo 'bench: the counts of instructions are left out' >&2
	@$(CARGO) build --release --locked --quiet -p talea-bench -p talea-cli
	$(CARGO) run --release --locked -p talea-bench -- $(if $(ONLY),--only $(ONLY)) $(if $(BASE),--base target/bench-base/talea-bench)

# What metering costs a service under load. ROUNDS=2 SECONDS=1 REFERENCE_ROUNDS=0 is
# a short look.
bench-http: setup ## what metering costs a service under load
	@scripts/setup --bench-http
	@$(CARGO) build --release --locked --quiet -p talea-bench-http
	$(CARGO) run --release --locked --quiet -p talea-bench-http -- metering $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(REFERENCE_ROUNDS),--reference-rounds $(REFERENCE_ROUNDS))

# What making load costs, beside wrk. ROUNDS=2 SECONDS=1 is a short look.
bench-load: setup ## what making load costs
	@scripts/setup --bench-http
	@$(CARGO) build --release --locked --quiet -p talea-bench-http -p talea-cli
	$(CARGO) run --release --locked --quiet -p talea-bench-http -- generators $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS))

# The extension for PHP beside the engines of promphp/prometheus_client_php, where PROMPHP names
# its folder. QUICK=1 is a short look.
bench-php: setup ## the extension for PHP beside its peers
	@scripts/setup --php
	@scripts/bench-php

# The extension for PHP: built, tested beside the agent, tested under Valgrind.
php: setup ## the extension for PHP: built, and tested under Valgrind too
	@scripts/setup --php
	@$(CARGO) build --release --locked --quiet -p talea-cli
	@scripts/php
	@scripts/php valgrind

# What building needs.
setup: ## installs what building needs
	@scripts/setup

# What the tests need beyond that.
setup-test: ## installs what the tests need
	@scripts/setup --test
