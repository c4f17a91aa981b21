# make demo and make test set everything up themselves; they need only python3 (3.11 or newer), make and git.
PYTHON ?= python3
BIN := .venv/bin
# With two threads, OpenMP's busy waiting slows small models a hundredfold as soon as anything else needs a core.
export OMP_WAIT_POLICY ?= PASSIVE
# Corpora that `make artefacts` leaves out: the captions of one picture are paraphrases, which is half a label.
WITHOUT ?= flickr8k flickr30k

.PHONY: help demo test test-slow test-app artefacts lint format bench clean
help:                     ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 12

demo: .venv/installed     ## from the documentation on this machine to chunks and a tokenizer
	$(BIN)/python -m ctxsim_hf.corpus.demo_corpus demo/documentation.jsonl
	$(BIN)/ctxsim chunk --corpus demo/documentation.jsonl --keep-columns title --workers 2 --output demo/chunks
	$(BIN)/ctxsim train-tokenizer --chunks demo/chunks --vocab-size 16000 --lowercase --output demo/tokenizer
	$(BIN)/ctxsim contexts --chunks demo/chunks

test: lint                ## ruff, mypy, pytest
	$(BIN)/pytest

test-slow: .venv/installed  ## the tests that start many processes
	$(BIN)/pytest -m slow

test-app: .venv/app       ## the metric's page, driven in headless Chromium; leaves a picture, app.png
	@command -v chromium >/dev/null || $(BIN)/playwright install --with-deps chromium-headless-shell
	$(BIN)/pytest -m slow tests/hub/test_app.py

# Every command below goes on where it was interrupted, and does nothing where it is finished.
artefacts: .venv/installed  ## train everything on real text: make artefacts DATA=corpora OUT=folder
	@test -n "$(DATA)" -a -n "$(OUT)" || { echo "say where the corpora are and where to put the models: make artefacts DATA=DIR OUT=DIR"; exit 2; }
	$(BIN)/ctxsim chunk --corpus $(filter-out $(addprefix $(DATA)/,$(WITHOUT)),$(wildcard $(DATA)/*)) --workers 2 --output $(OUT)/chunks
	$(BIN)/ctxsim train-tokenizer --chunks $(OUT)/chunks --vocab-size 16000 --lowercase --output $(OUT)/tokenizer
	$(BIN)/ctxsim train discriminator --chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer --max-steps 800 --checkpoint-every 100 --output $(OUT)/discriminator
	$(BIN)/ctxsim train generator --chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer --epochs 2 --checkpoint-every 500 --output $(OUT)/generator
	$(BIN)/ctxsim index --chunks $(OUT)/chunks --discriminator $(OUT)/discriminator --generator $(OUT)/generator --workers 2 --output $(OUT)/origin

lint: .venv/installed     ## ruff and mypy alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed   ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/bench        ## speed and memory, as ratios; DATA=corpora and OUT=artefacts to measure on those
	$(BIN)/python -m benchmarks.bench_corpus $(if $(DATA),--corpus $(DATA))
	$(BIN)/python -m benchmarks.bench_training $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer)
	$(BIN)/python -m benchmarks.bench_index $(if $(OUT),--chunks $(OUT)/chunks)
	$(BIN)/python -m benchmarks.bench_origin $(if $(OUT),--origin $(OUT)/origin)
	$(BIN)/python -m benchmarks.bench_harvest $(if $(OUT),--origin $(OUT)/origin)
	$(BIN)/python -m benchmarks.bench_encode $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer)

clean:                    ## remove the environment and what the demo made
	rm -rf .venv demo benchmarks/results

.venv/app: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[app,test-app]'
	@touch $@

.venv/bench: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@touch $@

.venv/installed: setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Name another with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@
