"""Results of operators on numbers, by their definitions, in double precision."""
import math
import struct
from array import array
from collections import namedtuple
from itertools import product
from math import prod

from elements import shape_of, solved
from onnx_file import Constant
from sizes import Refused, num, require

FORMATS = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H",
           "u32": "I", "u64": "Q", "bool": "?"}
MOST_WORK = 1 << 24  # elements of results times those of folds
Numbers = namedtuple("Numbers", "dtype shape elements")  # a constant that is not yet rounded to its type


def is_float(dtype):
    return dtype[0] in "fb" and dtype != "bool"


def elements_of(constant):
    """The numbers of a constant, in order."""
    require(constant.dtype in FORMATS, f"numbers of {constant.dtype} are not read")
    letter = FORMATS[constant.dtype]
    if letter in "e?":
        return struct.unpack(f"<{prod(constant.shape)}{letter}", constant.data)
    return array(letter, constant.data)


def constant_of(dtype, shape, elements):
    require(dtype in FORMATS, f"numbers of {dtype} are not read")
    try:
        if dtype in ("f32", "f64"):
            return Constant(dtype, list(shape), array(FORMATS[dtype], elements).tobytes())
        return Constant(dtype, list(shape), struct.pack(f"<{len(elements)}{FORMATS[dtype]}", *elements))
    except (struct.error, OverflowError) as error:
        raise Refused(f"a number does not fit its type: {error}") from error


def divided(a, b):
    require(b != 0, "zero is divided by")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def quotient(a, b):
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def logarithm(x):
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def truncated(x):
    """An integer of 64 bits; what is not finite becomes one at the end of their range, as processors do."""
    if isinstance(x, float) and not math.isfinite(x):
        return 0 if x != x else 2 ** 63 - 1 if x > 0 else -2 ** 63
    return int(x)


def floored(a, b):
    require(b != 0, "zero is divided by")
    return a // b


def rest(a, b):
    require(b != 0, "zero is divided by")
    return a % b


def nearest(x):
    """Halves go to even numbers."""
    return float(round(x)) if math.isfinite(x) else x


FUNCTIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
             "max": max, "min": min, "abs": abs, "exp": math.exp, "log": logarithm, "sqrt": math.sqrt, "sin": math.sin,
             "cos": math.cos, "atan": math.atan, "tanh": math.tanh, "erf": math.erf, "pow": lambda a, b: a ** b,
             "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a, "round": nearest,
             "floor_div": floored, "mod": rest, "equal": lambda a, b: a == b, "less": lambda a, b: a < b,
             "less_equal": lambda a, b: a <= b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
             "xor": lambda a, b: a ^ b}


