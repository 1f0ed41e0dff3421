"""Where does the time of a model go, and how was it compiled?

usage: python examples/python/profile_a_model.py
"""

import pathlib
import tempfile

import numpy as np

import tessera as ts

# %% A small perceptron.
rng = np.random.default_rng(0)
g = ts.Graph()
x = g.input("x", "f32", ["batch", 256])
for width in (512, 256, 10):
    weights = rng.standard_normal((int(x.type.split(", ")[1][:-1]), width)).astype(np.float32) / 16
    x = g.op("relu", x @ g.constant(weights))
program = g.finish(scores=g.op("softmax", x, axis=1)).compile(threads=1)

# %% Medians over 10 runs, the longest step first.
batch = rng.standard_normal((8, 256)).astype(np.float32)
profile = program.profile(batch, runs=10)
print(profile)
print(f"{profile.ms:.3f} ms")

# %% The last run as a timeline, for ui.perfetto.dev.
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "trace.json")
    profile.save(path)
    print(path.stat().st_size, "bytes of trace")

# %% What the compiler did: passes that changed the graph, and the strategy of every step.
explained = program.explain()
for name, before, after, changes in explained["passes"]:
    if changes:
        print(f"{name}: {before} -> {after} nodes")
for step in explained["steps"]:
    print(f"{step['what']}: {step['strategy']}")
print(f"{explained['arena_bytes']} bytes of activations, {explained['weight_bytes']} of weights")
