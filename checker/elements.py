"""Elements of tensors, as their definitions say: index notation read as a sum of products."""
from collections import namedtuple
from fractions import Fraction
from math import isinf

import expressions
import functions
import maxima
import named_reals
import sums
from definitions import SORTS
from expressions import Factor, Term, constant, indicator, number, scaled
from functions import apply, apply_to_integers
from sizes import OPERATIONS, Dim, Refused, num, of_atom, sym
from sums import product

# `value` is that of the certificate; none for inputs, of which `uniform` is the number of all elements.
Tensor = namedtuple("Tensor", "name dtype shape uniform value sizes operands")


def constant_of_file(value, named):
    """A constant: minus infinity is below every number; near a named real, it may stand for that."""
    if isinstance(value, float):
        if not isinf(value):
            raise Refused("a constant is no number")
        return scaled([Term(factors=[Factor("bottom")])], 1 if value < 0 else -1)
    if named:
        real = named_reals.named_real(value)
        if real is not None:
            return real[1]
    return constant(Fraction(value))


def solved(definition, shapes):
    """The sizes of the axes of a definition, given the shapes of its operands."""
    equations = [(pattern, size) for operand, shape in zip(definition.inputs, shapes)
                 for pattern, size in zip(operand.shape, shape)]
    equations.sort(key=lambda e: 0 if e[1].constant() is not None else 1 if e[0].symbol() else 2)
    sizes = {}
    while equations:
        later = []
        for pattern, size in equations:
            left = pattern.substituted(sizes)
            unknown = [s for s in left.symbols() if s.startswith("#")]
            if not unknown:
                continue
            linear = linear_in(left, unknown[0]) if len(unknown) == 1 else None
            if linear is None:
                later.append((pattern, size))
                continue
            sizes[unknown[0]] = OPERATIONS["floor_div"](size - linear[1], linear[0])
        if len(later) == len(equations):
            raise Refused("a definition leaves sizes open")
        equations = later
    return sizes


def shape_of(output, sizes):
    shape = []
    for parts in output.axes:
        size = num(1)
        for _, extent in parts:
            size = size * extent.substituted(sizes)
        shape.append(size)
    return shape


def linear_in(dim, name):
    """(factor, rest) with dim = factor * name + rest; None where it is not linear."""
    factor, rest = num(0), num(0)
    for atoms, c in dim.terms.items():
        left = [a for a in atoms if not (a.op == "symbol" and a.name == name)]
        if len(left) < len(atoms) - 1 or any(name in of_atom(a).symbols() for a in left):
            return None
        part = Dim({tuple(left): c})
        factor, rest = (factor + part, rest) if len(left) < len(atoms) else (factor, rest + part)
    return (factor, rest) if factor.terms else None