class Evaluation:
    """One definition, on operands that are numbers; expressions become functions of the positions of axes."""

    def __init__(self, definition, operands):
        shapes = [[num(n) for n in operand.shape] for operand in operands]
        self.sizes = solved(definition, shapes)
        self.definition, self.operands = definition, {}
        for wanted, operand in zip(definition.inputs, operands):
            require([size.substituted(self.sizes).constant() for size in wanted.shape] == operand.shape and
                    wanted.dtype == operand.dtype, "an operand does not fit its definition")
            self.operands[wanted.name] = (operand.shape, operand.elements)

    def result(self, which):
        output = self.definition.outputs[which]
        shape = [size.constant() for size in shape_of(output, self.sizes)]
        require(None not in shape, "the shape of a constant is not known")
        self.work = prod(shape)
        axes = {name: self.extent(size) for parts in output.axes for name, size in parts}
        elements = self.moved(output.value, axes)
        if elements is None:
            elements = self.computed(output.value, axes)
        return Numbers(output.dtype, shape, elements)

    def computed(self, s, axes):
        """The values of an expression, for all positions."""
        value, env, elements = self.compiled(s), {}, []
        require(self.work <= MOST_WORK, "a constant takes too long to compute")
        for at in product(*map(range, axes.values())):
            env.update(zip(axes, at))
            elements.append(value(env))
        return elements

    def moved(self, s, axes):
        """The same, of an element at indices that are sums of functions of one axis each; else None."""
        if s.kind != "read" or not axes or self.work == 0:
            return None
        shape, elements = self.operands[s.parts[0]]
        offsets = {name: [0] * extent for name, extent in axes.items()}
        for index, size in zip(s.parts[1], shape):
            least = most = 0
            own = {name: [0] * extent for name, extent in axes.items()}
            for name, sign, part in summands(index, 1):
                name = next(iter(axes)) if name is None else name
                if name not in axes:
                    return None
                value = self.compiled(part)
                own[name] = [o + sign * value({name: i}) for i, o in enumerate(own[name])]
            for name, values in own.items():
                least, most = least + min(values), most + max(values)
                offsets[name] = [o * size + v for o, v in zip(offsets[name], values)]
            if least < 0 or most >= size:
                return None
        places = [0]
        for values in offsets.values():
            places = [p + v for p in places for v in values]
        return [elements[p] for p in places]

    def extent(self, size):
        extent = size.substituted(self.sizes).constant()
        require(extent is not None, "a size is not known")
        return extent

    def compiled(self, s):
        return getattr(self, "of_" + s.kind)(s)

    def of_const(self, s):
        value = float(s.parts[0]) if s.sort == "value" else s.parts[0]
        return lambda env: value

    def of_index(self, s):
        name = s.parts[0]
        return lambda env: env[name]

    def of_size(self, s):
        value = self.extent(s.parts[0])
        return lambda env: value

    def of_partial(self, s):
        name = "%" + s.parts[0] + str(s.parts[1])
        return lambda env: env[name]

    def of_read(self, s):
        name, at, otherwise = s.parts
        shape, elements = self.operands[name]
        places = [(self.compiled(i), n) for i, n in zip(at, shape)]
        other = None if otherwise is None else self.compiled(otherwise)

        def read(env):
            place = 0
            for index, size in places:
                i = index(env)
                if not 0 <= i < size:
                    require(other is not None, "an element is read out of range")
                    return other(env)
                place = place * size + i
            return elements[place]
        return read

    def of_apply(self, s):
        fn, parts = s.parts
        args = [self.compiled(a) for a in parts]
        if fn == "select":
            condition, first, second = args
            return lambda env: first(env) if condition(env) else second(env)
        if fn == "not":
            require(s.sort == "bool", "bits are not read")
            return lambda env: not args[0](env)
        if fn == "div":
            function = quotient if s.sort == "value" else divided
            return lambda env: function(args[0](env), args[1](env))
        require(fn in FUNCTIONS, f"{fn} is not computed")
        function = FUNCTIONS[fn]
        if len(args) == 1:
            return lambda env: function(args[0](env))
        left, right = args
        return lambda env: function(left(env), right(env))

    def of_cast(self, s):
        to, arg = s.parts
        inner = self.compiled(arg)
        if to == "bool":
            return lambda env: inner(env) != 0
        if to in ("f32", "f64"):
            return lambda env: float(inner(env))
        require(to in FORMATS and to[0] in "iu", f"numbers of {to} are not read")
        return lambda env: truncated(inner(env))  # constant_of refuses what the type does not have

    def of_component(self, s):
        fold, which = s.parts
        for _, extent in fold.bounds:
            if extent.kind == "size":
                self.work *= max(self.extent(extent.parts[0]), 1)
        ranges = [(name, self.compiled(extent)) for name, extent in fold.bounds]
        init, lift, combine = ([self.compiled(e) for e in part] for part in (fold.init, fold.lift, fold.combine))

        def folded(env):
            inner = dict(env)
            total = [e(env) for e in init]
            for at in product(*(range(extent(env)) for _, extent in ranges)):
                inner.update(zip((name for name, _ in ranges), at))
                taken = [e(inner) for e in lift]
                inner.update({f"%L{i}": x for i, x in enumerate(total)})
                inner.update({f"%R{i}": x for i, x in enumerate(taken)})
                total = [e(inner) for e in combine]
            return total[which]
        return folded


def axes_of(s):
    """The axes that an index speaks of; None among them stands for data."""
    if s.kind == "index":
        return {s.parts[0]}
    if s.kind == "apply":
        return set().union(*(axes_of(part) for part in s.parts[1]))
    return set() if s.kind in ("const", "size") else {None, ""}


def summands(s, sign):
    """An index as a sum: the axis of each part, or none, its sign, and the part."""
    if s.kind == "apply" and s.parts[0] in ("add", "sub") and len(axes_of(s)) > 1:
        left, right = s.parts[1]
        return summands(left, sign) + summands(right, sign if s.parts[0] == "add" else -sign)
    axes = axes_of(s)
    return [(next(iter(axes), None) if len(axes) < 2 else "", sign, s)]


def evaluated(definition, which, operands):
    """One result on `Numbers`, not rounded."""
    try:
        return Evaluation(definition, operands).result(which)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError, KeyError) as error:
        raise Refused(f"a constant is not computed: {error}") from error


def is_move(definition, which):
    """Whether elements are those of an operand, moved: nothing is rounded."""
    value = definition.outputs[which].value
    return value.kind == "read" and (value.parts[2] is None or value.parts[2].kind == "const")
