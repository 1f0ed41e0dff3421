"""What a proof of a claim takes for granted, found in the definitions of its values."""
from definitions import SORTS
from elements import shape_of, simple, solved
from named_reals import named_real

CLAUSES = {
    "rounding": "floating-point operations do not round",
    "non-finite": "no input and no result is infinite or NaN",
    "domain": "nothing is divided by zero, and no root or logarithm is taken of a number that has none",
    "indices": "indices lie within the axes that they are of",
    "wrap-around": "integers stay within the range of their types",
    "empty": "all sizes are at least 1",
}
ANY, NOT_NEGATIVE, POSITIVE = 0, 1, 2
GROWING = {"add", "sub", "mul", "neg", "abs", "pow", "div", "shift_left"}


def sign_of(number):
    return POSITIVE if number > 0 else NOT_NEGATIVE if number == 0 else ANY


class Inspection:
    def __init__(self, certificate, contents):
        self.found, self.signs, self.contents, self.reals = set(), {}, contents, {}
        self.shapes = {i.name: i.shape for i in certificate.inputs}
        self.uniform = {i.name: i.uniform for i in certificate.inputs if i.uniform is not None}
        for i in certificate.inputs:
            if any(size.constant() is None for size in i.shape):
                self.found.add("empty")
            if i.name in contents and contents[i.name].elements:
                self.signs[i.name] = min(sign_of(x) for x in contents[i.name].elements)
            if i.uniform is not None:
                self.signs[i.name] = sign_of(i.uniform)
                self.named(i.uniform)
        for value in certificate.values:
            self.operands = dict(zip([o.name for o in value.definition.inputs], value.operands))
            for output in value.definition.outputs:
                self.constants(output.value)
            sizes = solved(value.definition, [self.shapes[o] for o in value.operands])
            self.shapes[value.name] = shape_of(value.definition.outputs[value.output], sizes)
            expression = value.definition.outputs[value.output].value
            self.visit(expression)
            self.signs[value.name] = self.sign(expression)

    def named(self, number):
        real = None if isinstance(number, float) else named_real(number)
        if real is not None:
            self.reals[number] = real[0]

    def parts(self, s):
        if s.kind == "read":
            return list(s.parts[1]) + ([s.parts[2]] if s.parts[2] is not None else [])
        if s.kind in ("apply", "cast"):
            return list(s.parts[1]) if s.kind == "apply" else [s.parts[1]]
        if s.kind == "component":
            fold = s.parts[0]
            return [e for _, e in fold.bounds] + fold.init + fold.lift + fold.combine
        return []

    def constants(self, s):
        if s.kind == "const" and s.sort == "value":
            self.named(s.parts[0])
        for part in self.parts(s):
            self.constants(part)

    def is_data(self, s):
        return s.kind in ("read", "partial") or any(self.is_data(p) for p in self.parts(s))

    def number(self, s):
        """A number that an expression is everywhere."""
        if s.kind == "const":
            return s.parts[0]
        if s.kind == "cast":
            return self.number(s.parts[1])
        return self.uniform.get(self.operands[s.parts[0]]) if s.kind == "read" else None

    def sign(self, s):
        if s.kind == "const":
            return sign_of(s.parts[0])
        if s.kind == "size":
            return POSITIVE
        if s.kind == "read":
            inside = self.signs.get(self.operands[s.parts[0]], ANY)
            return inside if s.parts[2] is None else min(inside, self.sign(s.parts[2]))
        if s.kind == "cast":
            return self.sign(s.parts[1]) if s.parts[0] in ("f32", "f64") else ANY
        if s.kind == "component":
            fold = s.parts[0]
            if simple(fold) == "add":
                return self.sign(fold.lift[0]) if self.sign(fold.init[0]) != ANY else ANY
            return self.sign(fold.lift[0]) if simple(fold) == "max" else ANY
        if s.kind != "apply":
            return ANY
        fn, args = s.parts
        signs = [self.sign(a) for a in args]
        if fn == "exp":
            return POSITIVE
        if fn == "abs" or (fn == "mul" and same_read(*args, self.operands)):
            return max(signs[0], NOT_NEGATIVE)
        if fn == "sqrt":
            return POSITIVE if signs[0] == POSITIVE else NOT_NEGATIVE
        if fn == "add":
            return ANY if min(signs) == ANY else max(signs)
        if fn in ("mul", "div", "min"):
            return min(signs)
        if fn == "max":
            return max(signs)
        if fn == "select":
            return min(signs[1:])
        if fn == "pow":
            exponent = self.number(args[1])
            even = exponent is not None and exponent % 2 == 0
            return POSITIVE if signs[0] == POSITIVE else NOT_NEGATIVE if even else signs[0]
        return ANY

    def is_defined(self, fn, args):
        if fn == "log":
            return self.sign(args[0]) == POSITIVE
        if fn == "sqrt":
            return self.sign(args[0]) != ANY
        if fn in ("div", "floor_div", "mod"):
            divisor = self.number(args[1])
            return (divisor is not None and divisor != 0) or self.sign(args[1]) == POSITIVE
        if fn == "pow" and self.sign(args[0]) != POSITIVE:
            exponent = self.number(args[1])
            if exponent is None or exponent < 0:
                return False
            return exponent == exponent // 1 or self.sign(args[0]) != ANY
        return True

    def may_leave(self, tensor, axis, index):
        """Whether an index is an element of a tensor that may lie outside of the axis. Negative ones count from the end
        where the index is `select(e < 0, e + size, e)`."""
        wraps = False
        while index.kind == "cast" or (index.kind == "apply" and index.parts[0] == "select"):
            wraps = wraps or index.kind == "apply"
            index = index.parts[1] if index.kind == "cast" else index.parts[1][2]
        if index.kind != "read":
            return False
        name, size = self.operands[index.parts[0]], self.shapes[self.operands[tensor]][axis].constant()
        size = 1 if size is None else size
        if name in self.uniform:
            least = most = int(self.uniform[name])
        elif name in self.contents and SORTS[self.contents[name].dtype] != "value":
            elements = [int(x) for x in self.contents[name].elements]
            least, most = min(elements, default=0), max(elements, default=0)
        else:
            return True
        return least < (-size if wraps else 0) or most >= size

    def visit(self, s):
        if s.kind == "read":
            if s.parts[2] is not None:
                return self.visit(s.parts[2])
            if any(self.may_leave(s.parts[0], axis, index) for axis, index in enumerate(s.parts[1])):
                self.found.add("indices")
            return None
        if s.kind == "apply":
            fn, args = s.parts
            if s.sort == "value":
                self.floating(fn)
            elif self.is_data(s) and s.sort in ("integer", "unsigned"):
                self.found |= {"wrap-around"} if fn in GROWING else set()
            elif args[0].sort == "value":
                self.found.add("non-finite")
            if not self.is_defined(fn, args):
                self.found.add("domain")
        elif s.kind == "cast":
            to, arg = s.parts
            if SORTS[to] == "value" and arg.sort != "bool" and self.is_data(arg):
                self.found |= {"rounding"} | ({"non-finite"} if arg.sort == "value" else set())
            elif arg.sort == "value" and SORTS[to] != "value":
                self.found |= {"non-finite", "wrap-around"}
        elif s.kind == "component" and simple(s.parts[0]):
            if s.sort == "value":
                self.floating(simple(s.parts[0]))
            elif any(self.is_data(x) for x in s.parts[0].lift) and simple(s.parts[0]) in GROWING:
                self.found.add("wrap-around")
        for part in self.parts(s):
            self.visit(part)
        return None

    def floating(self, fn):
        if fn != "select":
            self.found |= {"non-finite"} | (set() if fn in ("max", "min", "neg", "abs") else {"rounding"})


def same_read(a, b, operands):
    return (a.kind == b.kind == "read" and operands[a.parts[0]] == operands[b.parts[0]] and
            all(x.kind == y.kind == "index" and x.parts == y.parts for x, y in zip(a.parts[1], b.parts[1])))


def required_assumptions(certificate, contents):
    """The kinds and clauses that a certificate has to list: these and no others."""
    seen = Inspection(certificate, contents)
    required = {(kind, CLAUSES[kind]) for kind in seen.found}
    if certificate.named_reals:
        for number, name in seen.reals.items():
            required.add(("constant", f"the constant {float_text(number)} stands for {name}"))
    return required


def float_text(number):
    """The shortest decimal text, as the certificate writes floats."""
    return repr(float(number))
