# Everything happens in .venv, made on first use. `make demo` and `make test` need nothing but Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# A folder with real text for `make bench` and the results tables; see docs/results.md.
DATA ?= ../shared/data

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/headstart demo

test: $(VENV)/.tested
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.linted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tested
	$(BIN)/python -m bench --data $(DATA)

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

clean:
	rm -rf $(VENV) .demo .pytest_cache .mypy_cache .ruff_cache
