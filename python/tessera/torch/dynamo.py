"""The backend of torch.compile."""

from __future__ import annotations

import contextlib
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .compiled_graph import CompiledGraph
from .decompositions import decompositions
from .memory import partitioner
from .options import Options


def _compiler(kind, options, recorder):
    def compile_graph(module, example_inputs):
        context = torch._guards.TracingContext.try_get()
        metadata = None if context is None else context.fw_metadata
        static, returned = (), None
        if kind == "inference" and metadata is not None:
            static = metadata.static_input_indices or ()
        if kind == "forward" and metadata is not None:
            returned = metadata.num_forward
        if getattr(metadata, "bw_donated_idxs", None):
            # torch refuses retain_graph=True where a backward graph may write to what the forward graph has kept: none does.
            metadata.bw_donated_idxs = []
        graph = CompiledGraph(module, static, options, kind, returned)
        if recorder is not None:
            recorder.append(graph)
        return graph

    return compile_graph


def _attention_drops(module):
    """Whether a graph has attention with dropout."""
    place = {F.scaled_dot_product_attention: 4, F.multi_head_attention_forward: 10}  # of dropout_p
    graphs = [part.graph for part in module.modules() if isinstance(part, torch.fx.GraphModule)]
    calls = [node for graph in graphs for node in graph.nodes if node.op == "call_function" and node.target in place]
    return any((node.args[place[node.target]] if len(node.args) > place[node.target] else node.kwargs.get("dropout_p", 0)) != 0
               and node.kwargs.get("training", True) for node in calls)


def _attention_by_operators(module, example_inputs):
    """On a GPU, torch chooses an attention kernel of its own while the graph is traced; those have no gradients here, their
    parts have. With dropout, torch runs its kernels, which draw numbers of their own: the parts would drop others."""
    if _attention_drops(module):
        return contextlib.nullcontext()
    tensors = [x for x in (*example_inputs, *module.parameters()) if isinstance(x, torch.Tensor)]
    differentiates = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    by_parts = differentiates and any(x.is_cuda for x in tensors)
    return sdpa_kernel(SDPBackend.MATH) if by_parts else contextlib.nullcontext()


def backend(module, example_inputs, *, options=None, mode=None, recorder=None):
    """Compiles a graph that TorchDynamo has captured: torch.compile(model, backend="tessera").

    recorder: a list to which the compiled graphs are added
    """
    if mode not in (None, "default"):
        warnings.warn(f"tessera ignores mode={mode!r}; see its options", stacklevel=2)
    options = Options.of(options)
    compile_traced = aot_autograd(
        fw_compiler=_compiler("forward", options, recorder),
        bw_compiler=_compiler("backward", options, recorder),
        inference_compiler=_compiler("inference", options, recorder),
        decompositions=decompositions(),
        partition_fn=partitioner(options.memory_limit),
        keep_inference_input_mutations=True,
    )
    with _attention_by_operators(module, example_inputs):
        return compile_traced(module, example_inputs)
