"""What a graph runs for one tuple of sizes: programs, and nodes that are left to torch."""

from __future__ import annotations

import dataclasses
import operator

import torch

from .. import _tessera
from .importer import ImportFailure, Importer, OutputLayout, inverse
from .layouts import has_strides_of, kept_tensors, with_strides_of
from .options import Options
from .partition import (
    BATCHED_MATMULS,
    MATMULS,
    Segment,
    is_size,
    is_size_function,
    is_write,
    packet_name,
    reason_to_decline,
    segments,
    shared_views,
    views_of_arguments,
)


def traced_values(module, arguments=None) -> dict:
    """The traced value of every node; for open sizes, traced again with the sizes of real arguments."""
    if arguments is None:
        return {node: node.meta.get("val", node.meta.get("example_value")) for node in module.graph.nodes}
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, node):
            result = super().run_node(node)
            values[node] = result
            return result

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(a, static_shapes=True) if isinstance(a, torch.Tensor) else a for a in arguments]
    with mode, torch._dynamo.utils.preserve_rng_state():
        Recorder(module).run(*fakes)
    for node, value in values.items():
        if isinstance(value, torch.Tensor) and not isinstance(value, torch._subclasses.FakeTensor):
            values[node] = mode.from_tensor(value, static_shapes=True)
    return values


@dataclasses.dataclass
class ProgramStep:
    program: object
    inputs: list  # slots
    outputs: list
    input_layouts: list
    output_layouts: list
    nodes: int

    def __post_init__(self):
        if not self.inputs:
            self._unused = torch.empty(0, dtype=torch.uint8)
        self._plain_inputs = all(layout.order is None and not layout.is_copied for layout in self.input_layouts)
        self._plain_outputs = all(layout == OutputLayout() for layout in self.output_layouts)

    @property
    def copies_tensors(self):
        """Whether a tensor is copied on its way in or out, since it is dense in no order of its axes."""
        return any(layout.is_copied for layout in (*self.input_layouts, *self.output_layouts))

    def run(self, slots):
        tensors = [slots[i] for i in self.inputs]
        if not self._plain_inputs:
            for i, layout in enumerate(self.input_layouts):
                if layout.order is not None:
                    tensors[i] = tensors[i].permute(layout.order)
                elif layout.is_copied:
                    tensors[i] = tensors[i].contiguous()
        if not tensors:
            tensors = [self._unused]
        results = self.program(*tensors)
        if len(self.outputs) == 1:
            results = (results,)
        if not self._plain_outputs:
            results = [_laid_out(result, layout) for result, layout in zip(results, self.output_layouts)]
        for slot, result in zip(self.outputs, results):
            slots[slot] = result


def _parts(result):
    """The results of a node; those that are not computed are None."""
    return result if isinstance(result, (tuple, list)) else (result,)


def _laid_out(result, layout):
    """A result of a program with the strides that were traced. It is no view, to which autograd would let nobody write."""
    if layout.order is not None:
        result = result.permute(inverse(layout.order))
    if layout.strides is None:
        return result.data
    if not layout.is_copied:
        return result.as_strided(result.shape, layout.strides).data
    # Elements of expanded axes share memory: one of each is written.
    tensor = torch.empty_strided(result.shape, layout.strides, dtype=result.dtype, device=result.device)
    distinct = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in layout.strides)
    tensor[distinct].copy_(result[distinct])
    return tensor


class TorchStep:
    """A node that torch runs."""

    def __init__(self, node, slot_of, value_of):
        self.target, self.slot = node.target, slot_of[node]
        arguments = torch.fx.map_arg((node.args, node.kwargs), lambda n: _Slot(slot_of[n]) if n in slot_of else value_of[n])
        self._leaves, self._structure = torch.utils._pytree.tree_flatten(arguments)
        self._inputs = [(i, leaf.index) for i, leaf in enumerate(self._leaves) if isinstance(leaf, _Slot)]
        traced = value_of[node]
        self._dtypes = [_dtype(value) for value in (traced if isinstance(traced, (tuple, list)) else [traced])]

    def run(self, slots):
        leaves = list(self._leaves)
        for i, slot in self._inputs:
            leaves[i] = slots[slot]
        arguments, keywords = torch.utils._pytree.tree_unflatten(leaves, self._structure)
        result = self.target(*arguments, **keywords)
        # Some operators give other types than those that torch traces, on which programs rely.
        if isinstance(result, (tuple, list)):
            if any(map(operator.is_not, map(_dtype, result), self._dtypes)):
                result = [_converted(part, dtype) for part, dtype in zip(result, self._dtypes)]
        elif _dtype(result) is not self._dtypes[0]:
            result = _converted(result, self._dtypes[0])
        slots[self.slot] = result


def _dtype(value):
    return value.dtype if isinstance(value, torch.Tensor) else None


def _converted(value, dtype):
    return value.to(dtype) if isinstance(value, torch.Tensor) and dtype is not None else value