class ElementReader:
    def __init__(self, tensors, tensor, axes, named):
        self.tensors, self.tensor, self.axes, self.named = tensors, tensor, axes, named

    def dim(self, s):
        """An index or a size that hangs on no data; else None."""
        if s.kind == "const":
            return num(s.parts[0]) if s.sort == "integer" else None
        if s.kind == "index":
            return self.axes.get(s.parts[0])
        if s.kind == "size":
            return s.parts[0].substituted(self.tensor.sizes)
        if s.kind != "apply" or s.sort != "integer":
            return None
        fn, args = s.parts
        if any(a.sort != "integer" for a in args):
            return None
        dims = [self.dim(a) for a in args]
        if any(d is None for d in dims):
            return None
        plain = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
                 "neg": lambda a: -a, "abs": lambda a: OPERATIONS["max"](a, -a), **OPERATIONS}
        return plain[fn](*dims) if fn in plain else None

    def read(self, s):
        return getattr(self, "of_" + s.kind)(s)

    def of_const(self, s):
        return constant_of_file(s.parts[0], self.named) if s.sort == "value" else constant(s.parts[0])

    def of_index(self, s):
        at = self.dim(s)
        if at is None:
            raise Refused("an index has no meaning")
        return number(at)

    of_size = of_index

    def of_partial(self, s):
        return expressions.factor_sum(Factor("read", f"%{s.parts[0]}{s.parts[1]}", to="f32"))

    def operand(self, name):
        for operand, given in zip(self.tensor.value.definition.inputs, self.tensor.operands):
            if operand.name == name:
                return self.tensors[given]
        raise Refused(f"there is no operand {name}")

    def inside(self, s):
        """What is read, and the conditions under which that is inside of the tensor."""
        name, at, otherwise = s.parts
        tensor, limits, place, chosen = self.operand(name), [], [], [Term()]
        for size, index in zip(tensor.shape, at):
            last, where = size - num(1), self.dim(index)
            if where is None:  # x[d] for data d is the sum over k of x[k] where k = d
                k = expressions.fresh()
                data = apply("equal", [number(sym(k)), self.read(index)])
                chosen = product(chosen, product([Term(bound=[k], guards=[last - sym(k)])], data))
                if otherwise is not None and not is_zero(otherwise):
                    raise Refused("what is read out of range is not zero")
                where = sym(k)
            elif otherwise is not None:
                limits += [e for e in (where, last - where) if not e.never_negative()]
            place.append(where)
        if tensor.uniform is not None:
            value = constant_of_file(tensor.uniform, self.named)
        else:
            value = element_factor(tensor, place)
        return limits, product(chosen, value)

    def of_read(self, s):
        limits, value = self.inside(s)
        otherwise = s.parts[2]
        if otherwise is None:
            return value
        result = product(indicator(limits), value)
        if is_zero(otherwise):
            return result
        before, outside = [], []
        for limit in limits:  # where not all are >= 0, in parts that do not overlap
            outside += indicator(before + [-limit - num(1)])
            before = before + [limit]
        return result + product(outside, self.read(otherwise))

    def shifted_read(self, element, by):
        """An element less what stands for it out of range: their difference in range, zero elsewhere."""
        if element.kind != "read" or element.parts[2] is None or is_zero(element.parts[2]):
            return None
        limits, value = self.inside(element)
        shift, outside = self.read(by), self.read(element.parts[2])
        if expressions.key(sums.normal(shift)) != expressions.key(sums.normal(outside)):
            return None
        return product(indicator(limits), value + scaled(shift, -1))

    def truth(self, s, negated):
        """A condition as 0 or 1."""
        if s.kind == "apply":
            fn, args = s.parts
            if fn == "not" and s.sort == "bool":
                return self.truth(args[0], not negated)
            if fn in ("and", "or") and s.sort == "bool":
                first = self.truth(args[0], negated)
                if (fn == "and") != negated:
                    return product(first, self.truth(args[1], negated))
                return first + product(self.truth(args[0], not negated), self.truth(args[1], negated))
            if fn in ("less", "less_equal"):
                return self.ordered(args, fn == "less", negated)
            if fn == "equal":
                a, b = self.dim(args[0]), self.dim(args[1])
                if a is not None and b is not None:
                    if not negated:
                        return indicator([a - b, b - a])
                    return indicator([a - b - num(1)]) + indicator([b - a - num(1)])
        value = self.plain(s)
        return constant(1) + scaled(value, -1) if negated else value

    def ordered(self, args, strict, negated):
        if negated:
            return self.ordered(args[::-1], not strict, False)
        a, b = self.dim(args[0]), self.dim(args[1])
        if a is not None and b is not None:
            return indicator([b - a - num(1 if strict else 0)])
        left, right = self.read(args[0]), self.read(args[1])
        if strict:
            return apply("less", [left, right])
        return constant(1) + scaled(apply("less", [right, left]), -1)

    def of_apply(self, s):
        fn, args = s.parts
        at = self.dim(s)
        if at is not None:
            return number(at)
        if fn == "select":
            return product(self.truth(args[0], False), self.read(args[1])) + \
                product(self.truth(args[0], True), self.read(args[2]))
        if s.sort == "bool" and fn in ("not", "and", "or", "less", "less_equal", "equal"):
            return self.truth(s, False)
        if s.sort == "bool" and fn == "xor":
            return product(self.truth(args[0], False), self.truth(args[1], True)) + \
                product(self.truth(args[0], True), self.truth(args[1], False))
        return self.plain(s)

    def plain(self, s):
        if s.kind != "apply":
            return self.read(s)
        fn, args = s.parts
        shifted = self.shifted_read(*args) if fn == "sub" else None
        if shifted is not None:
            return shifted
        values = [self.read(a) for a in args]
        return apply(fn, values) if s.sort in ("value", "bool") else apply_to_integers(fn, values)

    def of_cast(self, s):
        to, arg = s.parts
        value = self.read(arg)
        if SORTS[to] == "bool":
            if arg.sort == "bool":
                return value
            return constant(1) + scaled(apply("equal", [value, []]), -1)
        wide = to in ("f32", "f64", "i64") and (SORTS[to] == "value" or arg.sort == "integer")
        if wide or (arg.sort == "bool" and to != "f8e8m0"):
            return value
        return functions.cast(to, value)

    def of_component(self, s):
        fold, which = s.parts
        bound, guards, axes = [], [], dict(self.axes)
        for axis, extent in fold.bounds:
            size = self.dim(extent)
            if size is None:
                raise Refused("the range of a fold hangs on data")
            bound.append(expressions.fresh())
            guards.append(size - num(1) - sym(bound[-1]))
            axes[axis] = sym(bound[-1])
        body = ElementReader(self.tensors, self.tensor, axes, self.named)
        fn = simple(fold)
        if fn == "add":
            return product([Term(bound=bound, guards=guards)], body.read(fold.lift[0])) + self.read(fold.init[0])
        if fn in ("max", "min") or (fn in ("or", "and") and fold.lift[0].sort == "bool"):
            sign = 1 if fn in ("max", "or") else -1
            limits, value = body.piece(fold.lift[0], sign)
            piece = sums.group(scaled(value, sign)).like(bound=bound, guards=guards + limits)
            return scaled(maxima.most([piece, sums.group(scaled(self.read(fold.init[0]), sign))]), sign)
        groups = [sums.group(body.read(lift)).factors[0] for lift in fold.lift]
        if len(bound) > 1 and fn != "mul":  # the order of several axes counts
            groups += [sums.group(number(sym(name))).factors[0] for name in bound]
        args = [[Term(bound=bound, guards=guards, factors=groups)]]
        args += [sums.collected(self.read(x)) for x in list(fold.init) + list(fold.combine)]
        return expressions.factor_sum(Factor("fold", component=which, args=args))

    def piece(self, lift, sign):
        """What a maximum is taken of: below every number outside of a range is not in it."""
        if lift.kind == "read" and lift.parts[2] is not None:
            outside = lift.parts[2]
            if outside.kind == "const" and isinstance(outside.parts[0], float) and \
                    (outside.parts[0] < 0) == (sign > 0):
                return self.inside(lift)
        return [], self.read(lift)


