"""ATen operators as operators of the catalog: one table of rows.

A row is a function (emitter, out, *arguments) that emits the operator. Arguments are those of the ATen schema, with
TensorValues in place of tensors; out is the traced output, of known dtype and sizes. A row that declines raises
Unsupported, with the reason; the node is then left to torch.
"""

from . import backward, elementwise, movement, nn, reductions, transformer

ROWS = {**elementwise.ROWS, **reductions.ROWS, **movement.ROWS, **nn.ROWS, **backward.ROWS, **transformer.ROWS}
