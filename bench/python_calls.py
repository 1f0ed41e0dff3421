#!/usr/bin/env python3
"""Times a call of a program with one add from Python, by numpy and by torch.

usage: PYTHONPATH=BUILD/python bench/python_calls.py

The same call costs 0.09 microseconds in C++ (tessera_run). The bar: at most 2 microseconds more. Times are the best of
several repetitions, in microseconds.
"""

import timeit

import numpy as np

import tessera as ts


def best(statement, **names):
    number = 20_000
    return min(timeit.repeat(statement, globals=names, number=number, repeat=9)) / number * 1e6


def main():
    one = ts.parse("graph g(x: f32[4]) { y = add(x, x) return y }").compile(cache=None)
    two = ts.parse("graph g(x: f32[4], y: f32[4]) { z = add(x, y) return z }").compile(cache=None)
    x = np.arange(4, dtype=np.float32)
    rows = [("numpy p(x)", best("p(x)", p=one, x=x)), ("numpy p(x, y)", best("p(x, y)", p=two, x=x, y=x.copy())),
            ("numpy x + x", best("x + x", x=x))]
    try:
        import torch

        x = torch.arange(4, dtype=torch.float32)
        rows += [("torch p(x)", best("p(x)", p=one, x=x)), ("torch p(x, y)", best("p(x, y)", p=two, x=x, y=x.clone())),
                 ("torch x + x", best("x + x", x=x))]
    except ImportError:
        print("torch is not installed: its rows are left out")
    for name, time in rows:
        print(f"{name:<14} {time:6.2f} us")


if __name__ == "__main__":
    main()
