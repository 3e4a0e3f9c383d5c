# Everything runs in .venv, made with $(PYTHON); a target installs what it needs once, until pyproject.toml changes.
PYTHON ?= python3
CONFORMANCE_PYTHON ?= python3.12
KERNELS_PYTHON ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
# Two environments that other runs may have left, so a stamp is named after what was required, not dated.
LEVANTER := .venv-levanter
LEVANTER_PYTHON ?= python3.12
LEVANTER_STAMP = $(LEVANTER)/.$(call hash,tests/integration/levanter.txt)
REFERENCE := .venv-reference
REFERENCE_PYTHON ?= python3.11
REFERENCE_STAMP = $(REFERENCE)/.$(call hash,tests/integration/reference.txt)
hash = $(shell grep -v MHz $(1) | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16)

.PHONY: demo test test-torch examples bench lint types conformance kernels integration clean
.PHONY: integration-environments
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python examples/train_lm.py

test: $(VENV)/.test,demo
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

# Python 3.11: for later ones PyPI has torch only with CUDA, of many gigabytes.
test-torch: $(VENV)/.test,torch
	$(BIN)/python -m pytest -n auto --maxprocesses 8 tests/with_torch

# In processes of their own, as users run them; one needs Orbax.
examples: $(VENV)/.test,demo,examples
	$(BIN)/python -m pytest -n auto --maxprocesses 8 tests/examples

bench: $(VENV)/.test,demo
	@mkdir -p .benchmarks
	$(BIN)/python -m pytest -q --benchmark-quiet --benchmark-json=.benchmarks/$$(date +%Y-%m-%dT%H%M%S).json benchmarks

# Without its cache, which keeps verdicts on imports after the folders that they hung on are gone.
lint: $(VENV)/.dev
	$(BIN)/ruff check --no-cache
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python tests/typing/check.py

# The tests of the library that haliax replaces need Python 3.12, and so an environment of their own.
conformance:
	$(MAKE) VENV=.venv-conformance PYTHON=$(CONFORMANCE_PYTHON) .venv-conformance/.test,demo,conformance
	.venv-conformance/bin/python tests/conformance/run.py

# The kernels of tokamax, which needs Python 3.12: interpreted, lowered, and compiled for a TPU.
kernels:
	$(MAKE) VENV=.venv-kernels PYTHON=$(KERNELS_PYTHON) .venv-kernels/.test,kernels-test
	.venv-kernels/bin/python -m pytest -n auto --maxprocesses 8 tests/kernels

# Levanter, unchanged, on our haliax; transformers and torch are in a process of their own. What XLA compiles is kept too,
# for processors that are alike.
integration: export HALIAX_REFERENCE_PYTHON = $(abspath $(REFERENCE)/bin/python)
integration: export JAX_COMPILATION_CACHE_DIR = $(abspath $(LEVANTER)/xla/$(call hash,/proc/cpuinfo))
integration: export JAX_COMPILATION_CACHE_MAX_SIZE = 1000000000
integration: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0.1
integration: $(LEVANTER_STAMP) $(REFERENCE_STAMP)
	$(LEVANTER)/bin/python -m pip install -q --no-deps --force-reinstall .
	$(LEVANTER)/bin/python -m pytest -n auto --maxprocesses 8 --dist loadgroup tests/integration

integration-environments: $(LEVANTER_STAMP) $(REFERENCE_STAMP)

# By uv, in half a minute where pip takes six. The haliax that Levanter asks for has another name, and would be imported
# in the place of ours.
$(LEVANTER_STAMP):
	$(LEVANTER_PYTHON) -m venv --clear $(LEVANTER)
	$(LEVANTER)/bin/python -m pip install -q uv
	$(LEVANTER)/bin/python -m uv pip install -q --python $(LEVANTER)/bin/python -r tests/integration/levanter.txt
	$(LEVANTER)/bin/python -m pip uninstall -q -y marin-haliax
	@touch $@

$(REFERENCE_STAMP):
	$(REFERENCE_PYTHON) -m venv --clear $(REFERENCE)
	$(REFERENCE)/bin/python -m pip install -qq -r tests/integration/reference.txt
	@touch $@

clean:
	rm -rf $(VENV) .venv-conformance .venv-kernels $(LEVANTER) $(REFERENCE) build dist .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp is named after the extras that were installed.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[$*]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "haliax needs Python 3.11 or newer, and $(PYTHON) is older or missing: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
