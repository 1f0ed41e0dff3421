"""Plausible signatures of Triton kernels. Used by tools/triton-kernels.

Types of parameters and values of constants come from autotuner and heuristics, from launches in the source, from default
values and from how the kernel uses the parameter.
"""

import ast
import dataclasses

import triton.language as tl

from triton_find import function_tree, unwrapped

ADDRESSED = {"load", "store", "make_block_ptr", "make_tensor_descriptor", "atomic_add", "atomic_max", "atomic_min",
             "atomic_cas", "atomic_xchg", "atomic_and", "atomic_or", "atomic_xor", "_experimental_make_tensor_descriptor"}
TRANSPARENT = {"to", "multiple_of", "max_contiguous", "max_constancy", "cast", "advance"}
INTEGERS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
INTEGER_ARGUMENTS = {"range", "static_range", "cdiv", "rand", "randn", "randint", "randint4x", "rand4x"}


# How a kernel uses its parameters


class Uses:
    """What the body of a function tells about its parameters."""

    def __init__(self, jit):
        self.tree = function_tree(jit)
        self.scope = jit.fn.__globals__
        self.params = [p.arg for p in self.tree.args.args]
        self.pointers = set()
        self.descriptors = set()
        self.atomic = set()
        self.integer_pointers = set()
        self.integers = set()  # names that indices, bounds and masks depend on
        self.flags = set()
        self.choices = {}  # values that constants are compared with
        self.types = set()
        self.sizes = set()
        self._origin = {name: {name} for name in self.params}
        self._depends = {}
        self._loaded = {}
        for _ in range(2):  # a loop may use what its end defines
            for statement in self.tree.body:
                self._visit(statement)
        self._close_integers()

    @staticmethod
    def _callee(node):
        if isinstance(node.func, ast.Attribute):
            return node.func.attr
        return node.func.id if isinstance(node.func, ast.Name) else ""

    def origin(self, node):
        """Parameters that a pointer is computed of: the leftmost terms of its sum."""
        if isinstance(node, ast.Name):
            return self._origin.get(node.id, set())
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.origin(node.left) or self.origin(node.right)
        if isinstance(node, ast.IfExp):
            return self.origin(node.body) | self.origin(node.orelse)
        if isinstance(node, ast.Subscript):
            return self.origin(node.value)
        if isinstance(node, ast.Call):
            name = self._callee(node)
            if name in TRANSPARENT and isinstance(node.func, ast.Attribute):
                is_method = not (isinstance(node.func.value, ast.Name) and node.func.value.id == "tl")
                return self.origin(node.func.value if is_method else node.args[0])
            if name in ADDRESSED - {"load"}:
                return self.origin(self._address(node))
        return set()

    @staticmethod
    def _address(call):
        if call.args:
            return call.args[0]
        return next((k.value for k in call.keywords if k.arg in ("base", "pointer")), ast.Constant(None))

    @staticmethod
    def _names(node):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    def _visit(self, node):
        for child in ast.iter_child_nodes(node):
            self._visit(child)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            self._depends.setdefault(getattr(node.target, "id", ""), set()).update(self._names(node.value))
        elif isinstance(node, ast.Call):
            self._visit_call(node)
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            self._visit_condition(node.test)
        elif isinstance(node, ast.Compare):
            self._visit_compare(node)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self.integers.add(node.target.id)

    def _assign(self, target, value):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts):
                self._assign(one, its)
            return
        for name in self._names(target):
            self._origin[name] = self._origin.get(name, set()) | self.origin(value)
            self._depends.setdefault(name, set()).update(self._names(value))
            for call in ast.walk(value):
                if isinstance(call, ast.Call) and self._callee(call) == "load":
                    self._loaded.setdefault(name, set()).update(self.origin(self._address(call)))

    def _visit_call(self, node):
        name = self._callee(node)
        is_method = name in ("load", "store") and isinstance(node.func.value, ast.Name)
        if is_method and node.func.value.id in self.params:
            self.descriptors.add(node.func.value.id)
        if name in ADDRESSED and isinstance(node.func, ast.Attribute):
            address = self._address(node)
            found = self.origin(address)
            self.pointers |= found
            if name.startswith("atomic"):
                self.atomic |= found
            self.integers |= self._names(address) - found
            for keyword in node.keywords:
                if keyword.arg in ("mask", "shape", "strides", "offsets", "block_shape"):
                    self.integers |= self._names(keyword.value)
            if name in ("make_block_ptr", "make_tensor_descriptor"):
                for argument in node.args[1:]:
                    self.integers |= self._names(argument)
        elif name in INTEGER_ARGUMENTS:
            for argument in node.args:
                self.integers |= self._names(argument)
        elif name == "arange":
            self.sizes |= self._names(node)
        elif name in ("zeros", "full", "make_block_ptr", "reshape", "view", "broadcast_to") and node.args:
            self.sizes |= self._names(node.args[0])
        elif name == "to" and node.args:
            self._visit_cast(node)
        for keyword in node.keywords:
            if keyword.arg == "dtype" and isinstance(keyword.value, ast.Name):
                self.types.add(keyword.value.id)
            if keyword.arg in ("block_shape", "shape"):
                self.sizes |= self._names(keyword.value)
            if keyword.arg in ("input_precision", "precision") and isinstance(keyword.value, ast.Name):
                self.choices.setdefault(keyword.value.id, "ieee")
        callee = unwrapped(self.scope.get(name)) if isinstance(node.func, ast.Name) else None
        if callee is not None:
            self._visit_jit_call(node, callee[0])

    def _visit_cast(self, node):
        to = node.args[0]
        if isinstance(to, ast.Name):
            self.types.add(to.id)
        source = node.func.value
        if isinstance(to, ast.Attribute) and to.attr in INTEGERS and isinstance(source, ast.Call) \
                and self._callee(source) == "load":
            self.integer_pointers |= self.origin(self._address(source))

    def _visit_jit_call(self, node, jit):
        inner = uses_of(jit)
        if inner is None:
            return
        given = dict(zip(inner.params, node.args)) | {k.arg: k.value for k in node.keywords if k.arg}
        for param, value in given.items():
            if param in inner.pointers:
                self.pointers |= self.origin(value)
            if param in inner.atomic:
                self.atomic |= self.origin(value)
            if param in inner.integer_pointers:
                self.integer_pointers |= self.origin(value)
            if isinstance(value, ast.Name):
                for mine, its in ((self.flags, inner.flags), (self.sizes, inner.sizes), (self.types, inner.types),
                                  (self.integers, inner.integers)):
                    if param in its:
                        mine.add(value.id)
                if param in inner.choices:
                    self.choices.setdefault(value.id, inner.choices[param])

    def _visit_condition(self, test):
        if isinstance(test, ast.Name):
            self.flags.add(test.id)
        elif isinstance(test, ast.UnaryOp):
            self._visit_condition(test.operand)
        elif isinstance(test, ast.BoolOp):
            for value in test.values:
                self._visit_condition(value)

    def _visit_compare(self, node):
        sides = [node.left, *node.comparators]
        is_equality = isinstance(node.ops[0], ast.Eq)
        words = [s.value for s in sides if isinstance(s, ast.Constant) and
                 (isinstance(s.value, str) or is_equality and isinstance(s.value, int))]
        words += [s.value for side in sides if isinstance(side, ast.Name)
                  and isinstance(s := self.scope.get(side.id), tl.constexpr)]
        for side in sides:
            if isinstance(side, ast.Name) and words:
                self.choices.setdefault(side.id, words[0])
        names = [self._names(s) for s in sides]
        if any(n & self.integers for n in names):
            for n in names:
                self.integers |= n

    def _close_integers(self):
        todo = list(self.integers)
        while todo:
            for name in self._depends.get(todo.pop(), ()):
                if name not in self.integers:
                    self.integers.add(name)
                    todo.append(name)
        for name in self.integers:
            self.integer_pointers |= self._loaded.get(name, set())


