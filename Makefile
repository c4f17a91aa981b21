# make demo and make test set everything up themselves; they need only python3 (3.11 or newer), make and git.
PYTHON ?= python3
BIN := .venv/bin
# With two threads, OpenMP's busy waiting slows small models a hundredfold as soon as anything else needs a core.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo test lint format bench clean
help:                     ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 12

demo: .venv/installed     ## from the documentation on this machine to chunks and a tokenizer
	$(BIN)/python -m ctxsim_hf.corpus.demo_corpus demo/documentation.jsonl
	$(BIN)/ctxsim chunk --corpus demo/documentation.jsonl --keep-columns title --workers 2 --output demo/chunks
	$(BIN)/ctxsim train-tokenizer --chunks demo/chunks --vocab-size 16000 --lowercase --output demo/tokenizer
	$(BIN)/ctxsim contexts --chunks demo/chunks

test: lint                ## ruff, mypy, pytest
	$(BIN)/pytest

lint: .venv/installed     ## ruff and mypy alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed   ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/installed    ## speed and memory, as ratios; DATA=DIR names a folder of corpora
	$(BIN)/python -m benchmarks.bench_corpus $(if $(DATA),--corpus $(DATA))

clean:                    ## remove the environment and what the demo made
	rm -rf .venv demo benchmarks/results

.venv/installed: setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Name another with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@
