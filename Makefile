# make demo    install into .venv and run the main example
# make test    install the test extras too, then run every test but the long proofs
# make lint    formatting, lint, types
# make formal  run every proof about the circuits, and what else of them takes minutes; with ARGS,
#              only the proofs whose names start so
# make wheel   build the wheel into dist/
# make clean   remove everything that make has made
#
# PYTHON=python3.12 chooses the interpreter; ARGS="tests/ir -x" goes to pytest, the proofs or the demo.

PYTHON ?= python3
VENV ?= .venv
EDITABLE ?= lenient
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --config-settings editable_mode=$(EDITABLE)

# A stamp carries a checksum of the checkout's place: an environment that was moved or copied with its
# folder still points at the old one, so it is made anew.
PLACE := $(shell printf '%s' "$(CURDIR)" | cksum | cut -d' ' -f1)
CREATED := $(VENV)/.created-$(PLACE)
INSTALLED := $(VENV)/.installed-$(PLACE)
TESTABLE := $(VENV)/.testable-$(PLACE)
LINTABLE := $(VENV)/.lintable-$(PLACE)

.DEFAULT_GOAL := help
.PHONY: help demo test formal lint wheel simulators clean FORCE
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(INSTALLED)
	$(BIN)/scalebox run examples/mx_matmul.py $(ARGS)
	@echo
	@echo "Next: $(BIN)/scalebox run examples/mx_matmul.py --param K=4096"
	@echo "      or change a number in examples/mx_matmul.py and run make demo again."

test: $(TESTABLE) simulators
	$(BIN)/python -m pytest -n 2 -m "not formal" $(ARGS)

formal: $(TESTABLE)
	$(BIN)/python -m scalebox.rtl.formal $(ARGS)
	$(if $(strip $(ARGS)),,$(BIN)/python -m pytest tests/rtl -m formal -k "wrong_circuit or in_one_piece" -s)

lint: $(LINTABLE) build/typing/scalebox
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright --pythonpath $(BIN)/python

# A stale build/lib would put deleted modules into the wheel.
wheel: $(LINTABLE)
	rm -rf build/lib dist
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) build dist scalebox.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED): $(if $(wildcard $(BIN)/python),,FORCE)
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: there must be a Python 3.11 or newer, and '$(PYTHON)' is not a command." >&2; \
	  echo "make: name one that you have, for example: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Python must be 3.11 or newer, not $$($(PYTHON) -V 2>&1) ('$(PYTHON)')." >&2; \
	  echo "make: name another one, for example: make demo PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating the virtual environment $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "make: '$(PYTHON)' must have the venv module (on Debian: apt-get install python3-venv)." >&2; \
	  rm -rf $(VENV); exit 1; }
	@touch $@

$(INSTALLED): $(CREATED) pyproject.toml
	@echo "Installing scalebox into $(VENV); the first time takes a minute"
	@$(INSTALL) --editable .
	@touch $@

$(TESTABLE): $(CREATED) pyproject.toml
	@echo "Installing scalebox and what its tests need into $(VENV); the first time takes a minute"
	@$(INSTALL) --editable '.[test]'
	@touch $@ $(INSTALLED)

$(LINTABLE): $(CREATED) pyproject.toml
	@echo "Installing scalebox, what its tests need and the checkers into $(VENV)"
	@$(INSTALL) --editable '.[test,dev]'
	@touch $@ $(INSTALLED) $(TESTABLE)

# The root is the package, and no checker follows an editable install to it: this link is where
# `extraPaths` of pyproject.toml finds the name `scalebox`.
build/typing/scalebox:
	@mkdir -p build/typing
	@ln -sfn ../.. $@

simulators:
	@command -v iverilog >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as_root=''; \
	  elif sudo -n true 2>/dev/null; then as_root='sudo -n'; else as_root=no; fi; \
	  if [ "$$as_root" != no ] && command -v apt-get >/dev/null; then \
	    echo "Installing Icarus Verilog with apt-get"; \
	    { $$as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	      $$as_root apt-get install -y -qq --no-install-recommends iverilog; } >/dev/null </dev/null || true; \
	  fi; \
	  command -v iverilog >/dev/null || \
	    echo "Missing: Icarus Verilog (the command iverilog; on Debian the package iverilog). Tests that need it are skipped (in CI they fail)."; }
	@for tool in perl make g++; do command -v $$tool >/dev/null || \
	  echo "Missing: $$tool, which Verilator needs."; done

FORCE:
