# The two commands of the README, and clang-tidy. Everything else: cmake --preset, tools/check,
# tools/fuzz.

.PHONY: demo test lint
demo:
	tools/demo

test:
	tools/test

lint:
	tools/setup --test
	cmake --preset release
	cmake --build --preset release --parallel $(shell nproc) --target check_tidy
