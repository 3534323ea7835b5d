# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run on two processes with one thread each, so that they do not fight over the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest

.PHONY: help demo bench test slow check docs format golden setup clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.ready ## train the four networks of the demo side by side and write runs/demo/index.html
	$(BIN)/auxrnn demo

bench: $(VENV)/.ready ## speed beside torch and other frameworks, and memory, on this machine (half an hour)
	$(BIN)/python -m benchmarks speed
	$(BIN)/python -m benchmarks memory

test: $(VENV)/.ready ## the tests, seven minutes on two cores
	$(PYTEST) -n 2 -m "not slow"

slow: $(VENV)/.ready ## what takes longer: learning, long kill-and-resume loops, memory, the whole demo
	$(PYTEST) -m slow --timeout 1800

check: $(VENV)/.ready ## format, lint, types, import layers, tests and documents: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) docs
	$(MAKE) test

docs: $(VENV)/.ready ## the documentation site, in build/site; its pages must ask no other server for anything
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	! grep -rnE --include='*.html' '<(script|img|link|iframe|source)[^>]*(src|href)="?https?:' build/site

format: $(VENV)/.ready ## format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(VENV)/.ready ## record the golden numbers again (say why in the commit)
	AUXRNN_REWRITE_GOLDEN=1 $(PYTEST) tests/test_golden.py tests/test_cli.py

setup: $(VENV)/.ready ## the environment and the git hooks
	git config core.hooksPath .githooks

clean: ## remove the environment and caches, never results
	rm -f src/auxrnn/kernels/*.so
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build

$(VENV)/.ready: pyproject.toml constraints.txt setup.py $(wildcard src/auxrnn/kernels/*.cpp src/auxrnn/kernels/*.h)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "auxrnn needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	rm -f src/auxrnn/kernels/*.so
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
