# The two commands of the README, and clang-tidy. Everything else: cmake --preset, tools/check,
# tools/fuzz.

JOBS := $(shell nproc)

.PHONY: demo test lint
demo:
	tools/setup
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target tessera
	tools/demo

test:
	tools/setup --test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	tools/check --no-tidy
	ctest --preset release --label-regex slow --parallel $(JOBS)
	@echo "make test: everything passed"

lint:
	tools/setup --test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target check_tidy