@dataclasses.dataclass(frozen=True)
class _Slot:
    index: int


class RestoreStep:
    """An argument that torch reads, which has other strides than those that were traced."""

    def __init__(self, slot, traced):
        self._slot, self._traced = slot, traced

    def run(self, slots):
        slots[self._slot] = with_strides_of(self._traced, slots[self._slot])


class EagerPlan:
    """A graph that torch runs as a whole."""

    def __init__(self, graph, why: str):
        module = graph.module
        self._module, self._traced_arguments, self.steps = module, graph.traced_arguments, []
        self.declined = {
            node: why for node in module.graph.nodes if node.op not in ("placeholder", "get_attr", "output")
        }
        self.packed = _tessera.TensorVersions([], [])

    def set_program_of(self, call, compares_weights: bool):
        """There is no program."""

    def run(self, arguments: list, clock=None) -> list:
        arguments = self._traced_arguments(arguments)
        results = clock.time(self._module, arguments) if clock is not None else self._module(*arguments)
        return list(results) if isinstance(results, (tuple, list)) else [results]


class Plan:
    """Steps that compute a graph; `packed` are the weights among its arguments that are constants of programs.

    returned: number of results that the caller sees; the others are kept for a backward graph. None: all of them
    aliased: number of results that are views where they are views of arguments; None: all of them. AOT Autograd makes such a
    view anew, but where numbers in it are open, from the offset and strides of the result
    """

    def __init__(self, module, values: dict, arguments: list, weights: dict, options: Options, returned=None, aliased=0):
        self._values, self._options = values, options
        self._graph = module.graph
        self._placeholders = [node for node in self._graph.nodes if node.op == "placeholder"]
        self._device = self._main_device()
        self.declined = {}  # node -> reason
        written = {node.args[0] for node in self._graph.nodes if is_write(node)}
        self._constants = {
            self._placeholders[i]: tensor for i, tensor in weights.items() if self._placeholders[i] not in written
        }
        packed = [i for i in weights if self._placeholders[i] in self._constants and not weights[i].is_inference()]
        self.packed = _tessera.TensorVersions(arguments, packed)
        # Held, so that their addresses stay their own: another tensor would look like them.
        self._storages = [weights[i].untyped_storage() for i in packed]
        self._module = module
        for node in self._graph.nodes:
            if node.op == "get_attr" and isinstance(values[node], torch.Tensor):
                self._constants[node] = operator.attrgetter(node.target)(module)
        self._shared, views = shared_views(self._graph)
        bases, aliases = views_of_arguments(self._graph, aliased)
        self._shared |= bases
        self._aliases = set(aliases)
        self._arguments = arguments
        self._kept = {} if returned is None else kept_tensors(self._graph, values, returned)
        self._decline()
        self._assign_slots()
        self._views = [TorchStep(node, self._slots, values) for node in (*aliases, *views)]
        self._build()
        self._constants = self._values = self._arguments = self._kept = None  # programs have copies

    def _products(self, segment):
        """Dtypes of the results of matmuls, convolutions and whole layers of them. Batched ones count where there are
        no others: torch traces attention of f16 on a GPU as matmuls of f32."""
        whole_layers = ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")
        for kinds in ((*MATMULS, "convolution", "convolution_backward", *whole_layers), BATCHED_MATMULS):
            results = [self._values[node] for node in segment.nodes if packet_name(node.target) in kinds]
            if results:
                return [next(part for part in _parts(r) if part is not None).dtype for r in results]
        return []

    def _main_device(self):
        for value in torch.utils._pytree.tree_leaves(list(self._values.values())):
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                return value.device
        return torch.device("cpu")

    def _decline(self):
        for node in self._graph.nodes:
            if node.op in ("placeholder", "get_attr", "output") or is_write(node):
                continue
            if is_size_function(node) and is_size(self._values[node]):
                continue
            why = reason_to_decline(node, self._values, self._device)
            if why is not None:
                self.declined[node] = why

    def _is_tensor(self, node):
        return isinstance(self._values.get(node), torch.Tensor)

    def _assign_slots(self):
        self._slots = {node: i for i, node in enumerate(self._placeholders)}
        for node in self._graph.nodes:
            if node.op not in ("placeholder", "output") and not is_write(node) and not is_size(self._values[node]):
                self._slots[node] = len(self._slots)
        self._extra = len(self._slots) - len(self._placeholders)

    def _order(self):
        for node in self._graph.nodes:  # parts of what torch computes are taken by torch
            if node.op == "call_function" and node.target is operator.getitem and node.args[0] in self.declined:
                self.declined.setdefault(node, "")
        order = segments(self._graph, self.declined)
        for segment in order:
            if isinstance(segment, Segment):
                self._connect(segment)
        return [s for s in order if not isinstance(s, Segment) or s.outputs]

    def _connect(self, segment):
        inside = set(segment.nodes)
        inputs = {}
        for node in segment.nodes:
            if is_size(self._values[node]):
                continue
            for other in node.all_input_nodes:
                if other not in inside and other not in self._constants and self._is_tensor(other):
                    inputs[other] = None
        segment.inputs = list(inputs)
        segment.outputs = [
            node
            for node in segment.nodes
            if self._is_tensor(node) and (node in self._shared or any(self._is_read(node, user) for user in node.users if user not in inside))
        ]

    def _is_read(self, node, user):
        """Whether a node outside a segment reads a node; results that are views of arguments are not computed."""
        return not (node in self._aliases and user.op == "output")

    def _memory(self):
        """Tensors with the strides of nodes that do not lie as they were traced, and steps that restore arguments: torch
        reads tensors as traced."""
        def is_read_by_torch(node):
            return any(user in self.declined for user in node.users)

        memory = {node: tensor for node, tensor in self._kept.items() if not is_read_by_torch(node)}
        restored = []
        for node, argument in zip(self._placeholders, self._arguments):
            if not isinstance(argument, torch.Tensor) or has_strides_of(self._values[node], argument):
                continue
            if is_read_by_torch(node):
                restored.append(RestoreStep(self._slots[node], self._values[node]))
            else:
                memory[node] = argument
        return memory, restored

    def _build(self):
        """Imports every segment; a node that cannot be imported is left to torch, and the division made anew."""
        while True:
            try:
                order = self._order()
                memory, restored = self._memory()
                imported = {}
                for segment in order:
                    if isinstance(segment, Segment):
                        importer = Importer(segment, self._values, self._constants, memory=memory)
                        imported[id(segment)] = (importer, importer.model())
                break
            except ImportFailure as failure:
                self.declined.update((node, failure.why) for node in failure.nodes)
        self.steps = list(restored)
        for item in order:
            if not isinstance(item, Segment):
                self.steps.append(TorchStep(item, self._slots, self._values))
                continue
            importer, model = imported[id(item)]
            self.steps.append(
                ProgramStep(
                    program=self._options.compile(model, self._device, self._products(item)),
                    inputs=[self._slots[node] for node in item.inputs],
                    outputs=[self._slots[node] for node in item.outputs],
                    input_layouts=importer.input_layouts,
                    output_layouts=importer.output_layouts,
                    nodes=len(item.nodes),
                )
            )
        self._finish()

    def _finish(self):
        self._attributes = [
            (self._slots[node], operator.attrgetter(node.target)(self._module))
            for node in self._graph.nodes
            if node.op == "get_attr"
        ]
        self._writes, results = [], None
        target = {}
        for node in self._graph.nodes:
            if is_write(node):
                self._writes.append((self._slots[node.args[0]], self._slots[node.args[1]]))
                target[node] = node.args[0]
            elif node.op == "output":
                results = node.args[0]
        self.results = []
        for node in results if isinstance(results, (tuple, list)) else [results]:
            node = target.get(node, node)
            if isinstance(node, torch.fx.Node) and node in self._slots:
                self.results.append(_Slot(self._slots[node]))
            else:
                self.results.append(self._values[node] if isinstance(node, torch.fx.Node) else node)

    def set_program_of(self, call, compares_weights: bool):
        """Lets a _tessera.GraphCall run this plan, if it is one program over arguments as they are."""
        step = self.steps[0] if len(self.steps) == 1 else None
        if not isinstance(step, ProgramStep) or not step.inputs or step.copies_tensors or self._writes or self._views:
            return
        arguments = len(self._placeholders)
        if any(slot >= arguments for slot in step.inputs):
            return
        attributes = dict(self._attributes)
        results, computed, passed = [], [], []
        for place, result in enumerate(self.results):
            slot = result.index if isinstance(result, _Slot) else None
            results.append(attributes.get(slot) if isinstance(result, _Slot) else result)
            if slot in step.outputs:
                computed.append((place, step.outputs.index(slot)))
            elif slot is not None and slot < arguments:
                passed.append((place, slot))
        call.set_program(
            program=step.program,
            weights=self.packed if compares_weights else None,
            inputs=step.inputs,
            input_layouts=[_tessera.ArrayLayout(layout.order or [], []) for layout in step.input_layouts],
            output_layouts=[_tessera.ArrayLayout(layout.order or [], layout.strides or []) for layout in step.output_layouts],
            results=results,
            computed=computed,
            passed=passed,
        )

    def run(self, arguments: list, clock=None) -> list:
        slots = arguments + [None] * self._extra
        for slot, tensor in self._attributes:
            slots[slot] = tensor
        for step in self.steps:
            step.run(slots) if clock is None else clock.run(step, slots)
        for view in self._views:
            view.run(slots)
        if self._device.type == "cuda" and len(self._writes) > 1:  # few launches for all of them
            torch._foreach_copy_([slots[target] for target, _ in self._writes], [slots[source] for _, source in self._writes])
        else:
            for target, source in self._writes:
                slots[target].copy_(slots[source])
        return [slots[r.index] if isinstance(r, _Slot) else r for r in self.results]
