"""Is an optimized model still the same function? Proved for all inputs, or refuted by one.

usage: python examples/python/prove_an_optimization.py
"""

import tessera as ts

# %% A model as an exporter wrote it, and what the optimizer makes of it.
model = ts.parse(
    """graph block(x: f32[n, 8], gain: f32[8]) {
         mean = reduce_mean(x, [1])
         centered = sub(x, mean)
         squares = mul(centered, centered)
         variance = reduce_mean(squares, [1])
         epsilon = const f32[] 0.00001
         shifted = add(variance, epsilon)
         deviation = sqrt(shifted)
         normal = div(centered, deviation)
         result = mul(normal, gain)
         return result
       }"""
)
optimized = ts.optimize(model)
print(optimized)

# %% Proved, with what the proof assumes.
proof = ts.prove(model, optimized)
print(proof.verdict)
for assumption in proof.assumptions:
    print(f"  assuming that {assumption.text}")
assert proof

# %% A rewrite that is wrong comes back with an input that shows it.
wrong = ts.parse("graph f(x: f32[4]) { y = abs(x) return y }")
right = ts.parse("graph f(x: f32[4]) { y = relu(x) return y }")
proof = ts.prove(right, wrong)
print(proof.verdict, proof.why)
assert proof.verdict == "refuted"
