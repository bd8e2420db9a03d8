# Talea: the two commands that a newcomer needs are `make demo` and `make test`.

CARGO ?= cargo
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: demo test test-long bench setup setup-test build

# Builds, runs the study on the embedded default, prints the table, says where
# the report is.
demo: build
	@target/release/talea study

build: setup
	@$(CARGO) build --release --locked -p talea-cli -p items-api

# Everything that CI runs.
test: setup-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) build --locked --workspace
	$(CARGO) test --locked --workspace

# What takes longer: more kills, other platforms.
test-long: test
	TALEA_KILLS=1000 $(CARGO) test --locked -p talea-region --test killed
	scripts/other-platforms

# Talea beside its peers, in one run. ONLY=counter-kept runs one group.
bench: setup
	$(CARGO) run --release --locked -p talea-bench -- $(if $(ONLY),--only $(ONLY))

# What building needs.
setup:
	@scripts/setup

# What the tests need beyond that.
setup-test:
	@scripts/setup --test
