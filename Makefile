# The two commands of the README. Everything else: cmake --preset, tools/check, tools/fuzz.

JOBS := $(shell nproc)

.PHONY: demo test
demo:
	tools/setup
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target tessera
	tools/demo

test:
	tools/setup --test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	tools/check
	ctest --preset release --label-regex slow --parallel $(JOBS)
	@echo "make test: everything passed"