def simple(fold):
    """The function f of a fold with one component that is combined as f(left, right)."""
    combine = fold.combine[0]
    if len(fold.init) != 1 or combine.kind != "apply" or len(combine.parts[1]) != 2:
        return None
    left, right = combine.parts[1]
    if left.kind != "partial" or right.kind != "partial" or left.parts[0] + right.parts[0] != "LR":
        return None
    return combine.parts[0]


def is_zero(s):
    return s.kind == "const" and s.parts[0] == 0


def element_factor(tensor, at):
    return expressions.factor_sum(Factor("read", tensor.name, to=tensor.dtype, truth=tensor.dtype == "bool", at=at))


def element(tensors, tensor, at, named):
    """The element of a computed tensor at a position."""
    output, axes = tensor.value.definition.outputs[tensor.value.output], {}
    if len(output.axes) != len(at):
        raise Refused("a position has another number of axes")
    for parts, rest in zip(output.axes, at):
        for k in range(len(parts) - 1, -1, -1):  # the last part of a merged axis runs fastest
            name, size = parts[k]
            size = size.substituted(tensor.sizes)
            axes[name] = rest if k == 0 else OPERATIONS["mod"](rest, size)
            if k:
                rest = OPERATIONS["floor_div"](rest, size)
    return ElementReader(tensors, tensor, axes, named).read(output.value)
