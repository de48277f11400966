# The two commands of the README are `make run` and `make test`; each does the set-up it needs.
# Builds go to ${XDG_CACHE_HOME:-~/.cache}/palyra/target-<rustc version> unless CARGO_TARGET_DIR is set.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test test-all figures eval reference deny fuzz

help: ## Show the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run: ## Build Palyra and watch a task run, with no key and no network
	@bash scripts/setup.sh run
	@bash scripts/demo.sh

test: ## Check formatting, lints, all tests and the generated pages
	@bash scripts/setup.sh test
	@bash scripts/test.sh

test-all: test ## The same, and the kill, fault and tamper batteries at full length: hours
	@bash scripts/batteries.sh

figures: ## Measure (ONLY=name measures one) and print each figure with its aim
	@bash scripts/setup.sh figures
	@bash scripts/figures.sh $(ONLY)

eval: ## Measure what a hostile model can do, and how often an honest user is asked (ARGS=everyday: in everyday tasks)
	@bash scripts/setup.sh run
	@bash evals/run.sh $(ARGS)

reference: ## Write the generated pages of docs/ anew
	@bash scripts/setup.sh run
	@bash scripts/reference.sh write

fuzz: ## Throw bytes at every decoder (TARGET=name tries one, SECONDS_EACH=n for longer)
	@bash scripts/setup.sh run
	@bash scripts/fuzz.sh $(or $(TARGET),all) $(or $(SECONDS_EACH),60)

deny: ## Check licences, banned crates and sources of all dependencies
	@bash scripts/setup.sh run
	@bash scripts/deny.sh
