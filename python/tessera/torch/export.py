"""Models of Tessera from functions, modules and exported programs of PyTorch."""

from __future__ import annotations

import dataclasses

import torch
from torch.export.graph_signature import InputKind, OutputKind

from ..model import Model
from ..program import Program
from .decompositions import decompositions
from .importer import ImportFailure, Importer
from .options import Options
from .partition import Segment, is_size, is_traced_assertion, is_write, reason_to_decline
from .plan import traced_values

WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclasses.dataclass
class ImportedModel:
    """A model, with the names of the traced weights that are inputs of it."""

    model: Model
    inputs: list  # names of the inputs
    device: torch.device


class CannotImport(ValueError):
    """A program with operators that have no translation."""


def import_exported(program, weights_as_inputs=()) -> ImportedModel:
    """The model of an exported program. Weights are constants, but for those named in weights_as_inputs."""
    program = program.run_decompositions(decompositions())
    module, signature = program.graph_module, program.graph_signature
    mutations = [spec for spec in signature.output_specs if spec.kind != OutputKind.USER_OUTPUT]
    if mutations:
        raise CannotImport(f"the program writes to {mutations[0].target!r}: export a model that changes no buffers")
    values = traced_values(module)
    if any(isinstance(s, torch.SymInt) for v in values.values() if isinstance(v, torch.Tensor) for s in v.shape):
        raise CannotImport("the program has open sizes: export it without dynamic_shapes")
    kinds = {spec.arg.name: spec for spec in signature.input_specs}
    constants, inputs = {}, []
    for node in module.graph.nodes:
        if node.op == "get_attr":
            constants[node] = getattr(module, node.target)
        if node.op != "placeholder":
            continue
        spec = kinds[node.name]
        if spec.kind in WEIGHTS and spec.target not in weights_as_inputs:
            state = program.state_dict if spec.target in program.state_dict else program.constants
            constants[node] = state[spec.target]
        elif isinstance(values[node], torch.Tensor):
            inputs.append(node)
    return _import(module, values, constants, inputs)


def _import(module, values, constants, inputs) -> ImportedModel:
    device = next((v.device for v in values.values() if isinstance(v, torch.Tensor)), torch.device("cpu"))
    others = ("placeholder", "get_attr", "output")
    nodes = [n for n in module.graph.nodes if n.op not in others and not is_traced_assertion(n)]
    outputs = next(n for n in module.graph.nodes if n.op == "output").args[0]
    declined = {}
    for node in nodes:
        why = "it writes to an input" if is_write(node) else reason_to_decline(node, values, device)
        if why is not None and not is_size(values[node]):
            declined.setdefault(f"{node.target}: {why}", node)
    if declined:
        raise CannotImport("operators without a translation: " + "; ".join(sorted(declined)))
    if any(not isinstance(node, torch.fx.Node) for node in outputs):
        raise CannotImport("an output is no tensor")
    segment = Segment(nodes=nodes, inputs=inputs, outputs=list(outputs))
    try:
        # Programs take and give dense tensors.
        importer = Importer(segment, values, constants, keeps_strides=False)
        model = importer.model()
    except ImportFailure as failure:
        raise CannotImport(f"{failure.nodes[0].target}: {failure.why}") from None
    return ImportedModel(model, [node.name for node in inputs], device)


def compile_exported(program, **options) -> Program:
    """Compiles a torch.export.ExportedProgram, with its weights inside: compile_exported(ep).save("m.tsr").

    Options are those of torch.compile(backend="tessera"): threads, numerics, precision, disable, cache.

    >>> import torch
    >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> ts.torch.compile_exported(ep)(torch.tensor([1.0, -2.0]))
    tensor([1., 0.])
    """
    imported = import_exported(program)
    return Options.of(options).compile(imported.model, imported.device)


def export(model, arguments, keywords=None):
    """torch.export of a module or function; of a graph of torch.fx.symbolic_trace too."""
    if not isinstance(model, torch.nn.Module):
        model = _FunctionModule(model)
    with torch.no_grad():
        return torch.export.export(model, tuple(arguments), keywords or {})


class _FunctionModule(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments, **keywords):
        return self.function(*arguments, **keywords)
