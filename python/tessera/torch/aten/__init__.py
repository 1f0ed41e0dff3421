"""ATen operators as operators of the catalog: one table of rows.

A row is a function (emitter, out, *arguments) that emits the operator. Arguments are those of the ATen schema, with
TensorValues in place of tensors; out is the traced output, of known dtype and sizes. A row that declines raises
Unsupported, with the reason; the node is then left to torch.
"""

from . import backward, elementwise, indexing, movement, nn, reductions, transformer

ROWS = {}
for _module in (elementwise, reductions, movement, indexing, nn, transformer, backward):
    ROWS.update(_module.ROWS)
