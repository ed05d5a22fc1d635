# Every target sets up what it needs in .venv, starting from nothing but Python 3.11 or newer.
# Variables: PYTHON (interpreter that makes .venv; found when empty), PYTEST_ARGS, BENCH_ARGS.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test lint kernels format bench clean

VENV := .venv
PYTHON ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Versions that are known to work together; the package itself has ranges. Python compiles what is imported: all of
# what is installed would take half a minute.
PIP_INSTALL := $(VENV)/bin/python -m pip install --quiet --no-input --no-compile --disable-pip-version-check -c constraints.txt

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.base-installed  ## rank the modules of Python's own standard library, no data to fetch
	@$(VENV)/bin/seedrank demo

test: $(VENV)/.dev-installed  ## run the tests
	@$(VENV)/bin/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(VENV)/.dev-installed  ## style, types, import layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

kernels: $(VENV)/.dev-installed  ## compile what runs on CPUs, so that the first tests do not have to
	@$(VENV)/bin/python tests/compile_kernels.py

format: $(VENV)/.dev-installed  ## rewrite the sources in the project's style
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(VENV)/.base-installed  ## start-up time and peak memory (some minutes and GB; see benchmarks/README.md)
	@$(VENV)/bin/python benchmarks/startup.py
	@$(VENV)/bin/python benchmarks/memory.py $(BENCH_ARGS)

clean:  ## remove .venv, caches, builds and the demo's output
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist seedrank-demo
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# A name on PATH proves little (version managers put placeholders there), so each candidate has to run. The stamp,
# written last, makes an interrupted set-up start over.
$(VENV)/.created:
	@python=; \
	for candidate in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3); do \
	    if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        python="$$candidate"; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "error: no Python 3.11 or newer with the venv module was found on PATH" >&2; \
	    echo "fix: install one (Debian, Ubuntu: python3 and python3-venv), or name it: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	fi; \
	"$$python" -m venv --clear $(VENV)
	@touch $@

# Editable: a changed source file needs no new install.
$(VENV)/.base-installed: pyproject.toml constraints.txt | $(VENV)/.created
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(VENV)/.created
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $(VENV)/.base-installed $@
