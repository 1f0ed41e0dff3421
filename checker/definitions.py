"""Definitions of operators as text: index notation (docs/ir.md)."""
import re
from collections import namedtuple
from fractions import Fraction

from expressions import WIDE
from sizes import Refused, sym

Operand = namedtuple("Operand", "name dtype shape")
Output = namedtuple("Output", "name dtype axes value")  # axes: lists of (name, size)
Definition = namedtuple("Definition", "inputs outputs")
Fold = namedtuple("Fold", "bounds init lift combine")
SORTS = {**{t: "value" if t[0] == "f" or t == "bf16" else "integer" for t in WIDE},
         "bool": "bool", "u64": "unsigned"}
ARITY = {**dict.fromkeys("neg abs exp log sqrt sin cos atan tanh erf floor round not".split(), 1),
         **dict.fromkeys("add sub mul div floor_div mod pow max min equal less less_equal and or xor "
                         "shift_left shift_right".split(), 2), "select": 3}
INFIX = {"||": (1, "or"), "&&": (2, "and"), "==": (3, "equal"), "<": (3, "less"),
         "<=": (3, "less_equal"), ">": (3, "less"), ">=": (3, "less_equal"), "!=": (3, "equal"),
         "+": (4, "add"), "-": (4, "sub"), "*": (5, "mul"), "/": (5, "div")}
RESERVED = {"let", "in", "else", "from", "take", "by", "scatter"}


def joined(a, b):
    if a == b:
        return a
    return next((s for s in ("value", "unsigned") if s in (a, b)), "integer")


class Scalar:
    """An expression: kind const index size read apply cast partial component, and its parts."""

    __slots__ = ("kind", "sort", "parts")

    def __init__(self, kind, sort, *parts):
        self.kind, self.sort, self.parts = kind, sort, parts


def applied(fn, args):
    sorts = [a.sort for a in args]
    if fn in ("exp", "log", "sqrt", "sin", "cos", "atan", "tanh", "erf"):
        sort = "value"
    elif fn in ("equal", "less", "less_equal"):
        sort = "bool"
    elif fn == "select":
        sort = joined(sorts[1], sorts[2])
    elif len(args) == 2 and not fn.startswith("shift"):
        sort = joined(*sorts)
    else:
        sort = sorts[0]
    return Scalar("apply", sort, fn, args)


