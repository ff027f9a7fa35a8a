# Two commands on a fresh machine, each doing its own set-up:  make demo  ·  make test
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PINNED  = -c constraints/constraints.txt

.PHONY: demo test lint bench soak clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    softmax against ArcFace on MNIST in 3-D: figures, GIFs and report.pdf in runs/"
	@echo "make test    lint, types and tests"
	@echo "make lint    lint and types only"
	@echo "make bench   speed against a peer, in the same run"
	@echo "make soak    the slow tests"
	@echo "make clean   remove what the others made, except runs/"

demo: $(VENV)/.demo
	$(BIN)/arcwise compare mnist --losses softmax,arcface --dim 3 --fallback digits --resume

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.demo
	$(BIN)/arcwise bench mnist-epoch

soak: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "slow or not slow"

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints/constraints.txt
	$(BIN)/python -m pip install --disable-pip-version-check $(PINNED) -e ".[demo]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints/constraints.txt
	$(BIN)/python -m pip install --disable-pip-version-check $(PINNED) -e ".[dev]"
	@touch $@
