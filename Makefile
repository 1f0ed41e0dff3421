# The two commands of the README, and `lint`: what compiles all sources once more (each header alone,
# clang-tidy). Everything else: cmake --preset, tools/check, tools/fuzz.

.PHONY: demo test lint
demo:
	tools/demo

test:
	tools/test

lint:
	tools/setup --test
	cmake --preset release
	cmake --build --preset release --parallel $(shell nproc) --target check_headers check_tidy