_uses = {}


def uses_of(jit):
    """The uses of a function's parameters; none while they are being found (recursion)."""
    if jit not in _uses:
        _uses[jit] = None
        _uses[jit] = Uses(jit)
    return _uses[jit]


# Signatures


@dataclasses.dataclass
class Signature:
    """Types of the parameters by name (`constexpr` for constants), values of the constants, options of the launch."""

    types: dict
    constants: dict
    options: dict

    def with_types(self, **types):
        return Signature({**self.types, **types}, self.constants, self.options)

    def with_constants(self, **constants):
        return Signature(self.types, {**self.constants, **constants}, self.options)


class _Descriptor:
    """Stands for a tensor descriptor, whose block the hook of a configuration sets."""

    block_shape = [64, 64]


def _block_shapes(uses, config):
    """Shapes of the blocks of parameters that are descriptors."""
    launch = dict(config.kwargs if config else {}) | {name: _Descriptor() for name in uses.descriptors}
    if config and config.pre_hook:
        config.pre_hook(launch)
    return {name: list(launch[name].block_shape) for name in uses.descriptors}


class _Launch(dict):
    """Arguments of a launch, for heuristics: pointers are tensors, sizes are 64."""

    def __missing__(self, name):
        return 64


def _guessed_constant(name, uses, is_only_block):
    lower = name.lower()
    if name in uses.choices:
        return uses.choices[name]
    if name in uses.types and (lower.endswith("type") or "dtype" in lower):
        return tl.float32
    if name in uses.flags and name not in uses.sizes:
        return True
    if lower in ("eps", "scale", "sm_scale", "alpha", "beta", "gamma", "p") or "softcap" in lower:
        return 0.5
    if "stage" in lower:
        return 2
    if name in uses.sizes or lower.startswith("block"):
        return 1024 if is_only_block else 64
    if lower in ("k", "v", "d", "dk", "dv", "dim") or "dim" in lower:
        return 64
    return 4