class DefinitionReader:
    def __init__(self, reader):
        self.r, self.operands, self.lets, self.sorts = reader, {}, {}, []

    def definition(self):
        r = self.r
        r.expect("define")
        inputs = r.items("(", self.operand, ")")
        r.expect("{")
        while r.accept("let"):
            self.let()
        outputs = []
        while not r.accept("}"):
            outputs.append(self.output())
        return Definition(inputs, outputs)

    def operand(self):
        name = self.r.name()
        self.r.expect(":")
        operand = Operand(name, self.r.type(), self.r.dims())
        if self.operands.setdefault(name, operand) is not operand:
            raise Refused(f"there are two operands {name}")
        return operand

    def axis(self):
        name = self.r.name()
        return name, self.r.dim() if self.r.accept(":") else sym("#" + name)

    def merged(self):
        return self.r.items("(", self.axis, ")") if self.r.at("(") else [self.axis()]

    def output(self):
        r, name = self.r, self.r.name()
        r.expect(":")
        dtype, axes = r.type(), r.items("[", self.merged, "]")
        r.expect("=")
        value = self.expression()
        if r.at("scatter"):
            raise Refused("a forward write is not read")
        return Output(name, dtype, axes, value)

    def let(self):
        r = self.r
        names = r.items("(", r.name, ")") if r.at("(") else [r.name()]
        r.expect("=")
        if len(names) > 1:
            r.expect("fold")
            values = self.components()
        else:
            values = [self.expression()]
        if len(names) != len(values):
            raise Refused("the names of a let do not fit")
        self.lets.update(zip(names, values))

    def expressions(self):
        result = [self.expression()]
        while self.r.accept(","):
            result.append(self.expression())
        return result

    def expression(self):
        value = self.infix(1)
        if not self.r.accept("else"):
            return value
        if value.kind != "read" or value.parts[2] is not None:
            raise Refused("else follows something that is not read")
        return Scalar("read", value.sort, *value.parts[:2], self.expression())

    def infix(self, least):
        left = self.unary()
        while self.r.peek().kind == "sign" and self.r.peek().text in INFIX:
            sign = self.r.peek().text
            level, fn = INFIX[sign]
            if level < least:
                break
            self.r.take()
            right = self.infix(level + 1)
            left = applied(fn, [right, left] if sign in (">", ">=") else [left, right])
            if sign == "!=":
                left = applied("not", [left])
        return left

    def unary(self):
        r = self.r
        if r.at("-") and r.peek(1).kind not in ("integer", "float") and r.peek(1).text != "inf":
            r.take()
            return applied("neg", [self.unary()])
        if r.accept("!"):
            return applied("not", [self.unary()])
        return self.atom()

    def atom(self):
        r = self.r
        if r.accept("("):
            value = self.expression()
            r.expect(")")
            return value
        after = r.peek(1) if r.at("-") else r.peek()
        if after.kind == "float" or (after.kind == "name" and after.text in ("inf", "nan")):
            return Scalar("const", "value", r.number())
        if after.kind == "integer":
            return Scalar("const", "unsigned" if after.text.endswith("u") else "integer", r.integer())
        token = r.peek()
        if r.at("[", 1) and token.kind in ("name", "quoted"):
            return self.read()
        if token.kind == "quoted":
            return Scalar("index", "integer", r.take().text)
        if token.kind != "name" or token.text in RESERVED:
            raise Refused(f"an expression is expected before {token.text!r}")
        if r.at("(", 1):
            return self.call()
        word = r.take().text
        if word in ("true", "false"):
            return Scalar("const", "bool", int(word == "true"))
        if word[0] == "#":
            return Scalar("size", "integer", sym(word))
        if word[0] == "%":
            if word not in self.lets:
                raise Refused(f"{word} has no meaning")
            return self.lets[word]
        side = re.fullmatch(r"(left|right)\.(\d+)([iub]?)", word)
        if side:
            sort = {"": "value", "i": "integer", "u": "unsigned", "b": "bool"}[side.group(3)]
            if self.sorts and not side.group(3):
                sort = self.sorts[-1][int(side.group(2))]
            return Scalar("partial", sort, "LR"[side.group(1) == "right"], int(side.group(2)))
        return Scalar("index", "integer", word)

    def read(self):
        name = self.r.name()
        if name not in self.operands:
            raise Refused(f"there is no operand {name}")
        at = self.r.items("[", self.expression, "]")
        if len(at) != len(self.operands[name].shape) or any(
                i.sort not in ("integer", "unsigned") for i in at):
            raise Refused(f"{name} is read at another number of axes")
        return Scalar("read", SORTS[self.operands[name].dtype], name, at, None)

    def bounds(self):
        def one():
            name = self.r.name()
            if self.r.accept(":"):
                return name, self.expression()
            return name, Scalar("size", "integer", sym("#" + name))
        return self.r.items("(", one, ")")

    def call(self):
        r, word = self.r, self.r.take().text
        if word in WIDE:
            arg, = r.items("(", self.expression, ")")
            return Scalar("cast", SORTS[word], word, arg)
        if word == "size":
            dim, = r.items("(", r.dim, ")")
            return Scalar("size", "integer", dim)
        if word in ("sum", "prod", "max_of", "min_of", "any_of"):
            return self.named_fold(word)
        if word == "fold":
            components, which = self.components(), 0
            if len(components) > 1:
                r.expect(".")
                which = r.integer()
            return components[which]
        if word not in ARITY:
            raise Refused(f"there is no function {word}")
        args = r.items("(", self.expression, ")")
        if len(args) != ARITY[word]:
            raise Refused(f"{word} has another number of arguments")
        return applied(word, args)

    def named_fold(self, word):
        bounds, braces = self.bounds(), self.r.accept("{")
        term = self.expression()
        if braces:
            self.r.expect("}")
        value, unsigned = term.sort == "value", term.sort == "unsigned"
        start = {"sum": 0, "prod": 1, "any_of": 0,
                 "max_of": float("-inf") if value else 0 if unsigned else -2 ** 63,
                 "min_of": float("inf") if value else 2 ** 64 - 1 if unsigned else 2 ** 63 - 1}[word]
        sort = "value" if value else "bool" if word == "any_of" else \
            "unsigned" if unsigned and word in ("max_of", "min_of") else "integer"
        fn = {"sum": "add", "prod": "mul", "max_of": "max", "min_of": "min", "any_of": "or"}[word]
        if value and word in ("sum", "prod"):
            start = Fraction(start)
        init = Scalar("const", sort, start)
        sides = [Scalar("partial", sort, side, 0) for side in "LR"]
        return Scalar("component", sort, Fold(bounds, [init], [term], [applied(fn, sides)]), 0)

    def components(self):
        r, bounds = self.r, self.bounds()
        r.expect("{")
        r.expect("from")
        init = self.expressions()
        r.expect("take")
        lift = self.expressions()
        r.expect("by")
        self.sorts.append([i.sort for i in init])
        combine = self.expressions()
        self.sorts.pop()
        r.expect("}")
        if not len(init) == len(lift) == len(combine):
            raise Refused("the components of a fold do not fit")
        fold = Fold(bounds, init, lift, combine)
        return [Scalar("component", i.sort, fold, k) for k, i in enumerate(init)]
