# Everything happens in .venv, made on first use. `make demo` and `make test` need nothing but Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# A folder with real text for `make bench` and the results tables; see docs/results.md.
DATA ?= ../shared/data
LICENCE ?= Apache-2.0
# The peers that `make bench` measures against live beside us in an environment of their own.
BENCH := .venv-bench

.PHONY: demo test lint bench bench-quick house clean

demo: $(VENV)/.installed
	$(BIN)/headstart demo

test: $(VENV)/.tested
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.linted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench --data $(DATA)

bench-quick: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench --data $(DATA) --quick

# For maintainers: finished runs of the three recipes, in RUNS, into the package; what it prints goes into catalogue.toml.
house: $(VENV)/.installed
	$(BIN)/python -m bench.house --runs $(RUNS) --held-out $(HELD_OUT) --text "$(TEXT)" --licence "$(LICENCE)"

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(PIP) -e '.[test]'
	touch $@

$(VENV)/.linted: $(VENV)/.tested
	$(PIP) -e '.[lint]'
	touch $@

$(BENCH)/.installed: pyproject.toml constraints.txt bench/peers/requirements.txt bench/peers/install.py
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]' -r bench/peers/requirements.txt
	$(BENCH)/bin/python -m bench.peers.install
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) .demo .pytest_cache .mypy_cache .ruff_cache