def _scalar_type(name, uses):
    lower = name.lower()
    if "stride" in lower or name in uses.integers or lower in ("t", "n", "m", "b", "h"):
        return "i32"
    return "fp32"


def signature_of(kernel, dtype="bf16"):
    """The first guess at a kernel's signature."""
    uses = uses_of(kernel.jit)
    config = kernel.configs[0] if kernel.configs else None
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages} if config else {}
    types, constants, blocks_of = {}, {}, _block_shapes(uses, config)
    is_flat = "tl.dot" not in kernel.jit.src and "[:, None]" not in kernel.jit.src
    constexpr = [p for p in kernel.jit.params if p.is_constexpr]
    blocks = [p.name for p in constexpr if p.name in uses.sizes or p.name.lower().startswith("block")]
    for param in kernel.jit.params:
        name = param.name
        if param.is_constexpr:
            types[name] = "constexpr"
        elif name in uses.descriptors:
            types[name] = f"tensordesc<{dtype}{blocks_of[name]}>"
        elif name in uses.pointers:
            is_index = name in uses.integer_pointers and name not in uses.atomic
            types[name] = "*i32" if is_index else "*fp32" if name in uses.atomic else f"*{dtype}"
        else:
            types[name] = param.annotation_type or _scalar_type(name, uses)
    for param in constexpr:
        name = param.name
        if config and name in config.kwargs:
            constants[name] = config.kwargs[name]
        elif name in kernel.launched_with:
            constants[name] = kernel.launched_with[name]
        elif param.has_default and param.default is not None:
            constants[name] = getattr(param.default, "value", param.default)
        else:
            constants[name] = _guessed_constant(name, uses, len(blocks) == 1 and is_flat)
    launch = _Launch({n: object() if t.startswith("*") else constants.get(n, 64) for n, t in types.items()})
    for name, function in kernel.heuristics.items():
        if name in types:
            try:
                constants[name] = function(launch)
            except Exception:
                pass
    return Signature(types, constants, options)


def variations(kernel, first):
    """Signatures to try where Triton refuses the first one: other sizes, types and flags, one change at a time."""
    uses = uses_of(kernel.jit)
    flags = [n for n, v in first.constants.items() if isinstance(v, bool)]
    sizes = [n for n, v in first.constants.items() if isinstance(v, int) and not isinstance(v, bool) and v >= 16]
    pointers = [n for n, t in first.types.items() if t.startswith("*")]
    floats = [n for n in pointers if not first.types[n].startswith("*i")]
    for config in kernel.configs[1:]:
        yield Signature(first.types, {**first.constants, **{k: v for k, v in config.kwargs.items() if k in first.types}},
                        {"num_warps": config.num_warps, "num_stages": config.num_stages})
    yield first.with_types(**{n: "*fp32" for n in floats})
    for size in (64, 32, 16, 128):
        yield first.with_constants(**{n: size for n in sizes})
    yield first.with_constants(**{n: False for n in flags})
    for name in flags:
        yield first.with_constants(**{name: not first.constants[name]})
    for name in floats:
        for dtype in ("*i32", "*fp32", "*i1"):
            yield first.with_types(**{name: dtype})
    for name in pointers:
        if first.types[name].startswith("*i"):
            yield first.with_types(**{name: "*fp32"})
    for name, type_name in first.types.items():
        if type_name in ("fp32", "i32"):
            yield first.with_types(**{name: "i32" if type_name == "fp32" else "fp32"})
            yield first.with_types(**{name: "*fp32"})
    for name in uses.integers & set(sizes):
        yield first.with_constants(**{name: 4})
