# make run: the main job on data of its own. make test: every test. `make help` lists the rest.
CARGO ?= cargo
# One profile for everything: the heavy dependencies compile once.
RELEASE := --release --locked
FUZZ_SECONDS ?= 60

.PHONY: help run test lint deny deb test-on-clickhouse sweep study fuzz miri clean

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

run: ## A dictionary of a million users on SSD, filled from SQLite, answers SQL
	$(CARGO) run $(RELEASE) -p granary -- demo

CACHE_FEATURES := granary-cache/async,granary-cache/serde
# Of the whole workspace, also where few tests are named: what they need is then built as for all others.
TEST := $(CARGO) test $(RELEASE) --workspace
# Formats and answers are compared with their files, never written there.
unexport GRANARY_GOLDEN
# What a machine lacks keeps some tests from their work: they say so in this file.
SKIPPED := $(CURDIR)/target/skipped-tests

test: export GRANARY_SKIPPED_TESTS = $(SKIPPED)
test: ## All tests, with the servers they need
	scripts/install-test-servers.sh
	mkdir -p target && : > $(SKIPPED)
	$(TEST)
	$(TEST) --features $(CACHE_FEATURES) --test typed --test asynchronous --test callbacks --test examples
	$(TEST) --features granary-cache/shuttle,granary-volume/shuttle --test interleavings
	$(TEST) --features granary-ublk/device --test answers --test device
	$(CARGO) test $(RELEASE) -p granary-cache --features async,serde --lib
	$(CARGO) test $(RELEASE) -p granary-cache --features async,serde --doc
	@sort -u $(SKIPPED)
	@echo "$$(sort -u $(SKIPPED) | wc -l) tests skipped"

lint: ## rustfmt, and clippy with warnings denied, also of what a program may be built without (needs libclang)
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(RELEASE) --workspace --all-targets --features granary/ublk,$(CACHE_FEATURES) -- -D warnings
	$(CARGO) clippy $(RELEASE) -p granary-dict --no-default-features --lib --test features -- -D warnings

deny: ## Licences, banned and duplicate crates, where they come from
	command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

deb: ## A Debian package with a systemd unit, in target/debian
	CARGO="$(CARGO)" scripts/build-deb.sh

test-on-clickhouse: ## The SQL tests on a real ClickHouse (PyPI chdb, 0.9 GB)
	scripts/test-on-clickhouse.sh

sweep: ## Records ClickHouse's answers of every function at the edges, which the tests compare ours with
	rivals/clickhouse/setup.sh
	rivals/clickhouse/.venv/bin/python rivals/clickhouse/sweep.py

study: ## Granary beside ClickHouse, fio and PostgreSQL; writes pages of docs/studies
	scripts/install-rivals.sh
	scripts/install-test-servers.sh
	$(CARGO) run $(RELEASE) -p granary -- study dictionary
	$(CARGO) run $(RELEASE) -p granary -- study proxy
	$(CARGO) run $(RELEASE) -p granary -- study outage
	$(CARGO) run $(RELEASE) -p granary -- study volume
	rivals/values/fetch.sh
	$(CARGO) run $(RELEASE) -p granary -- study compression
	$(CARGO) run $(RELEASE) -p granary -- study cache
	rivals/foyer/study.sh

fuzz: ## Every fuzz target for FUZZ_SECONDS (60), on nightly
	CARGO="$(CARGO)" FUZZ_SECONDS="$(FUZZ_SECONDS)" scripts/fuzz.sh

miri: ## The unsafe code that miri can run
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test -p granary-log -p granary-cache --lib -- buffer block summary journal

clean: ## What was built, and the data of `make run`
	$(CARGO) clean
	rm -rf granary-demo
