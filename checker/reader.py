"""Readers of certificates, definitions, sizes and sums: the grammar of docs/verification.md."""
import re
from collections import namedtuple
from fractions import Fraction

from sizes import OPERATIONS, Refused, num, sym
from expressions import WIDE, Factor, Term

TOKEN = re.compile(r"""
    (?P<space>(?:\s+|//[^\n]*)+)
  | (?P<float>0x[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?p[-+]?\d+|\d+(?:\.\d+)?[eE][-+]?\d+|\d+\.\d+)
  | (?P<integer>\d+u?(?![\w.#%]))
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<quoted>'(?:[^'\\]|\\.)*')
  | (?P<name>[A-Za-z_\#%][\w.\#%]*)
  | (?P<sign>->|=>|:=|==|!=|<=|>=|&&|\|\||[-()\[\]{},:;.+*/=<>!?@&|^~$])
""", re.X)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

Token = namedtuple("Token", "kind text at")


def unescaped(text):
    def one(match):
        code = match.group(1)
        return chr(int(code[1:], 16)) if code[0] == "x" else ESCAPES.get(code, code)
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", one, text, flags=re.S)


class Reader:
    def __init__(self, text):
        self.tokens, at = [], 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise Refused(f"unreadable: {text[at:at + 20]!r}")
            kind, word = match.lastgroup, match.group()
            if kind in ("string", "quoted"):
                word = unescaped(word[1:-1])
            if kind != "space":
                self.tokens.append(Token(kind, word, at))
            at = match.end()
        self.tokens.append(Token("end", "", at))
        self.next = 0

    def peek(self, ahead=0):
        return self.tokens[min(self.next + ahead, len(self.tokens) - 1)]

    def take(self):
        token = self.peek()
        self.next += 1
        return token

    def at(self, word, ahead=0):
        token = self.peek(ahead)
        return token.kind in ("name", "sign") and token.text == word

    def accept(self, word):
        if not self.at(word):
            return False
        self.next += 1
        return True

    def expect(self, word):
        if not self.accept(word):
            raise Refused(f"{word} is expected before {self.peek().text!r}")

    def name(self):
        if self.peek().kind not in ("name", "quoted"):
            raise Refused(f"a name is expected before {self.peek().text!r}")
        return self.take().text

    def string(self):
        if self.peek().kind != "string":
            raise Refused(f"a string is expected before {self.peek().text!r}")
        return self.take().text

    def integer(self):
        sign = -1 if self.accept("-") else 1
        if self.peek().kind != "integer":
            raise Refused(f"an integer is expected before {self.peek().text!r}")
        return sign * int(self.take().text.rstrip("u"))

    def number(self):
        """A float or an integer, as a fraction; infinities as floats."""
        sign = -1 if self.accept("-") else 1
        token = self.take()
        if token.text in ("inf", "nan"):
            return sign * float(token.text)
        if token.kind not in ("integer", "float"):
            raise Refused(f"a number is expected before {token.text!r}")
        if token.kind == "integer":
            return Fraction(sign * int(token.text))
        return sign * Fraction(float.fromhex(token.text) if "x" in token.text else float(token.text))

    def rational(self):
        value = Fraction(self.integer())
        if self.accept("/"):
            value /= self.integer()
        return value

    def items(self, opening, item, closing):
        self.expect(opening)
        result = []
        while not self.accept(closing):
            if result:
                self.expect(",")
            result.append(item())
        return result

    def type(self):
        if self.peek().text not in WIDE:
            raise Refused(f"{self.peek().text!r} is no type of numbers")
        return self.take().text

    # --- sizes

    def dim(self):
        total = self.dim_product()
        while True:
            if self.accept("+"):
                total = total + self.dim_product()
            elif self.at("-"):
                total = total + self.dim_product()
            else:
                return total

    def dim_product(self):
        result = self.dim_atom()
        while self.accept("*"):
            result = result * self.dim_atom()
        return result

    def dim_atom(self):
        if self.accept("-"):
            return -self.dim_atom()
        if self.accept("("):
            inner = self.dim()
            self.expect(")")
            return inner
        token = self.take()
        if token.kind == "integer":
            return num(int(token.text))
        if token.kind == "quoted":
            return sym(token.text)
        if token.kind != "name" or token.text == "undefined":
            raise Refused(f"a size is expected before {token.text!r}")
        if token.text in OPERATIONS and self.at("("):
            a, b = self.items("(", self.dim, ")")
            return OPERATIONS[token.text](a, b)
        return sym(token.text)

    def dims(self):
        return self.items("[", self.dim, "]")

    def condition(self):
        """A condition as what is >= 0."""
        left = self.dim()
        equal = self.accept("==")
        if not equal:
            self.expect("<=")
        right = self.dim()
        return [right - left, left - right] if equal else [right - left]

    # --- sums

    def sum(self, types):
        """`types` are those of tensors, by name."""
        if self.at_zero():
            self.take()
            return []
        terms = [self.term(types)]
        while self.accept("+"):
            terms.append(self.term(types))
        return terms

    def at_zero(self):
        return self.peek().text == "0" and self.peek().kind == "integer" and not self.at("*", 1) \
            and not self.at("/", 1)

    def term(self, types):
        bound, guards = [], []
        if self.at("sum") and self.at("(", 1):
            self.take(), self.take()
            while not self.accept(";"):
                bound.append(self.name())
                self.accept(",")
            while not self.accept(")"):
                guards.append(self.dim())
                self.accept(",")
        coefficient, factors = self.rational(), []
        while self.accept("*"):
            factors.append(self.factor(types))
        if len(set(bound)) != len(bound):
            raise Refused("a variable is bound twice")
        return Term(coefficient, bound, guards, factors)

    def factor(self, types):
        base = self.base(types)
        return base.like(exponent=self.rational()) if self.accept("^") else base

    def base(self, types):
        def sums(opening="(", closing=")"):
            return self.items(opening, lambda: self.sum(types), closing)
        if self.at("("):
            return Factor("power", args=sums())
        if self.at("{"):
            return Factor("group", args=sums("{", "}"))
        if self.accept("@"):
            name = self.name()
            to = types.get(name, "f32" if name.startswith("%") else None)
            if to is None:
                raise Refused(f"there is no tensor {name}")
            return Factor("read", name, to=to, truth=to == "bool", at=self.dims())
        word = self.name()
        if word == "size":
            return Factor("number", at=self.dims())
        if word == "bottom":
            return Factor("bottom")
        if word == "most":
            return Factor("most", args=sums())
        if word == "fold":
            return Factor("fold", component=self.integer(), args=sums())
        if word == "cast":
            return Factor("cast", to=self.type(), args=sums())
        if word == "integer":
            return Factor("apply", self.name(), to="i64", args=sums())
        return Factor("apply", word, truth=word in ("less", "equal"), args=sums())


