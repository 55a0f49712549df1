# Each target sets up what it needs. Only Python (3.11, which constraints.txt is for), make and the package registry are
# required.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
COMPAT := .venv-compat
CORE := .venv-core
ANCHORS := .venv-anchors
AUDIT := .venv-audit
TWO_AT_A_TIME := -n 2 --dist loadfile

.PHONY: help setup compare reproduce test test-slow lint docs docs-links bench anchors reliability audit compat core dist clean

help:
	@echo "make compare    set up and compare all methods on all tasks: the main job"
	@echo "make reproduce  every experiment of the paper, and which of its claims hold"
	@echo "make test       set up and run the tests"
	@echo "make test-slow  the tests marked slow as well"
	@echo "make lint       ruff and mypy"
	@echo "make docs       the documentation, with the tutorials executed, into build/docs/index.html"
	@echo "make docs-links asks the web whether the links to other sites still lead somewhere"
	@echo "make bench      every performance claim, as a ratio against a plain baseline"
	@echo "make anchors    the solvers of other projects, which make bench measures against, in .venv-anchors"
	@echo "make reliability  the trials of hardening, with counts, into docs/reliability.md"
	@echo "make audit      known vulnerabilities of the versions in constraints.txt; asks the package index"
	@echo "make compat     the tests with the newest Gymnasium and Stable-Baselines3"
	@echo "make core       the tests of everything that does not need imitation, with the newest versions"
	@echo "make dist       the files of a release, with their metadata checked, into dist/"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

compare: setup
	$(PY) scripts/compare.py

reproduce: setup
	$(PY) scripts/reproduce.py

test: setup
	$(PY) -m pytest $(TWO_AT_A_TIME)

test-slow: setup
	$(PY) -m pytest $(TWO_AT_A_TIME) -m "slow or not slow"

# mypy cannot follow the mapping of envs/ and baselines/ in a source tree, so it checks an installed copy.
lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	rm -rf build/types
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --target build/types .
	cd build/types && ../../$(PY) -m mypy --config-file ../../pyproject.toml -p rlfd_gym

$(VENV)/.docs: $(VENV)/.ready
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,tasks,docs]'
	touch $@

# Warnings are errors. Afterwards every link within the site is followed, and the examples of every page are run.
docs: $(VENV)/.docs
	rm -rf build/docs
	$(PY) -m sphinx --quiet --nitpicky --fail-on-warning --keep-going -b html docs build/docs
	$(PY) scripts/check_site.py build/docs
	$(PY) -m pytest --quiet -n 2 -m "slow or not slow" tests/test_docs.py -k examples_of_the_pages
	@echo "written: build/docs/index.html"

docs-links: $(VENV)/.docs
	$(PY) -m sphinx --quiet -b linkcheck -D nb_execution_mode=off docs build/links

bench: setup anchors
	$(PY) scripts/benchmark.py

# The solvers of other projects have an environment of their own, so that their needs cannot clash with ours.
anchors: $(ANCHORS)/.ready

$(ANCHORS)/.ready:
	$(PYTHON) -m venv $(ANCHORS)
	$(ANCHORS)/bin/python -m pip install --quiet --disable-pip-version-check ortools==9.15.6755 clarabel==0.11.1 \
		piqp==0.6.4 mdpsolver==0.10.2 quantecon==0.11.4 numpy scipy
	touch $@

reliability: setup
	$(PY) scripts/reliability.py

$(AUDIT)/.ready:
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	touch $@

# Every version is pinned, so nothing has to be resolved or installed.
audit: $(AUDIT)/.ready
	$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

# The newest of everything, but for torch, so that one download serves both environments. imitation comes last and
# without its dependencies, which would take Gymnasium and Stable-Baselines3 back by years.
$(COMPAT)/.ready: pyproject.toml
	$(PYTHON) -m venv $(COMPAT)
	$(COMPAT)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		'gymnasium<2' $(shell grep '^torch==' constraints.txt) tensorboard pymdptoolbox \
		-e '.[trainer,data,render,dev,bench,cluster,report,logs]'
	$(COMPAT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps imitation==1.0.1
	touch $@

compat: $(COMPAT)/.ready
	$(COMPAT)/bin/python -c "import sys, importlib.metadata as m; print('Python', sys.version.split()[0], *(f'{n} {m.version(n)}' for n in ('gymnasium', 'stable-baselines3', 'imitation', 'torch', 'numpy')))"
	$(COMPAT)/bin/python -m pytest $(TWO_AT_A_TIME)

$(CORE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[data,render,dev,bench,cluster,report,logs]'
	touch $@

core: $(CORE)/.ready
	$(CORE)/bin/python -m pytest $(TWO_AT_A_TIME) -m "not slow and not needs_imitation"

$(VENV)/.release: $(VENV)/.ready
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,release]'
	touch $@

dist: $(VENV)/.release
	rm -rf dist
	$(PY) -m build
	$(PY) -m twine check --strict dist/*

clean:
	rm -rf $(VENV) $(COMPAT) $(CORE) $(AUDIT) $(ANCHORS) build dist *.egg-info
