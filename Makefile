.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements/dev.lock
RUN_LOCK := requirements/all.lock
TRAIN := requirements/train.txt
TRAIN_STAMP := $(VENV)/.installed-train
LOCKED := $(VENV)/locked.txt
# One more than there are cores: tests wait for browsers, servers and clocks.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu) + 1)
SPREAD = --numprocesses $(WORKERS) --dist worksteal
# Tests start many programs: what was compiled once is kept, even where the machine says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test golden golden-accept test-train test-outside test-focus test-versions test-laws test-scale test-crash coverage lint format docs reference bench bench-truth bench-plans bench-viewers bench-ray bench-scale bench-peers fuzz screenshots wheel sbom audit lock clean

help: ## what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

$(STAMP): pyproject.toml $(LOCK) hatch_build.py $(wildcard src/gpuledger/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gpuledger needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' $(LOCK))"
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes $(LOCK)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 src
	@$(BIN)/uv pip freeze --quiet --python $(BIN)/python --exclude-editable | grep -Ev '^(pip|setuptools)==' > $(LOCKED)
	@touch $@

# pip rather than uv: it takes the CPU build of torch where one is offered. What the lock put there stays as it is.
$(TRAIN_STAMP): $(STAMP) $(TRAIN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCKED) --requirement $(TRAIN)
	@touch $@

demo: $(STAMP) ## make the sample fleet, post it, write report.html, print the summary
	$(BIN)/gpuledger demo

test: $(STAMP) ## run the tests on all cores
	@command -v chromium >/dev/null || echo "chromium is not installed: the browser tests of the dashboard are skipped (apt-get install chromium)"
	@command -v prometheus >/dev/null || echo "Prometheus is not installed: its tests are skipped (apt-get install prometheus)"
	@test -x $(FOCUS)/bin/focus-validator || echo "the FOCUS validator is not installed: its test is skipped (make test-focus)"
	$(BIN)/python -m pytest -m "not torch and not scale" $(SPREAD)

test-scale: $(STAMP) ## kills, Ray, S3, Prometheus, notebooks, hostile files, the agent, the wheel, a plugin, a browser
	@command -v chromium >/dev/null || echo "chromium is not installed: a browser at a growing lake is skipped (apt-get install chromium)"
	@command -v prometheus >/dev/null || echo "Prometheus is not installed: its tests are skipped (apt-get install prometheus)"
	@command -v cc >/dev/null || echo "no C compiler: kills at exact calls are skipped (apt-get install gcc libc6-dev)"
	@command -v systemd-analyze >/dev/null || echo "systemd is not installed: the check of its units is skipped (apt-get install systemd)"
	$(BIN)/python -m pytest -m "scale and not torch" $(SPREAD)

test-laws: $(STAMP) ## look for new counterexamples: every law with ten times the examples, others each time
	$(BIN)/python -m pytest -m "hypothesis and not torch and not scale" --hypothesis-profile=laws $(SPREAD)

coverage: $(STAMP) ## run the tests and show the lines they do not reach; takes half as long again
	$(BIN)/python -m pytest -m "not torch" $(SPREAD) --cov --cov-report=term:skip-covered

test-train: $(TRAIN_STAMP) ## run the tests that need torch, installing it first
	$(BIN)/python -m pytest -m torch $(SPREAD) $$(grep -rl --include='test_*.py' 'mark[.]torch' tests)

FOCUS := .venv-focus
$(FOCUS)/.installed: $(STAMP) requirements/focus.lock
	@$(BIN)/uv venv --quiet --python $(BIN)/python $(FOCUS)
	@$(BIN)/uv pip sync --quiet --python $(FOCUS)/bin/python --require-hashes requirements/focus.lock
	@touch $@

golden: $(STAMP) ## compare what the commands answer with what they answered before; prints every figure that moved
	$(BIN)/python tests/golden/golden.py

golden-accept: $(STAMP) ## take over the moved figures that tests/golden/changes.csv lists, and what is new
	$(BIN)/python tests/golden/golden.py --accept

test-focus: $(FOCUS)/.installed ## check FOCUS rows with the FinOps Foundation's validator
	$(BIN)/python -m pytest tests/live/test_focus_files.py -k validator

VERSIONS ?= lowest newest
test-versions: $(STAMP) ## every room on the lowest versions pyproject.toml allows and the newest there are (VERSIONS=lowest: only those)
	@for set in $(VERSIONS); do $(BIN)/python tests/versions/run.py $$set || exit 1; done

test-outside: $(STAMP) ## compare shipped figures with the files they came from (OUTSIDE=folder of those files)
	@test -d "$(OUTSIDE)" || { echo "name the folder of those files: make test-outside OUTSIDE=folder"; exit 2; }
	GPULEDGER_OUTSIDE="$(OUTSIDE)" $(BIN)/python -m pytest tests/outside

KILLS ?= 50
SEED ?= 1
test-crash: $(STAMP) ## kill commands at exact calls and random moments (KILLS=1000 SEED=1 UPDATE=docs/results/crash.md)
	@command -v cc >/dev/null || { echo "exact faults need a C compiler: apt-get install gcc libc6-dev"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m crash --kills $(KILLS) --seed $(SEED) $(if $(UPDATE),--update $(UPDATE))

lint: $(STAMP) ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## build the documentation into site/; a broken link or a stale command reference fails
	$(BIN)/python docs/reference/cli.py --check
	$(BIN)/python docs/reference/columns.py --check
	$(BIN)/python docs/reference/formats.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: $(STAMP) ## write docs/reference/cli.md from the commands, columns.md from the columns, formats.md from the formats
	$(BIN)/python docs/reference/cli.py
	$(BIN)/python docs/reference/columns.py
	$(BIN)/python docs/reference/formats.py

bench: $(STAMP) ## side by side with pandas, 0.5 and 50 million samples; errors of the planners
	$(BIN)/python benchmarks/books.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/plan_errors.py
	$(BIN)/python benchmarks/plan_models.py --check
	$(BIN)/python benchmarks/anomalies/score.py

TRUTH ?= $(OUTSIDE)/h200_truth
bench-truth: $(STAMP) ## accuracy through import, analyze and audit against what really ran (TRUTH=folder of a recording)
	@if test -f $(TRUTH)/samples.csv.gz -a -f $(TRUTH)/truth.json; then \
	  $(BIN)/python benchmarks/truth/score.py $(TRUTH) benchmarks/truth/recordings/* --update docs/results/h200.md README.md; \
	else \
	  echo "$(TRUTH) holds no recording; scoring those of the project alone, without writing the tables."; \
	  echo "Make one on a GPU with activity counters (Hopper or later) that has torch:"; \
	  echo "  python benchmarks/truth/record_truth.py OUT && make bench-truth TRUTH=OUT"; \
	  $(BIN)/python benchmarks/truth/score.py benchmarks/truth/recordings/*; \
	fi

PLANS := spot regions batch autoscale tco capacity
bench-plans: $(STAMP) ## planners against simple rules, brute force, closed forms and history (OUTSIDE=folder of the traces)
	@if test -d "$(OUTSIDE)"; then \
	  for plan in $(PLANS); do $(BIN)/python benchmarks/plans/$$plan.py --data "$(OUTSIDE)" --update docs/results/plans-$$plan.md || exit 1; done; \
	else \
	  echo "No folder of traces and price histories$(if $(OUTSIDE), at $(OUTSIDE)): running what needs none, without writing the tables."; \
	  echo "Each planner says what it leaves out. With them: make bench-plans OUTSIDE=folder"; \
	  for plan in $(PLANS); do echo "== plan $$plan"; $(BIN)/python benchmarks/plans/$$plan.py || exit 1; done; \
	fi

bench-viewers: $(STAMP) ## the dashboard under 200 and 1,000 viewers
	$(BIN)/python benchmarks/viewers.py

bench-ray: $(STAMP) ## one Ray node against two, and four where there are cores
	$(BIN)/python benchmarks/ray_nodes.py --update docs/ray.md

bench-scale: $(STAMP) ## ten weeks of 50.4 million samples, one after the other; takes half an hour and 40 GB
	$(BIN)/python benchmarks/scale.py --out docs/results/scale.json
	$(BIN)/python benchmarks/scale_page.py docs/results/scale.json --update docs/scale.md

fuzz: $(STAMP) ## give every reader 100,000 hostile files, and files that become enormous
	$(BIN)/python fuzz/run.py --inputs 100000
	$(BIN)/python fuzz/bombs.py

PEERS ?= .venv-peers
bench-peers: $(STAMP) ## side by side with other tools: analysis, start-up, memory, FLOPs (Spark needs Java 17)
	@test -x $(PEERS)/bin/python || ($(BIN)/python -m venv $(PEERS) && $(PEERS)/bin/pip install -q pyspark==4.3.0 polars==2.1.0 gpustat==1.1.1 nvitop==1.7.2 \
	  && $(BIN)/python -c "import site; print(site.getsitepackages()[0])" > $$($(PEERS)/bin/python -c "import site; print(site.getsitepackages()[0])")/main.pth)
	$(BIN)/python benchmarks/peers/run.py --peers $(PEERS)/bin/python --update docs/results/peers.md

screenshots: $(STAMP) ## pictures of the dashboard for the documentation
	$(BIN)/python benchmarks/screenshots.py

BUILD = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
wheel: $(STAMP) ## build the wheels (this machine's, and one for any) and the source archive into dist/; same commit, same bytes
	@rm -rf dist
	GPULEDGER_NATIVE=on $(BUILD)
	GPULEDGER_NATIVE=off $(BUILD) --wheel
	@rm -f dist/.gitignore
	@awk '/^uv==/{on=1} on{print} on&&!/\\$$/{exit}' $(LOCK) > dist/uv.lock
	@cd dist && sha256sum *.whl *.tar.gz

RELEASE := .venv-release
$(RELEASE)/.installed: $(STAMP) requirements/release.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(RELEASE)
	@$(BIN)/uv pip sync --quiet --python $(RELEASE)/bin/python --require-hashes requirements/release.lock
	@touch $@

sbom: $(RELEASE)/.installed ## write dist/gpuledger.cdx.json: what a full install brings along (CycloneDX)
	@mkdir -p dist && rm -rf .venv-sbom && $(BIN)/uv venv --quiet --python $(BIN)/python .venv-sbom
	@$(BIN)/uv pip sync --quiet --python .venv-sbom/bin/python --require-hashes $(RUN_LOCK)
	@sed 's/^dynamic = \["version"\]/version = "'"$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/gpuledger/version.py)"'"/' pyproject.toml > .venv-sbom/pyproject.toml
	$(RELEASE)/bin/cyclonedx-py environment .venv-sbom/bin/python --pyproject .venv-sbom/pyproject.toml --mc-type application --output-reproducible --of JSON -o dist/gpuledger.cdx.json

audit: $(RELEASE)/.installed ## look for known vulnerabilities in everything locked (offline: ADVISORIES=folder or zip in OSV format)
ifdef ADVISORIES
	$(RELEASE)/bin/python requirements/advisories.py $(ADVISORIES) $(RUN_LOCK) $(LOCK) requirements/release.lock
else
	@for lock in $(RUN_LOCK) $(LOCK) requirements/release.lock; do \
	  $(RELEASE)/bin/pip-audit --requirement $$lock --disable-pip --require-hashes --strict || exit 1; done
endif

lock: ## resolve the locked versions again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra all pyproject.toml -o $(RUN_LOCK)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev --extra charts --extra otel --extra plan --extra ray --extra stores --extra tui --extra web --extra xlsx pyproject.toml requirements/tools.in -o $(LOCK)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate requirements/release.in -o requirements/release.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --resolution lowest-direct --generate-hashes --no-header --no-annotate --group golden --extra all --extra remote pyproject.toml -o requirements/lowest.lock

clean: ## remove what was made
	rm -rf $(VENV) site dist gpuledger-demo gpuledger-data .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