# --- definitions

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


# --- certificates

Input = namedtuple("Input", "name dtype shape uniform content")
Value = namedtuple("Value", "name call output operands definition text")
Step = namedtuple("Step", "kind side place item dims reasons results goals parts")
Certificate = namedtuple(
    "Certificate", "rule assumptions witness named_reals inputs values facts pairs proofs")

KINDS = ("unfold split void drop tighten solve pin shift reverse divide settle quotient count attain induct "
         "cases signs").split()


def seal(text):
    """The seal over a text: its length, then its bytes in words of eight, are mixed in."""
    data, state = text.encode(), 0xcbf29ce484222325
    for word in [len(data)] + [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)] \
            + [int.from_bytes(data[len(data) // 8 * 8:], "little")]:
        state = (state ^ word) * 0x9e3779b97f4a7c15 & 0xffffffffffffffff
        state ^= state >> 29
    return f"// seal {state:016x}\n"


class CertificateReader:
    def __init__(self, text):
        at = text.rfind("// seal ")
        if at < 0 or text[at:] != seal(text[:at]):
            raise Refused("the certificate has been changed or is not whole")
        if not text.startswith("certificate 2\n"):
            raise Refused("the certificate is of another format")
        body, self.rule = text[len("certificate 2\n"):at], ""
        if body.startswith("rule "):
            end = body.find("\n}\n")
            if end < 0:
                raise Refused("the rule has no end")
            self.rule, body = body[:end + 3], body[end + 3:]
        self.r, self.body = Reader(body), body

    def certificate(self):
        r = self.r
        assumptions, witness = [], {}
        while r.accept("assume"):
            assumptions.append((r.string(), r.string()))
        while r.accept("witness"):
            name = r.name()
            r.expect("=")
            if witness.setdefault(name, None) is not None:
                raise Refused("a size is given twice")
            witness[name] = r.integer()
        named = r.accept("named_reals")
        inputs, values, facts, pairs, proofs = [], [], [], [], []
        while r.accept("input"):
            inputs.append(self.input())
        while r.accept("value"):
            values.append(self.value())
        while r.accept("fact"):
            facts.append(r.condition())
        while r.accept("pair"):
            pairs.append((r.name(), r.name()))
            r.expect("{")
            proofs.append(self.proof())
        if r.peek().kind != "end":
            raise Refused(f"{r.peek().text!r} is not expected")
        return Certificate(self.rule, assumptions, witness, named, inputs, values, facts, pairs, proofs)

    def input(self):
        r, name = self.r, self.r.name()
        r.expect(":")
        dtype, shape = r.type(), r.dims()
        uniform = r.number() if r.accept("=") else None
        return Input(name, dtype, shape, uniform, r.string() if r.accept("is") else "")

    def value(self):
        r, name = self.r, self.r.name()
        r.expect("=")
        call = r.string() if r.accept("of") else ""  # without: a constant, by positions
        output, operands = r.integer(), r.items("(", r.name, ")")
        start = r.peek().at
        definition = DefinitionReader(r).definition()
        return Value(name, call, output, operands, definition, self.body[start:r.tokens[r.next - 1].at + 1])

    def proof(self):
        steps = []
        while not self.r.accept("}"):
            steps.append(self.step())
        return steps

    def step(self):
        r, kind = self.r, self.r.name()
        if kind not in KINDS:
            raise Refused(f"there is no inference {kind}")
        side = r.integer()
        if side not in (0, 1):
            raise Refused("there are two sides")
        place, item, dims = r.items("[", r.integer, "]"), r.integer(), r.dims()
        if item < 0 or any(p < 0 for p in place):
            raise Refused("a number is negative")
        reasons, results, goals, parts = [], [], [], []
        while r.accept("since"):
            reasons.append((r.dim(), r.items("(", self.multiple, ")")))
        while r.accept("=>"):
            results.append(r.string())
        while r.accept("{"):
            r.expect("goal")
            goals.append((r.string(), r.string()))
            parts.append(self.proof())
        return Step(kind, side, place, item, dims, reasons, results, goals, parts)

    def multiple(self):
        premise = self.r.integer()
        self.r.expect(":")
        return premise, self.r.dim()
