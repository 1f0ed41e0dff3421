"""Tensors of torch in and out, on the CPU and on a GPU, without copies.

usage: python examples/python/torch_tensors.py
"""

import sys

import tessera as ts

try:
    import torch
except ImportError:
    print("torch is not installed: this example needs it (pip install torch)")
    sys.exit(0)

model = ts.parse("graph g(x: f32[n, 64], w: f32[64, 64]) { a = matmul(x, w) y = gelu(a) return y }")
x, w = torch.randn(32, 64), torch.randn(64, 64) / 8

# %% On the CPU: memory of torch is read where it is, and the result is a tensor.
program = model.compile(threads=2)
y = program(x, w)
print(type(y).__name__, tuple(y.shape), (y - torch.nn.functional.gelu(x @ w)).abs().max().item())

# %% Parameters of a module are tensors too; gradients are not followed.
layer = torch.nn.Linear(64, 64, bias=False)
print(program(x, layer.weight.detach().T.contiguous()).requires_grad)

# %% On a GPU: memory of torch's allocator, in torch's current stream; the call returns before the GPU is done.
if torch.cuda.is_available():
    on_gpu = model.compile(target="cuda")
    x, w = x.cuda(), w.cuda()
    y = on_gpu(x, w)
    print(y.device, (y - torch.nn.functional.gelu(x @ w)).abs().max().item())
else:
    print("no GPU: the part for CUDA is left out")
