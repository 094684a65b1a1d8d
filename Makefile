# make verify | make verify-all | make test: on a fresh machine with Python 3.11+ and make, nothing else.
# make verify EXTRA=cuda13 (or tpu): with what JAX needs for that accelerator, which later calls keep.
PYTHON ?= python3
VENV ?= $(if $(filter python3,$(notdir $(PYTHON))),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
EXTRA ?= $(firstword $(patsubst $(VENV)/.ready-%,%,$(wildcard $(VENV)/.ready-*)))
EXTRAS := cuda13 tpu
comma := ,
space := $(subst ,, )
PINS := $(wildcard $(EXTRA:%=constraints-%.txt))
READY := $(VENV)/.ready$(addprefix -,$(EXTRA))
ifneq ($(strip $(EXTRA)),$(filter $(EXTRAS),$(firstword $(EXTRA))))
$(error EXTRA=$(EXTRA) is not allowed: it is $(subst $(space), or ,$(EXTRAS)))
endif

.PHONY: verify verify-all test slow lint docs picture bench wheel release clean
.DELETE_ON_ERROR:

verify: $(READY)
	$(BIN)/jaxdyn verify --minutes 10 --out report

verify-all: $(READY)
	$(BIN)/jaxdyn verify --out report

test: $(READY)
	@echo "collecting some 13,000 tests: the first runs after a minute"
	$(BIN)/python -m pytest -n 2 --dist loadfile

slow: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m jaxdyn.maintain docs
	$(BIN)/python -m jaxdyn.maintain figures
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# docs/report.png: the report of a few claims that are named here, so that it counts nothing that grows; and README's figure
PICTURED := li2.stage2_curves li2.stage2_nodes_adam li2.energy_decomp_as_printed li2.boundary_energies
picture: $(READY)
	$(BIN)/jaxdyn verify $(PICTURED) --out build/picture
	$(BIN)/python -m jaxdyn.maintain picture build/picture docs/report.png
	$(BIN)/python -m jaxdyn.maintain picture build/picture docs/grokking.svg --figure $(firstword $(PICTURED))

bench: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/run_all.py

# wheel and source distribution, with the catalogue of claims and what tracing reveals of their programs
wheel: $(READY)
	$(BIN)/python -m build --no-isolation --outdir dist .

# all checks on a clean main, then a tag of its version; nothing is pushed
release: $(READY)
	$(BIN)/python -m jaxdyn.maintain release

$(READY): pyproject.toml constraints.txt $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jaxdyn needs Python 3.11 or newer, this is %d.%d; try: make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "installing into $(VENV): two to six minutes"
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(addprefix -c ,$(PINS)) -e '.[dev$(addprefix $(comma),$(EXTRA))]'
	@touch $@

clean:
	rm -rf .venv .venv-* report out build dist *.egg-info
